//! Looks on while the driver compiles: times steps, shows progress, writes dumps.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;
use serde_json::json;

use crate::cli::report::Reporter;
use crate::driver::observe::Observer;

/// How long a compilation may be silent on a terminal.
const SILENCE: Duration = Duration::from_millis(600);

/// Times steps and shows them.
pub struct Progress {
    reporter: Reporter,
    started: Instant,
    open: Vec<(String, Instant)>,
    times: Vec<(String, usize, Duration)>,
    bar: Option<ProgressBar>,
    dumps: Option<PathBuf>,
    failed_dump: Option<String>,
}

impl Progress {
    /// Dumps go into the folder, when one is given.
    pub fn new(reporter: Reporter, dumps: Option<PathBuf>) -> Self {
        let visible = std::io::stderr().is_terminal() && !reporter.quiet && !reporter.json;
        let bar = (visible && reporter.verbose == 0).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        Self {
            reporter,
            started: Instant::now(),
            open: Vec::new(),
            times: Vec::new(),
            bar,
            dumps,
            failed_dump: None,
        }
    }

    /// Takes the progress line away; gives the first dump that could not be written.
    pub fn finish(&mut self) -> Option<String> {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        self.failed_dump.take()
    }

    /// A table of how long each step took.
    pub fn table(&self) -> String {
        let total = self.started.elapsed().as_secs_f64();
        let mut text = String::new();
        for (name, depth, time) in &self.times {
            let seconds = time.as_secs_f64();
            let share = 100.0 * seconds / total.max(1e-9);
            let indent = "  ".repeat(*depth);
            text.push_str(&format!(
                "{:>10.3} ms {share:>5.1}%  {indent}{name}\n",
                seconds * 1e3
            ));
        }
        text.push_str(&format!("{:>10.3} ms 100.0%  total\n", total * 1e3));
        text
    }

    /// The table as JSON.
    pub fn times(&self, target: &str) -> serde_json::Value {
        let steps = self.times.iter();
        let steps = steps.map(
            |(name, depth, time)| json!({"name": name, "depth": depth, "s": time.as_secs_f64()}),
        );
        json!({
            "target": target,
            "total_s": self.started.elapsed().as_secs_f64(),
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

impl Observer for Progress {
    fn begin(&mut self, step: &str) {
        self.open.push((step.to_owned(), Instant::now()));
        if let Some(bar) = &self.bar {
            bar.set_message(step.to_owned());
            if self.started.elapsed() > SILENCE {
                bar.enable_steady_tick(Duration::from_millis(100));
                bar.tick();
            }
        }
    }

    fn end(&mut self, step: &str) {
        let Some((name, begun)) = self.open.pop() else {
            return;
        };
        let time = begun.elapsed();
        let level = if self.open.is_empty() { 1 } else { 2 };
        let message = format!("{step}: {:.3} ms", time.as_secs_f64() * 1e3);
        self.reporter.log(level, &message);
        self.times.push((name, self.open.len(), time));
    }

    fn note(&mut self, text: &str) {
        self.reporter.warn(text);
    }

    fn wants_dumps(&self) -> bool {
        self.dumps.is_some()
    }

    fn dump(&mut self, name: &str, content: &[u8]) {
        let Some(folder) = &self.dumps else {
            return;
        };
        let path = folder.join(name);
        if let Err(error) = std::fs::write(&path, content) {
            let message = format!("cannot write `{}`: {error}", path.display());
            self.failed_dump.get_or_insert(message);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(message) = self.finish() {
            self.reporter.warn(&message);
        }
    }
}

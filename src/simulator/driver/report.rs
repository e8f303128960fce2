//! Telling what launches found: to stderr, and as JSON lines to the files that were asked for.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;
use serde_json::json;

use crate::simulator::driver::abi::Handle;
use crate::simulator::driver::settings::Settings;
use crate::simulator::driver::state::lock;
use crate::simulator::driver::state::say;
use crate::simulator::driver::status::Status;
use crate::simulator::launch::Launch;
use crate::simulator::launch::Outcome;
use crate::simulator::launch::Report;
use crate::simulator::launch::ReportKind;
use crate::simulator::launch::Stats;

/// Findings of one place that are told to stderr; the files get all.
#[derive(Default)]
struct Told {
    places: BTreeSet<(ReportKind, String, u32)>,
}

/// What launches on one stream found and counted, as JSON objects in the order of the launches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Findings.
    pub reports: Vec<Value>,
    /// Counts, one object a launch.
    pub stats: Vec<Value>,
}

/// Where findings and counts go.
pub(super) struct Journal {
    told: Mutex<Told>,
    /// Kept, by stream, for the program that carries the simulator, which then tells them itself.
    kept: Option<Mutex<BTreeMap<Handle, Records>>>,
    stats: Option<Mutex<File>>,
    reports: Option<Mutex<File>>,
}

fn open(path: Option<&Path>, failures: &mut Vec<String>) -> Option<Mutex<File>> {
    let path = path?;
    match OpenOptions::new().create(true).append(true).open(path) {
        Ok(file) => Some(Mutex::new(file)),
        Err(error) => {
            failures.push(format!("cannot write {}: {error}", path.display()));
            None
        }
    }
}

fn put(file: Option<&Mutex<File>>, value: &Value) {
    if let Some(file) = file {
        let line = format!("{value}\n");
        if let Err(error) = lock(file).write_all(line.as_bytes()) {
            say(&format!("cannot write a line: {error}"));
        }
    }
}

impl Journal {
    /// A journal to the files of the settings, and what is wrong with those.
    pub(super) fn new(settings: &Settings) -> (Self, Vec<String>) {
        let mut failures = Vec::new();
        let journal = Self {
            told: Mutex::default(),
            kept: settings.keeps_records.then(Mutex::default),
            stats: open(settings.stats.as_deref(), &mut failures),
            reports: open(settings.reports.as_deref(), &mut failures),
        };
        (journal, failures)
    }
    fn keep(&self, stream: Handle, keep: impl FnOnce(&mut Records)) -> bool {
        let Some(kept) = &self.kept else {
            return false;
        };
        keep(lock(kept).entry(stream).or_default());
        true
    }
    /// Tells a finding.
    pub(super) fn find(&self, stream: Handle, device: u32, report: &Report) {
        let value = report_json(device, report);
        put(self.reports.as_ref(), &value);
        if self.keep(stream, |records| records.reports.push(value)) {
            return;
        }
        // What has no kernel is told apart by its memory.
        let name = match &report.allocation {
            Some(place) if report.kernel.is_empty() => &place.label,
            _ => &report.kernel,
        };
        let place = (report.kind, name.clone(), report.line);
        if lock(&self.told).places.insert(place) {
            say(&report.to_string());
        }
    }
    /// Tells what came of a launch; an error if it ended before its end.
    pub(super) fn tell(
        &self,
        stream: Handle,
        device: u32,
        kernel: &str,
        launch: &Launch,
        outcome: &Outcome,
    ) -> Result<(), Status> {
        if !outcome.printed.is_empty() {
            // Nothing can be done about a closed stdout.
            let _ = std::io::stdout().write_all(&outcome.printed);
        }
        for report in outcome.fault.iter().chain(&outcome.reports) {
            self.find(stream, device, report);
        }
        if outcome.suppressed > 0 {
            let value =
                json!({ "device": device, "kernel": kernel, "suppressed": outcome.suppressed });
            put(self.reports.as_ref(), &value);
            self.keep(stream, |records| records.reports.push(value));
        }
        if let Some(stats) = &outcome.stats {
            let value = stats_json(device, kernel, launch, stats);
            put(self.stats.as_ref(), &value);
            self.keep(stream, |records| records.stats.push(value));
        }
        match &outcome.fault {
            None => Ok(()),
            Some(fault) => Err(status(fault)),
        }
    }
}

impl Journal {
    /// What was kept of a stream since the last call.
    pub(super) fn take(&self, stream: Handle) -> Records {
        let kept = self.kept.as_ref();
        let records = kept.and_then(|kept| lock(kept).remove(&stream));
        records.unwrap_or_default()
    }
}

/// What the driver says of a fault.
fn status(fault: &Report) -> Status {
    match fault.kind {
        ReportKind::OutOfBounds | ReportKind::ReadOnly => Status::ILLEGAL_ADDRESS,
        ReportKind::Misaligned => Status::MISALIGNED_ADDRESS,
        ReportKind::Trap if fault.message.contains("assert") => Status::ASSERT,
        ReportKind::Deadlock | ReportKind::InstructionLimit => Status::LAUNCH_TIMEOUT,
        ReportKind::StackOverflow => Status::HARDWARE_STACK_ERROR,
        ReportKind::IllegalInstruction => Status::ILLEGAL_INSTRUCTION,
        _ => Status::LAUNCH_FAILED,
    }
}

fn report_json(device: u32, report: &Report) -> Value {
    let allocation = report.allocation.as_ref().map(
        |place| json!({ "label": place.label, "offset": place.offset, "length": place.length }),
    );
    let other = report.other.as_ref().map(|other| {
        json!({
            "block": other.block,
            "warp": other.warp,
            "line": other.line,
            "write": other.write,
        })
    });
    json!({
        "device": device,
        "kind": report.kind.name(),
        "fatal": report.kind.is_fatal(),
        "message": report.message,
        "shown": report.to_string(),
        "kernel": report.kernel,
        "line": report.line,
        "text": report.text,
        "block": report.block,
        "thread": report.thread,
        "address": report.address,
        "allocation": allocation,
        "other": other,
    })
}

fn stats_json(device: u32, kernel: &str, launch: &Launch, stats: &Stats) -> Value {
    let classes: serde_json::Map<String, Value> = stats
        .classes
        .iter()
        .map(|(class, count)| {
            let value = json!({ "warps": count.warps, "lanes": count.lanes });
            ((*class).to_owned(), value)
        })
        .collect();
    let (bound, seconds) = stats.roofline.bound();
    json!({
        "device": device,
        "kernel": kernel,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "dynamic_shared": launch.dynamic_shared,
        "classes": classes,
        "warp_instructions": stats.instructions.warps,
        "lane_instructions": stats.instructions.lanes,
        "sectors_read": stats.sectors_read,
        "sectors_written": stats.sectors_written,
        "bytes_read": stats.bytes_read,
        "bytes_written": stats.bytes_written,
        "shared_accesses": stats.shared_accesses,
        "bank_conflicts": stats.bank_conflicts,
        "tensor_flops": stats.tensor_flops,
        "flops": stats.flops,
        "double_flops": stats.double_flops,
        "atomics": stats.atomics,
        "divergent_branches": stats.divergent_branches,
        "barriers": stats.barriers,
        "blocks": stats.blocks,
        "threads": stats.threads,
        "occupancy": {
            "blocks": stats.occupancy.blocks,
            "warps": stats.occupancy.warps,
            "fraction": stats.occupancy.fraction,
            "limit": stats.occupancy.limit,
        },
        "roofline": {
            "memory": stats.roofline.memory,
            "arithmetic": stats.roofline.arithmetic,
            "double": stats.roofline.double,
            "tensor": stats.roofline.tensor,
            "issue": stats.roofline.issue,
            "shared": stats.roofline.shared,
            "bound": bound,
            "seconds": seconds,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: ReportKind, message: &str) -> Report {
        Report {
            kind,
            message: message.to_owned(),
            kernel: "k".to_owned(),
            line: 7,
            text: "trap;".to_owned(),
            block: [1, 0, 0],
            thread: [2, 0, 0],
            address: Some(64),
            allocation: None,
            other: None,
        }
    }

    #[test]
    fn faults_become_the_codes_of_the_interface() {
        for (kind, message, wanted) in [
            (ReportKind::OutOfBounds, "", Status::ILLEGAL_ADDRESS),
            (ReportKind::Misaligned, "", Status::MISALIGNED_ADDRESS),
            (ReportKind::Trap, "trap", Status::LAUNCH_FAILED),
            (ReportKind::Trap, "assertion failed", Status::ASSERT),
            (ReportKind::Deadlock, "", Status::LAUNCH_TIMEOUT),
        ] {
            let found = status(&fault(kind, message));
            assert_eq!(found, wanted, "{kind:?}");
            assert!(found.is_sticky());
        }
    }

    #[test]
    fn findings_and_counts_are_lines_of_their_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| Some(folder.path().join(name).display().to_string());
        let settings = Settings::read(|name| match name {
            "XLA_AOT_SIM_STATS" => path("stats"),
            "XLA_AOT_SIM_REPORTS" => path("reports"),
            _ => None,
        });
        assert!(settings.options.stats);
        let (journal, failures) = Journal::new(&settings);
        assert!(failures.is_empty());
        let launch = Launch {
            grid: [3, 1, 1],
            block: [32, 1, 1],
            cluster: [1; 3],
            dynamic_shared: 0,
            params: Vec::new(),
            cooperative: false,
        };
        let outcome = Outcome {
            reports: vec![fault(ReportKind::Uninitialized, "a read")],
            suppressed: 4,
            stats: Some(Stats::default()),
            ..Outcome::default()
        };
        assert_eq!(journal.tell(7, 1, "k", &launch, &outcome), Ok(()));
        let lines = |name: &str| -> Vec<Value> {
            let text = std::fs::read_to_string(folder.path().join(name)).expect("written");
            let lines = text.lines();
            lines
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect()
        };
        let reports = lines("reports");
        assert_eq!(reports[0]["line"], 7);
        assert_eq!(reports[0]["fatal"], false);
        assert_eq!(reports[1]["suppressed"], 4);
        assert_eq!(lines("stats")[0]["grid"], json!([3, 1, 1]));
        assert_eq!(journal.take(7), Records::default());
    }

    #[test]
    fn what_is_kept_belongs_to_its_stream() {
        let settings = Settings {
            keeps_records: true,
            ..Settings::read(|_| None)
        };
        let journal = Journal::new(&settings).0;
        let launch = Launch {
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            dynamic_shared: 0,
            params: Vec::new(),
            cooperative: false,
        };
        let outcome = Outcome {
            reports: vec![fault(ReportKind::Uninitialized, "a read")],
            ..Outcome::default()
        };
        for stream in [16, 32] {
            assert_eq!(journal.tell(stream, 0, "k", &launch, &outcome), Ok(()));
        }
        assert_eq!(journal.take(16).reports.len(), 1);
        assert_eq!(journal.take(16).reports.len(), 0);
        assert_eq!(journal.take(32).reports[0]["kernel"], "k");
    }

    #[test]
    fn files_that_cannot_be_written_are_told() {
        let settings = Settings::read(|name| {
            (name == "XLA_AOT_SIM_STATS").then(|| "/no/such/folder/stats".to_owned())
        });
        let failures = Journal::new(&settings).1;
        assert!(
            failures[0].contains("/no/such/folder/stats"),
            "{failures:?}"
        );
    }
}

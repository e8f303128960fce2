//! What the environment asks of the simulator.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `XLA_AOT_SIM_TARGET` | the GPU, by any name of a target | `h100_sxm` |
//! | `XLA_AOT_SIM_DEVICES` | how many of them | 1 |
//! | `XLA_AOT_SIM_CHECKS` | `all`, `none`, or a list of `bounds`, `uninitialized`, `races` | `all` |
//! | `XLA_AOT_SIM_THREADS` | host threads of a launch; 0 takes all | 0 |
//! | `XLA_AOT_SIM_STATS` | a file that gets a JSON line a launch | none |
//! | `XLA_AOT_SIM_REPORTS` | a file that gets a JSON line a finding | none |
//! | `XLA_AOT_SIM_STREAMS` | `eager`: a stream's work runs where it is submitted when it can; `threads`: on a thread of the stream | `eager` |
//! | `XLA_AOT_SIM_MEMORY` | bytes of device memory | the target's |
//! | `XLA_AOT_SIM_TRACE` | `1`: every call goes to stderr | none |
//!
//! An empty text counts as none. What cannot be understood is said on stderr, and `cuInit` refuses.

use std::path::PathBuf;

use crate::simulator::launch::Options;

/// The GPU when nobody names one.
pub(super) const DEFAULT_TARGET: &str = "h100_sxm";

/// Most devices.
const MOST_DEVICES: usize = 64;

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The name of the GPU.
    pub(super) target: String,
    /// How many devices.
    pub(super) devices: usize,
    /// What launches check and count.
    pub(super) options: Options,
    /// Where statistics go.
    pub(super) stats: Option<PathBuf>,
    /// Where reports go.
    pub(super) reports: Option<PathBuf>,
    /// Whether work may run on the thread that submits it.
    pub(super) eager: bool,
    /// Bytes of device memory, when not the target's.
    pub(super) memory: Option<u64>,
    /// Whether a program carries the simulator, which tells itself what launches found and what is
    /// wrong with the settings.
    pub(super) keeps_records: bool,
    /// What could not be understood.
    pub(super) complaints: Vec<String>,
}

/// What a program that carries the simulator asks of it; the rest comes from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The GPU, by any name of a target.
    pub target: Option<String>,
    /// How many of them.
    pub devices: Option<usize>,
    /// Whether launches count.
    pub stats: bool,
}

impl Settings {
    /// Reads the settings through `variable`.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let checked = variable("XLA_AOT_SIM_CHECKS");
        let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
        let mut complaints = Vec::new();
        let mut number = |name: &str, least: u64, most: u64| {
            let text = variable(name)?;
            let value = text.trim().parse().ok();
            let value = value.filter(|value| (least..=most).contains(value));
            if value.is_none() {
                complaints.push(format!(
                    "{name}: found `{text}`, wanted a number from {least} to {most}"
                ));
            }
            value
        };
        let devices = number("XLA_AOT_SIM_DEVICES", 0, MOST_DEVICES as u64);
        let threads = number("XLA_AOT_SIM_THREADS", 0, 1 << 16);
        let memory = number("XLA_AOT_SIM_MEMORY", 1, 1 << 60);
        let mut options = Options {
            threads: threads.unwrap_or(0) as usize,
            stats: variable("XLA_AOT_SIM_STATS").is_some(),
            ..Options::default()
        };
        if let Some(text) = checked {
            checks(&text, &mut options, &mut complaints);
        }
        let eager = match variable("XLA_AOT_SIM_STREAMS").as_deref() {
            None | Some("eager") => true,
            Some("threads") => false,
            Some(other) => {
                complaints.push(format!(
                    "XLA_AOT_SIM_STREAMS: found `{other}`, wanted `eager` or `threads`"
                ));
                true
            }
        };
        Self {
            target: variable("XLA_AOT_SIM_TARGET").unwrap_or_else(|| DEFAULT_TARGET.to_owned()),
            devices: devices.unwrap_or(1) as usize,
            options,
            stats: variable("XLA_AOT_SIM_STATS").map(PathBuf::from),
            reports: variable("XLA_AOT_SIM_REPORTS").map(PathBuf::from),
            eager,
            memory,
            keeps_records: false,
            complaints,
        }
    }

    /// The same settings as a program asks for them, with records kept for it.
    pub(super) fn asked(mut self, request: &Request) -> Self {
        if let Some(target) = &request.target {
            self.target.clone_from(target);
        }
        if let Some(devices) = request.devices {
            self.devices = devices.min(MOST_DEVICES);
        }
        self.keeps_records = true;
        self
    }
}

fn checks(text: &str, options: &mut Options, complaints: &mut Vec<String>) {
    let all = text.split(',').any(|word| word.trim() == "all");
    // Without bounds a wild address would end the host process, so they stay on.
    options.bounds = true;
    options.uninitialized = all;
    options.races = all;
    let is_alone = !text.contains(',');
    for word in text.split(',') {
        match word.trim() {
            "bounds" => {}
            "all" | "none" if is_alone => {}
            alone @ ("all" | "none") => complaints.push(format!(
                "XLA_AOT_SIM_CHECKS: found `{alone}` among others in `{text}`, wanted it alone"
            )),
            "uninitialized" => options.uninitialized = true,
            "races" => options.races = true,
            other => complaints.push(format!(
                "XLA_AOT_SIM_CHECKS: found `{other}`, wanted `all`, `none`, `bounds`, \
                 `uninitialized` or `races`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_from_the_environment() {
        let settings = Settings::read(|name| {
            let text = match name {
                "XLA_AOT_SIM_CHECKS" => "races",
                "XLA_AOT_SIM_DEVICES" => "4",
                "XLA_AOT_SIM_STREAMS" => "sometimes",
                _ => return None,
            };
            Some(text.to_owned())
        });
        assert_eq!((settings.devices, settings.eager), (4, true));
        assert!(settings.options.races && !settings.options.uninitialized);
        assert_eq!(settings.complaints.len(), 1);
    }

    #[test]
    fn every_odd_value_is_complained_about() {
        for (name, text) in [
            ("XLA_AOT_SIM_CHECKS", "race"),
            ("XLA_AOT_SIM_CHECKS", ""),
            ("XLA_AOT_SIM_CHECKS", "all,races"),
            ("XLA_AOT_SIM_CHECKS", "bounds,none"),
            ("XLA_AOT_SIM_DEVICES", "-1"),
            ("XLA_AOT_SIM_DEVICES", "65"),
            ("XLA_AOT_SIM_THREADS", "two"),
            ("XLA_AOT_SIM_MEMORY", "0"),
            ("XLA_AOT_SIM_MEMORY", "4G"),
            ("XLA_AOT_SIM_STREAMS", "lazy"),
        ] {
            let settings = Settings::read(|asked| (asked == name).then(|| text.to_owned()));
            let [complaint] = &settings.complaints[..] else {
                panic!("{name}={text}: {:?}", settings.complaints);
            };
            assert!(
                complaint.starts_with(name) && complaint.contains(text),
                "{complaint}"
            );
        }
        let empty = Settings::read(|name| (name != "XLA_AOT_SIM_CHECKS").then(String::new));
        assert_eq!((empty.complaints.len(), empty.devices), (0, 1));
        assert_eq!(empty.options, Options::default());
    }
}

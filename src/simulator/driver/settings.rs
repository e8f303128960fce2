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
        let mut complaints = Vec::new();
        let mut number = |name: &str, default: u64| match variable(name) {
            None => default,
            Some(text) => text.trim().parse().unwrap_or_else(|_| {
                complaints.push(format!("{name}: found `{text}`, wanted a number"));
                default
            }),
        };
        let devices = usize::try_from(number("XLA_AOT_SIM_DEVICES", 1)).unwrap_or(usize::MAX);
        let threads = usize::try_from(number("XLA_AOT_SIM_THREADS", 0)).unwrap_or(0);
        let memory = Some(number("XLA_AOT_SIM_MEMORY", 0)).filter(|&bytes| bytes > 0);
        if devices > MOST_DEVICES {
            complaints.push(format!(
                "XLA_AOT_SIM_DEVICES: found `{devices}`, wanted at most {MOST_DEVICES}"
            ));
        }
        let mut options = Options {
            threads,
            stats: variable("XLA_AOT_SIM_STATS").is_some(),
            ..Options::default()
        };
        if let Some(text) = variable("XLA_AOT_SIM_CHECKS") {
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
            devices: devices.min(MOST_DEVICES),
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
    for word in text.split(',') {
        match word.trim() {
            "all" | "none" | "bounds" | "" => {}
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
        let many = Settings::read(|name| (name == "XLA_AOT_SIM_DEVICES").then(|| "65".to_owned()));
        assert_eq!(many.devices, MOST_DEVICES);
        assert!(many.complaints[0].contains("wanted at most 64"));
    }
}

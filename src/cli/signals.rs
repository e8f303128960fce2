//! SIGINT and SIGTERM: temporary files go, and the process ends at once with 128 + the signal.

use signal_hook::consts::SIGINT;
use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;

use crate::cli::files::Unfinished;

/// Waits for a signal on a thread of its own.
pub fn watch(unfinished: Unfinished) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        // Without the handler the system's default ends the process as well.
        return;
    };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            unfinished.delete();
            end(128 + signal);
        }
    });
}

#[allow(
    clippy::exit,
    reason = "a signal ends the process wherever its other threads are"
)]
fn end(code: i32) {
    std::process::exit(code);
}

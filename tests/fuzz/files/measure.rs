//! What it takes to read a file: processor time and memory.

use std::fs;
use std::time::Duration;

use crate::fuzz::watch::worked;

/// Processor time that a file may take.
const TIME: Duration = Duration::from_secs(5);

/// Memory that any file may take, and what each of its bytes may take beyond it.
const MEMORY: u64 = 256 << 20;
const MEMORY_PER_BYTE: u64 = 1000;

/// A measurement.
pub struct Measure {
    time: Duration,
    memory: u64,
}

impl Measure {
    /// Starts one. There can be one at a time in a process.
    pub fn start() -> Self {
        // The peak of resident memory is counted from here on, where the system knows that.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self {
            time: worked("self"),
            memory: peak(),
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// When a file of that many bytes took too much.
    pub fn end(self, bytes: usize) -> Result<(), String> {
        let time = worked("self").saturating_sub(self.time);
        if time > TIME {
            return Err(format!("time: {time:?} for {bytes} bytes"));
        }
        let memory = peak().saturating_sub(self.memory);
        if memory > MEMORY + MEMORY_PER_BYTE * bytes as u64 {
            return Err(format!("memory: {} MiB for {bytes} bytes", memory >> 20));
        }
        Ok(())
    }
}

/// The peak of the memory of this process, where the system tells.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

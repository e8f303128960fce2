//! Options of just-in-time compilation: what the caller wants told.

use std::ffi::c_char;
use std::time::Duration;

use crate::simulator::driver::abi::Answer;
use crate::simulator::driver::abi::In;
use crate::simulator::driver::abi::Out;
use crate::simulator::driver::image::Refusal;
use crate::simulator::driver::state::say;
use crate::simulator::driver::status::Status;

/// One past the last option.
const OPTIONS: u32 = 34;

/// A log that the caller gave room for.
#[derive(Clone, Copy, Default)]
struct Log {
    buffer: usize,
    bytes: usize,
    /// Which option is the log's size, for what was written.
    size_at: Option<usize>,
}

impl Log {
    fn write(&self, values: Out<usize>, text: &str) {
        let mut written = 0;
        if self.buffer != 0 && self.bytes > 0 {
            let buffer: Out<c_char> = pointer(self.buffer);
            // There is a buffer and room for the end at least.
            let _ = buffer.put_text(text, self.bytes);
            written = text.len().min(self.bytes - 1);
        }
        if let Some(index) = self.size_at {
            values.put_at(index, written);
        }
    }
}

fn pointer<T>(address: usize) -> Out<T> {
    Out::from_address(address)
}

/// The options of one compilation.
pub(super) struct Jit {
    values: Out<usize>,
    info: Log,
    error: Log,
    wall_time: Option<usize>,
}

impl Jit {
    /// No options.
    pub(super) fn none() -> Self {
        Self {
            values: Out::null(),
            info: Log::default(),
            error: Log::default(),
            wall_time: None,
        }
    }
    /// The options of a call.
    pub(super) fn read(count: u32, options: In<u32>, values: Out<usize>) -> Answer<Self> {
        let mut jit = Self::none();
        let options = options.array(count as usize)?;
        let given = values.input().array(count as usize)?;
        jit.values = values;
        for (index, (option, value)) in options.into_iter().zip(given).enumerate() {
            match option {
                2 => jit.wall_time = Some(index),
                3 => jit.info.buffer = value,
                // Sizes are 32 bits wide, whatever lies above them.
                4 => {
                    jit.info.bytes = value & 0xffff_ffff;
                    jit.info.size_at = Some(index);
                }
                5 => jit.error.buffer = value,
                6 => {
                    jit.error.bytes = value & 0xffff_ffff;
                    jit.error.size_at = Some(index);
                }
                OPTIONS.. => return Err(Status::INVALID_VALUE),
                _ => {}
            }
        }
        Ok(jit)
    }
    /// Says why an image cannot be used, to the caller and to whoever watches.
    pub(super) fn refuse(&self, time: Duration, refusal: Refusal) -> Status {
        say(&refusal.message);
        self.finish(time, "", &refusal.message);
        refusal.status
    }
    /// Tells the caller how it went.
    pub(super) fn finish(&self, time: Duration, info: &str, error: &str) {
        self.info.write(self.values, info);
        self.error.write(self.values, error);
        if let Some(index) = self.wall_time {
            let milliseconds = (time.as_secs_f64() * 1e3) as f32;
            self.values.put_at(index, milliseconds.to_bits() as usize);
        }
    }
}

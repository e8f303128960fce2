//! Who looks on while a program is compiled: for progress, timing and dumps.
//!
//! The driver names what begins and ends and hands out texts; it knows no clock and no files.

/// Looks on.
pub trait Observer {
    /// A step begins; steps within another are named after it, such as `passes/<name>`.
    fn begin(&mut self, _step: &str) {}
    /// The step that began last and has not ended is done.
    fn end(&mut self, _step: &str) {}
    /// Something a user should know of the program.
    fn note(&mut self, _text: &str) {}
    /// Whether dumps are wanted; making them takes time.
    fn wants_dumps(&self) -> bool {
        false
    }
    /// Something to be kept for a person who looks into a compilation.
    fn dump(&mut self, _name: &str, _content: &[u8]) {}
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// Runs a step between its two calls.
pub fn step<T, E>(
    observer: &mut dyn Observer,
    name: &str,
    run: impl FnOnce(&mut dyn Observer) -> Result<T, E>,
) -> Result<T, E> {
    observer.begin(name);
    let result = run(observer);
    observer.end(name);
    result
}

//! Panics as values.

use std::panic;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Where the last panic was, when [`keep_quiet`] was called.
static PLACE: Mutex<String> = Mutex::new(String::new());

/// From now on panics print nothing, and what catches them knows their place.
pub fn keep_quiet() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place.unwrap_or_default();
    }));
}

/// What `run` gives, or the text of its panic.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        let place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = if place.is_empty() { "" } else { " at " };
        format!("panics{at}{place}: {}", text.unwrap_or_default())
    })
}

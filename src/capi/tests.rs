//! What the C programs of `tests/library` cannot see.

use std::ffi::CStr;

use crate::capi::border::guarded;
use crate::capi::bundle::Bundle;
use crate::capi::error;
use crate::capi::error::Error;
use crate::capi::frame::Buffer;
use crate::capi::frame::CallFrame;
use crate::capi::host_api::Api;
use crate::capi::program::Program;

#[test]
fn handles_may_be_used_by_several_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Bundle>();
    shared::<Program>();
    shared::<Error>();
}

#[test]
fn frames_have_the_sizes_of_the_convention() {
    assert_eq!(CallFrame::SIZE, 168);
    assert_eq!(size_of::<CallFrame>(), 176);
    assert_eq!(size_of::<Buffer>(), 48);
    assert_eq!(size_of::<Api>(), 192);
}

#[test]
fn panics_end_at_the_border() {
    let error = guarded(|| panic!("a number is wrong: {}", 7));
    // SAFETY: an error that lives until it is given up below.
    unsafe {
        assert_eq!(error::xla_aot_error_kind(error), 70);
        assert_eq!(error::xla_aot_error_code(error), 9001);
        let message = CStr::from_ptr(error::xla_aot_error_message(error));
        assert_eq!(
            message.to_str(),
            Ok("the library panicked: a number is wrong: 7")
        );
        error::xla_aot_error_free(error);
    }
    assert!(guarded(|| Ok(())).is_null());
}

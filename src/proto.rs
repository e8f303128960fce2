//! The wire structs that the build script makes from `proto/`. No hand-written code.

#![allow(missing_docs, clippy::all, reason = "generated code")]

/// `package stream_executor`
pub mod stream_executor {
    include!(concat!(env!("OUT_DIR"), "/stream_executor.rs"));

    /// `package stream_executor.gpu`
    pub mod gpu {
        include!(concat!(env!("OUT_DIR"), "/stream_executor.gpu.rs"));
    }
}

/// `package xla`
pub mod xla {
    include!(concat!(env!("OUT_DIR"), "/xla.rs"));

    /// `package xla.buffer_assignment`
    pub mod buffer_assignment {
        include!(concat!(env!("OUT_DIR"), "/xla.buffer_assignment.rs"));
    }

    /// `package xla.cpu`
    pub mod cpu {
        include!(concat!(env!("OUT_DIR"), "/xla.cpu.rs"));
    }

    /// `package xla.ffi`
    pub mod ffi {
        include!(concat!(env!("OUT_DIR"), "/xla.ffi.rs"));
    }

    /// `package xla.gpu`
    pub mod gpu {
        include!(concat!(env!("OUT_DIR"), "/xla.gpu.rs"));
    }

    /// `package xla.ifrt`
    pub mod ifrt {
        include!(concat!(env!("OUT_DIR"), "/xla.ifrt.rs"));
    }
}

/// `package xla_aot`
pub mod xla_aot {
    include!(concat!(env!("OUT_DIR"), "/xla_aot.rs"));
}

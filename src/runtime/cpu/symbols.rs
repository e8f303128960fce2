//! The functions that objects may call: memory, libm, and conversions of narrow floats.
//!
//! The list is the registry of XLA's CPU client (cpu-bundle.md section 6) plus two conversions that
//! LLVM may call. Nothing else of this process is reachable by name.
#![allow(unsafe_code, reason = "declares and names the C library's functions")]

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        mod c {
            use std::ffi::c_int;
            use std::ffi::c_long;
            use std::ffi::c_longlong;
            use std::ffi::c_void;
            unsafe extern "C" {
                $(pub(super) fn $name($(_: $arg),*) $(-> $ret)?;)*
            }
        }
        /// Functions of the C library by name.
        fn library() -> Vec<(&'static str, usize)> {
            vec![$((stringify!($name), c::$name as *const () as usize),)*]
        }
    };
}

functions! {
    memcpy: fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    memmove: fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    memset: fn(*mut c_void, c_int, usize) -> *mut c_void;
    malloc: fn(usize) -> *mut c_void;
    free: fn(*mut c_void);
    sincos: fn(f64, *mut f64, *mut f64);
    sincosf: fn(f32, *mut f32, *mut f32);
    acos: fn(f64) -> f64;
    acosf: fn(f32) -> f32;
    acosh: fn(f64) -> f64;
    acoshf: fn(f32) -> f32;
    asin: fn(f64) -> f64;
    asinf: fn(f32) -> f32;
    asinh: fn(f64) -> f64;
    asinhf: fn(f32) -> f32;
    atan: fn(f64) -> f64;
    atanf: fn(f32) -> f32;
    atan2: fn(f64, f64) -> f64;
    atan2f: fn(f32, f32) -> f32;
    atanh: fn(f64) -> f64;
    atanhf: fn(f32) -> f32;
    cbrt: fn(f64) -> f64;
    cbrtf: fn(f32) -> f32;
    ceil: fn(f64) -> f64;
    ceilf: fn(f32) -> f32;
    copysign: fn(f64, f64) -> f64;
    copysignf: fn(f32, f32) -> f32;
    cos: fn(f64) -> f64;
    cosf: fn(f32) -> f32;
    cosh: fn(f64) -> f64;
    coshf: fn(f32) -> f32;
    erf: fn(f64) -> f64;
    erff: fn(f32) -> f32;
    erfc: fn(f64) -> f64;
    erfcf: fn(f32) -> f32;
    exp: fn(f64) -> f64;
    expf: fn(f32) -> f32;
    exp2: fn(f64) -> f64;
    exp2f: fn(f32) -> f32;
    expm1: fn(f64) -> f64;
    expm1f: fn(f32) -> f32;
    fabs: fn(f64) -> f64;
    fabsf: fn(f32) -> f32;
    fdim: fn(f64, f64) -> f64;
    fdimf: fn(f32, f32) -> f32;
    floor: fn(f64) -> f64;
    floorf: fn(f32) -> f32;
    fma: fn(f64, f64, f64) -> f64;
    fmaf: fn(f32, f32, f32) -> f32;
    fmax: fn(f64, f64) -> f64;
    fmaxf: fn(f32, f32) -> f32;
    fmin: fn(f64, f64) -> f64;
    fminf: fn(f32, f32) -> f32;
    fmod: fn(f64, f64) -> f64;
    fmodf: fn(f32, f32) -> f32;
    frexp: fn(f64, *mut c_int) -> f64;
    frexpf: fn(f32, *mut c_int) -> f32;
    hypot: fn(f64, f64) -> f64;
    hypotf: fn(f32, f32) -> f32;
    ilogb: fn(f64) -> c_int;
    ilogbf: fn(f32) -> c_int;
    ldexp: fn(f64, c_int) -> f64;
    ldexpf: fn(f32, c_int) -> f32;
    lgamma: fn(f64) -> f64;
    lgammaf: fn(f32) -> f32;
    llrint: fn(f64) -> c_longlong;
    llrintf: fn(f32) -> c_longlong;
    llround: fn(f64) -> c_longlong;
    llroundf: fn(f32) -> c_longlong;
    log: fn(f64) -> f64;
    logf: fn(f32) -> f32;
    log10: fn(f64) -> f64;
    log10f: fn(f32) -> f32;
    log1p: fn(f64) -> f64;
    log1pf: fn(f32) -> f32;
    log2: fn(f64) -> f64;
    log2f: fn(f32) -> f32;
    logb: fn(f64) -> f64;
    logbf: fn(f32) -> f32;
    lrint: fn(f64) -> c_long;
    lrintf: fn(f32) -> c_long;
    lround: fn(f64) -> c_long;
    lroundf: fn(f32) -> c_long;
    modf: fn(f64, *mut f64) -> f64;
    modff: fn(f32, *mut f32) -> f32;
    nan: fn(*const std::ffi::c_char) -> f64;
    nanf: fn(*const std::ffi::c_char) -> f32;
    nearbyint: fn(f64) -> f64;
    nearbyintf: fn(f32) -> f32;
    nextafter: fn(f64, f64) -> f64;
    nextafterf: fn(f32, f32) -> f32;
    pow: fn(f64, f64) -> f64;
    powf: fn(f32, f32) -> f32;
    remainder: fn(f64, f64) -> f64;
    remainderf: fn(f32, f32) -> f32;
    remquo: fn(f64, f64, *mut c_int) -> f64;
    remquof: fn(f32, f32, *mut c_int) -> f32;
    rint: fn(f64) -> f64;
    rintf: fn(f32) -> f32;
    round: fn(f64) -> f64;
    roundf: fn(f32) -> f32;
    scalbln: fn(f64, c_long) -> f64;
    scalblnf: fn(f32, c_long) -> f32;
    scalbn: fn(f64, c_int) -> f64;
    scalbnf: fn(f32, c_int) -> f32;
    sin: fn(f64) -> f64;
    sinf: fn(f32) -> f32;
    sinh: fn(f64) -> f64;
    sinhf: fn(f32) -> f32;
    sqrt: fn(f64) -> f64;
    sqrtf: fn(f32) -> f32;
    tan: fn(f64) -> f64;
    tanf: fn(f32) -> f32;
    tanh: fn(f64) -> f64;
    tanhf: fn(f32) -> f32;
    tgamma: fn(f64) -> f64;
    tgammaf: fn(f32) -> f32;
    trunc: fn(f64) -> f64;
    truncf: fn(f32) -> f32;
}

/// Rounds an f64, given as bits, to a float of 16 bits, ties to even.
///
/// In integers, because kernels run with denormals switched off.
fn narrow(bits: u64, mantissa_bits: u32) -> u16 {
    let exponent_bits = 15 - mantissa_bits;
    let sign = ((bits >> 48) & 0x8000) as u16;
    let top = (1i64 << exponent_bits) - 1;
    let infinity = (top as u16) << mantissa_bits;
    let exponent = ((bits >> 52) & 0x7ff).cast_signed();
    let mantissa = bits & ((1 << 52) - 1);
    if exponent == 0x7ff {
        let quiet = if mantissa == 0 {
            0
        } else {
            1 << (mantissa_bits - 1)
        };
        return sign | infinity | quiet;
    }
    if exponent == 0 {
        return sign;
    }
    let biased = exponent - 1023 + (top >> 1);
    // Below the normal range the mantissa loses more bits; the shift ends at "all of them".
    let lost = 52 - i64::from(mantissa_bits) + (1 - biased).max(0);
    if lost > 63 {
        return sign;
    }
    let full = mantissa | 1 << 52;
    let kept = full >> lost;
    let rest = full & ((1 << lost) - 1);
    let half = 1u64 << (lost - 1);
    let up = u64::from(rest > half || (rest == half && kept & 1 == 1));
    // For normal numbers `kept` has its leading one, which adds one to the exponent.
    let base = ((biased - 1).max(0).cast_unsigned()) << mantissa_bits;
    let magnitude = base + kept + up;
    if biased >= top || magnitude >= u64::from(infinity) {
        return sign | infinity;
    }
    sign | magnitude as u16
}

/// A 16-bit float as it is returned: in the low bits of a float register.
fn in_register(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits))
}

extern "C" fn double_to_half(value: f64) -> f32 {
    in_register(narrow(value.to_bits(), 10))
}

extern "C" fn double_to_bfloat(value: f64) -> f32 {
    in_register(narrow(value.to_bits(), 7))
}

extern "C" fn float_to_half(value: f32) -> f32 {
    in_register(half::f16::from_f32(value).to_bits())
}

extern "C" fn float_to_bfloat(value: f32) -> f32 {
    in_register(half::bf16::from_f32(value).to_bits())
}

extern "C" fn half_to_float(value: f32) -> f32 {
    half::f16::from_bits((value.to_bits() & 0xffff) as u16).to_f32()
}

extern "C" fn float_to_half_bits(value: f32) -> u16 {
    half::f16::from_f32(value).to_bits()
}

extern "C" fn half_bits_to_float(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

extern "C" fn power_f32(base: f32, exponent: i32) -> f32 {
    base.powi(exponent)
}

extern "C" fn power_f64(base: f64, exponent: i32) -> f64 {
    base.powi(exponent)
}

/// The functions made here.
fn own() -> Vec<(&'static str, usize)> {
    vec![
        ("__truncdfhf2", double_to_half as *const () as usize),
        ("__truncdfbf2", double_to_bfloat as *const () as usize),
        ("__truncsfhf2", float_to_half as *const () as usize),
        ("__truncsfbf2", float_to_bfloat as *const () as usize),
        ("__extendhfsf2", half_to_float as *const () as usize),
        ("__gnu_f2h_ieee", float_to_half_bits as *const () as usize),
        ("__gnu_h2f_ieee", half_bits_to_float as *const () as usize),
        ("__powisf2", power_f32 as *const () as usize),
        ("__powidf2", power_f64 as *const () as usize),
    ]
}

/// The address of the function of that name, when objects may call it.
pub fn address(name: &str) -> Option<usize> {
    let mut all = library().into_iter().chain(own());
    all.find(|(known, _)| *known == name)
        .map(|(_, address)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrowing_rounds_once() {
        let half = |v: f64| narrow(v.to_bits(), 10);
        assert_eq!(half(1.0), 0x3c00);
        assert_eq!(half(-2.5), 0xc100);
        assert_eq!(half(65504.0), 0x7bff);
        assert_eq!(half(65520.0), 0x7c00);
        assert_eq!(half(65519.999), 0x7bff);
        assert_eq!(half(2f64.powi(-24)), 1);
        assert_eq!(half(2f64.powi(-25)), 0);
        assert_eq!(half(2f64.powi(-25) * 1.000_000_001), 1);
        assert_eq!(half(2f64.powi(-14)), 0x0400);
        assert_eq!(half(f64::NAN) & 0x7e00, 0x7e00);
        assert_eq!(half(f64::NEG_INFINITY), 0xfc00);
        // Just above a tie: rounding to f32 first would make it a tie and lose the rest.
        assert_eq!(half(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0x3c01);
        assert_eq!(half(1.0 + 2f64.powi(-11)), 0x3c00);
        let bfloat = |v: f64| narrow(v.to_bits(), 7);
        assert_eq!(bfloat(1.0), 0x3f80);
        assert_eq!(bfloat(f64::from(f32::MAX)), 0x7f80);
        assert_eq!(bfloat(2f64.powi(-133)), 1);
        for bits in (0u16..0x7c00).step_by(7) {
            assert_eq!(half(half::f16::from_bits(bits).to_f64()), bits);
        }
        for bits in (0u16..0x7f80).step_by(7) {
            assert_eq!(bfloat(half::bf16::from_bits(bits).to_f64()), bits);
        }
    }

    #[test]
    fn the_list_is_closed() {
        for name in ["expf", "sincos", "memcpy", "__truncdfbf2", "pow"] {
            assert!(address(name).is_some(), "{name}");
        }
        for name in ["printf", "system", "memcmp", "dlsym", ""] {
            assert!(address(name).is_none(), "{name}");
        }
    }
}

//! Values at the edges of each element type.

use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::number;
use xla_aot::literal::number::Number;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::ElementKind;
use xla_aot::shape::PrimitiveType;

/// The bytes of every corner value: all values of types of a byte and less, else zeros, ones, the
/// largest and smallest numbers, infinities, NaN, and some in between.
pub fn values(ty: PrimitiveType) -> Vec<Vec<u8>> {
    let width = ty.byte_width();
    let encoded = |number: Number| {
        let mut out = vec![0; width];
        number::encode(ty, number, &mut out);
        out
    };
    match ty.kind() {
        ElementKind::Pred => vec![vec![0], vec![1]],
        ElementKind::Signed | ElementKind::Unsigned if ty.bit_width() <= 8 => {
            let bits = ty.bit_width();
            let signed = ty.kind() == ElementKind::Signed;
            let all = (0..1i128 << bits).map(|x| if signed { x - (1 << (bits - 1)) } else { x });
            all.map(|x| encoded(Number::Int(x))).collect()
        }
        ElementKind::Signed | ElementKind::Unsigned => {
            let bits = ty.bit_width();
            let (low, high) = if ty.kind() == ElementKind::Signed {
                (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
            } else {
                (0, (1i128 << bits) - 1)
            };
            let near = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 127, 128, 255, 1000];
            let middle = high / 2;
            let edges = [low, low + 1, low + 2, high, high - 1, middle, middle + 1];
            let all = near.iter().flat_map(|&x| [x, -x]).chain(edges);
            let all = all.filter(|x| (low..=high).contains(x));
            all.map(|x| encoded(Number::Int(x))).collect()
        }
        ElementKind::Float if width == 1 => (0..1u16 << ty.bit_width())
            .map(|bits| vec![bits as u8])
            .collect(),
        ElementKind::Float => floats(ty)
            .into_iter()
            .map(|x| encoded(Number::Float(x)))
            .collect(),
        ElementKind::Complex => {
            let parts = [
                0.0,
                -0.0,
                1.0,
                -1.0,
                0.5,
                -2.5,
                3.0,
                1e-20,
                -1e18,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
            ];
            let pairs = parts
                .iter()
                .flat_map(|&re| parts.iter().map(move |&im| (re, im)));
            pairs
                .map(|(re, im)| encoded(Number::Complex(re, im)))
                .collect()
        }
    }
}

fn floats(ty: PrimitiveType) -> Vec<f64> {
    let (most, normal, least) = match ty {
        PrimitiveType::F16 => (65504.0, 2f64.powi(-14), 2f64.powi(-24)),
        PrimitiveType::BF16 => (
            f64::from(f32::from_bits(0x7f7f_0000)),
            2f64.powi(-126),
            2f64.powi(-133),
        ),
        PrimitiveType::F32 => (f64::from(f32::MAX), 2f64.powi(-126), 2f64.powi(-149)),
        _ => (f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)),
    };
    let positive = [
        0.0,
        1.0,
        0.5,
        0.25,
        0.75,
        1.5,
        2.0,
        2.5,
        3.0,
        3.5,
        7.0,
        10.0,
        100.25,
        127.5,
        255.0,
        1e-3,
        0.1,
        1.0 / 3.0,
        1000.0,
        4096.5,
        65504.0,
        most,
        most / 2.0,
        normal,
        normal * 1.5,
        least,
        least * 3.0,
        normal / 2.0,
        f64::INFINITY,
    ];
    let both = positive.into_iter().flat_map(|x| [x, -x]);
    both.chain([f64::NAN]).collect()
}

/// The values that random programs compute with: subnormal numbers, which CPUs flush, are rare among
/// what they give.
pub fn tamed(ty: PrimitiveType) -> Vec<Vec<u8>> {
    let far = match ty {
        PrimitiveType::F64 => 2f64.powi(500),
        PrimitiveType::F32 | PrimitiveType::BF16 => 2f64.powi(100),
        _ => return values(ty),
    };
    let positive = [
        0.0,
        1.0,
        0.5,
        0.75,
        1.5,
        2.0,
        2.5,
        3.0,
        7.0,
        10.0,
        100.25,
        0.1,
        1.0 / 3.0,
        255.0,
        1000.0,
        65535.5,
        2_147_483_648.0,
        1e10,
        far,
        1.0 / far,
        f64::INFINITY,
    ];
    let both = positive.into_iter().flat_map(|x| [x, -x]);
    let encoded = |x: f64| {
        let mut out = vec![0; ty.byte_width()];
        number::encode(ty, Number::Float(x), &mut out);
        out
    };
    both.chain([f64::NAN]).map(encoded).collect()
}

/// An array of that shape with the corner values in turn, from the one of number `first` on.
pub fn fill(shape: &ArrayShape, first: usize) -> ArrayLiteral {
    let values = values(shape.ty);
    let elements = (0..shape.element_count()).map(|i| &values[(first + i) % values.len()]);
    ArrayLiteral::new(shape.clone(), elements.flatten().copied().collect())
}

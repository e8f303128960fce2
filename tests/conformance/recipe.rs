//! Inputs that are described rather than stored.

use serde_json::Value;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::number;
use xla_aot::literal::number::Number;
use xla_aot::shape::ArrayShape;

fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The array a recipe describes.
pub fn make(recipe: &Value, shape: &ArrayShape) -> Result<ArrayLiteral, String> {
    let number_of = |key: &str| recipe[key].as_f64().unwrap_or(0.0);
    let int_of = |key: &str| recipe[key].as_i64().unwrap_or(0);
    let seed = recipe["seed"].as_u64().unwrap_or(0) << 40;
    let element: Box<dyn Fn(u64) -> Number> = match recipe["dist"].as_str() {
        Some("const") => {
            let value = number_of("value");
            Box::new(move |_| Number::Float(value))
        }
        Some("randint") => {
            let (low, high) = (int_of("lo"), int_of("hi"));
            let span = (high - low + 1) as u64;
            Box::new(move |h| Number::Int(i128::from(low) + i128::from(h % span)))
        }
        Some("uniform") => {
            let (low, high) = (number_of("lo"), number_of("hi"));
            Box::new(move |h| {
                Number::Float(low + (high - low) * ((h >> 11) as f64 * 2f64.powi(-53)))
            })
        }
        Some("normal4") => {
            let (scale, loc) = (number_of("scale"), number_of("loc"));
            let unit = 1.732_050_807_568_877_2 / 65536.0;
            Box::new(move |h| {
                let fields: u64 = [0, 16, 32, 48].iter().map(|s| h >> s & 0xffff).sum();
                Number::Float((fields as f64 - 131_070.0) * unit * scale + loc)
            })
        }
        _ => return Err("an input is neither stored nor described".to_owned()),
    };
    let width = shape.ty.byte_width();
    let mut data = vec![0; shape.element_count() * width];
    for (i, out) in data.chunks_exact_mut(width).enumerate() {
        number::encode(shape.ty, element(mix(seed.wrapping_add(i as u64))), out);
    }
    Ok(ArrayLiteral::new(shape.clone(), data))
}

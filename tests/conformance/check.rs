//! Whether an output passes the tolerance its case states.

use serde_json::Value;
use xla_aot::literal::ArrayLiteral;
use xla_aot::literal::compare::Tolerance;
use xla_aot::literal::compare::compare;
use xla_aot::literal::number;
use xla_aot::literal::number::Number;

/// Compares by the kind of the tolerance: element by element, by range and moments, or by samples.
pub fn output(spec: &Value, got: &ArrayLiteral, want: Option<&ArrayLiteral>) -> Result<(), String> {
    match spec["kind"].as_str() {
        Some("any") => Ok(()),
        Some("range") => range(spec, &floats(got)),
        Some("stats") => stats(spec, &floats(got)),
        _ => {
            let want = want.ok_or("no expected value is stored")?;
            let found = compare(got, want, &tolerance(spec)).map_err(|d| d.to_string())?;
            if found.passed {
                Ok(())
            } else {
                Err(found.describe())
            }
        }
    }
}

fn tolerance(spec: &Value) -> Tolerance {
    let float = |key: &str| spec[key].as_f64().unwrap_or(0.0);
    let flag = |key: &str| spec[key].as_bool().unwrap_or(false);
    Tolerance {
        rtol: float("rtol"),
        atol: float("atol"),
        ulp: spec["ulp"].as_u64().unwrap_or(0),
        signed_zero: flag("signed_zero"),
        mismatch_fraction: float("mismatch_frac"),
        any_nonfinite: flag("any_nonfinite"),
    }
}

fn floats(array: &ArrayLiteral) -> Vec<f64> {
    let float = |i| match number::decode(array.ty(), array.element(i)) {
        Number::Int(x) => x as f64,
        Number::Float(x) | Number::Complex(x, _) => x,
    };
    (0..array.len()).map(float).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn range(spec: &Value, values: &[f64]) -> Result<(), String> {
    let float = |key: &str| spec[key].as_f64();
    let (low, high) = (
        float("lo").unwrap_or(f64::MIN),
        float("hi").unwrap_or(f64::MAX),
    );
    let open = spec["open"].as_bool().unwrap_or(false);
    let inside = |x: f64| x >= low && if open { x < high } else { x <= high };
    if let Some(x) = values.iter().find(|&&x| !inside(x)) {
        return Err(format!("{x} is not between {low} and {high}"));
    }
    if values.is_empty() {
        return Ok(());
    }
    let average = mean(values);
    let spread = mean(
        &values
            .iter()
            .map(|x| (x - average).powi(2))
            .collect::<Vec<_>>(),
    )
    .sqrt();
    for (name, value) in [("mean", average), ("std", spread)] {
        let (Some(want), Some(room)) = (float(name), float(&format!("{name}_tol"))) else {
            continue;
        };
        if (value - want).abs() > room {
            return Err(format!("{name} is {value}, not within {room} of {want}"));
        }
    }
    Ok(())
}

fn stats(spec: &Value, values: &[f64]) -> Result<(), String> {
    let float = |key: &str| spec[key].as_f64().unwrap_or(0.0);
    let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
    for (at, want) in list("index").iter().zip(list("value")) {
        let (at, want) = (
            at.as_u64().unwrap_or(0) as usize,
            want.as_f64().unwrap_or(f64::NAN),
        );
        let got = values[at];
        let near = (got - want).abs() <= float("atol") + float("rtol") * want.abs();
        if !near {
            return Err(format!("element {at} is {got}, expected {want}"));
        }
    }
    let want = |key: &str| spec["stats"][key].as_f64().unwrap_or(0.0);
    let norm = values.iter().map(|x| x * x).sum::<f64>().sqrt();
    let largest = values.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (name, value) in [("mean", mean(values)), ("l2", norm), ("absmax", largest)] {
        let scale = want(name)
            .abs()
            .max(if name == "mean" { want("std") } else { 0.0 });
        let limit = spec["stat_rtol"].as_f64().unwrap_or(1e-3) * scale;
        let near = (value - want(name)).abs() <= limit;
        if !near {
            return Err(format!("{name} is {value}, expected {}", want(name)));
        }
    }
    Ok(())
}

//! Conformance programs: their inputs, their expected results, and whether results pass.

pub mod bundles;
pub mod check;
pub mod constants;
pub mod loader;
pub mod mlir;
pub mod mutations;
pub mod qemu;
pub mod recipe;
pub mod simulated;
pub mod stablehlo;

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::path::PathBuf;

use serde_json::Value;
use xla_aot::hlo::Module;
use xla_aot::literal::Literal;
use xla_aot::literal::npy::read_npz;
use xla_aot::shape::ArrayShape;
use xla_aot::shape::PrimitiveType;
use xla_aot::shape::Shape;

/// One folder of the corpus.
pub struct Case {
    pub dir: PathBuf,
    pub kind: String,
    pub name: String,
    pub spec: Value,
}

impl Case {
    /// Every case below a folder laid out `<kind>/<name>/case.json`, in order of their paths.
    pub fn all(root: &Path) -> Vec<Self> {
        let mut cases = Vec::new();
        for kind in sorted_entries(root).into_iter().filter(|p| p.is_dir()) {
            for dir in sorted_entries(&kind)
                .into_iter()
                .filter(|p| p.join("case.json").is_file())
            {
                let text =
                    fs::read_to_string(dir.join("case.json")).expect("case.json can be read");
                let spec: Value = serde_json::from_str(&text).expect("case.json is JSON");
                let part = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
                cases.push(Self {
                    kind: part(&kind),
                    name: part(&dir),
                    dir,
                    spec,
                });
            }
        }
        cases
    }

    /// Every HLO text of the case that has a proto beside it.
    pub fn texts(&self) -> Vec<PathBuf> {
        let is_text = |path: &PathBuf| {
            path.extension().is_some_and(|e| e == "hlo") && path.with_extension("pb").is_file()
        };
        sorted_entries(&self.dir)
            .into_iter()
            .filter(is_text)
            .collect()
    }

    /// Whether inputs come from recipes, which is the mark of programs of real size.
    pub fn is_large(&self) -> bool {
        self.kind == "big" || self.kind == "bench"
    }

    /// The entry arguments, in the order and shape of the module's parameters.
    pub fn inputs(&self, module: &Module) -> Result<Vec<Literal>, String> {
        let specs = self.spec["inputs"].as_array().cloned().unwrap_or_default();
        let stored = match fs::read(self.dir.join("inputs.npz")) {
            Ok(bytes) => read_npz(Cursor::new(bytes)).map_err(|d| d.to_string())?,
            Err(_) => Default::default(),
        };
        let mut leaves = Vec::new();
        for spec in &specs {
            let (name, shape) = (
                spec["name"].as_str().unwrap_or_default(),
                array_shape(spec)?,
            );
            let literal = match stored.get(name) {
                Some(array) => array
                    .clone()
                    .into_literal(name, &shape)
                    .map_err(|d| d.to_string())?,
                None => recipe::make(&spec["gen"], &shape)?,
            };
            leaves.push(Literal::Array(literal));
        }
        let mut leaves = leaves.into_iter();
        let program = module.entry_layout();
        program
            .parameters
            .iter()
            .map(|shape| take(shape, &mut leaves))
            .collect()
    }

    /// Compares a result with what is expected; the text says how.
    pub fn check(&self, result: &Literal) -> Result<(), String> {
        let mut leaves = Vec::new();
        flatten(result, &mut leaves);
        let expected = match fs::read(self.dir.join("expected.npz")) {
            Ok(bytes) => read_npz(Cursor::new(bytes)).map_err(|d| d.to_string())?,
            Err(_) => Default::default(),
        };
        let specs = self.spec["outputs"].as_array().cloned().unwrap_or_default();
        if specs.len() != leaves.len() {
            return Err(format!(
                "{} results where {} are expected",
                leaves.len(),
                specs.len()
            ));
        }
        for (spec, got) in specs.iter().zip(leaves) {
            let name = spec["name"].as_str().unwrap_or_default();
            let shape = array_shape(spec)?;
            if got.shape().ty != shape.ty || got.shape().dims != shape.dims {
                return Err(format!(
                    "{name}: {:?} where {:?} is expected",
                    got.shape(),
                    shape
                ));
            }
            let want = match expected.get(name) {
                Some(array) => Some(
                    array
                        .clone()
                        .into_literal(name, &shape)
                        .map_err(|d| d.to_string())?,
                ),
                None => None,
            };
            check::output(&spec["tolerance"], got, want.as_ref())
                .map_err(|e| format!("{name}: {e}"))?;
        }
        Ok(())
    }
}

/// The array leaves of a value, in order.
pub fn flatten<'a>(value: &'a Literal, out: &mut Vec<&'a xla_aot::literal::ArrayLiteral>) {
    match value {
        Literal::Array(array) => out.push(array),
        Literal::Tuple(parts) => parts.iter().for_each(|part| flatten(part, out)),
        Literal::Token => {}
    }
}

/// A value of that shape from the next leaves.
fn take(shape: &Shape, leaves: &mut impl Iterator<Item = Literal>) -> Result<Literal, String> {
    match shape {
        Shape::Tuple(parts) => {
            let parts: Result<Vec<_>, _> = parts.iter().map(|part| take(part, leaves)).collect();
            Ok(Literal::Tuple(parts?))
        }
        Shape::Token => Ok(Literal::Token),
        Shape::Array(_) | Shape::Opaque => leaves.next().ok_or_else(|| "too few inputs".to_owned()),
    }
}

fn array_shape(spec: &Value) -> Result<ArrayShape, String> {
    let name = spec["dtype"].as_str().unwrap_or_default();
    let ty = PrimitiveType::from_name(name).ok_or_else(|| format!("no element type `{name}`"))?;
    let dims = spec["shape"].as_array().cloned().unwrap_or_default();
    let dims = dims.iter().filter_map(Value::as_u64).map(|d| d as usize);
    Ok(ArrayShape::new(ty, dims))
}

/// The entries of a folder, sorted; none when there is no such folder.
pub fn sorted_entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    paths
}

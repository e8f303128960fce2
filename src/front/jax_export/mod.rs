//! What `jax.export` serializes: a flatbuffer around a StableHLO module in bytecode.
//!
//! Read are files of every serialization version that JAX has written, and calling conventions 4 to
//! 10. Beside the module they say which platforms it is for, what its arguments and results are
//! called, which sizes are open, which effects it has, and which promises its maker gave up.
//! Schema: `jax/_src/export/serialization.fbs`; the numbers of fields are its order.

pub(super) mod dims;
mod flatbuffer;
mod lower;
mod tree;

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::front::jax_export::flatbuffer::Table;

pub(super) use lower::import;

/// How MLIR bytecode begins.
const BYTECODE_MAGIC: &[u8] = b"ML\xefR";

/// The calling conventions that are read.
const CONVENTIONS: std::ops::RangeInclusive<u16> = 4..=10;

/// The first calling convention with tokens.
const TOKENS: u16 = 9;

/// An argument or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its path: `args[0]['w']`.
    pub name: String,
    /// Its element type, as JAX names it.
    pub dtype: &'static str,
    /// Its sizes: numbers, or expressions of dimension variables.
    pub dims: Vec<String>,
    /// Sizes that the module has besides, where an element is several numbers.
    inner: &'static [usize],
}

impl Value {
    /// `f32[b,3]`
    pub fn describe(&self) -> String {
        format!("{}[{}]", self.dtype, self.dims.join(","))
    }
}

/// What an export says of its module.
#[derive(Clone, Debug)]
pub struct Export<'a> {
    /// Name of the function.
    pub function: String,
    /// The version of the container, as the file has it.
    pub serialization_version: u16,
    /// The version of the module's conventions.
    pub calling_convention_version: u16,
    /// The version of JAX that wrote it, where it says so.
    pub jax_version: String,
    /// Platforms that the module is for, by JAX's names; the module is told the place of one of them
    /// when there are several.
    pub platforms: Vec<String>,
    /// Devices that the module is for.
    pub devices: u32,
    /// All arguments of the function.
    pub arguments: Vec<Value>,
    /// Which of them the module has.
    pub kept: Vec<usize>,
    /// The results.
    pub results: Vec<Value>,
    /// Effects that happen in order.
    pub ordered_effects: Vec<String>,
    /// Effects that happen in any order.
    pub unordered_effects: Vec<String>,
    /// Checks that its maker switched off.
    pub disabled_checks: Vec<String>,
    /// How many derivatives come with it.
    pub derivatives: usize,
    /// The module, as MLIR bytecode.
    pub module: &'a [u8],
}

/// Whether the bytes are a flatbuffer with a module of MLIR bytecode where exports have it.
pub fn is_export(bytes: &[u8]) -> bool {
    let module = Table::root(bytes).and_then(|root| root.bytes(13, 1, "the module"));
    module.is_ok_and(|module| module.starts_with(BYTECODE_MAGIC))
}

impl<'a> Export<'a> {
    /// Reads an export.
    ///
    /// # Errors
    /// `XA1004` for damage, with the byte; `XA1005` for trees without end; `XA1006` for element
    /// types and versions that are not known.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let root = Table::root(bytes)?;
        let shared = avals(root, 19)?;
        let arguments = values(
            root,
            22,
            3,
            &shared,
            tree::argument_names(root.table(2, "a tree")?)?,
        )?;
        let results = values(
            root,
            23,
            5,
            &shared,
            tree::result_names(root.table(4, "a tree")?)?,
        )?;
        let export = Self {
            function: root.text(1, "the name of the function")?.to_owned(),
            serialization_version: root.u16(0)?,
            calling_convention_version: root.u16(14)?,
            jax_version: root.text(26, "the version of JAX")?.to_owned(),
            platforms: texts(root, 9, "a platform")?,
            devices: match root.u32(18)? {
                0 => u32::from(root.u16(6)?),
                count => count,
            },
            kept: root.u16s(15, "the kept arguments")?,
            arguments,
            results,
            ordered_effects: effects(root, 10)?,
            unordered_effects: effects(root, 11)?,
            disabled_checks: disabled_checks(root)?,
            derivatives: derivatives(root)?,
            module: root.bytes(13, 1, "the module")?,
        };
        export.check()?;
        Ok(export)
    }

    fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Diagnostic::error(codes::PROTO_DECODE, message));
        if !CONVENTIONS.contains(&self.calling_convention_version) {
            let message = format!(
                "calling convention {} of an export, wanted {} to {}",
                self.calling_convention_version,
                CONVENTIONS.start(),
                CONVENTIONS.end()
            );
            return Err(Diagnostic::unsupported(codes::UNKNOWN_WORD, message));
        }
        if self.platforms.is_empty() {
            return bad("the export is for no platform".to_owned());
        }
        let is_sorted = self.kept.is_sorted_by(|a, b| a < b);
        if !is_sorted
            || self
                .kept
                .last()
                .is_some_and(|&last| last >= self.arguments.len())
        {
            return bad("the export keeps arguments that it does not have".to_owned());
        }
        if !self.module.starts_with(BYTECODE_MAGIC) {
            return bad("the export holds no module of MLIR bytecode".to_owned());
        }
        Ok(())
    }

    /// The effects that `main` takes a token for: the ordered ones, but before calling convention 9
    /// none, when `main` made tokens of its own.
    pub fn tokens(&self) -> impl Iterator<Item = &String> {
        let has_tokens = self.calling_convention_version >= TOKENS;
        self.ordered_effects.iter().filter(move |_| has_tokens)
    }

    /// The dimension variables, each with the arguments that have it.
    pub fn variables(&self) -> BTreeMap<String, Vec<&Value>> {
        let mut found: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        for value in &self.arguments {
            for name in value.dims.iter().flat_map(|dim| dims::variables(dim)) {
                let users = found.entry(name.to_owned()).or_default();
                if !users.last().is_some_and(|last| std::ptr::eq(*last, value)) {
                    users.push(value);
                }
            }
        }
        found
    }
}

fn texts(root: Table<'_>, id: usize, what: &str) -> Result<Vec<String>> {
    let texts = root.offsets(id, what)?.texts(what);
    texts.map(|text| text.map(str::to_owned)).collect()
}

/// The names of effects' types.
fn effects(root: Table<'_>, id: usize) -> Result<Vec<String>> {
    let tables = root.offsets(id, "the effects")?.tables("an effect");
    let names = tables.map(|table| Ok(table?.text(0, "the type of an effect")?.to_owned()));
    names.collect()
}

fn disabled_checks(root: Table<'_>) -> Result<Vec<String>> {
    let tables = root
        .offsets(12, "the disabled checks")?
        .tables("a disabled check");
    let names = tables.map(|table| {
        let table = table?;
        Ok(match table.u8(0)? {
            0 => "platform".to_owned(),
            1 => format!(
                "custom_call:{}",
                table.text(1, "the target of a custom call")?
            ),
            2 => "shape_assertions".to_owned(),
            other => format!("check {other}"),
        })
    });
    names.collect()
}

/// How deep derivatives within derivatives go.
fn derivatives(root: Table<'_>) -> Result<usize> {
    const MOST: usize = 100;
    let mut at = root;
    for depth in 0..MOST {
        match at.table(17, "a derivative")? {
            Some(next) => at = next,
            None => return Ok(depth),
        }
    }
    let message = format!("an export with more than {MOST} derivatives");
    Err(Diagnostic::error(codes::INPUT_LIMIT, message))
}

/// Shape and element type of a value: dimensions, name, inner sizes.
type Aval = (Vec<String>, &'static str, &'static [usize]);

fn avals(root: Table<'_>, id: usize) -> Result<Vec<Aval>> {
    let tables = root
        .offsets(id, "the types of values")?
        .tables("the type of a value");
    let avals = tables.map(|table| {
        let table = table?;
        let dims = texts(table, 1, "a dimension")?;
        let (dtype, inner) = dtype(table.u8(2)?)?;
        Ok((dims, dtype, inner))
    });
    avals.collect()
}

/// The values of a list of types, or of places in the list of all types, with their names.
fn values(
    root: Table<'_>,
    places: usize,
    types: usize,
    shared: &[Aval],
    names: Vec<String>,
) -> Result<Vec<Value>> {
    let bad = |message: String| Diagnostic::error(codes::PROTO_DECODE, message);
    let places = root.u32s(places, "the types of values")?;
    let avals = match places.is_empty() {
        true => avals(root, types)?,
        false => {
            let found = places.iter().map(|&place| {
                let place = usize::try_from(place).ok();
                let aval = place.and_then(|place| shared.get(place)).cloned();
                aval.ok_or_else(|| {
                    bad("a value has a type that the export does not have".to_owned())
                })
            });
            found.collect::<Result<_>>()?
        }
    };
    if avals.len() != names.len() {
        let (found, wanted) = (names.len(), avals.len());
        return Err(bad(format!("a tree of {found} leaves for {wanted} values")));
    }
    let pairs = avals.into_iter().zip(names);
    let values = pairs.map(|((dims, dtype, inner), name)| Value {
        name,
        dtype,
        dims,
        inner,
    });
    Ok(values.collect())
}

/// The element type of that number, and the sizes it stands for in a module.
fn dtype(number: u8) -> Result<(&'static str, &'static [usize])> {
    const NAMES: [&str; 30] = [
        "bool",
        "i8",
        "i16",
        "i32",
        "i64",
        "ui8",
        "ui16",
        "ui32",
        "ui64",
        "f16",
        "f32",
        "f64",
        "c64",
        "c128",
        "bf16",
        "i4",
        "ui4",
        "f8_e4m3b11fnuz",
        "f8_e4m3fn",
        "f8_e4m3fnuz",
        "f8_e5m2",
        "f8_e5m2fnuz",
        "float0",
        "f8_e4m3",
        "f8_e3m4",
        "f8_e8m0fnu",
        "f4_e2m1fn",
        "key<fry>",
        "key<rbg>",
        "key<urbg>",
    ];
    let inner: &[usize] = match number {
        27 => &[2],
        28 | 29 => &[4],
        _ => &[],
    };
    match NAMES.get(usize::from(number)) {
        Some(name) => Ok((name, inner)),
        None => {
            let message = format!("an export with element type {number}, wanted 0 to 29");
            Err(Diagnostic::unsupported(codes::UNKNOWN_WORD, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFFINE: &[u8] = include_bytes!("../../../tests/exports/affine.jax");
    const CALLS: &[u8] = include_bytes!("../../../tests/exports/calls.jax");
    const GRAD: &[u8] = include_bytes!("../../../tests/exports/grad.jax");
    const KEYED: &[u8] = include_bytes!("../../../tests/exports/keyed.jax");
    const OLD: &[u8] = include_bytes!("../../../tests/exports/old.jax");
    const ORDERED: &[u8] = include_bytes!("../../../tests/exports/ordered.jax");
    const PICKED: &[u8] = include_bytes!("../../../tests/exports/picked.jax");
    const RAGGED: &[u8] = include_bytes!("../../../tests/exports/ragged.jax");

    fn shown(values: &[Value]) -> Vec<String> {
        let values = values.iter();
        values
            .map(|v| format!("{} {}", v.name, v.describe()))
            .collect()
    }

    #[test]
    fn trees_become_names() {
        for bytes in [AFFINE, OLD] {
            let export = Export::read(bytes).unwrap();
            assert_eq!(export.function, "affine");
            assert_eq!(
                shown(&export.arguments),
                [
                    "args[0]['b'] f32[2]",
                    "args[0]['w'] f32[3,2]",
                    "args[1] f32[4,3]",
                    "kwargs['scale'] f32[]"
                ]
            );
            assert_eq!(shown(&export.results), ["result['y'] f32[4,2]"]);
            assert_eq!(export.kept, [0, 1, 2, 3]);
            assert_eq!((export.devices, export.derivatives), (1, 0));
            assert_eq!(export.platforms, ["cpu"]);
        }
    }

    #[test]
    fn open_sizes_effects_checks_and_derivatives_are_told() {
        let ragged = Export::read(RAGGED).unwrap();
        assert_eq!(
            shown(&ragged.arguments),
            ["args[0] f32[b,c]", "args[1] f32[2*b + 1,c]"]
        );
        let variables = ragged.variables();
        assert_eq!(variables.keys().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(variables["b"].len(), 2);
        let calls = Export::read(CALLS).unwrap();
        assert_eq!(
            calls.disabled_checks,
            ["custom_call:lapack_spotrf_ffi", "platform"]
        );
        assert_eq!(Export::read(GRAD).unwrap().derivatives, 1);
        assert_eq!(Export::read(PICKED).unwrap().platforms, ["cpu", "cuda"]);
        let ordered = Export::read(ORDERED).unwrap();
        assert_eq!(ordered.ordered_effects.len(), 1);
        assert_eq!(
            (ordered.kept.as_slice(), ordered.arguments.len()),
            (&[0][..], 2)
        );
        assert_eq!(ordered.tokens().count(), 1);
        let without = Export {
            calling_convention_version: 8,
            ..ordered
        };
        assert_eq!(without.tokens().count(), 0);
        let keyed = Export::read(KEYED).unwrap();
        assert_eq!(keyed.arguments[0].describe(), "key<fry>[]");
        assert_eq!(keyed.arguments[0].inner, [2]);
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let mut state = 11u64;
        let mut read = 0;
        for bytes in [AFFINE, RAGGED, GRAD, OLD] {
            for cut in 0..bytes.len() {
                let _ = Export::read(&bytes[..cut]);
            }
            for round in 0..5000 {
                let mut damaged = bytes.to_vec();
                for _ in 0..=round % 4 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let at = (state >> 33) as usize % damaged.len();
                    damaged[at] = (state >> 20) as u8;
                }
                let _ = is_export(&damaged);
                read += usize::from(Export::read(&damaged).is_ok());
            }
        }
        assert!(read > 0);
    }

    #[test]
    fn what_is_no_export_is_told() {
        assert!(is_export(AFFINE));
        for bytes in [&b""[..], b"\xff\xff\xff\xff", b"HloModule m\n", &[0; 64]] {
            assert!(!is_export(bytes));
            assert!(Export::read(bytes).is_err());
        }
    }
}

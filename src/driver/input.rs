//! What the command line says of a program beside its bytes, and bytes to bytes between formats.

use std::collections::BTreeMap;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::suggest::closest;
use crate::driver::bundles;
use crate::front;
use crate::front::InputFormat;
pub use crate::front::InputOptions;
use crate::front::stablehlo;
use crate::hlo;
use crate::mlir;
use crate::mlir::bytecode;
use crate::shape::Dims;
use crate::target::Platform;
use crate::wire;

/// The words of the options that are about a program.
#[derive(Clone, Debug, Default)]
pub struct InputWords {
    /// Name of its format.
    pub format: Option<String>,
    /// `b=8`
    pub dims: Vec<String>,
    /// `0=2x3`
    pub shapes: Vec<String>,
    /// The platform of an export.
    pub platform: Option<String>,
}

impl InputWords {
    /// What the words mean.
    ///
    /// # Errors
    /// `XA1006` for the first that means nothing.
    pub fn options(&self) -> Result<InputOptions> {
        let mut dims = BTreeMap::new();
        for word in &self.dims {
            let (name, size) = split(word, "--dim", "NAME=SIZE")?;
            let size = size
                .parse()
                .map_err(|_| malformed(word, "--dim", "NAME=SIZE"))?;
            once(&mut dims, name.to_owned(), size, word)?;
        }
        let mut shapes = BTreeMap::new();
        for word in &self.shapes {
            let form = "NUMBER=2x3";
            let (number, sizes) = split(word, "--shape", form)?;
            let malformed = || malformed(word, "--shape", form);
            let number: usize = number.parse().map_err(|_| malformed())?;
            let sizes = sizes.split('x').filter(|_| !sizes.is_empty());
            let sizes: Result<Dims, _> = sizes.map(str::parse).collect();
            once(&mut shapes, number, sizes.map_err(|_| malformed())?, word)?;
        }
        Ok(InputOptions {
            format: input_format(self.format.as_deref())?,
            dims,
            shapes,
            platform: self.platform.clone(),
            own_platform: None,
        })
    }
}

fn malformed(word: &str, option: &str, form: &str) -> Box<Diagnostic> {
    let message = format!("{option} {word}: wanted {form}");
    Diagnostic::error(codes::UNKNOWN_WORD, message)
}

fn split<'a>(word: &'a str, option: &str, form: &str) -> Result<(&'a str, &'a str)> {
    let parts = word.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.ok_or_else(|| malformed(word, option, form))
}

fn once<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V, word: &str) -> Result<()> {
    match map.insert(key, value) {
        None => Ok(()),
        Some(_) => {
            let message = format!("`{word}` gives a size that was given before");
            Err(Diagnostic::error(codes::UNKNOWN_WORD, message))
        }
    }
}

/// What JAX calls a platform, its own name first.
pub fn platform_names(platform: Platform) -> &'static [&'static str] {
    match platform {
        Platform::Cpu => &["cpu"],
        Platform::Cuda => &["cuda", "gpu"],
    }
}

/// An error about a name, with those that are known.
pub(super) fn unknown(message: &str, name: &str, what: &str, known: &[&str]) -> Box<Diagnostic> {
    let error = Diagnostic::error(codes::UNKNOWN_WORD, message)
        .note(format!("{what}: {}", known.join(", ")));
    match closest(name, known.iter().copied()) {
        Some(close) => error.help(format!("did you mean `{close}`?")),
        None => error,
    }
}

/// The format of that name.
fn input_format(name: Option<&str>) -> Result<Option<InputFormat>> {
    let Some(name) = name else {
        return Ok(None);
    };
    match InputFormat::from_name(name) {
        Some(format) => Ok(Some(format)),
        None => {
            let known: Vec<_> = InputFormat::ALL.iter().map(|f| f.name()).collect();
            let message = format!("`{name}` is no format of programs");
            Err(unknown(&message, name, "formats", &known))
        }
    }
}

/// The form of a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// HLO as text.
    HloText,
    /// A serialized `HloModuleProto`.
    HloProto,
    /// StableHLO as text, every op in the generic form.
    StablehloText,
    /// A portable artifact: StableHLO as bytecode of a version.
    StablehloBytecode(bytecode::Version),
}

impl OutputForm {
    /// The names of forms, as `--input-format` has them.
    pub const NAMES: &'static [&'static str] = &[
        "hlo-text",
        "hlo-proto",
        "stablehlo-text",
        "stablehlo-bytecode",
    ];

    /// The form of that name; the version is for bytecode only.
    ///
    /// # Errors
    /// `XA1006` when there is no such form or version.
    pub fn from_words(name: &str, version: Option<&str>) -> Result<Self> {
        if name == "stablehlo-bytecode" {
            let version = match version {
                Some(text) => version_of(text)?,
                None => bytecode::DEFAULT_VERSION,
            };
            return Ok(Self::StablehloBytecode(version));
        }
        if version.is_some() {
            let message = format!("a version of StableHLO is for stablehlo-bytecode, not {name}");
            return Err(Diagnostic::error(codes::UNKNOWN_WORD, message));
        }
        match name {
            "hlo-text" => Ok(Self::HloText),
            "hlo-proto" => Ok(Self::HloProto),
            "stablehlo-text" => Ok(Self::StablehloText),
            _ => {
                let message = format!("`{name}` is no form of programs to translate to");
                Err(unknown(&message, name, "forms", Self::NAMES))
            }
        }
    }

    /// Whether a terminal cannot show it.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::HloProto | Self::StablehloBytecode(_))
    }
}

/// The version that `1.0` or `1.0.0` names; the last number makes no difference to the form.
fn version_of(text: &str) -> Result<bytecode::Version> {
    let wrong = || {
        let message = format!("`{text}` is no version of StableHLO, wanted one such as 1.0.0");
        Diagnostic::error(codes::UNKNOWN_WORD, message)
    };
    let numbers: Result<Vec<u16>, _> = text.split('.').map(str::parse).collect();
    match numbers.map_err(|_| wrong())?.as_slice() {
        [major, minor] | [major, minor, _] => Ok((*major, *minor)),
        _ => Err(wrong()),
    }
}

/// A program in another form, and what a user should know of it. StableHLO stays StableHLO, op by op,
/// unless sizes or a platform are chosen. Of a bundle it is the module that it carries.
///
/// # Errors
/// What the reader of the input, the conversion and the writer of the form give.
pub fn translate(
    program: &[u8],
    options: &InputOptions,
    form: OutputForm,
) -> Result<(Vec<u8>, Vec<String>)> {
    let is_open =
        options.dims.is_empty() && options.shapes.is_empty() && options.platform.is_none();
    let mut notes = Vec::new();
    let is_bundle = options.format.is_none() && bundles::are(program);
    let written = || match is_open && !is_bundle {
        true => front::import_mlir(program, options),
        false => Ok(None),
    };
    let mut module = || -> Result<hlo::Module> {
        if is_bundle {
            notes.push("a bundle; its module is as the compiler left it".to_owned());
            return bundles::module(&bundles::read(program)?);
        }
        let program = front::import(program, options)?;
        hlo::verify::check(&program.module)?;
        notes = program.notes;
        Ok(program.module)
    };
    let bytes = match form {
        OutputForm::HloText => hlo::print::module(&module()?).into_bytes(),
        OutputForm::HloProto => wire::hlo::encode_module(&module()?),
        OutputForm::StablehloText => {
            let mlir = match written()? {
                Some(mlir) => mlir,
                None => stablehlo::from_hlo(&module()?)?,
            };
            mlir::print::print_pretty_with_locations(&mlir).into_bytes()
        }
        // Old artifacts have no ops of CHLO: by way of HLO they become composites.
        OutputForm::StablehloBytecode(version) => {
            let mlir = match written()? {
                Some(mlir) if version >= bytecode::MIXED || !mlir.has_dialect("chlo") => mlir,
                _ => stablehlo::from_hlo_portable(&module()?)?,
            };
            bytecode::write(&mlir, version)?
        }
    };
    Ok((bytes, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(dims: &[&str], shapes: &[&str]) -> Result<InputOptions> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let words = InputWords {
            dims: owned(dims),
            shapes: owned(shapes),
            ..InputWords::default()
        };
        words.options()
    }

    #[test]
    fn sizes_are_read_from_words() {
        let options = words(&["b=8", "batch_1=3"], &["0=2x3", "2="]).unwrap();
        assert_eq!(options.dims["batch_1"], 3);
        assert_eq!(options.shapes[&0].as_slice(), [2, 3]);
        assert!(options.shapes[&2].is_empty());
        for (dims, shapes) in [
            (&["b"][..], &[][..]),
            (&["b=two"], &[]),
            (&["=2"], &[]),
            (&["b=-1"], &[]),
            (&["b=1", "b=1"], &[]),
            (&[], &["x=2"]),
            (&[], &["0=2xx3"]),
            (&[], &["0=2", "0=2"]),
        ] {
            let error = words(dims, shapes).unwrap_err();
            assert_eq!(error.code, codes::UNKNOWN_WORD, "{dims:?} {shapes:?}");
        }
    }

    #[test]
    fn forms_and_versions_are_read_from_words() {
        let form = |name, version| OutputForm::from_words(name, version);
        assert_eq!(form("hlo-text", None).unwrap(), OutputForm::HloText);
        let bytecode = |text| form("stablehlo-bytecode", Some(text));
        assert_eq!(bytecode("1.2").unwrap(), bytecode("1.2.7").unwrap());
        for text in ["", "1", "1.x", "1.2.3.4", "-1.0"] {
            assert!(bytecode(text).is_err(), "{text}");
        }
        assert!(form("hlo-text", Some("1.0")).is_err());
        assert!(form("stablehlo-txt", None).unwrap_err().help.is_some());
    }
}

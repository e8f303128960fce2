//! Showing what a bundle holds, and taking parts out of it.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::bundle;
use crate::bundle::Bundle;
use crate::bundle::Stock;
use crate::driver::bundles;
use crate::driver::emitted;
use crate::driver::emitted::EmitKind;
use crate::driver::emitted::Emitted;
use crate::executable::Code;

/// A bundle that is looked at.
pub struct Inspection {
    bundle: Bundle,
    stock: Stock,
}

impl Inspection {
    /// Reads a bundle.
    ///
    /// # Errors
    /// `XA7001` to `XA7003`.
    pub fn open(bytes: &[u8]) -> Result<Self> {
        let bundle = bundles::read(bytes)?;
        let stock = bundle::stock(&bundle, bytes)?;
        Ok(Self { bundle, stock })
    }

    /// For people.
    pub fn text(&self) -> String {
        bundle::describe::text(&self.bundle, &self.stock)
    }

    /// For programs.
    pub fn json(&self) -> String {
        format!("{}\n", bundle::describe::json(&self.bundle, &self.stock))
    }

    /// Parts of one kind.
    ///
    /// # Errors
    /// `XA1006` when this bundle, or any, does not hold that kind.
    pub fn emit(&self, kind: EmitKind) -> Result<Vec<Emitted>> {
        let executable = &self.bundle.executable;
        let text = |text: String| {
            let content = text.into_bytes();
            Ok(vec![Emitted { kind, content }])
        };
        match kind {
            EmitKind::Hlo => text(self.hlo()?),
            EmitKind::Thunks => text(emitted::thunks(executable)),
            EmitKind::Obj | EmitKind::Ptx | EmitKind::Cubin => {
                let images = executable.images.iter();
                let images = images.filter(|image| kind_of(&image.code) == kind);
                let parts: Vec<_> = images
                    .map(|image| Emitted {
                        kind,
                        content: image.code.bytes().to_vec(),
                    })
                    .collect();
                if parts.is_empty() {
                    return Err(self.absent_code(kind));
                }
                Ok(parts)
            }
            EmitKind::Buffers | EmitKind::LlvmIr | EmitKind::Asm => {
                Err(absent(kind).help("compile the program again with this --emit"))
            }
        }
    }

    /// Says which code there is instead.
    fn absent_code(&self, kind: EmitKind) -> Box<Diagnostic> {
        let images = self.bundle.executable.images.iter();
        let mut kinds: Vec<EmitKind> = images.map(|image| kind_of(&image.code)).collect();
        kinds.sort();
        kinds.dedup();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let error = absent(kind);
        match names.is_empty() {
            true => error,
            false => error.help(format!("its code is {}", names.join(" and "))),
        }
    }

    #[cfg(feature = "reference")]
    fn hlo(&self) -> Result<String> {
        let module = crate::wire::hlo::decode_module_with_config(&self.bundle.executable.hlo);
        let module = module.map_err(bundle::rejected)?;
        Ok(crate::hlo::print::module(&module))
    }

    #[cfg(not(feature = "reference"))]
    fn hlo(&self) -> Result<String> {
        Err(absent(EmitKind::Hlo).note("this program was built without the `reference` feature"))
    }
}

fn kind_of(code: &Code) -> EmitKind {
    match code {
        Code::Elf(_) => EmitKind::Obj,
        Code::Ptx(_) => EmitKind::Ptx,
        Code::Cubin(_) => EmitKind::Cubin,
    }
}

fn absent(kind: EmitKind) -> Box<Diagnostic> {
    let message = format!("the bundle holds no {}", kind.name());
    Diagnostic::error(codes::UNKNOWN_WORD, message)
}

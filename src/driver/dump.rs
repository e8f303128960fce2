//! What `--dump-to` writes: names and forms as XLA's own dumps have them, so that its tools read them.
//!
//! `module_0000.NAME.SUFFIX`, where a name that is too long for a file is left out. Modules are
//! texts, `HloProto`s, or both. Upstream: `xla/service/dump.cc`.

use crate::driver::observe::Observer;
use crate::executable::Code;
use crate::executable::KernelImage;
use crate::hlo;
use crate::hlo::Module;
use crate::passes::Changed;
use crate::passes::PassObserver;
use crate::target::Target;
use crate::wire;

/// A form of modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// HLO text.
    Text,
    /// A serialized `HloProto`.
    Proto,
}

impl DumpForm {
    fn suffix(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Proto => "hlo.pb",
        }
    }
    fn content(self, module: &Module) -> Vec<u8> {
        match self {
            Self::Text => hlo::print::module(module).into_bytes(),
            Self::Proto => wire::hlo::encode_hlo_proto(module),
        }
    }
}

/// Longest name of a file.
const MAX_NAME: usize = 255;

/// Names the dumps of one program.
pub(super) struct Dumper<'a> {
    module: String,
    device: String,
    forms: &'a [DumpForm],
}

impl<'a> Dumper<'a> {
    /// For the compilation of this module for that target.
    pub(super) fn new(module: &Module, target: &Target, forms: &'a [DumpForm]) -> Self {
        let is_plain = |c: char| !matches!(c, '/' | '\\' | '[' | ']' | ' ');
        let plain = module.name.chars();
        let plain = plain.map(|c| if is_plain(c) { c } else { '_' }).collect();
        let device = match target.gpu() {
            None => "cpu".to_owned(),
            Some(gpu) => {
                let capability = gpu.capability;
                format!("sm_{}.{}_gpu", capability.major, capability.minor)
            }
        };
        Self {
            module: plain,
            device,
            forms,
        }
    }

    fn name(&self, suffix: &str) -> String {
        let suffix = suffix.replace('/', "_");
        let name = format!("module_0000.{}.{suffix}", self.module);
        match name.len() <= MAX_NAME {
            true => name,
            false => format!("module_0000.{suffix}"),
        }
    }

    fn bytes(&self, observer: &mut dyn Observer, suffix: &str, content: &[u8]) {
        observer.dump(&self.name(suffix), content);
    }

    /// A text.
    pub(super) fn text(
        &self,
        observer: &mut dyn Observer,
        suffix: &str,
        text: impl FnOnce() -> String,
    ) {
        if observer.wants_dumps() {
            self.bytes(observer, suffix, text().as_bytes());
        }
    }

    fn module(&self, observer: &mut dyn Observer, suffix: &str, module: &Module) {
        if observer.wants_dumps() {
            for form in self.forms {
                let suffix = format!("{suffix}.{}", form.suffix());
                self.bytes(observer, &suffix, &form.content(module));
            }
        }
    }

    /// The module as it was read.
    pub(super) fn before_optimizations(&self, observer: &mut dyn Observer, module: &Module) {
        self.module(observer, "before_optimizations", module);
    }

    /// The module as code is made of it.
    pub(super) fn after_optimizations(&self, observer: &mut dyn Observer, module: &Module) {
        let suffix = format!("{}_after_optimizations", self.device);
        self.module(observer, &suffix, module);
    }

    /// The plan of buffers.
    pub(super) fn buffers(&self, observer: &mut dyn Observer, text: impl FnOnce() -> String) {
        let suffix = format!("{}_after_optimizations-buffer-assignment.txt", self.device);
        self.text(observer, &suffix, text);
    }

    /// Object files, PTX, machine code.
    pub(super) fn images(&self, observer: &mut dyn Observer, images: &[KernelImage]) {
        for (i, image) in images.iter().enumerate() {
            let kind = match &image.code {
                Code::Elf(_) => "o",
                Code::Ptx(_) => "ptx",
                Code::Cubin(_) => "cubin",
            };
            let suffix = match (&image.code, images.len()) {
                (Code::Elf(_), _) => format!("obj-file.{i}.{kind}"),
                (_, 1) => kind.to_owned(),
                _ => format!("{i}.{kind}"),
            };
            self.bytes(observer, &suffix, image.code.bytes());
        }
    }
}

/// Passes an observer's eyes on to the passes. What a pass makes is named when the next one is
/// known.
pub(super) struct Passes<'o> {
    observer: &'o mut dyn Observer,
    dumper: &'o Dumper<'o>,
    count: usize,
    last: Option<(&'static str, Vec<(DumpForm, Vec<u8>)>)>,
}

impl<'o> Passes<'o> {
    /// Looks on for the observer.
    pub(super) fn new(observer: &'o mut dyn Observer, dumper: &'o Dumper<'o>) -> Self {
        Self {
            observer,
            dumper,
            count: 0,
            last: None,
        }
    }

    /// Hands out what the last pass has made.
    pub(super) fn flush(&mut self, next: &str) {
        let Some((name, contents)) = self.last.take() else {
            return;
        };
        for (form, content) in contents {
            let (count, form) = (self.count, form.suffix());
            let suffix = format!("{count:04}.passes.after_{name}.before_{next}.{form}");
            self.dumper.bytes(self.observer, &suffix, &content);
        }
        self.count += 1;
    }
}

impl PassObserver for Passes<'_> {
    fn before(&mut self, name: &'static str, _module: &Module) {
        self.flush(name);
        self.observer.begin(&format!("passes/{name}"));
    }
    fn after(&mut self, name: &'static str, module: &Module, changed: Changed) {
        self.observer.end(&format!("passes/{name}"));
        if changed == Changed::Yes && self.observer.wants_dumps() {
            let forms = self.dumper.forms.iter();
            let contents = forms.map(|&form| (form, form.content(module))).collect();
            self.last = Some((name, contents));
        }
    }
}

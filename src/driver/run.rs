//! Running a bundle: read, check, compare with the host, load, bind, run.

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::Severity;
use crate::bundle;
use crate::bundle::Bundle;
use crate::driver::arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::host;
use crate::literal::ArrayLiteral;
use crate::runtime::LoadOptions;
use crate::runtime::Loaded;
pub use crate::runtime::cpu::program::Bound;
pub use crate::runtime::cpu::program::Watch;

/// A bundle, loaded.
pub struct Session {
    loaded: Loaded,
}

impl Session {
    /// Reads and loads a bundle; nothing of it runs before it has passed every check.
    ///
    /// # Errors
    /// `XA7001` to `XA7003` for what is no sound bundle, `XA7004` when it needs more than this host
    /// has, `XA8003` when its code cannot be loaded.
    pub fn open(bytes: &[u8], threads: Option<usize>) -> Result<Self> {
        Self::of(&bundle::read(bytes)?, threads)
    }

    /// Loads a bundle that has been read.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn of(bundle: &Bundle, threads: Option<usize>) -> Result<Self> {
        let reasons = host::check(bundle).into_iter();
        let mut reasons = reasons.filter(|r| r.severity != Severity::Warning);
        if let Some(first) = reasons.next() {
            let first: Box<Diagnostic> = Box::new(first);
            return Err(reasons.fold(first, |first, other| first.note(other.message)));
        }
        let loaded = Loaded::new(&bundle.executable, &LoadOptions { threads })?;
        Ok(Self { loaded })
    }

    /// Threads that work on a run.
    pub fn threads(&self) -> usize {
        self.loaded.threads()
    }

    /// Gives the program memory and the arrays of these files.
    ///
    /// # Errors
    /// `XA8001` and `XA8002` when the files do not fit the program.
    pub fn bind(&self, inputs: &[ArrayFile]) -> Result<Bound<'_>> {
        let program = &self.loaded.signature().program;
        let shapes = arrays::array_leaves(&program.parameters);
        self.loaded
            .bind_arrays(&arrays::read(inputs, "in", &shapes)?)
    }

    /// Runs once on the array leaves of all parameters; gives the array leaves of the result.
    ///
    /// # Errors
    /// `XA8001` when they do not fit, `XA8004` when the program fails.
    pub fn run_leaves(&self, inputs: &[ArrayLiteral]) -> Result<Vec<ArrayLiteral>> {
        let mut bound = self.loaded.bind_arrays(inputs)?;
        bound.execute()?;
        bound.outputs()
    }

    /// Reads this program's inputs.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_inputs(&self, files: &[ArrayFile]) -> Result<Vec<ArrayLiteral>> {
        let program = &self.loaded.signature().program;
        arrays::read(files, "in", &arrays::array_leaves(&program.parameters))
    }

    /// Reads expected results of this program.
    ///
    /// # Errors
    /// `XA8001` and `XA8002`.
    pub fn read_expected(&self, file: &ArrayFile) -> Result<Vec<ArrayLiteral>> {
        let program = &self.loaded.signature().program;
        let shapes = arrays::array_leaves([&program.result]);
        arrays::read(std::slice::from_ref(file), "out", &shapes)
    }
}

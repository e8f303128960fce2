//! Changed files: programs in every form that is read, and compiled bundles, damaged and recombined.
//! Whatever they hold, they are read in bounded time and memory, or refused with a diagnostic; see
//! [`check`] and [`bundles`].

pub mod bundles;
pub mod bytecode;
pub mod bytes;
pub mod check;
pub mod export;
pub mod measure;
pub mod message;
pub mod object;
pub mod pool;
pub mod shrink;
pub mod snapshot;
pub mod text;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use libtest_mimic::Trial;

use super::caught::caught;
use super::random::Random;
use super::watch;
use super::watch::Kind;
use super::watch::Process;
use super::watch::save;
use super::watch::tell;
use bundles::Bundles;
use bundles::FOLDER;
use bundles::Way;
use measure::Measure;
use pool::Pool;

/// A form of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    HloText,
    HloProto,
    StablehloText,
    Bytecode,
    Export,
    Snapshot,
    Bundle,
}

/// Every form, its name, and how names of its files end.
const FORMS: &[(Form, &str, &str)] = &[
    (Form::HloText, "hlo", ".hlo"),
    (Form::Snapshot, "snapshots", ".snapshot"),
    (Form::HloProto, "proto", ".pb"),
    (Form::StablehloText, "mlir", ".mlir"),
    (Form::Bytecode, "bytecode", ".mlirbc"),
    (Form::Export, "exports", ".jax"),
    (Form::Bundle, "bundles", ".xla"),
];

impl Form {
    /// The form of a file, by its name and folder.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy();
        let row = FORMS.iter().find(|(_, _, end)| name.ends_with(end))?;
        let is_snapshot = path.parent()?.ends_with("tests/snapshots");
        Some(match row.0 {
            Self::HloProto if is_snapshot => Self::Snapshot,
            form => form,
        })
    }

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        let row = FORMS.iter().find(|(form, _, _)| *form == self);
        row.expect("every form has a row")
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Changes a file of this form in one way; `other` is another one.
    fn change(self, file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
        match self {
            Self::HloText | Self::StablehloText => text::change(file, other, random),
            Self::HloProto => message::change(file, other, random),
            Self::Bytecode => bytecode::change(file, other, random),
            Self::Export => export::change(file, other, random),
            Self::Snapshot => snapshot::change(file, other, random),
            Self::Bundle => bundles::change(file, other, random),
        }
    }
}

/// The forms that are fuzzed under a name.
pub fn forms(name: &str) -> Vec<Form> {
    let all = FORMS.iter();
    let is_meant = |(form, own, _): &&(Form, &str, &str)| {
        let is_program = *form != Form::Bundle;
        name == *own || name == "files" && is_program || name == "hlo" && *form == Form::HloProto
    };
    all.filter(is_meant).map(|(form, _, _)| *form).collect()
}

/// A file of the form with a few changes, the same for the same seed and pool.
pub fn input(form: Form, pool: &Pool, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut file = pool.pick(&mut random);
    let changes = match random.below(8) {
        0 => 0,
        1 => 4 + random.below(12),
        _ => 1 + random.below(3),
    };
    for _ in 0..changes {
        let other = pool.pick(&mut random);
        form.change(&mut file, &other, &mut random);
    }
    file
}

/// What is wrong with how a file is read.
fn fault(form: Form, pool: &Pool, file: &[u8], way: Way) -> Result<bool, String> {
    let check = || match pool {
        Pool::Paths(_) => check::check(form, file),
        Pool::Bundles(known) => bundles::check(file, way, known),
    };
    caught(check).unwrap_or_else(Err)
}

/// The same, and what it takes in time and memory. A program that is run may take what it wants.
fn fault_or_cost(form: Form, pool: &Pool, file: &[u8]) -> Result<bool, String> {
    let measure = Measure::start();
    let read = fault(form, pool, file, Way::Read)?;
    measure.end(file.len())?;
    match form {
        Form::Bundle => fault(form, pool, file, Way::Run),
        _ => Ok(read),
    }
}

/// What a fault is called that others of its sort share: its first line without numbers.
fn sort(fault: &str) -> String {
    let line = fault.lines().next().unwrap_or_default();
    // What is quoted differs from file to file.
    let mut parts = line.split('`');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    while let Some((_, text)) = parts.next().zip(parts.next()) {
        plain.push('_');
        plain.push_str(text);
    }
    plain.retain(|c| !c.is_ascii_digit());
    plain.chars().take(100).collect()
}

/// Time to make a file small in.
const SHRINK_TIME: Duration = Duration::from_secs(60);

/// Files of some forms, as a kind of inputs.
pub struct Files {
    forms: Vec<(Form, Pool)>,
    /// Faults of each sort so far.
    known: RefCell<BTreeMap<String, usize>>,
}

impl Files {
    /// Those of a name; none when no forms have it.
    pub fn named(name: &str) -> Option<Self> {
        let forms = forms(name).into_iter();
        let forms: Vec<_> = forms.map(|form| (form, Pool::of(form, true))).collect();
        let files = Self {
            forms,
            known: RefCell::default(),
        };
        // Processes that are started take the bundles that this one has compiled.
        if let Some(bundles) = files
            .bundles()
            .filter(|_| std::env::var_os(FOLDER).is_none())
        {
            bundles.keep(&pool_folder());
        }
        (!files.forms.is_empty()).then_some(files)
    }

    /// Those of the form that a file's name says; none when no form has such a name.
    pub fn like(path: &Path) -> Option<Self> {
        Self::named(Form::of(path)?.name())
    }

    fn input(&self, seed: u64) -> (Form, &Pool, Vec<u8>) {
        let (form, pool) = &self.forms[(seed % self.forms.len() as u64) as usize];
        (*form, pool, input(*form, pool, seed))
    }

    fn bundles(&self) -> Option<&Bundles> {
        self.forms.iter().find_map(|(_, pool)| match pool {
            Pool::Bundles(bundles) => Some(bundles),
            Pool::Paths(_) => None,
        })
    }

    /// How a process of its own dies of a file, if it does.
    fn dies(&self, form: Form, file: &[u8]) -> Option<String> {
        let path = save(&format!("try{}", form.row().2), file);
        let mut environment = self.environment();
        environment.push(("XLA_AOT_FUZZ_INPUT", path.to_string_lossy().into_owned()));
        let process = Process::start(&environment, self.room());
        let (status, said) = process.wait(self.patience())?;
        let by_itself = status.code().is_some();
        (!by_itself).then(|| format!("dies: {status}, {said}"))
    }

    /// Checks a file that was written before; gives whether all is well.
    pub fn again(&self, path: &Path) -> bool {
        let (form, pool) = &self.forms[0];
        let found = fs::read(path)
            .map_err(|error| error.to_string())
            .and_then(|file| fault_or_cost(*form, pool, &file));
        match &found {
            Ok(true) => println!("is read"),
            Ok(false) => println!("is refused"),
            Err(fault) => println!("{fault}"),
        }
        found.is_ok()
    }

    /// Writes a file at which something is wrong, and what, and the small one.
    fn keep(
        &self,
        form: Form,
        seed: u64,
        file: &[u8],
        fault: &str,
        is_wrong: &mut dyn FnMut(&[u8]) -> bool,
    ) {
        let (_, name, end) = form.row();
        save(&format!("{name}-{seed}{end}"), file);
        save(&format!("{name}-{seed}.txt"), fault.as_bytes());
        let small = shrink::shrink(form, file, SHRINK_TIME, is_wrong);
        save(&format!("{name}-{seed}.small{end}"), &small);
    }
}

/// Files kept of each sort of faults.
const KEPT: usize = 2;

impl Kind for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn work(&self, seed: u64) {
        let (form, pool, file) = self.input(seed);
        match fault_or_cost(form, pool, &file) {
            Ok(true) => tell(&format!("count {} read", form.name())),
            Ok(false) => tell(&format!("count {} refused", form.name())),
            Err(fault) => {
                let own = sort(&fault);
                tell(&format!("fault {} seed {seed}: {own}", form.name()));
                tell(&format!("count fault: {own}"));
                let mut known = self.known.borrow_mut();
                let times = known.entry(own.clone()).or_default();
                *times += 1;
                if *times <= KEPT {
                    let mut is_wrong = |file: &[u8]| {
                        fault_or_cost(form, pool, file).is_err_and(|f| sort(&f) == own)
                    };
                    self.keep(form, seed, &file, &fault, &mut is_wrong);
                }
            }
        }
    }

    fn bury(&self, seed: u64, message: &str) {
        let (form, _, file) = self.input(seed);
        let own = sort(message);
        let mut is_wrong = |file: &[u8]| self.dies(form, file).is_some_and(|m| sort(&m) == own);
        // What takes long is not tried again and again.
        let mut never = |_: &[u8]| false;
        let is_slow = message == "hangs";
        let is_wrong: &mut dyn FnMut(&[u8]) -> bool =
            if is_slow { &mut never } else { &mut is_wrong };
        self.keep(form, seed, &file, message, is_wrong);
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn room(&self) -> Option<u64> {
        Some(match self.bundles() {
            Some(_) => 8 << 30,
            None => 2 << 30,
        })
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let folder = || pool_folder().to_string_lossy().into_owned();
        let bundles = self.bundles().into_iter();
        bundles.map(|_| (FOLDER, folder())).collect()
    }
}

/// Where the bundles are of which changed ones are made.
fn pool_folder() -> PathBuf {
    std::env::var_os(FOLDER).map_or_else(|| watch::folder().join("pool"), PathBuf::from)
}

/// Seeds of a trial, and trials of a form.
const SEEDS: u64 = 150;
const TRIALS: u64 = 2;

/// Of so many bytes of a bundle, a bit of one is flipped, unless `XLA_AOT_ALL` is set.
const FLIPPED_EVERY: usize = 61;

/// The fixed seeds.
pub fn trials() -> Vec<Trial> {
    let every = match std::env::var_os("XLA_AOT_ALL") {
        Some(_) => 1,
        None => FLIPPED_EVERY,
    };
    let mut trials = Vec::new();
    for (form, name, _) in FORMS {
        // Bundles are compiled once for all.
        let pool = Arc::new(LazyLock::new(|| Pool::of(*form, false)));
        for number in 0..TRIALS {
            let pool = Arc::clone(&pool);
            trials.push(Trial::test(format!("fuzz/{name}/{number:02}"), move || {
                for seed in number * SEEDS..(number + 1) * SEEDS {
                    let file = input(*form, &pool, seed);
                    if let Err(fault) = fault(*form, &pool, &file, Way::Read) {
                        let text = String::from_utf8_lossy(&file);
                        return Err(format!("seed {seed}: {fault}\n{text}").into());
                    }
                }
                Ok(())
            }));
        }
        if *form == Form::Bundle {
            trials.push(Trial::test("fuzz/bundles/flips", move || match &**pool {
                Pool::Bundles(known) => Ok(bundles::flip(known, every)?),
                Pool::Paths(_) => Ok(()),
            }));
        }
    }
    trials
}

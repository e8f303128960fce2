//! Files: read whole (arrays apart), written beside and renamed, so that an output is there in full or not at all.

use std::io::IsTerminal;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;

use crate::base::diag::io_reason;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::driver::arrays::Content;
#[cfg(feature = "reference")]
use crate::driver::arrays::snapshot_program_end;

/// Largest input: what a proto can be.
const MAX_INPUT: u64 = 2 << 30;

/// Temporary files that a signal must take away.
#[derive(Clone, Default)]
pub struct Unfinished {
    paths: Arc<Mutex<Vec<PathBuf>>>,
}

impl Unfinished {
    fn add(&self, path: &Path) {
        self.lock().push(path.to_owned());
    }
    fn remove(&self, path: &Path) {
        self.lock().retain(|other| other != path);
    }
    /// Deletes them all.
    pub fn delete(&self) {
        for path in self.lock().drain(..) {
            // The process is about to end, and there is nobody left to tell.
            let _ = std::fs::remove_file(path);
        }
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.paths.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Whether the path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to write over a file that the command reads or writes besides.
pub fn keep_apart(output: &Path, others: &[&Path]) -> Outcome {
    let place = |path: &Path| {
        path.canonicalize()
            .or_else(|_| std::path::absolute(path))
            .ok()
    };
    let is_other = |other: &&&Path| !is_standard(other) && place(output) == place(other);
    if is_standard(output) {
        return Ok(());
    }
    match others.iter().find(is_other) {
        None => Ok(()),
        Some(other) => Err(Failure::Usage(format!(
            "writing `{}` would destroy `{}`; name another file",
            output.display(),
            other.display()
        ))),
    }
}

/// The path as messages show it.
pub fn shown(path: &Path) -> String {
    if is_standard(path) {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads a whole file, or standard input for `-`.
pub fn read(path: &Path) -> Outcome<Vec<u8>> {
    let failed = |e: std::io::Error| Failure::File(format!("cannot read `{}`: {e}", shown(path)));
    let mut bytes = Vec::new();
    if is_standard(path) {
        std::io::stdin()
            .lock()
            .take(MAX_INPUT + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        if file.metadata().is_ok_and(|m| m.is_dir()) {
            return Err(Failure::File(format!("`{}` is a folder", shown(path))));
        }
        file.take(MAX_INPUT + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_INPUT {
        let message = format!("`{}` is larger than 2 GiB", shown(path));
        return Err(Failure::File(message));
    }
    Ok(bytes)
}

/// Reads a program as [`read`] does; of a snapshot that is larger, the program alone.
#[cfg(feature = "reference")]
pub fn read_program(path: &Path) -> Outcome<Vec<u8>> {
    if is_standard(path)
        || !std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() > MAX_INPUT)
    {
        return read(path);
    }
    let failed = |e: std::io::Error| Failure::File(format!("cannot read `{}`: {e}", shown(path)));
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    let start = (&file).take(16).read_to_end(&mut bytes);
    start.map_err(failed)?;
    let Some(end) = snapshot_program_end(&bytes, length).filter(|&end| end <= MAX_INPUT) else {
        return read(path);
    };
    let rest = end.saturating_sub(bytes.len() as u64);
    file.take(rest).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// An array file: left on disk where it can be read from any position, else read whole.
pub fn open_arrays(path: &Path) -> Outcome<Content> {
    if is_standard(path) || !path.is_file() {
        return Ok(Content::Bytes(read(path)?));
    }
    let opened = std::fs::File::open(path);
    let opened = opened.map_err(|e| Failure::File(format!("cannot read `{}`: {e}", shown(path))));
    Ok(Content::File(opened?))
}

/// Writes to standard output; `binary` content is not sent to a terminal.
pub fn write_standard(content: &[u8], binary: bool) -> Outcome {
    let mut out = std::io::stdout().lock();
    if binary && out.is_terminal() {
        let message = "standard output is a terminal; redirect it or name a file with -o";
        return Err(Failure::Usage(message.to_owned()));
    }
    let written = out.write_all(content).and_then(|()| out.flush());
    written.map_err(|e| match e.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Pipe,
        _ => Failure::File(format!("cannot write to standard output: {e}")),
    })
}

/// Writes a file beside its place and renames it, or to standard output for `-`.
pub fn write(path: &Path, content: &[u8], binary: bool, unfinished: &Unfinished) -> Outcome {
    if is_standard(path) {
        return write_standard(content, binary);
    }
    let failed = |e: &std::io::Error| {
        let reason = io_reason(e);
        Failure::File(format!("cannot write `{}`: {reason}", path.display()))
    };
    // A device or pipe is written to, not replaced.
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        return std::fs::write(path, content).map_err(|e| failed(&e));
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".xla-aot-")
        .permissions(default_permissions(path))
        .tempfile_in(folder)
        .map_err(|e| failed(&e))?;
    let temporary = file.path().to_owned();
    unfinished.add(&temporary);
    let written = file.write_all(content).map_err(|e| failed(&e));
    let persisted =
        written.and_then(|()| file.persist(path).map(drop).map_err(|e| failed(&e.error)));
    unfinished.remove(&temporary);
    persisted
}

/// Those of the file that is replaced, or those of a new file.
#[cfg(unix)]
fn default_permissions(path: &Path) -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    let existing = std::fs::metadata(path).map(|m| m.permissions());
    existing.unwrap_or_else(|_| std::fs::Permissions::from_mode(0o666))
}

/// Makes a folder and those above it.
#[cfg(feature = "compiler")]
pub fn make_folder(path: &Path) -> Outcome {
    std::fs::create_dir_all(path)
        .map_err(|e| Failure::File(format!("cannot make the folder `{}`: {e}", path.display())))
}

//! NVIDIA's PTX assembler, when there is one: finds it, asks its version, runs it.
//!
//! It is never needed: PTX travels as it is and the driver assembles it. With it, errors show when
//! the program is compiled and loading is faster.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;

/// The environment variable that names the assembler.
pub const VARIABLE: &str = "XLA_AOT_PTXAS";

/// Where NVIDIA's wheels keep it, below `site-packages`.
const WHEEL_PLACES: &[&str] = &["nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas"];

/// A usable assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptxas {
    /// The program.
    pub path: PathBuf,
    /// Its release: 12.9 is `(12, 9)`.
    pub release: (u32, u32),
}

/// What the assembler said of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The kernel.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes stored to local memory for want of registers.
    pub spill_stores: u32,
    /// Bytes loaded back.
    pub spill_loads: u32,
    /// Static shared memory in bytes.
    pub shared_bytes: u32,
}

/// A device binary and what it uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembled {
    /// The cubin.
    pub cubin: Vec<u8>,
    /// One entry a kernel.
    pub usage: Vec<Usage>,
}

/// Finds the assembler: the path given, else the variable's, else on `PATH`, else in the wheels
/// under `python_packages` (a `site-packages` folder). None is fine when no path was given.
///
/// # Errors
/// A path that was named and is no working assembler.
pub fn find(explicit: Option<&Path>, python_packages: Option<&Path>) -> Result<Option<Ptxas>> {
    if let Some(path) = explicit {
        return probe(path).map(Some);
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return probe(Path::new(&path)).map(Some);
    }
    let path_list = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path_list).map(|folder| folder.join("ptxas"));
    let in_wheels = python_packages
        .into_iter()
        .flat_map(|root| WHEEL_PLACES.iter().map(move |place| root.join(place)));
    for candidate in on_path.chain(in_wheels) {
        if candidate.is_file()
            && let Ok(ptxas) = probe(&candidate)
        {
            return Ok(Some(ptxas));
        }
    }
    Ok(None)
}

/// Asks a program for its version.
///
/// # Errors
/// `PTXAS` when it does not answer like the assembler.
pub fn probe(path: &Path) -> Result<Ptxas> {
    let refuse = |why: String| {
        Diagnostic::error(codes::PTXAS, format!("`{}` {why}", path.display()))
            .help(format!("name a working ptxas by option or in {VARIABLE}"))
    };
    let output = Command::new(path)
        .arg("--version")
        .output()
        .map_err(|e| refuse(format!("cannot be run: {e}")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let release = text
        .split("release ")
        .nth(1)
        .and_then(|rest| rest.split([',', ' ', '\n']).next())
        .and_then(|number| number.split_once('.'))
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match release {
        Some(release) => Ok(Ptxas {
            path: path.to_owned(),
            release,
        }),
        None => Err(refuse("does not answer `--version` like ptxas".to_owned())),
    }
}

impl Ptxas {
    /// Assembles PTX for an architecture such as `sm_90a`.
    ///
    /// # Errors
    /// `PTXAS` with the assembler's own text.
    pub fn assemble(&self, ptx: &str, sm_name: &str) -> Result<Assembled> {
        let failed =
            |what: &str, e: std::io::Error| Diagnostic::error(codes::PTXAS, format!("{what}: {e}"));
        let folder = tempfile::tempdir().map_err(|e| failed("cannot make a folder", e))?;
        let (input, cubin) = (
            folder.path().join("in.ptx"),
            folder.path().join("out.cubin"),
        );
        std::fs::File::create(&input)
            .and_then(|mut file| file.write_all(ptx.as_bytes()))
            .map_err(|e| failed("cannot write PTX for the assembler", e))?;
        let arch = format!("-arch={sm_name}");
        let output = Command::new(&self.path)
            .args([OsStr::new(&arch), OsStr::new("-v"), OsStr::new("-O3")])
            .arg(&input)
            .arg("-o")
            .arg(&cubin)
            .output()
            .map_err(|e| failed("cannot run the assembler", e))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            let mut lines = text.lines().filter(|line| !line.trim().is_empty());
            let first = lines.next().unwrap_or("no message").to_owned();
            let mut diagnostic = Diagnostic::error(
                codes::PTXAS,
                format!("the PTX assembler refuses the code: {first}"),
            );
            for line in lines.take(8) {
                diagnostic = diagnostic.note(line.to_owned());
            }
            return Err(diagnostic);
        }
        let cubin =
            std::fs::read(&cubin).map_err(|e| failed("cannot read what the assembler wrote", e))?;
        Ok(Assembled {
            cubin,
            usage: read_usage(&text),
        })
    }
}

/// Reads the lines that `-v` prints.
fn read_usage(text: &str) -> Vec<Usage> {
    let mut usage: Vec<Usage> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            let kernel = rest.split('\'').next().unwrap_or("").to_owned();
            usage.push(Usage {
                kernel,
                ..Usage::default()
            });
        }
        let Some(last) = usage.last_mut() else {
            continue;
        };
        let before = |word: &str| number_before(line, word);
        if let Some(bytes) = before(" bytes spill stores") {
            last.spill_stores = bytes;
        }
        if let Some(bytes) = before(" bytes spill loads") {
            last.spill_loads = bytes;
        }
        if let Some(count) = before(" registers") {
            last.registers = count;
        }
        if let Some(bytes) = before(" bytes smem") {
            last.shared_bytes = bytes;
        }
    }
    usage
}

fn number_before(line: &str, word: &str) -> Option<u32> {
    let head = line
        .split(word)
        .next()
        .filter(|head| head.len() < line.len())?;
    let digits = head
        .rsplit(|c: char| !c.is_ascii_digit())
        .next()
        .unwrap_or("");
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_the_verbose_text() {
        let text = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'k' for 'sm_80'\n\
            ptxas info    : Function properties for k\n    \
            0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
            ptxas info    : Used 18 registers, 512 bytes smem, 380 bytes cmem[0]\n";
        let usage = read_usage(text);
        assert_eq!(
            usage,
            [Usage {
                kernel: "k".to_owned(),
                registers: 18,
                spill_stores: 8,
                spill_loads: 12,
                shared_bytes: 512,
            }]
        );
    }
}

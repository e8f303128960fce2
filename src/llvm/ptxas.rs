//! NVIDIA's PTX assembler, when there is one: finds it, asks its version, runs it.
//!
//! It is never needed: PTX travels as it is and the driver assembles it. With it, errors show when
//! the program is compiled and loading is faster.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::base::diag::io_reason;

/// The environment variable that names the assembler.
pub const VARIABLE: &str = "XLA_AOT_PTXAS";

/// Where NVIDIA's wheels keep it, below `site-packages`.
const WHEEL_PLACES: &[&str] = &["nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas"];

/// What the assembler reads and writes, in a folder of its own.
const INPUT: &str = "program.ptx";
const OUTPUT: &str = "program.cubin";

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

/// Finds the assembler: the path given, else the variable's, else on `PATH`, else in NVIDIA's wheels
/// among the packages of the Pythons at hand. None is fine when no path was given.
///
/// # Errors
/// A path that was named and is no working assembler.
pub fn find(explicit: Option<&Path>) -> Result<Option<Ptxas>> {
    if let Some(path) = explicit {
        return probe(path).map(Some);
    }
    if let Some(path) = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()) {
        return probe(Path::new(&path)).map(Some);
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut candidates = candidates(&variable, Path::new("/")).into_iter();
    Ok(candidates.find_map(|path| probe(&path).ok()))
}

/// The files that may be the assembler, in the order to be asked: on `PATH`, then in wheels.
fn candidates(variable: &dyn Fn(&str) -> Option<OsString>, root: &Path) -> Vec<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("ptxas"));
    let packages = python_packages(variable, root);
    let in_wheels = packages
        .iter()
        .flat_map(|folder| WHEEL_PLACES.iter().map(move |place| folder.join(place)));
    let files = on_path.chain(in_wheels);
    files.filter(|file| file.is_file()).collect()
}

/// The folders in which Pythons keep packages: of the active environments, of the `python3` on
/// `PATH`, of the user, of the system.
fn python_packages(variable: &dyn Fn(&str) -> Option<OsString>, root: &Path) -> Vec<PathBuf> {
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter();
    let mut prefixes: Vec<PathBuf> = named.filter_map(variable).map(PathBuf::from).collect();
    let path = variable("PATH").unwrap_or_default();
    let mut pythons = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    if let Some(python) = pythons.find(|file| file.is_file()) {
        // A virtual environment's Python is a link, and its own packages are beside the link.
        let places = [Some(python.clone()), python.canonicalize().ok()];
        let places = places.into_iter().flatten();
        prefixes.extend(places.filter_map(|file| Some(file.parent()?.parent()?.to_owned())));
    }
    let home = variable("HOME").map(PathBuf::from);
    prefixes.extend(home.map(|home| home.join(".local")));
    prefixes.extend(["usr/local", "usr"].map(|place| root.join(place)));
    let mut folders: Vec<PathBuf> = Vec::new();
    for prefix in prefixes {
        for library in ["lib", "lib64"] {
            for python in python_versions(&prefix.join(library)) {
                for kind in ["site-packages", "dist-packages"] {
                    let folder = python.join(kind);
                    if folder.is_dir() && !folders.contains(&folder) {
                        folders.push(folder);
                    }
                }
            }
        }
    }
    folders
}

/// The `python3*` folders of a library folder, the newest version first.
fn python_versions(library: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(library) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut versions: Vec<(u32, String)> = names
        .filter_map(|name| {
            let minor = name.strip_prefix("python3")?;
            let number = minor.trim_start_matches('.').trim_end_matches('t');
            Some((number.parse().unwrap_or(0), name))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    let names = versions.into_iter();
    names.map(|(_, name)| library.join(name)).collect()
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
        // It will run in another folder.
        Some(release) => Ok(Ptxas {
            path: match path.components().count() {
                1 => path.to_owned(),
                _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            },
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
        let failed = |what: &str, e: &std::io::Error| {
            Diagnostic::error(codes::PTXAS, format!("{what}: {}", io_reason(e)))
        };
        let folder = tempfile::tempdir().map_err(|e| failed("cannot make a folder", &e))?;
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path(INPUT), ptx)
            .map_err(|e| failed("cannot write PTX for the assembler", &e))?;
        let arch = format!("-arch={sm_name}");
        // It runs in the folder, so that what it says names no place that is soon gone.
        let output = Command::new(&self.path)
            .current_dir(folder.path())
            .args([OsStr::new(&arch), OsStr::new("-v"), OsStr::new("-O3")])
            .args([INPUT, "-o", OUTPUT])
            .output()
            .map_err(|e| failed("cannot run the assembler", &e))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            let text = without_folder(&text, folder.path());
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
        let cubin = std::fs::read(path(OUTPUT))
            .map_err(|e| failed("cannot read what the assembler wrote", &e))?;
        Ok(Assembled {
            cubin,
            usage: read_usage(&text),
        })
    }
}

/// The text without the name of a folder that is about to go.
fn without_folder(text: &str, folder: &Path) -> String {
    let mut text = text.to_owned();
    for folder in [Some(folder.to_owned()), folder.canonicalize().ok()] {
        let Some(folder) = folder else { continue };
        text = text.replace(&format!("{}/", folder.display()), "");
    }
    text
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

    /// Writes a program that answers like the assembler, and refuses what it is given.
    fn pretend(path: &Path, release: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!(
            "#!/bin/sh\ncase $1 in --version) echo 'Cuda release {release}, V{release}.1';; \
             *) echo \"ptxas $4, line 3; error : $PWD/$4 is bad\" >&2; exit 1;; esac\n"
        );
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn wheels_of_all_pythons_are_searched_in_order() {
        let root = tempfile::tempdir().unwrap();
        let at = |place: &str| root.path().join(place);
        let places = [
            "bin/ptxas",
            "venv/lib/python3.12/site-packages/nvidia/cu13/bin/ptxas",
            "venv/lib/python3.12/site-packages/nvidia/cuda_nvcc/bin/ptxas",
            "venv/lib/python3.9/site-packages/nvidia/cuda_nvcc/bin/ptxas",
            "conda/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas",
            "other/lib/python3.13/site-packages/nvidia/cu13/bin/ptxas",
            "home/.local/lib/python3.10/site-packages/nvidia/cuda_nvcc/bin/ptxas",
            "usr/local/lib/python3.12/dist-packages/nvidia/cuda_nvcc/bin/ptxas",
            "usr/lib/python3/dist-packages/nvidia/cuda_nvcc/bin/ptxas",
        ];
        for place in places {
            pretend(&at(place), "12.9");
        }
        pretend(&at("other/bin/python3"), "0.0");
        let variable = |name: &str| {
            let both = std::env::join_paths([at("bin"), at("other/bin")]).unwrap();
            match name {
                "PATH" => Some(both),
                "VIRTUAL_ENV" => Some(at("venv").into_os_string()),
                "CONDA_PREFIX" => Some(at("conda").into_os_string()),
                "HOME" => Some(at("home").into_os_string()),
                _ => None,
            }
        };
        assert_eq!(candidates(&variable, root.path()), places.map(at));
        // A broken environment changes nothing else.
        let nothing = |_: &str| None;
        assert_eq!(
            candidates(&nothing, root.path()),
            places[7..].iter().map(|p| at(p)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn refusals_name_no_temporary_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ptxas");
        pretend(&path, "12.9");
        let ptxas = probe(&path).unwrap();
        assert_eq!(ptxas.release, (12, 9));
        let refused = ptxas.assemble("", "sm_90").unwrap_err().to_string();
        assert!(refused.contains("ptxas program.ptx, line 3"), "{refused}");
        let temporary = std::env::temp_dir();
        assert!(
            !refused.contains(&temporary.display().to_string()),
            "{refused}"
        );
    }

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

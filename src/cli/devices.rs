//! What each of several devices is given and gives: files by the number of a device.

use std::path::Path;
use std::path::PathBuf;

use crate::base::Result;
use crate::cli::args::DeviceFile;
use crate::cli::comparing::read_arrays;
use crate::cli::exit::Failure;
use crate::cli::exit::Outcome;
use crate::driver::Arrays;
use crate::driver::arrays::ArrayFile;
use crate::driver::arrays::Partition;
use crate::driver::devices::Topology;

/// The arrays of each device: those of its own files, else those that the files of all devices have
/// for its partition. `flag` is what named the device.
pub fn read(
    topology: Topology,
    common: impl FnOnce() -> Outcome<Vec<ArrayFile>>,
    (flag, own): (&str, &[DeviceFile]),
    read: impl Fn(&[ArrayFile], Partition) -> Result<Arrays>,
) -> Outcome<Vec<Arrays>> {
    check(topology, flag, own)?;
    let files_of = |device: usize| -> Vec<PathBuf> {
        let own = own.iter().filter(|file| file.device == device);
        own.map(|file| file.path.clone()).collect()
    };
    let has_own = |device: usize| own.iter().any(|file| file.device == device);
    let devices = 0..topology.devices();
    let count = topology.partitions as usize;
    let partition = |number: usize| Partition { number, count };
    let mut shared: Vec<Option<Arrays>> = vec![None; count];
    if !devices.clone().all(has_own) {
        let common = common()?;
        for device in devices.clone().filter(|&device| !has_own(device)) {
            let number = device % count;
            if shared[number].is_none() {
                shared[number] = Some(read(&common, partition(number))?);
            }
        }
    }
    let arrays = devices.map(|device| {
        let number = device % count;
        match &shared[number] {
            Some(arrays) if !has_own(device) => Ok(arrays.clone()),
            _ => Ok(read(&read_arrays(&files_of(device))?, partition(number))?),
        }
    });
    arrays.collect()
}

/// Expected results of each device, when there are any; every device must have some then.
pub fn read_expected(
    topology: Topology,
    common: Option<&PathBuf>,
    own: &[DeviceFile],
    one: impl Fn(&ArrayFile) -> Result<Arrays>,
) -> Outcome<Option<Vec<Arrays>>> {
    let flag = "--device-expect";
    check(topology, flag, own)?;
    if common.is_none() && own.is_empty() {
        return Ok(None);
    }
    let mut devices = 0..topology.devices();
    let bare = devices.find(|device| own.iter().all(|file| file.device != *device));
    if let (None, Some(device)) = (common, bare) {
        let message = format!("{flag}: nothing is said of device {device}");
        return Err(Failure::Usage(message));
    }
    let common: Vec<PathBuf> = common.cloned().into_iter().collect();
    let common = || read_arrays(&common);
    let arrays = read(topology, common, (flag, own), |files, _| match files {
        [file] => one(file),
        files => files.last().map_or(Ok(Arrays::new()), &one),
    });
    arrays.map(Some)
}

fn check(topology: Topology, flag: &str, files: &[DeviceFile]) -> Outcome {
    let count = topology.devices();
    match files.iter().find(|file| file.device >= count) {
        None => Ok(()),
        Some(file) => Err(Failure::Usage(format!(
            "{flag} {}: there is no such device; {topology} have numbers from 0 to {}",
            file.device,
            count - 1
        ))),
    }
}

/// Where the results of a device go: `out.npz`, or `out.3.npz` when it is one of several.
pub fn output_of(topology: Topology, output: &Path, device: usize) -> PathBuf {
    if topology == Topology::ONE {
        return output.to_owned();
    }
    match output.extension() {
        Some(suffix) => output.with_extension(format!("{device}.{}", suffix.display())),
        None => output.with_added_extension(device.to_string()),
    }
}

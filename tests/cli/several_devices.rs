//! The command line with programs of several devices: their inputs, their results, and what is said
//! when the two do not fit.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::process::Output;

/// Two replicas add what they have, and each adds its number.
const PROGRAM: &str = "HloModule m, replica_count=2

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

ENTRY e {
  x = f32[2] parameter(0)
  s = f32[2] all-reduce(x), replica_groups={}, to_apply=add
  r = u32[] replica-id()
  f = f32[] convert(r)
  w = f32[2] broadcast(f), dimensions={}
  ROOT t = f32[2] add(s, w)
}
";

/// An array file of two numbers.
fn npy(numbers: [f32; 2]) -> Vec<u8> {
    let mut header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".to_owned();
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

struct Folder(tempfile::TempDir);

impl Folder {
    /// With the program and inputs.
    fn new() -> Self {
        let room = Self(tempfile::tempdir().unwrap());
        room.write("m.hlo", PROGRAM.as_bytes());
        room.write("a.npy", &npy([1.0, 2.0]));
        room.write("b.npy", &npy([10.0, 20.0]));
        room.write("sum.npy", &npy([11.0, 22.0]));
        room.write("more.npy", &npy([12.0, 23.0]));
        room
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.path().join(name), bytes).unwrap();
    }
    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }
    fn run(&self, words: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xla-aot"))
            .current_dir(self.0.path())
            .args(words.split_whitespace())
            .output()
            .unwrap()
    }
    /// Runs and gives what was printed.
    fn well(&self, words: &str) -> String {
        let output = self.run(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
    /// Runs, and expects an exit code and a part of the message.
    fn badly(&self, words: &str, code: i32, told: &str) {
        let output = self.run(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words}: {error}");
        assert!(error.contains(told), "{words}: {error}");
    }
}

const OWN: &str = "--device-input 0=a.npy --device-input 1=b.npy";
const EXPECTED: &str = "--device-expect 0=sum.npy --device-expect 1=more.npy";

#[test]
fn each_device_has_its_inputs_and_results() {
    let room = Folder::new();
    room.well("compile m.hlo");
    for verb in ["eval m.hlo", "run m.xla", "eval m.xla"] {
        room.well(&format!("{verb} {OWN} {EXPECTED}"));
        let told = room.well(&format!("{verb} {OWN}"));
        assert!(told.starts_with("device 0: out0: "), "{told}");
        assert!(told.contains("\ndevice 1: out0: "), "{told}");
        // The common input is for the devices that have none of their own.
        room.well(&format!(
            "{verb} -i b.npy --device-input 0=a.npy {EXPECTED}"
        ));
        room.well(&format!("{verb} {OWN} -o out.npy"));
        assert_eq!(room.read("out.0.npy"), room.read("sum.npy"));
        assert_eq!(room.read("out.1.npy"), room.read("more.npy"));
        assert!(!Path::new(&room.0.path().join("out.npy")).exists());
        let wrong = format!("{verb} {OWN} --expect sum.npy");
        room.badly(&wrong, 4, "mismatch: device 1: out0");
        let told = room.well(&format!("{verb} {OWN} --json"));
        assert!(told.contains("\"device\":1"), "{told}");
    }
    room.well(&format!("bench m.xla {OWN} --iterations 3 --profile"));
    room.well("verify m.xla -i a.npy");
}

#[test]
fn numbers_of_devices_come_from_the_program_or_the_caller() {
    let room = Folder::new();
    let told = room.well("eval m.hlo --replicas 3 -i a.npy");
    assert!(told.contains("device 2: out0"), "{told}");
    let told = room.well("eval m.hlo --replicas 1 -i a.npy");
    assert!(told.starts_with("out0"), "{told}");
    room.well("compile m.hlo --num-replicas 3 --num-partitions 2 -o six.xla");
    let told = room.well("inspect six.xla");
    assert!(told.contains("3 replicas of 2 partitions"), "{told}");
    let told = room.well("run six.xla -i a.npy");
    assert!(told.contains("device 5: out0"), "{told}");
    room.well("run six.xla -i a.npy --replicas 3 --partitions 2");
    let six = "the bundle is for 3 replicas of 2 partitions, not for";
    for verb in ["run", "eval", "bench"] {
        let words = format!("{verb} six.xla -i a.npy --replicas 2");
        room.badly(&words, 1, six);
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let room = Folder::new();
    room.well("compile m.hlo");
    let cases = [
        (
            "run m.xla --device-input 2=a.npy -i a.npy",
            2,
            "there is no such device",
        ),
        (
            "eval m.hlo --device-input 2=a.npy -i a.npy",
            2,
            "there is no such device",
        ),
        (
            "run m.xla --device-input a.npy",
            2,
            "the number of a device",
        ),
        ("run m.xla -i a.npy -o -", 2, "have a file each"),
        ("run m.xla --device-input 0=a.npy", 1, "`in0`"),
        (
            "run m.xla -i a.npy --device-expect 0=sum.npy",
            2,
            "nothing is said of device 1",
        ),
        (
            "run m.xla -i a.npy --replicas 0",
            2,
            "a whole number from 1",
        ),
        (
            "eval m.hlo -i a.npy --replicas 4000 --partitions 2",
            1,
            "8000 devices",
        ),
        (
            "compile m.hlo --num-replicas 4096 --num-partitions 2",
            1,
            "8192 devices",
        ),
    ];
    for (words, code, told) in cases {
        room.badly(words, code, told);
    }
    // A file that is read is not written over.
    room.write("b.0.npy", &npy([1.0, 1.0]));
    let words = "run m.xla -i a.npy --device-input 0=b.0.npy -o b.npy";
    room.badly(words, 2, "would destroy");
}

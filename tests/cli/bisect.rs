//! Optional rewrites: naming, leaving out, counting and finding them.

use std::fs;

use crate::Room;
use crate::expect;
use crate::stderr;
use crate::stdout;

/// A program in which `add-zero`-like rules and fusion have something to do.
const PROGRAM: &str = "HloModule m
ENTRY main {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  three = f32[] constant(3)
  threes = f32[4]{0} broadcast(three), dimensions={}
  p = f32[4]{0} power(x, threes)
  q = f32[4]{0} add(p, y)
  ROOT r = f32[4]{0} multiply(q, x)
}
";

fn room() -> Room {
    let room = Room::new();
    fs::write(room.path("p.hlo"), PROGRAM).unwrap();
    room
}

fn passes_hlo(room: &Room, more: &[&str]) -> String {
    let mut args = vec![
        "compile",
        "p.hlo",
        "--stop-after",
        "passes",
        "--emit",
        "hlo=out.hlo",
    ];
    args.extend(more);
    expect(&room.run(&args), 0, "");
    fs::read_to_string(room.path("out.hlo")).unwrap()
}

#[test]
fn rules_and_passes_are_left_out_by_name_and_by_count() {
    let room = room();
    let all = passes_hlo(&room, &[]);
    assert!(all.contains("fusion(") && !all.contains("power("), "{all}");
    let without = passes_hlo(&room, &["--disable-rule", "power-three"]);
    assert!(without.contains("power("), "{without}");
    let without = passes_hlo(&room, &["--disable-pass", "fuse"]);
    assert!(!without.contains("fusion("), "{without}");
    let none = passes_hlo(&room, &["--fuel", "0"]);
    // Each op is a kernel of its own.
    assert!(none.contains("power("), "{none}");
    assert!(none.contains("ROOT %r = f32[4]{0} multiply(%q"), "{none}");
}

#[test]
fn names_that_are_none_are_refused() {
    let room = room();
    for (flag, name, says) in [
        ("--disable-rule", "power-thre", "did you mean `power-three`"),
        ("--disable-pass", "inline", "cannot be left out"),
        ("--disable-pass", "fus", "did you mean `fuse`"),
    ] {
        let refused = room.run(&["compile", "p.hlo", flag, name]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
    }
}

#[test]
fn passes_are_listed_with_their_rules() {
    let listed = stdout(&room().run(&["passes"]));
    assert!(listed.contains("inline  (required)\n"), "{listed}");
    assert!(listed.contains("algebraic\n  no-elements\n"), "{listed}");
    let json = stdout(&room().run(&["passes", "--json"]));
    let json: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(json["passes"][0]["name"], "dce");
}

#[test]
fn a_program_without_fault_agrees() {
    let room = room();
    for device in ["cpu", "sim:h100_sxm"] {
        let sound = room.run(&["bisect", "p.hlo", "--device", device]);
        expect(&sound, 0, "");
        assert!(stdout(&sound).contains("agrees with the evaluator"));
    }
}

//! Damaged bundles: every verb that reads one rejects it in the same way.

use std::fs;

use crate::Room;
use crate::expect;
use crate::objects;
use crate::stderr;

/// What was done to a bundle.
type Damage = (&'static str, fn(&[u8]) -> Vec<u8>);

const DAMAGES: &[Damage] = &[
    ("empty", |_| Vec::new()),
    ("a text", |_| b"HloModule m\n".to_vec()),
    ("zeros", |whole| vec![0; whole.len()]),
    ("one byte", |whole| whole[..1].to_vec()),
    ("its beginning", |whole| whole[..whole.len() / 3].to_vec()),
    ("almost all", |whole| whole[..whole.len() - 1].to_vec()),
    ("its end", |whole| whole[whole.len() / 2..].to_vec()),
    ("more bytes", |whole| [whole, &[0; 7]].concat()),
    ("a bit in the middle", |whole| flip(whole, whole.len() / 2)),
    ("a bit at a quarter", |whole| flip(whole, whole.len() / 4)),
];

fn flip(whole: &[u8], at: usize) -> Vec<u8> {
    let mut damaged = whole.to_vec();
    damaged[at] ^= 0x10;
    damaged
}

#[test]
fn damaged_bundles_are_rejected_by_every_verb() {
    let room = Room::new();
    for (target, device) in [("x86-64", &[][..]), ("h100_sxm", &["--device", "sim"][..])] {
        let compile = ["compile", "add.hlo", "--target", target, "--no-ptxas"];
        expect(&room.run(&compile), 0, "");
        let whole = fs::read(room.path("add.xla")).unwrap();
        for (name, damage) in DAMAGES {
            fs::write(room.path("bad.xla"), damage(&whole)).unwrap();
            // `inspect` takes programs too.
            let verbs = match *name {
                "a text" => &["run", "verify", "bench"][..],
                _ => &["run", "verify", "bench", "inspect"],
            };
            for &verb in verbs {
                let device = if verb == "inspect" { &[][..] } else { device };
                let found = room.run(&[&[verb, "bad.xla", "--json"], device].concat());
                let told = stderr(&found);
                assert_eq!(
                    found.status.code(),
                    Some(3),
                    "{target}, {name}, {verb}: {told}"
                );
                for line in objects(&told) {
                    let error = &line["error"];
                    let code = error["code"].as_str().unwrap();
                    assert!(
                        ["XA7001", "XA7002", "XA7003"].contains(&code),
                        "{target}, {name}, {verb}: {told}"
                    );
                    assert_eq!(error["exit"], 3);
                }
            }
            // The evaluator takes programs too, and knows a bundle by its beginning.
            let is_bundle = damage(&whole).starts_with(&whole[..16]);
            let evaluated = room.run(&["eval", "bad.xla"]);
            expect(&evaluated, if is_bundle { 3 } else { 1 }, "XA");
            // A program that cannot be read is no bundle that was rejected.
            let compile = ["compile", "bad.xla", "-o", "out.xla"];
            expect(&room.run(&compile), 1, "XA1");
        }
    }
}

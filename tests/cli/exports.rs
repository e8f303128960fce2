//! Files of `jax.export`.

use std::fs;

use crate::Room;
use crate::stdout;

fn room(names: &[&str]) -> Room {
    let room = Room::new();
    for name in names {
        let from = format!("{}/tests/exports/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, room.path(name)).unwrap();
    }
    room
}

#[test]
fn an_export_tells_what_it_is() {
    let room = room(&["affine.jax", "ragged.jax"]);
    let text = stdout(&room.run(&["inspect", "ragged.jax"]));
    for line in [
        "jax.export of `ragged`, serialization version 3, calling convention 10",
        "platforms: cpu",
        "dimension variables: b, c",
        "argument args[1]: f32[2*b + 1,c]",
        "result[0]: f32[3*b + 1]",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let json = stdout(&room.run(&["inspect", "affine.jax", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["arguments"][3]["name"], "kwargs['scale']");
    let bytes = fs::read(room.path("affine.jax")).unwrap();
    fs::write(room.path("cut.jax"), &bytes[..bytes.len() - 30]).unwrap();
    assert_eq!(room.run(&["compile", "cut.jax"]).status.code(), Some(1));
}

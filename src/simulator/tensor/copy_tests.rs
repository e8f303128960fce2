//! Tensor copies against a plain walk over every element of the tile.

#![allow(
    clippy::needless_range_loop,
    reason = "rows and columns are numbers here"
)]

use super::mma_tests::Random;
use super::*;

fn tiled(rank: u32, dims: [u64; 5], box_dims: [u32; 5], steps: [u32; 5]) -> Tiled {
    // Rows of two-byte elements, each dimension padded by 16 bytes.
    let mut strides = [0; 4];
    let mut size = dims[0] * 2;
    for i in 0..4 {
        strides[i] = size.next_multiple_of(16) + 16;
        size = strides[i] * dims[i + 1];
    }
    Tiled {
        element: MapElement::F16,
        rank,
        address: 4096,
        dims,
        strides,
        box_dims,
        steps,
        swizzle: Swizzle::None,
        fill_nan: false,
    }
}

/// What global memory holds: every two bytes say where they are.
fn global(address: u64) -> u16 {
    (address / 2).wrapping_mul(2654435761) as u16 | 1
}

/// The tile after a load, and how often each byte of it was written.
fn run(map: &TensorMap, mode: CopyMode, coords: &[i32], offsets: &[u16]) -> Vec<u16> {
    let bytes = map.box_bytes(mode) as usize;
    let tile = 1024;
    let (mut out, mut count) = (vec![0u8; bytes], vec![0; bytes]);
    map.load(mode, tile, coords, offsets, &mut |piece| {
        for i in 0..piece.bytes {
            let at = (piece.shared + i - tile) as usize;
            count[at] += 1;
            out[at] = match piece.source {
                Source::Global(a) => {
                    let a = a + u64::from(i);
                    global(a & !1).to_le_bytes()[a as usize & 1]
                }
                Source::Fill(pattern) => pattern[i as usize % 8],
            };
        }
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert!(count.iter().all(|c| *c == 1));
    out.chunks_exact(2)
        .map(|p| u16::from_le_bytes([p[0], p[1]]))
        .collect()
}

/// The element at coordinates, or the fill.
fn element(t: &Tiled, at: [i64; 5]) -> u16 {
    let mut address = t.address.wrapping_add_signed(2 * at[0]);
    for i in 0..t.rank as usize {
        if at[i] < 0 || at[i] >= t.dims[i] as i64 {
            return if t.fill_nan { 0x7eff } else { 0 };
        }
        if i > 0 {
            address += at[i] as u64 * t.strides[i - 1];
        }
    }
    global(address)
}

#[test]
fn boxes_of_every_rank_with_steps_and_edges() {
    let mut r = Random::new(9);
    for rank in 1..=5u32 {
        for round in 0..20 {
            let dims = std::array::from_fn(|i| if i == 0 { 40 } else { r.pick(&[3, 5, 8]) });
            let box_dims = std::array::from_fn(|i| if i == 0 { 16 } else { r.pick(&[1, 3, 4]) });
            let steps = std::array::from_fn(|i| if i == 0 { 1 } else { r.pick(&[1, 2]) });
            let mut t = tiled(rank, dims, box_dims, steps);
            t.fill_nan = round % 2 == 1;
            let map = TensorMap::tiled(t).unwrap_or_else(|e| panic!("{e}"));
            let coords: Vec<i32> = (0..rank)
                .map(|_| r.pick(&[-3, -1, 0, 1, 2, 6, 30]))
                .collect();
            let got = run(&map, CopyMode::Tile, &coords, &[]);
            let count = |i: usize| match (i < rank as usize, i) {
                (false, _) => 1,
                (_, 0) => box_dims[0],
                _ => box_dims[i].div_ceil(steps[i]),
            };
            let mut want = Vec::new();
            for e in 0..count(4) {
                for d in 0..count(3) {
                    for c in 0..count(2) {
                        for b in 0..count(1) {
                            for a in 0..count(0) {
                                let index = [a, b, c, d, e];
                                want.push(element(
                                    &t,
                                    std::array::from_fn(|i| {
                                        let c = coords.get(i).map_or(0, |c| i64::from(*c));
                                        c + i64::from(index[i] * steps[i])
                                    }),
                                ));
                            }
                        }
                    }
                }
            }
            assert_eq!(got, want, "{t:?} {coords:?}");
        }
    }
}

#[test]
fn swizzled_tiles() {
    for (swizzle, wide) in [(Swizzle::B32, 16), (Swizzle::B64, 32), (Swizzle::B128, 64)] {
        let mut t = tiled(2, [100, 50, 1, 1, 1], [wide, 24, 1, 1, 1], [1; 5]);
        t.swizzle = swizzle;
        let map = TensorMap::tiled(t).unwrap_or_else(|e| panic!("{e}"));
        let got = run(&map, CopyMode::Tile, &[60, 40], &[]);
        for row in 0..24usize {
            for column in 0..wide as usize {
                let chunk = column / 8;
                let exchanged = match wide {
                    16 => chunk ^ (row / 4 % 2),
                    32 => chunk ^ (row / 2 % 4),
                    _ => chunk ^ (row % 8),
                };
                let at = row * wide as usize + exchanged * 8 + column % 8;
                let want = element(&t, [60 + column as i64, 40 + row as i64, 0, 0, 0]);
                assert_eq!(got[at], want, "{swizzle:?} {row} {column}");
            }
        }
    }
}

#[test]
fn stores_leave_out_what_is_outside() {
    let t = tiled(2, [40, 5, 1, 1, 1], [16, 4, 1, 1, 1], [1; 5]);
    let map = TensorMap::tiled(t).unwrap_or_else(|e| panic!("{e}"));
    let mut bytes = 0;
    map.store(CopyMode::Tile, 0, &[30, 3], &mut |piece| {
        assert!(matches!(piece.source, Source::Global(_)));
        bytes += piece.bytes;
    })
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bytes, 2 * 10 * 2);
}

#[test]
fn four_rows() {
    let t = tiled(2, [64, 20, 1, 1, 1], [32, 1, 1, 1, 1], [1; 5]);
    let map = TensorMap::tiled(t).unwrap_or_else(|e| panic!("{e}"));
    let got = run(&map, CopyMode::Gather4, &[8, 7, 19, 20, 0], &[]);
    for (i, row) in [7, 19, 20, 0].into_iter().enumerate() {
        for column in 0..32 {
            let want = element(&t, [8 + column as i64, row, 0, 0, 0]);
            assert_eq!(got[i * 32 + column], want);
        }
    }
}

/// A convolution's input tile: output pixels in order, each at its place for one filter tap.
#[test]
fn im2col_is_the_input_of_a_convolution() {
    let (images, height, width, channels) = (2i64, 6i64, 7i64, 16u64);
    for (stride, pad, filter) in [(1i64, 1i64, 3i64), (2, 1, 3), (1, 0, 1), (2, 2, 5)] {
        let mut t = tiled(
            4,
            [channels, width as u64, height as u64, images as u64, 1],
            [0; 5],
            [1, stride as u32, stride as u32, 1, 1],
        );
        t.rank = 4;
        let corner = (pad - filter + 1) as i32;
        let map = TensorMap::im2col(Im2col {
            tensor: t,
            lower: [-pad as i32, -pad as i32, 0],
            upper: [corner, corner, 0],
            channels: 16,
            pixels: 32,
        })
        .unwrap_or_else(|e| panic!("{e}"));
        let out_w = (width + 2 * pad - filter) / stride + 1;
        let out_h = (height + 2 * pad - filter) / stride + 1;
        for first in [0, 5] {
            for (fh, fw) in [(0, 0), (filter - 1, 0), (0, filter - 1)] {
                let place = |p: i64| (p % out_w, p / out_w % out_h, p / out_w / out_h);
                let (w, h, n) = place(first);
                let coords = [
                    0,
                    (w * stride - pad) as i32,
                    (h * stride - pad) as i32,
                    n as i32,
                ];
                let offsets = [fw as u16, fh as u16];
                let got = run(&map, CopyMode::Im2col, &coords, &offsets);
                for p in 0..32 {
                    let (w, h, n) = place(first + p);
                    for c in 0..16 {
                        let at = [c, w * stride - pad + fw, h * stride - pad + fh, n, 0];
                        assert_eq!(got[(p * 16 + c) as usize], element(&t, at), "{p} {c}");
                    }
                }
            }
        }
    }
}

#[test]
fn small_elements_take_their_room() {
    for (kind, bits) in [(MapElement::B4x16P64, 4), (MapElement::B6x16P32, 6)] {
        let mut t = tiled(2, [64, 4, 1, 1, 1], [64, 2, 1, 1, 1], [1; 5]);
        t.element = kind;
        t.strides[0] = 64;
        let map = TensorMap::tiled(t).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(map.box_bytes(CopyMode::Tile), 128);
        let mut pieces = Vec::new();
        map.load(CopyMode::Tile, 0, &[0, 1], &[], &mut |p| pieces.push(p))
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(pieces.len(), 8);
        let want = Piece {
            shared: 64 + 32,
            bytes: 2 * bits,
            source: Source::Global(4096 + 128 + 2 * 2 * u64::from(bits)),
        };
        assert_eq!(pieces[6], want);
    }
}

#[test]
fn bytes_hold_the_map_and_zeros_become_one() {
    let t = tiled(3, [40, 1 << 32, 8, 1, 1], [16, 3, 4, 1, 1], [1, 2, 8, 1, 1]);
    let map = TensorMap::tiled(Tiled {
        swizzle: Swizzle::B64,
        ..t
    })
    .unwrap_or_else(|e| panic!("{e}"));
    let again = TensorMap::from_bytes(&map.to_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(again.to_bytes(), map.to_bytes());
    assert_eq!(again.tensor().dims, t.dims);
    let mut made = TensorMap::from_bytes(&[0; 128]).unwrap_or_else(|e| panic!("{e}"));
    let mut set = |field: &str, ord: u32, value: u64| {
        made.replace(field, ord, value)
            .unwrap_or_else(|e| panic!("{e}"));
        // Programs keep the map in memory between two steps.
        made = TensorMap::from_bytes(&made.to_bytes()).unwrap_or_else(|e| panic!("{e}"));
    };
    set("global_address", 0, 4096);
    set("rank", 0, 2);
    set("elemtype", 0, 6);
    set("interleave_layout", 0, 0);
    set("swizzle_mode", 0, 2);
    set("fill_mode", 0, 0);
    for i in 0..3 {
        set("box_dim", i, u64::from(t.box_dims[i as usize]));
        set("global_dim", i, t.dims[i as usize]);
        set("element_stride", i, u64::from(t.steps[i as usize]));
    }
    set("global_stride", 0, t.strides[0]);
    set("global_stride", 1, t.strides[1]);
    made.check().unwrap_or_else(|e| panic!("{e}"));
    let run_made = run(&made, CopyMode::Tile, &[1, 2, 3], &[]);
    assert_eq!(run_made, run(&map, CopyMode::Tile, &[1, 2, 3], &[]));
    assert!(made.replace("interleave_layout", 0, 1).is_err());
    assert!(made.replace("box_dim", 5, 1).is_err());
    // Values that no map holds are not cut to what one holds.
    for (field, value) in [
        ("rank", u64::from(u32::MAX)),
        ("box_dim", 65_537),
        ("global_stride", 1 << 40),
        ("element_stride", 257),
    ] {
        assert!(made.replace(field, 0, value).is_err(), "{field}");
    }
    assert!(TensorMap::from_bytes(&[0xff; 128]).is_err());
}

#[test]
fn what_the_driver_refuses() {
    let good = tiled(2, [40, 5, 1, 1, 1], [16, 4, 1, 1, 1], [1; 5]);
    for (what, bad) in [
        ("rank", Tiled { rank: 6, ..good }),
        ("address", Tiled { address: 8, ..good }),
        (
            "stride",
            Tiled {
                strides: [24; 4],
                ..good
            },
        ),
        (
            "box",
            Tiled {
                box_dims: [16, 257, 1, 1, 1],
                ..good
            },
        ),
        (
            "16 bytes",
            Tiled {
                box_dims: [4, 1, 1, 1, 1],
                ..good
            },
        ),
        (
            "swizzle",
            Tiled {
                box_dims: [32, 1, 1, 1, 1],
                swizzle: Swizzle::B32,
                ..good
            },
        ),
        (
            "element stride",
            Tiled {
                steps: [1, 9, 1, 1, 1],
                ..good
            },
        ),
    ] {
        let error = TensorMap::tiled(bad).expect_err(what);
        assert!(error.message.contains(what), "{error}");
    }
    let map = TensorMap::tiled(good).unwrap_or_else(|e| panic!("{e}"));
    for (mode, tile, coords) in [
        (CopyMode::Tile, 64, &[0, 0][..]),
        (CopyMode::Tile, 0, &[0]),
        (CopyMode::Im2col, 0, &[0, 0]),
        (CopyMode::Gather4, 0, &[0, 0]),
    ] {
        assert!(map.load(mode, tile, coords, &[], &mut |_| ()).is_err());
    }
    assert_eq!(MapElement::from_driver(8), Some(MapElement::F64));
    assert_eq!(MapElement::from_driver(9), Some(MapElement::Bf16));
    assert_eq!(MapElement::from_driver(10), Some(MapElement::F32Ftz));
    assert_eq!(MapElement::from_driver(16), None);
}

#[test]
fn a_box_larger_than_shared_memory_is_refused() {
    let map = TensorMap::tiled(tiled(5, [256; 5], [256; 5], [1; 5])).unwrap();
    let mut pieces = 0;
    let walked = map.load(CopyMode::Tile, 0, &[0; 5], &[], &mut |_| pieces += 1);
    assert!(walked.is_err() && pieces == 0);
}

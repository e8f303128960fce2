//! Copies that go on by themselves, barrier objects, clusters.

use super::*;
use crate::simulator::tensor::MapElement;
use crate::simulator::tensor::Swizzle;
use crate::simulator::tensor::TensorMap;
use crate::simulator::tensor::Tiled;

/// Doubles `count` words of input through shared memory.
fn staged(wait: &str) -> Bench {
    Bench::new(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 in) {{ .shared .align 16 .b8 tile[512];
        .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16;
        add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
        cp.async.cg.shared.global [%r3], [%rd2], 16, 12; cp.async.commit_group; {wait}
        ld.shared.v4.b32 {{%r4,%r5,%r6,%r7}}, [%r3]; add.u32 %r4, %r4, %r4; st.global.v4.b32 [%rd1], {{%r4,%r5,%r6,%r7}}; ret; }}"
    ))
}

#[test]
fn copies_into_shared_memory() {
    let bench = staged("cp.async.wait_group 0;");
    let input: Vec<u32> = (1..=128).collect();
    let (out, data) = (bench.buffer(512), bench.words(&input));
    clean(&bench.launch(1, 32, &[out.base(), data.base()]));
    for (i, word) in read(&out).into_iter().enumerate() {
        let want = [2 * (i + 1), i + 1, i + 1, 0][i % 4];
        assert_eq!(word, want as u32);
    }
    // One group too many may still be on its way.
    let bench = staged("cp.async.wait_group 1;");
    let (out, data) = (bench.buffer(512), bench.words(&input));
    let found = bench.launch(1, 32, &[out.base(), data.base()]);
    assert_eq!(kinds(&found), [ReportKind::SharedRace]);
}

/// A block that loads `bytes` bytes in bulk and hands them on.
fn bulk(bytes: u32, wait: &str) -> Bench {
    Bench::new(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 in) {{ .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 bar;
        .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<5>;
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;
        setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, tile;
        @%p1 bra $A; mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster; $A: bar.sync 0;
        @%p1 bra $B; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {bytes};
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 512, [%r2]; $B:
        {wait}
        shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd1], %r5; ret; }}"
    ))
}

const WAIT: &str = "$W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra $W;";

#[test]
fn bulk_copies_and_barrier_objects() {
    let bench = bulk(512, WAIT);
    let input: Vec<u32> = (0..128).map(|i| i * i).collect();
    let (out, data) = (bench.buffer(512), bench.words(&input));
    clean(&bench.launch(1, 128, &[out.base(), data.base()]));
    assert_eq!(read(&out), input);
    let bench = bulk(512, "");
    let found = bench.launch(1, 128, &[bench.buffer(512).base(), data.base()]);
    assert!(found.fault.is_some() || kinds(&found).contains(&ReportKind::SharedRace));
    // Bytes that never come: everybody waits for ever.
    let bench = bulk(528, WAIT);
    let data = bench.words(&input);
    let found = bench.launch(1, 128, &[bench.buffer(512).base(), data.base()]);
    assert_eq!(found.fault.unwrap().kind, ReportKind::Deadlock);
}

#[test]
fn barrier_objects_used_wrongly() {
    let bench = Bench::kernel(
        ".shared .align 8 .b64 bar;",
        "mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.shared.b64 %rd1, [%r1], 3;",
    );
    let out = bench.buffer(4);
    assert_eq!(
        kinds(&bench.launch(1, 1, &[out.base()])),
        [ReportKind::MbarrierPhase]
    );
    let bench = Bench::kernel(
        ".shared .align 8 .b64 bar;",
        "mov.u32 %r1, bar; mov.u64 %rd1, 0; st.shared.u64 [%r1], %rd1; mbarrier.arrive.shared.b64 %rd1, [%r1];",
    );
    assert_eq!(
        kinds(&bench.launch(1, 1, &[out.base()])),
        [ReportKind::MbarrierPhase]
    );
}

/// Copies a box of 8 by 4 words at (4, 3) through shared memory to the output.
const BOX_COPY: &str = ".visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) { .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;
        .reg .b32 %r<12>; .reg .b64 %rd<9>; .reg .pred %p<5>;
        ld.param.u64 %rd1, [out]; mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;
        setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, tile; mov.u32 %r6, 4; mov.u32 %r7, 3;
        @%p1 bra $A; mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd2, {%r6, %r7}], [%r2]; $A: bar.sync 0;
        $W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra $W;
        shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3; ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd1], %r5; ret; }";

/// Rows of 12 words of which a tensor of 10 by 6 takes the first ten.
fn tensor(address: u64) -> Tiled {
    Tiled {
        element: MapElement::U32,
        rank: 2,
        address,
        dims: [10, 6, 1, 1, 1],
        strides: [48, 0, 0, 0],
        box_dims: [8, 4, 1, 1, 1],
        steps: [1; 5],
        swizzle: Swizzle::None,
        fill_nan: false,
    }
}

/// What a launch of [`BOX_COPY`] comes to, with the tensor as `change` has it, and what it wrote.
fn copy_box(change: impl Fn(&mut Tiled)) -> (Outcome, Vec<u32>) {
    let bench = Bench::new(BOX_COPY);
    let input: Vec<u32> = (0..72).collect();
    let (out, data) = (bench.buffer(128), bench.words(&input));
    let mut tensor = tensor(data.base());
    change(&mut tensor);
    let map = TensorMap::tiled(tensor).unwrap();
    let mut params = out.base().to_le_bytes().to_vec();
    params.resize(64, 0);
    params.extend(map.to_bytes());
    let shape = Launch {
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1, 1, 1],
        dynamic_shared: 0,
        params,
        cooperative: false,
    };
    (bench.launch_with(&shape), read(&out))
}

/// The box hangs over the right and the lower edge of the tensor, where it is filled with zeros.
fn is_box(words: &[u32]) -> bool {
    words.iter().enumerate().all(|(i, word)| {
        let (x, y) = (4 + i % 8, 3 + i / 8);
        *word
            == if x < 10 && y < 6 {
                (y * 12 + x) as u32
            } else {
                0
            }
    })
}

#[test]
fn boxes_of_tensors() {
    let (outcome, words) = copy_box(|_| ());
    clean(&outcome);
    assert!(is_box(&words), "{words:?}");
}

#[test]
fn wrong_boxes_are_noticed() {
    let damages: [(&str, fn(&mut Tiled)); 5] = [
        ("a box too narrow", |t| t.box_dims[0] = 4),
        ("a box too high", |t| t.box_dims[1] = 5),
        ("a tensor too wide", |t| t.dims[0] = 12),
        ("a tensor too high", |t| t.dims[1] = 7),
        ("rows too short", |t| t.strides[0] = 32),
    ];
    for (what, damage) in damages {
        let (outcome, words) = copy_box(damage);
        let is_told = outcome.fault.is_some() || !outcome.reports.is_empty();
        assert!(is_told || !is_box(&words), "{what}");
    }
}

#[test]
fn clusters_share_memory() {
    // Each block reads the tile of the next one of its cluster.
    let bench = Bench::kernel(
        ".shared .align 4 .b8 tile[128];",
        "mov.u32 %r1, tile; mov.u32 %r2, %tid.x; shl.b32 %r2, %r2, 2; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %i;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        mov.u32 %r3, %cluster_ctarank; add.u32 %r3, %r3, 1; mov.u32 %r4, %cluster_nctarank; rem.u32 %r3, %r3, %r4;
        mapa.shared::cluster.u32 %r5, %r1, %r3; ld.shared::cluster.u32 %r6, [%r5];
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; st.global.u32 [%at], %r6;",
    );
    let out = bench.buffer(8 * 128);
    let shape = Launch {
        grid: [8, 1, 1],
        block: [32, 1, 1],
        cluster: [4, 1, 1],
        dynamic_shared: 0,
        params: out.base().to_le_bytes().to_vec(),
        cooperative: false,
    };
    clean(&bench.launch_with(&shape));
    for (i, word) in read(&out).into_iter().enumerate() {
        let block = i / 32;
        let other = block / 4 * 4 + (block + 1) % 4;
        assert_eq!(word as usize, other * 32 + i % 32);
    }
}

//! Copies of tensors to several blocks, with reductions, of pixels, and of some bytes only.

use super::*;
use crate::simulator::tensor::Im2col;
use crate::simulator::tensor::MapElement;
use crate::simulator::tensor::Swizzle;
use crate::simulator::tensor::TensorMap;
use crate::simulator::tensor::Tiled;

/// A tensor of words side by side.
fn words(address: u64, dims: &[u64], box_dims: &[u32]) -> Tiled {
    let at = |i: usize| dims.get(i).copied().unwrap_or(1);
    let mut strides = [0; 4];
    let mut size = 4;
    for (i, stride) in strides.iter_mut().enumerate() {
        size *= at(i);
        *stride = size;
    }
    Tiled {
        element: MapElement::U32,
        rank: dims.len() as u32,
        address,
        dims: std::array::from_fn(at),
        strides,
        box_dims: std::array::from_fn(|i| box_dims.get(i).copied().unwrap_or(1)),
        steps: [1; 5],
        swizzle: Swizzle::None,
        fill_nan: false,
    }
}

/// A kernel with an output and a map, whose block has a tile, a barrier object, and its thread's
/// place in the output in `%rd1`.
fn kernel(body: &str) -> Bench {
    Bench::new(&format!(
        ".visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {{ .shared .align 128 .b8 tile[1024]; .shared .align 8 .b64 bars;
        .reg .b32 %r<16>; .reg .b64 %rd<9>; .reg .pred %p<5>; .reg .b16 %h<4>; .reg .b32 %u, %bar, %tile, %rank; .reg .pred %first;
        ld.param.u64 %rd1, [out]; mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; mov.u32 %u, %tid.x; mov.u32 %rank, %cluster_ctarank;
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r1, %r1, %r2, %u; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;
        mov.u32 %bar, bars; mov.u32 %tile, tile; setp.eq.u32 %p1, %u, 0; setp.eq.u32 %first, %u, 0;
        {body} ret; }}"
    ))
}

const WAIT: &str = "$W: mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0; @!%p2 bra $W;
    shl.b32 %r4, %u, 2; add.u32 %r4, %r4, %tile; ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd1], %r5;";

fn launch_map(bench: &Bench, out: u64, map: &TensorMap, blocks: u32, threads: u32) -> Outcome {
    let mut params = out.to_le_bytes().to_vec();
    params.resize(64, 0);
    params.extend(map.to_bytes());
    bench.launch_with(&Launch {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: [blocks, 1, 1],
        dynamic_shared: 0,
        params,
        cooperative: false,
    })
}

#[test]
fn one_load_for_all_blocks_of_a_cluster() {
    let bench = kernel(&format!(
        "@%first mbarrier.init.shared.b64 [%bar], 1; @%first mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        setp.eq.and.u32 %p3, %rank, 1, %first; mov.u32 %r6, 4; mov.u32 %r7, 2; mov.u16 %h1, 5;
        @%p3 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%tile], [%rd2, {{%r6, %r7}}], [%bar], %h1;
        setp.eq.u32 %p4, %rank, 1; @%p4 bra $E; {WAIT} $E: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    ));
    let data: Vec<u32> = (0..96).collect();
    let (input, out) = (bench.words(&data), bench.buffer(3 * 128));
    let map = TensorMap::tiled(words(input.base(), &[12, 8], &[8, 4])).unwrap();
    clean(&launch_map(&bench, out.base(), &map, 3, 32));
    let got = read(&out);
    for i in 0..32 {
        let want = ((2 + i / 8) * 12 + 4 + i % 8) as u32;
        // Blocks 0 and 2 are in the mask, block 1 only issues.
        assert_eq!((got[i], got[64 + i]), (want, want), "{i}");
    }
}

#[test]
fn the_barrier_of_the_other_block_of_a_pair() {
    // The second block loads for both; the barrier of the first is told for each.
    let bench = kernel(&format!(
        "@%first mbarrier.init.shared.b64 [%bar], 1; setp.eq.and.u32 %p3, %rank, 0, %first;
        @%p3 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        setp.eq.and.u32 %p3, %rank, 1, %first; mov.u32 %r6, 0; mov.u16 %h1, 3; mapa.shared::cluster.u32 %r8, %bar, %r6;
        @%p3 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [%tile], [%rd2, {{%r6, %r6}}], [%r8], %h1;
        setp.eq.u32 %p4, %rank, 1; @%p4 bra $E; {WAIT} $E: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    ));
    let data: Vec<u32> = (0..32).map(|i| i * 3).collect();
    let (input, out) = (bench.words(&data), bench.buffer(2 * 128));
    let map = TensorMap::tiled(words(input.base(), &[8, 4], &[8, 4])).unwrap();
    clean(&launch_map(&bench, out.base(), &map, 2, 32));
    assert_eq!(read(&out)[..32], data);
}

#[test]
fn tiles_are_added_to_a_tensor() {
    let bench = kernel(
        "shl.b32 %r4, %u, 2; add.u32 %r4, %r4, %tile; add.u32 %r5, %u, 1; st.shared.b32 [%r4], %r5; fence.proxy.async.shared::cta; bar.sync 0;
        mov.u32 %r6, 4; mov.u32 %r7, -1;
        @%first cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd2, {%r6, %r7}], [%tile];
        @%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0; st.global.b32 [%rd1], 0;",
    );
    let data: Vec<u32> = (0..24).map(|i| 100 * i).collect();
    let (input, out) = (bench.words(&data), bench.buffer(128));
    let map = TensorMap::tiled(words(input.base(), &[8, 3], &[8, 4])).unwrap();
    clean(&launch_map(&bench, out.base(), &map, 1, 32));
    for (i, word) in read(&input).into_iter().enumerate() {
        // The tile begins a row above the tensor and four words within it.
        let (x, y) = (i % 8, i / 8);
        let added = if x >= 4 { (y + 1) * 8 + x - 4 + 1 } else { 0 };
        assert_eq!(word as usize, 100 * i + added);
    }
}

#[test]
fn columns_of_pixels() {
    // Two images of 3 by 4 pixels of 4 channels, a border of one pixel: the filter's tap at
    // (0, 0) sees each pixel's neighbour above on the left.
    let bench = kernel(&format!(
        "@%first mbarrier.init.shared.b64 [%bar], 1; @%first mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 256; bar.sync 0;
        mov.u32 %r6, 0; mov.u32 %r7, 1; mov.u32 %r8, 0; mov.u16 %h1, 0;
        @%first cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%tile], [%rd2, {{%r6, %r7, %r8, %r6}}], [%bar], {{%h1, %h1}}; {WAIT}"
    ));
    let data: Vec<u32> = (1..=96).collect();
    let (input, out) = (bench.words(&data), bench.buffer(256));
    let map = TensorMap::im2col(Im2col {
        tensor: words(input.base(), &[4, 4, 3, 2], &[]),
        lower: [-1, -1, 0],
        upper: [-1, -1, 0],
        channels: 4,
        pixels: 16,
    })
    .unwrap();
    clean(&launch_map(&bench, out.base(), &map, 1, 64));
    let got = read(&out);
    // Pixels go through w, h and n from (1, 0, 0); the box of each image is [-1, 2] by [-1, 1].
    let (mut w, mut h, mut n) = (1i64, 0i64, 0i64);
    for pixel in 0..16 {
        for c in 0..4 {
            let inside = w >= 0 && h >= 0;
            let want = if inside {
                ((n * 3 + h) * 4 + w) * 4 + c + 1
            } else {
                0
            };
            assert_eq!(
                i64::from(got[(pixel * 4 + c) as usize]),
                want,
                "{pixel} {c}"
            );
        }
        w += 1;
        if w == 3 {
            (w, h) = (-1, h + 1);
        }
        if h == 2 {
            (h, n) = (-1, n + 1);
        }
    }
}

#[test]
fn bytes_of_a_mask() {
    let bench = Bench::kernel(
        ".shared .align 16 .b8 tile[32];",
        "mov.u32 %r1, tile; shl.b32 %r2, %i, 2; add.u32 %r1, %r1, %r2; st.shared.b32 [%r1], 0x44332211; fence.proxy.async.shared::cta; bar.sync 0;
        mov.u32 %r1, tile; mov.u16 %h1, 0x8025; setp.eq.u32 %p1, %i, 0;
        @%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%out], [%r1], 32, %h1;
        @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;",
    );
    let out = bench.words(&[u32::MAX; 8]);
    clean(&bench.launch(1, 8, &[out.base()]));
    let chunk = [0xff33_ff11, 0xffff_22ff, u32::MAX, 0x44ff_ffff];
    assert_eq!(read(&out), [chunk, chunk].concat());
}

#[test]
fn an_address_of_several_places_that_is_one() {
    let bench = Bench::kernel(
        "",
        "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; mul.wide.u32 %off, %i, 8; add.s64 %at, %out, %off;
        multimem.st.relaxed.sys.global.v2.f32 [%at], {%f1, %f2};
        multimem.red.relaxed.gpu.global.add.f32 [%at], %f2;
        multimem.ld_reduce.relaxed.sys.global.add.v2.f32 {%f3, %f4}, [%at];
        multimem.ld_reduce.weak.global.add.acc::f32.v2.bf16x2 {%r1, %r2}, [%at];
        shr.u32 %r1, %r1, 16; shl.b32 %r1, %r1, 16; mov.b32 %f5, %r1;
        add.f32 %f3, %f3, %f4; add.f32 %f3, %f3, %f5; st.global.f32 [%at], %f3;",
    );
    let out = bench.buffer(256);
    clean(&bench.launch(1, 32, &[out.base()]));
    for pair in read(&out).chunks_exact(2) {
        // 3 + 2 + 3, whose upper half is all there is to it.
        assert_eq!(f32::from_bits(pair[0]), 8.0);
    }
}

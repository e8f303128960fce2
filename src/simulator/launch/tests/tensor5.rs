//! `tcgen05`: tensor memory through whole programs.

use super::*;

/// A kernel of 128 threads that takes 128 columns of tensor memory, whose address is in `%t` and
/// with the warp's lanes in `%tw`; `$ready` is reached with an mbarrier for one arrival in `%bar`.
fn program(group: u32, body: &str) -> Bench {
    Bench::kernel(
        ".shared .align 128 .b8 a[8192]; .shared .align 128 .b8 b[2048]; .shared .align 8 .b64 bars; .shared .align 4 .b32 where;
        .reg .b32 %t, %tw, %bar, %u, %w, %rank; .reg .b64 %da, %db; .reg .pred %first, %go;",
        &format!(
            "mov.u32 %u, %tid.x; shr.u32 %w, %u, 5; mov.u32 %bar, bars; mov.u32 %rank, %cluster_ctarank;
            setp.eq.u32 %first, %u, 0; setp.ge.u32 %go, %u, 32; @%go bra $S;
            mov.u32 %r1, where; tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r1], 128;
            @%first mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;
            $S: bar.sync 0; ld.shared.b32 %t, [where]; shl.b32 %tw, %w, 21; add.u32 %tw, %tw, %t;
            {body}
            tcgen05.wait::ld.sync.aligned; bar.sync 0; @%go bra $E;
            tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %t, 128;
            tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned; $E:"
        ),
    )
}

/// A descriptor of rows of 16 bytes one after the other in `register`, at the address there, with
/// `leading` bytes between chunks along k.
fn describe(register: &str, address: &str, leading: u64) -> String {
    let rest = leading >> 4 << 16 | 8 << 32 | 1 << 46;
    format!(
        "mov.u32 %r1, {address}; shr.u32 %r1, %r1, 4; cvt.u64.u32 {register}, %r1; or.b64 {register}, {register}, {rest:#x};"
    )
}

const WAIT: &str = "$W: mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0; @!%p1 bra $W; tcgen05.fence::after_thread_sync;";

#[test]
fn words_go_to_tensor_memory_and_back() {
    let bench = program(
        1,
        "shl.b32 %r2, %i, 1; add.u32 %r3, %r2, 1; tcgen05.st.sync.aligned.32x32b.x2.b32 [%tw+5], {%r2, %r3};
        tcgen05.wait::st.sync.aligned; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%tw+6]; st.global.b32 [%at], %r4;",
    );
    for (i, word) in bench.run(1, 128).into_iter().enumerate() {
        assert_eq!(word as usize, 2 * i + 1);
    }
}

#[test]
fn rows_are_copied_from_shared_memory() {
    // 32 rows of four words, which every warp gets.
    let bench = program(
        1,
        &format!(
            "mov.u32 %r2, a; shl.b32 %r3, %u, 2; add.u32 %r2, %r2, %r3; st.shared.b32 [%r2], %u; bar.sync 0; {}
            @%first tcgen05.cp.cta_group::1.32x128b.warpx4 [%t], %da;
            @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar]; {WAIT}
            tcgen05.ld.sync.aligned.32x32b.x4.b32 {{%r4,%r5,%r6,%r7}}, [%tw]; st.global.b32 [%at], %r6;",
            describe("%da", "a", 128)
        ),
    );
    for (i, word) in bench.run(1, 128).into_iter().enumerate() {
        assert_eq!(word as usize, i % 32 * 4 + 2);
    }
}

#[test]
fn a_product_of_one_block() {
    // A is its row's number modulo 8 everywhere, B is ones: D is 16 times that, and then twice.
    let bench = program(
        1,
        &format!(
            "and.b32 %r2, %u, 7; cvt.rn.f16.u32 %h1, %r2; mov.b32 %r2, {{%h1, %h1}}; mov.u32 %r3, a; shl.b32 %r4, %u, 4; add.u32 %r3, %r3, %r4;
            st.shared.v4.b32 [%r3], {{%r2,%r2,%r2,%r2}}; st.shared.v4.b32 [%r3+2048], {{%r2,%r2,%r2,%r2}};
            mov.u32 %r3, b; shl.b32 %r4, %u, 2; add.u32 %r3, %r3, %r4; st.shared.b32 [%r3], 0x3c003c00; fence.proxy.async.shared::cta; bar.sync 0; {} {}
            mov.u32 %r5, 0x8040010; setp.ne.u32 %p2, %u, %u; setp.eq.u32 %p3, %u, %u;
            @%first tcgen05.mma.cta_group::1.kind::f16 [%t], %da, %db, %r5, %p2;
            @%first tcgen05.mma.cta_group::1.kind::f16 [%t], %da, %db, %r5, {{0, 2, 0, 0}}, %p3;
            @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%bar]; {WAIT}
            tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r6}}, [%tw+15]; st.global.b32 [%at], %r6;",
            describe("%da", "a", 2048),
            describe("%db", "b", 256)
        ),
    );
    for (i, word) in bench.run(1, 128).into_iter().enumerate() {
        // Lane 33 is left out of the second product.
        let times = if i == 33 { 16 } else { 32 };
        assert_eq!(f32::from_bits(word), (times * (i % 8)) as f32, "{i}");
    }
}

#[test]
fn a_product_with_factors() {
    // A and B are ones of four bits; of 64 along k, the first 32 have a factor of A of 2 to the
    // row's number over 32, all others of one.
    let bench = program(
        1,
        &format!(
            "mov.u32 %r2, 0x22222222; mov.u32 %r3, a; shl.b32 %r4, %u, 4; add.u32 %r3, %r3, %r4;
            st.shared.v4.b32 [%r3], {{%r2,%r2,%r2,%r2}}; st.shared.v4.b32 [%r3+2048], {{%r2,%r2,%r2,%r2}};
            mov.u32 %r3, b; shl.b32 %r4, %u, 2; add.u32 %r3, %r3, %r4; st.shared.b32 [%r3], %r2;
            mov.u32 %r2, 0x7f7f; mov.u32 %r3, 0x7f80; mov.u32 %r4, 0x7f81; mov.u32 %r5, 0x7f82;
            tcgen05.st.sync.aligned.32x32b.x4.b32 [%tw+64], {{%r2,%r3,%r4,%r5}}; tcgen05.st.sync.aligned.32x32b.x1.b32 [%tw+68], {{%r2}};
            tcgen05.wait::st.sync.aligned; bar.sync 0; {} {}
            add.u32 %r6, %t, 64; add.u32 %r7, %t, 68; mov.u32 %r5, 0x8840480; setp.ne.u32 %p2, %u, %u;
            @%first tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X [%t], %da, %db, %r5, [%r6], [%r7], %p2;
            @%first tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%bar]; {WAIT}
            tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r6}}, [%tw+3]; st.global.b32 [%at], %r6;",
            describe("%da", "a", 2048),
            describe("%db", "b", 256)
        ),
    );
    for (i, word) in bench.run(1, 128).into_iter().enumerate() {
        assert_eq!(
            f32::from_bits(word),
            (32 * (1 << (i / 32)) + 32) as f32,
            "{i}"
        );
    }
}

#[test]
fn a_product_of_a_pair() {
    // 256 rows, 128 a block; of 32 columns each block has 16, ones in the first and twos in the
    // second. One thread of the pair issues, both blocks are told.
    let bench = program(
        2,
        &format!(
            "and.b32 %r2, %u, 7; add.u32 %r2, %r2, %rank; cvt.rn.f16.u32 %h1, %r2; mov.b32 %r2, {{%h1, %h1}};
            mov.u32 %r3, a; shl.b32 %r4, %u, 4; add.u32 %r3, %r3, %r4;
            st.shared.v4.b32 [%r3], {{%r2,%r2,%r2,%r2}}; st.shared.v4.b32 [%r3+2048], {{%r2,%r2,%r2,%r2}};
            mad.lo.u32 %r5, %rank, 0x04000400, 0x3c003c00; mov.u32 %r3, b; shl.b32 %r4, %u, 2; add.u32 %r3, %r3, %r4; st.shared.b32 [%r3], %r5;
            barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; {} {}
            mov.u32 %r5, 0x10080010; setp.ne.u32 %p2, %u, %u; setp.eq.and.u32 %p3, %rank, 0, %first; mov.u32 %r6, 3;
            @%p3 tcgen05.mma.cta_group::2.kind::f16 [%t], %da, %db, %r5, %p2;
            @%p3 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%bar], %r6; {WAIT}
            tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r6}}, [%tw+7]; tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r7}}, [%tw+23];
            mov.b32 %f1, %r6; mov.b32 %f2, %r7; mul.f32 %f2, %f2, 0f43800000; add.f32 %f1, %f1, %f2; st.global.f32 [%at], %f1;",
            describe("%da", "a", 2048),
            describe("%db", "b", 256)
        ),
    );
    let out = bench.buffer(1024);
    let shape = Launch {
        grid: [2, 1, 1],
        block: [128, 1, 1],
        cluster: [2, 1, 1],
        dynamic_shared: 0,
        params: out.base().to_le_bytes().to_vec(),
        cooperative: false,
    };
    clean(&bench.launch_with(&shape));
    for (i, word) in read(&out).into_iter().enumerate() {
        let row = i % 8 + i / 128;
        assert_eq!(
            f32::from_bits(word),
            (16 * row + 256 * 32 * row) as f32,
            "{i}"
        );
    }
}

//! Matrix instructions, through registers and shared memory.

use super::*;

#[test]
fn products_of_fragments() {
    // A has its row's number everywhere, B is all ones, C is 1: D is 16 * row + 1.
    let bench = Bench::kernel(
        "",
        "shr.u32 %r1, %i, 2; cvt.rn.f16.u32 %h1, %r1; add.u32 %r2, %r1, 8; cvt.rn.f16.u32 %h2, %r2;
        mov.b32 %r3, {%h1, %h1}; mov.b32 %r4, {%h2, %h2}; mov.u32 %r5, 0x3c003c00; mov.f32 %f1, 0f3F800000;
        mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r3,%r4,%r3,%r4}, {%r5,%r5}, {%f1,%f1,%f1,%f1};
        mul.wide.u32 %off, %i, 16; add.s64 %at, %out, %off; st.global.v4.f32 [%at], {%f2,%f3,%f4,%f5};",
    );
    let out = bench.buffer(512);
    let outcome = bench.launch(1, 32, &[out.base()]);
    clean(&outcome);
    for (i, word) in read(&out).into_iter().enumerate() {
        let row = i / 16 + if i % 4 >= 2 { 8 } else { 0 };
        assert_eq!(f32::from_bits(word), (16 * row + 1) as f32);
    }
    assert_eq!(outcome.stats.unwrap().tensor_flops, 2 * 16 * 8 * 16);
}

#[test]
fn matrices_from_shared_memory() {
    // Four 8x8 matrices of 16-bit numbers that count up; the transposed ones are stored again.
    let bench = Bench::kernel(
        ".shared .align 16 .b8 tile[512];",
        "mov.u32 %r1, tile; shl.b32 %r2, %i, 4; add.u32 %r3, %r1, %r2; shl.b32 %r4, %i, 3;
        mov.u32 %r5, 0;
        $L: shl.b32 %r6, %r5, 1; add.u32 %r7, %r3, %r6; add.u32 %r8, %r4, %r5; st.shared.u16 [%r7], %r8;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 8; @%p1 bra $L; bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r10,%r11,%r12,%r13}, [%r3];
        bar.warp.sync -1;
        stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], {%r10,%r11,%r12,%r13};
        bar.warp.sync -1;
        ld.shared.v4.b32 {%r14,%r15,%r16,%r17}, [%r3];
        mul.wide.u32 %off, %i, 16; add.s64 %at, %out, %off; st.global.v4.b32 [%at], {%r14,%r15,%r16,%r17};",
    );
    let out = bench.buffer(512);
    clean(&bench.launch(1, 32, &[out.base()]));
    for (i, word) in read(&out).into_iter().enumerate() {
        let (matrix, row, pair) = (i / 32, i / 4 % 8, i % 4);
        let value = |column: usize| (matrix * 64 + column * 8 + row) as u32;
        assert_eq!(word, value(2 * pair) | value(2 * pair + 1) << 16);
    }
}

#[test]
fn products_of_warp_groups() {
    // Shared memory is all ones, so every sum is the depth.
    let bench = Bench::kernel(
        ".shared .align 128 .b8 tile[4096];",
        "mov.u32 %r1, tile; shl.b32 %r2, %i, 5; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0x3c003c00;
        st.shared.v4.b32 [%r1], {%r3,%r3,%r3,%r3}; st.shared.v4.b32 [%r1+16], {%r3,%r3,%r3,%r3}; fence.proxy.async; bar.sync 0;
        mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
        mov.u64 %rd1, 0x0000001000080000; setp.eq.u32 %p1, 0, 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd1, %rd1, %p1, 1, -1, 0, 0;
        wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
        st.global.f32 [%at], %f3;"
            .replace("setp.eq.u32 %p1, 0, 0", "setp.eq.u32 %p1, %r3, 0x3c003c00")
            .as_str(),
    );
    for word in bench.run(1, 128) {
        assert_eq!(f32::from_bits(word), -15.0);
    }
}

#[test]
fn a_matrix_instruction_without_its_warp() {
    let bench = Bench::kernel(
        "",
        "mov.u32 %r5, 0; mov.f32 %f1, 0f00000000; setp.lt.u32 %p1, %i, 8; @%p1 bra $E;
        mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f2,%f3,%f4,%f5}, {%r5,%r5,%r5,%r5}, {%r5,%r5}, {%f1,%f1,%f1,%f1};
        $E: bar.sync 0;",
    );
    let out = bench.buffer(512);
    let outcome = bench.launch(1, 32, &[out.base()]);
    assert_eq!(kinds(&outcome), [ReportKind::DivergentBarrier]);
}

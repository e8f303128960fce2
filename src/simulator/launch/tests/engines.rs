//! Copies and products that nobody waits for, and fences that are missing.

use super::*;

/// Two warps: the second one waits in front of `use`, which comes after the copies of both.
fn copies(wait: &str, then: &str) -> Outcome {
    let bench = Bench::new(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 in) {{ .shared .align 16 .b8 tile[1024];
        .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16;
        add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3; shl.b32 %r2, %r1, 4; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2;
        mov.u32 %r4, 0; st.shared.v4.b32 [%r3], {{%r4,%r4,%r4,%r4}}; bar.sync 0;
        cp.async.cg.shared.global [%r3], [%rd2], 16; cp.async.commit_group; {wait}
        {then} st.global.v4.b32 [%rd1], {{%r4,%r5,%r6,%r7}}; ret; }}"
    ));
    let input: Vec<u32> = (1..=256).collect();
    let (out, data) = (bench.buffer(1024), bench.words(&input));
    bench.launch(1, 64, &[out.base(), data.base()])
}

#[test]
fn copies_nobody_waits_for() {
    const READ: &str = "ld.shared.v4.b32 {%r4,%r5,%r6,%r7}, [%r3];";
    const OTHER: &str = "xor.b32 %r2, %r2, 512; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; ld.shared.v4.b32 {%r4,%r5,%r6,%r7}, [%r3];";
    const WRITE: &str = "st.shared.b32 [%r3], %r1;";
    let all = "cp.async.wait_group 0;";
    let none = "cp.async.wait_group 1;";
    let met = "cp.async.wait_all; bar.sync 0;";
    for (wait, then) in [(all, READ), (all, WRITE), (met, OTHER), (met, READ)] {
        clean(&copies(wait, then));
    }
    // It does not help to meet others before the copies are there.
    let early = "bar.sync 0; cp.async.wait_group 0;";
    for (wait, then) in [
        (none, READ),
        (none, WRITE),
        (all, OTHER),
        (early, OTHER),
        ("bar.sync 0;", READ),
    ] {
        let found = copies(wait, then);
        assert_eq!(kinds(&found), [ReportKind::SharedRace], "{wait} {then}");
        let report = &found.reports[0];
        assert!(report.message.contains("copy"), "{report}");
        assert!(report.other.as_ref().unwrap().line.is_some());
    }
}

/// A block that loads in bulk from one warp; all read after `wait`.
fn bulk_load(wait: &str) -> Outcome {
    let bench = Bench::new(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 in) {{ .shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
        .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<5>;
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3;
        setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, bar; mov.u32 %r3, tile; shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r3;
        st.shared.b32 [%r4], %r1;
        @%p1 bra $A; mbarrier.init.shared.b64 [%r2], 1; $A: bar.sync 0;
        @%p1 bra $B; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 256, [%r2]; $B:
        {wait}
        ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd1], %r5;
        bar.sync 0; $X: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra $X; ret; }}"
    ));
    let input: Vec<u32> = (0..64).collect();
    let (out, data) = (bench.buffer(256), bench.words(&input));
    bench.launch(1, 64, &[out.base(), data.base()])
}

#[test]
fn bulk_loads_nobody_waits_for() {
    const WAIT: &str = "$W: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra $W;";
    clean(&bulk_load(WAIT));
    // One warp may wait for all.
    clean(&bulk_load(&format!("{WAIT} bar.sync 0;")));
    for wait in ["", "bar.sync 0;"] {
        let found = bulk_load(wait);
        assert_eq!(kinds(&found), [ReportKind::SharedRace], "{wait}");
    }
}

/// A block that stores a tile in bulk, and overwrites the tile after `wait`.
fn bulk_store(fence: &str, wait: &str) -> Vec<ReportKind> {
    let bench = Bench::kernel(
        ".shared .align 128 .b8 tile[256];",
        &format!(
            "mov.u32 %r3, tile; shl.b32 %r4, %i, 2; add.u32 %r4, %r4, %r3; setp.ne.u32 %p1, %i, 0; mov.u32 %r5, 256;
            st.shared.b32 [%r4], %i; {fence} bar.sync 0;
            @%p1 bra $B; cp.async.bulk.global.shared::cta.bulk_group [%out], [%r3], %r5; cp.async.bulk.commit_group; {wait} $B: bar.sync 0;
            st.shared.b32 [%r4], %r3;
            @%p1 bra $C; cp.async.bulk.wait_group 0; $C:"
        ),
    );
    let out = bench.buffer(256);
    kinds(&bench.launch(1, 64, &[out.base()]))
}

#[test]
fn bulk_stores_nobody_waits_for() {
    let (fence, wait) = (
        "fence.proxy.async.shared::cta;",
        "cp.async.bulk.wait_group.read 0;",
    );
    assert_eq!(bulk_store(fence, wait), []);
    assert_eq!(bulk_store(fence, ""), [ReportKind::SharedRace]);
    assert_eq!(bulk_store("", wait), [ReportKind::MissingFence]);
}

/// Products of a warp group; `after` comes between the products and their wait.
fn products(proxy: &str, fence: &str, after: &str, wait: &str) -> Outcome {
    let bench = Bench::kernel(
        ".shared .align 128 .b8 tile[4096];",
        &format!(
            "mov.u32 %r1, tile; shl.b32 %r2, %i, 5; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0x3c003c00;
            st.shared.v4.b32 [%r1], {{%r3,%r3,%r3,%r3}}; st.shared.v4.b32 [%r1+16], {{%r3,%r3,%r3,%r3}}; {proxy} bar.sync 0;
            mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
            mov.u32 %r10, %r3; mov.u32 %r11, %r3; mov.u32 %r12, %r3; mov.u32 %r13, %r3;
            mov.u64 %rd1, 0x0000001000080000;
            {fence}
            wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1,%f2,%f3,%f4}}, {{%r10,%r11,%r12,%r13}}, %rd1, 1, 1, 1, 0;
            wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1,%f2,%f3,%f4}}, %rd1, %rd1, 1, 1, 1, 0, 0;
            wgmma.commit_group.sync.aligned; {after} wgmma.wait_group.sync.aligned {wait};
            st.global.f32 [%at], %f3; wgmma.wait_group.sync.aligned 0;"
        ),
    );
    let out = bench.buffer(512);
    bench.launch(1, 128, &[out.base()])
}

const PROXY: &str = "fence.proxy.async;";
const FENCE: &str = "wgmma.fence.sync.aligned;";

#[test]
fn products_nobody_waits_for() {
    clean(&products(PROXY, FENCE, "add.u32 %r20, %r10, %r3;", "0"));
    for (after, wait) in [
        ("", "1"),
        ("add.f32 %f9, %f2, %f2;", "0"),
        ("mov.f32 %f4, 0f00000000;", "0"),
        ("mov.u32 %r12, 0;", "0"),
    ] {
        let found = products(PROXY, FENCE, after, wait);
        assert_eq!(kinds(&found), [ReportKind::EarlyUse], "{after}");
    }
    // The tile is overwritten, by the warp itself or by another one.
    for after in [
        "st.shared.b32 [%r1], %i;",
        "bar.sync 0; st.shared.b32 [%r1], %i;",
    ] {
        let found = products(PROXY, FENCE, after, "0");
        assert_eq!(kinds(&found), [ReportKind::SharedRace], "{after}");
        assert!(
            found.reports[0].message.contains("a product"),
            "{}",
            found.reports[0]
        );
    }
}

#[test]
fn fences_of_products() {
    let missing = [ReportKind::MissingFence];
    assert_eq!(kinds(&products("", FENCE, "", "0")), missing);
    assert_eq!(kinds(&products(PROXY, "", "", "0")), missing);
}

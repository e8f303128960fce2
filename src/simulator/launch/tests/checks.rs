//! What is wrong is found and named.

use super::*;

/// Runs and gives the outcome, with a buffer of `bytes` that counts as written when `written`.
fn outcome(bench: &Bench, grid: u32, block: u32, bytes: u64, written: bool) -> Outcome {
    let out = bench.buffer(bytes);
    if written {
        bench.space.mark_written(out.base(), bytes);
    }
    bench.launch(grid, block, &[out.base()])
}

#[test]
fn one_past_the_end() {
    let bench = Bench::kernel(
        "",
        "setp.gt.u32 %p1, %i, 100; @%p1 bra $E; st.global.u32 [%at], %i; $E:",
    );
    assert_eq!(outcome(&bench, 1, 128, 404, false).fault, None);
    let fault = outcome(&bench, 1, 128, 400, false).fault.unwrap();
    assert_eq!(fault.kind, ReportKind::OutOfBounds);
    assert_eq!(fault.thread, [100, 0, 0]);
    let place = fault.allocation.unwrap();
    assert_eq!(
        (place.label.as_str(), place.offset, place.length),
        ("buffer of 400", 400, 400)
    );
    assert!(fault.text.contains("st.global.u32"), "{}", fault.text);
}

#[test]
fn misaligned_and_read_only() {
    let bench = Bench::kernel("", "st.global.u32 [%at+2], %i;");
    let fault = outcome(&bench, 1, 1, 64, false).fault.unwrap();
    assert_eq!(fault.kind, ReportKind::Misaligned);
    let bench = Bench::new(
        ".const .align 4 .b32 c[4]; .visible .entry k(.param .u64 out) { .reg .b64 %rd<3>; .reg .b32 %r;
        mov.u64 %rd1, c; st.u32 [%rd1], %r; ret; }",
    );
    let fault = outcome(&bench, 1, 1, 64, false).fault.unwrap();
    assert_eq!(fault.kind, ReportKind::ReadOnly);
}

#[test]
fn shared_and_local_have_ends() {
    let bench = Bench::kernel(
        ".shared .align 4 .b8 tile[128];",
        "mov.u32 %r1, tile; shl.b32 %r2, %i, 2; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1+4], %i;",
    );
    assert_eq!(outcome(&bench, 1, 31, 64, false).fault, None);
    let fault = outcome(&bench, 1, 32, 64, false).fault.unwrap();
    assert_eq!(
        (fault.kind, fault.thread),
        (ReportKind::OutOfBounds, [31, 0, 0])
    );
    let bench = Bench::kernel(".local .align 4 .b8 d[16];", "st.local.u32 [d+16], %i;");
    let fault = outcome(&bench, 1, 1, 64, false).fault.unwrap();
    assert_eq!(fault.kind, ReportKind::OutOfBounds);
}

#[test]
fn memory_nobody_wrote() {
    let bench = Bench::kernel(
        "",
        "ld.global.u32 %r1, [%at]; add.u32 %r1, %r1, 1; st.global.u32 [%at], %r1;",
    );
    assert_eq!(kinds(&outcome(&bench, 1, 32, 128, true)), []);
    let found = outcome(&bench, 1, 32, 128, false);
    assert_eq!(kinds(&found), [ReportKind::Uninitialized]);
    let out = bench.buffer(128);
    bench.space.mark_written(out.base(), 80);
    let found = bench.launch(1, 32, &[out.base()]);
    assert_eq!(found.reports[0].thread, [20, 0, 0]);
    let bench = Bench::kernel(
        ".shared .align 4 .b8 tile[256];",
        "mov.u32 %r1, tile; shl.b32 %r2, %i, 2; add.u32 %r1, %r1, %r2; setp.ne.u32 %p1, %i, 9;
        @%p1 st.shared.u32 [%r1], %i; bar.sync 0; ld.shared.u32 %r3, [%r1]; st.global.u32 [%at], %r3;",
    );
    let found = outcome(&bench, 1, 64, 256, false);
    assert_eq!(kinds(&found), [ReportKind::Uninitialized]);
    assert_eq!(found.reports[0].thread, [9, 0, 0]);
}

const REVERSE: &str = "mov.u32 %r1, tile; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %i;
    BAR xor.b32 %r2, %r2, 252; add.u32 %r3, %r1, %r2; ld.shared.u32 %r4, [%r3]; st.global.u32 [%at], %r4;";

#[test]
fn a_dropped_barrier() {
    let tile = ".shared .align 4 .b8 tile[256];";
    let bench = Bench::kernel(tile, &REVERSE.replace("BAR", "bar.sync 0;"));
    assert_eq!(kinds(&outcome(&bench, 1, 64, 256, false)), []);
    let mut bench = Bench::kernel(tile, &REVERSE.replace("BAR", ""));
    bench.options.uninitialized = false;
    let found = outcome(&bench, 1, 64, 256, false);
    assert_eq!(kinds(&found), [ReportKind::SharedRace]);
    let other = found.reports[0].other.clone().unwrap();
    assert!(other.line.is_some());
    bench.options.races = false;
    assert_eq!(kinds(&outcome(&bench, 1, 64, 256, false)), []);
}

#[test]
fn a_tile_overwritten_too_early() {
    // The second round's writes must wait for the first round's reads.
    let body = |bar: &str| {
        format!(
            "mov.u32 %r1, tile; shl.b32 %r2, %i, 2; add.u32 %r3, %r1, %r2; xor.b32 %r5, %r2, 252; add.u32 %r5, %r1, %r5;
            mov.u32 %r6, 0; mov.u32 %r7, 0;
            $L: st.shared.u32 [%r3], %i; bar.sync 0; ld.shared.u32 %r4, [%r5]; add.u32 %r7, %r7, %r4; {bar}
            add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 3; @%p1 bra $L; st.global.u32 [%at], %r7;"
        )
    };
    let tile = ".shared .align 4 .b8 tile[256];";
    assert_eq!(
        kinds(&outcome(
            &Bench::kernel(tile, &body("bar.sync 0;")),
            1,
            64,
            256,
            false
        )),
        []
    );
    let found = outcome(&Bench::kernel(tile, &body("")), 1, 64, 256, false);
    assert_eq!(kinds(&found), [ReportKind::SharedRace]);
}

#[test]
fn the_same_value_twice_is_no_race() {
    // Both warps write words 0 to 31: which of the two is last shows only when they differ.
    let body = |value: &str| {
        format!(
            "mov.u32 %r1, tile; and.b32 %r2, %i, 31; shr.u32 %r6, %i, 5; shl.b32 %r3, %r2, 2; add.u32 %r3, %r1, %r3;
            st.shared.u32 [%r3], {value}; bar.sync 0; ld.shared.u32 %r4, [%r3]; st.global.u32 [%at], %r4;"
        )
    };
    let tile = ".shared .align 4 .b8 tile[128];";
    let same = Bench::kernel(tile, &body("%r2"));
    assert_eq!(kinds(&outcome(&same, 1, 64, 256, false)), []);
    let other = Bench::kernel(tile, &body("%r6"));
    assert_eq!(
        kinds(&outcome(&other, 1, 64, 256, false)),
        [ReportKind::SharedRace]
    );
}

#[test]
fn races_between_blocks() {
    let bench = Bench::kernel("", "st.global.u32 [%out], %i;");
    let found = outcome(&bench, 4, 1, 64, false);
    assert_eq!(kinds(&found), [ReportKind::GlobalRace]);
    assert!(found.reports[0].other.as_ref().unwrap().write);
    // Each block reads what the block before wrote.
    let bench = Bench::kernel(
        "",
        "st.global.u32 [%at], %i; setp.eq.u32 %p1, %i, 0; @%p1 bra $E; ld.global.u32 %r1, [%at+-4]; $E:",
    );
    assert_eq!(
        kinds(&outcome(&bench, 4, 1, 64, false)),
        [ReportKind::GlobalRace]
    );
    assert_eq!(kinds(&outcome(&bench, 1, 1, 64, false)), []);
    // Bytes of one word by different blocks are no race, and neither are atomics.
    let bench = Bench::kernel(
        "",
        "cvt.u64.u32 %off, %i; add.u64 %at, %out, %off; st.global.u8 [%at], %i;",
    );
    assert_eq!(kinds(&outcome(&bench, 64, 1, 64, false)), []);
    let bench = Bench::kernel("", "red.global.add.u32 [%out], %i;");
    assert_eq!(kinds(&outcome(&bench, 64, 1, 64, true)), []);
}

#[test]
fn released_and_acquired_data_are_no_race() {
    // The last block to come adds up what all wrote.
    let body = |order: &str| {
        format!(
            "st.global.u32 [%at+8], %i; {order} setp.ne.u32 %p1, %r1, 3; @%p1 bra $E;
            ld.global.u32 %r2, [%out+8]; ld.global.u32 %r3, [%out+12]; ld.global.u32 %r4, [%out+16];
            add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%out+4], %r2; $E:"
        )
    };
    let bench = Bench::kernel(
        "",
        &body("membar.gl; atom.global.add.u32 %r1, [%out], 1; membar.gl;"),
    );
    let out = bench.words(&[0; 16]);
    clean(&bench.launch(4, 1, &[out.base()]));
    assert_eq!(read(&out)[1], 3);
    let bench = Bench::kernel("", &body("mov.u32 %r1, %ctaid.x;"));
    let out = bench.words(&[0; 16]);
    assert_eq!(
        kinds(&bench.launch(4, 1, &[out.base()])),
        [ReportKind::GlobalRace]
    );
}

#[test]
fn barriers_in_divergent_code() {
    let bench = Bench::kernel(
        "",
        "setp.lt.u32 %p1, %i, 16; @%p1 bra $A; bar.sync 0; bra.uni $E; $A: bar.sync 0; $E:",
    );
    let found = outcome(&bench, 1, 64, 64, false);
    assert_eq!(kinds(&found), [ReportKind::DivergentBarrier]);
    let bench = Bench::kernel(
        "",
        "setp.lt.u32 %p1, %i, 40; @%p1 bra $E; bar.sync 0; $E: bar.sync 0;",
    );
    let found = outcome(&bench, 1, 64, 64, false);
    assert!(found.fault.is_some() || !found.reports.is_empty());
    // Lanes that have ended are not waited for.
    let bench = Bench::kernel("", "setp.ge.u32 %p1, %i, 40; @%p1 ret; bar.sync 0;");
    clean(&outcome(&bench, 1, 96, 64, false));
}

#[test]
fn nobody_comes() {
    let bench = Bench::kernel(
        "",
        "setp.lt.u32 %p1, %i, 32; @%p1 bra $E; bar.sync 1, 64; $E:",
    );
    let fault = outcome(&bench, 1, 64, 64, false).fault.unwrap();
    assert_eq!(fault.kind, ReportKind::Deadlock);
    assert!(fault.message.contains("barrier 1"), "{}", fault.message);
}

#[test]
fn bad_member_masks() {
    let bench = Bench::kernel(
        "",
        "setp.lt.u32 %p1, %i, 16; @!%p1 bra $E; shfl.sync.bfly.b32 %r1, %i, 1, 31, 0xffffffff; $E: bar.sync 0;",
    );
    assert_eq!(
        kinds(&outcome(&bench, 1, 32, 64, false)),
        [ReportKind::ShuffleMask]
    );
    let bench = Bench::kernel("", "shfl.sync.bfly.b32 %r1, %i, 1, 31, 0xffff;");
    assert_eq!(
        kinds(&outcome(&bench, 1, 32, 64, false)),
        [ReportKind::ShuffleMask]
    );
    let bench = Bench::kernel(
        "",
        "setp.lt.u32 %p1, %i, 16; @!%p1 bra $E; shfl.sync.bfly.b32 %r1, %i, 1, 31, 0xffff; $E: bar.sync 0;",
    );
    assert_eq!(kinds(&outcome(&bench, 1, 32, 64, false)), []);
}

#[test]
fn launches_that_do_not_fit() {
    let bench = Bench::kernel("", "");
    let bad = |grid, block, params: &[u64]| bench.launch(grid, block, params).fault.unwrap().kind;
    assert_eq!(bad(1, 2048, &[0]), ReportKind::BadLaunch);
    assert_eq!(bad(0, 32, &[0]), ReportKind::BadLaunch);
    assert_eq!(bad(1, 32, &[]), ReportKind::BadLaunch);
    assert_eq!(bench.launch(1, 32, &[0]).fault, None);
}

#[test]
fn findings_do_not_depend_on_host_threads() {
    let mut bench = Bench::kernel("", "ld.global.u32 %r1, [%at]; st.global.u32 [%at], %r1;");
    let run = |bench: &Bench| outcome(bench, 50, 64, 50 * 256, true).stats;
    let one = run(&bench);
    bench.options.threads = 3;
    assert_eq!(one, run(&bench));
}

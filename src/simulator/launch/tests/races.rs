//! Races of warps in global memory, and where findings say that they are.

use super::*;

fn found(body: &str, block: u32) -> Outcome {
    let bench = Bench::kernel("", body);
    let words = vec![0; block as usize + 1];
    bench.launch(1, block, &[bench.words(&words).base()])
}

#[test]
fn warps_of_a_block() {
    // Each thread reads what another warp writes.
    let body = |bar: &str| {
        format!(
            "st.global.u32 [%at], %i; {bar} xor.b32 %r1, %i, 63; mul.wide.u32 %off, %r1, 4; add.s64 %rd1, %out, %off;
            ld.global.u32 %r2, [%rd1]; {bar} st.global.u32 [%at], %r2;"
        )
    };
    clean(&found(&body("bar.sync 0;"), 64));
    let race = found(&body(""), 64);
    assert_eq!(kinds(&race), [ReportKind::GlobalRace]);
    let other = race.reports[0].other.clone().unwrap();
    // The first warp has read what the second one writes.
    assert_eq!(
        (other.block, other.warp, other.write),
        ([0; 3], Some(0), false)
    );
    // Lanes of one warp go together.
    clean(&found(&body("").replace("63", "31"), 32));
}

#[test]
fn a_shift_in_place() {
    // The next word belongs to the next thread, and its warp reads it first.
    let body = |bar: &str| {
        format!(
            "ld.global.u32 %r1, [%at]; ld.global.u32 %r2, [%at+4]; {bar} add.u32 %r1, %r1, %r2; st.global.u32 [%at], %r1;"
        )
    };
    clean(&found(&body("bar.sync 0;"), 96));
    assert_eq!(kinds(&found(&body(""), 96)), [ReportKind::GlobalRace]);
    // Only the last warp comes without meeting the others.
    let some = "setp.ge.u32 %p1, %i, 64; @%p1 bra $N; bar.sync 1, 64; $N:";
    assert_eq!(kinds(&found(&body(some), 96)), [ReportKind::GlobalRace]);
}

#[test]
fn everybody_writes_one_word() {
    assert_eq!(kinds(&found("st.global.u32 [%out], %nt;", 64)), []);
    let race = found("shr.u32 %r1, %i, 5; st.global.u32 [%out], %r1;", 64);
    assert_eq!(kinds(&race), [ReportKind::GlobalRace]);
}

#[test]
fn handed_on_through_memory() {
    // The second warp waits for a flag that the first one sets.
    let body = |order: &str, acquire: &str| {
        format!(
            "setp.ge.u32 %p1, %i, 32; @%p1 bra $C; st.global.u32 [%at], %i; bar.warp.sync -1; mov.u32 %r1, 1;
            setp.ne.u32 %p2, %i, 0; @%p2 bra $E; st{order}.global.u32 [%out+256], %r1; bra $E;
            $C: ld{acquire}.global.u32 %r2, [%out+256]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $C;
            ld.global.u32 %r3, [%at+-128]; st.global.u32 [%at], %r3; $E:"
        )
    };
    clean(&found(&body(".release.gpu", ".acquire.gpu"), 64));
    assert_eq!(kinds(&found(&body("", ""), 64)), [ReportKind::GlobalRace]);
}

#[test]
fn blocks_of_a_cluster() {
    // A block reads what the other one of its cluster wrote before both met.
    let body = |meet: &str| {
        format!(
            "st.global.u32 [%at], %i; {meet} xor.b32 %r1, %i, 32; mul.wide.u32 %off, %r1, 4; add.s64 %rd1, %out, %off;
            ld.global.u32 %r2, [%rd1]; st.global.u32 [%at+512], %r2;"
        )
    };
    let run = |meet| {
        let bench = Bench::kernel("", &body(meet));
        bench.launch_with(&Launch {
            grid: [4, 1, 1],
            block: [32, 1, 1],
            cluster: [2, 1, 1],
            dynamic_shared: 0,
            params: bench.buffer(1024).base().to_le_bytes().to_vec(),
            cooperative: false,
        })
    };
    clean(&run("barrier.cluster.arrive; barrier.cluster.wait;"));
    assert!(kinds(&run("")).contains(&ReportKind::GlobalRace));
}

/// What a fault of a kernel says about its place.
fn place(declarations: &str, body: &str) -> (String, u64, u64) {
    let bench = Bench::kernel(declarations, body);
    let out = bench.buffer(64);
    let fault = bench.launch(1, 1, &[out.base()]).fault.unwrap();
    assert_eq!(fault.kind, ReportKind::OutOfBounds);
    let place = fault.allocation.unwrap();
    (place.label, place.offset, place.length)
}

#[test]
fn wild_addresses_are_told_as_they_are() {
    let tile = ".shared .align 4 .b8 tile[128];";
    let shared = |offset| ("shared memory".to_owned(), offset, 128);
    for at in [128, 0x0001_0000, 0x0100_0010, 0x7654_3210, 0xffff_fff0] {
        let body = format!("mov.u32 %r1, {at:#x}; ld.shared.u32 %r2, [%r1];");
        assert_eq!(place(tile, &body), shared(at));
        let generic = format!(
            "mov.u32 %r1, {at:#x}; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1; ld.u32 %r2, [%rd1];"
        );
        assert_eq!(place(tile, &generic), shared(at));
    }
    let local = ".local .align 4 .b8 d[16];";
    let body = "mov.u32 %r1, 0x2000010; st.local.u32 [%r1], %i;";
    assert_eq!(
        place(local, body),
        ("local memory".to_owned(), 0x0200_0010, 16)
    );
    let body = "ld.param.u32 %r1, [out+1024];";
    assert_eq!(place("", body), ("the parameters".to_owned(), 1024, 8));
}

#[test]
fn a_block_that_is_required() {
    let bench = Bench::new(".visible .entry k() .reqntid 64, 2, 1 { ret; }");
    let fault = bench.launch(1, 32, &[]).fault.unwrap();
    assert_eq!(
        fault.message,
        "asked for a block of 32 x 1 x 1 threads, the kernel requires 64 x 2 x 1"
    );
}

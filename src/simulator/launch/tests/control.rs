//! Divergence, calls, barriers, lanes together.

use super::*;

#[test]
fn divergent_lanes_meet_again() {
    let bench = Bench::kernel(
        "",
        "mov.u32 %r1, 0; and.b32 %r2, %i, 3;
        setp.eq.u32 %p1, %r2, 0; @%p1 bra $A; setp.eq.u32 %p1, %r2, 1; @%p1 bra $B;
        add.u32 %r1, %r1, 100; bra.uni $J;
        $A: add.u32 %r1, %r1, 200; bra.uni $J;
        $B: add.u32 %r1, %r1, 300;
        $J: shfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xffffffff; add.u32 %r1, %r1, %r3;
        st.global.u32 [%at], %r1;",
    );
    let value = |i: u32| [200, 300, 100, 100][(i & 3) as usize];
    for (i, word) in bench.run(1, 64).into_iter().enumerate() {
        assert_eq!(word, value(i as u32) + value(i as u32 ^ 1));
    }
}

#[test]
fn indexed_branches() {
    let bench = Bench::kernel(
        "",
        "and.b32 %r1, %i, 3; rem.u32 %r1, %i, 3;
        $T: .branchtargets $A, $B, $C;
        brx.idx %r1, $T;
        $A: mov.u32 %r2, 11; bra.uni $J;
        $B: mov.u32 %r2, 22; bra.uni $J;
        $C: mov.u32 %r2, 33;
        $J: st.global.u32 [%at], %r2;",
    );
    for (i, word) in bench.run(1, 50).into_iter().enumerate() {
        assert_eq!(word, [11, 22, 33][i % 3]);
    }
}

#[test]
fn calls_direct_recursive_and_through_registers() {
    let bench = Bench::new(
        ".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 %r<3>;
          ld.param.b32 %r1, [a]; shl.b32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }
        .func (.param .b32 r) thrice(.param .b32 a) { .reg .b32 %r<3>;
          ld.param.b32 %r1, [a]; mul.lo.u32 %r2, %r1, 3; st.param.b32 [r], %r2; ret; }
        .func (.reg .b32 s) sum(.reg .b32 n) { .reg .b32 %m, %t; .reg .pred %p;
          setp.eq.u32 %p, %n0, 0; mov.u32 s, 0; @%p ret;
          sub.u32 %m, n, 1; call (%t), sum, (%m); add.u32 s, %t, n; ret; }
        .visible .entry k(.param .u64 out) {
        .reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .pred %p<3>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }
        and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0;
        mov.u64 %rd3, twice; mov.u64 %rd4, thrice; selp.b64 %rd5, %rd3, %rd4, %p1;
        { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2;
          proto: .callprototype (.param .b32 _) _ (.param .b32 _);
          call (b), %rd5, (a), proto; ld.param.b32 %r4, [b]; }
        call (%r5), sum, (%r1);
        add.u32 %r4, %r4, %r5;
        st.global.u32 [%rd1], %r4; ret; }"
            .replace("%n0", "n")
            .as_str(),
    );
    for (i, word) in bench.run(1, 40).into_iter().enumerate() {
        let i = i as u32;
        let factor = if i.is_multiple_of(2) { 2 } else { 3 };
        assert_eq!(word, 2 * i * factor + i * (i + 1) / 2, "{i}");
    }
}

#[test]
fn spinning_lanes_do_not_starve_the_others() {
    // Lane 0 waits for what lane 1 writes later in the text.
    let bench = Bench::kernel(
        ".shared .align 4 .b32 flag;",
        "setp.eq.u32 %p1, %i, 0; mov.u32 %r1, 0; @%p1 st.volatile.shared.u32 [flag], %r1;
        bar.warp.sync 0xffffffff;
        @!%p1 bra $W;
        $S: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra $S; bra.uni $J;
        $W: mov.u32 %r2, 9; st.volatile.shared.u32 [flag], %r2;
        $J: st.global.u32 [%at], %r2;",
    );
    assert_eq!(bench.run(1, 32), vec![9; 32]);
}

#[test]
fn spin_locks_between_warps() {
    let bench = Bench::kernel(
        ".shared .align 4 .b32 lock; .shared .align 4 .b32 count;",
        "setp.eq.u32 %p1, %i, 0; mov.u32 %r1, 0;
        @%p1 st.shared.u32 [lock], %r1; @%p1 st.shared.u32 [count], %r1; bar.sync 0;
        $A: atom.shared.cas.b32 %r2, [lock], 0, 1; setp.ne.u32 %p2, %r2, 0; @%p2 bra $A;
        ld.volatile.shared.u32 %r3, [count]; add.u32 %r3, %r3, 1; st.volatile.shared.u32 [count], %r3;
        membar.cta; atom.shared.exch.b32 %r4, [lock], 0;
        bar.sync 0; ld.shared.u32 %r5, [count]; st.global.u32 [%at], %r5;",
    );
    assert_eq!(bench.run(1, 96), vec![96; 96]);
}

#[test]
fn barriers_reduce() {
    let bench = Bench::kernel(
        "",
        "setp.lt.u32 %p1, %i, 37; bar.red.popc.u32 %r1, 0, %p1;
        bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, !%p1;
        selp.b32 %r2, 1000, 0, %p2; selp.b32 %r3, 10000, 0, %p3;
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
        barrier.sync 3, 128; st.global.u32 [%at], %r1;",
    );
    assert_eq!(bench.run(1, 128), vec![10_037; 128]);
}

#[test]
fn named_barriers_hand_over() {
    // The first warp produces, the second consumes.
    let bench = Bench::kernel(
        ".shared .align 4 .b32 tile[32];",
        "mov.u32 %r1, %laneid; mov.u32 %r9, tile; shl.b32 %r2, %r1, 2; add.u32 %r9, %r9, %r2;
        setp.ge.u32 %p1, %i, 32; @%p1 bra $C;
        mul.lo.u32 %r3, %r1, 7; st.shared.u32 [%r9], %r3; bar.arrive 1, 64; st.global.u32 [%at], %r3; bra.uni $E;
        $C: bar.sync 1, 64; ld.shared.u32 %r3, [%r9]; st.global.u32 [%at], %r3;
        $E:",
    );
    for (i, word) in bench.run(1, 64).into_iter().enumerate() {
        assert_eq!(word, i as u32 % 32 * 7);
    }
}

#[test]
fn lanes_together() {
    let bench = Bench::kernel(
        "",
        "and.b32 %r1, %i, 1; setp.ne.u32 %p1, %r1, 0;
        vote.sync.ballot.b32 %r2, %p1, 0xffffffff;
        vote.sync.any.pred %p2, %p1, 0xffffffff; vote.sync.all.pred %p3, %p1, 0xffffffff;
        shr.u32 %r3, %i, 2; match.any.sync.b32 %r4, %r3, 0xffffffff; popc.b32 %r4, %r4;
        redux.sync.add.u32 %r5, %i, 0xffffffff; redux.sync.max.s32 %r6, %i, 0xffffffff;
        elect.sync %r7|%p4, 0xffffffff;
        shfl.sync.up.b32 %r8|%p5, %i, 3, 0, 0xffffffff; shfl.sync.idx.b32 %r9, %i, 5, 0x1f, 0xffffffff;
        shr.u32 %r2, %r2, 28; selp.u32 %r10, 1, 0, %p2; add.u32 %r2, %r2, %r10;
        selp.u32 %r10, 1, 0, %p3; add.u32 %r2, %r2, %r10; add.u32 %r2, %r2, %r4;
        add.u32 %r2, %r2, %r5; add.u32 %r2, %r2, %r6; selp.u32 %r10, 7, 0, %p4; add.u32 %r2, %r2, %r10;
        add.u32 %r2, %r2, %r8; selp.u32 %r10, 11, 0, %p5; add.u32 %r2, %r2, %r10; add.u32 %r2, %r2, %r9;
        st.global.u32 [%at], %r2;",
    );
    for (i, word) in bench.run(1, 32).into_iter().enumerate() {
        let i = i as u32;
        let up = if i >= 3 { i - 3 + 11 } else { i };
        let want = 10 + 1 + 4 + 496 + 31 + if i == 0 { 7 } else { 0 } + up + 5;
        assert_eq!(word, want, "{i}");
    }
}

#[test]
fn atomics_count() {
    let bench = Bench::kernel(
        ".shared .align 8 .b64 s;",
        "setp.eq.u32 %p1, %i, 0; mov.u64 %rd1, 0; @%p1 st.shared.u64 [s], %rd1; bar.sync 0;
        cvt.u64.u32 %rd2, %i; atom.shared.add.u64 %rd3, [s], %rd2; red.shared.max.u64 [s], 5;
        bar.sync 0; ld.shared.u64 %rd4, [s]; cvt.u32.u64 %r1, %rd4; st.global.u32 [%at], %r1;",
    );
    assert_eq!(bench.run(1, 64), vec![2016; 64]);
    let bench = Bench::new(
        ".visible .entry k(.param .u64 out) { .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .b32 %r<4>;
        ld.param.u64 %rd1, [out]; mov.f32 %f1, 0f3F800000;
        red.global.add.f32 [%rd1], %f1; atom.global.inc.u32 %r1, [%rd1+4], 9; ret; }",
    );
    let out = bench.words(&[0, 0]);
    clean(&bench.launch(100, 64, &[out.base()]));
    assert_eq!(read(&out), vec![6400f32.to_bits(), 6400 % 10]);
}

#[test]
fn endless_loops_end() {
    let mut bench = Bench::kernel("", "$L: bra.uni $L;");
    bench.options.instruction_limit = 100_000;
    let out = bench.buffer(4);
    let outcome = bench.launch(1, 1, &[out.base()]);
    assert_eq!(outcome.fault.unwrap().kind, ReportKind::InstructionLimit);
}

#[test]
fn traps_end_the_launch() {
    let bench = Bench::kernel("", "setp.eq.u32 %p1, %i, 33; @%p1 trap;");
    let out = bench.buffer(4);
    let fault = bench.launch(1, 64, &[out.base()]).fault.unwrap();
    assert_eq!((fault.kind, fault.thread), (ReportKind::Trap, [33, 0, 0]));
}

#[test]
fn blocks_that_wait_for_later_blocks_end() {
    // Every block counts up and waits for all of them, with one host thread.
    let bench = Bench::new(
        ".visible .entry k(.param .u64 out) { .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .pred %p;
        ld.param.u64 %rd1, [out]; atom.global.add.u32 %r1, [%rd1], 1;
        $L: ld.acquire.gpu.global.u32 %r2, [%rd1]; setp.lt.u32 %p, %r2, 8; @%p bra $L; ret; }",
    );
    let out = bench.words(&[0]);
    clean(&bench.launch(8, 1, &[out.base()]));
    assert_eq!(read(&out), vec![8]);
}

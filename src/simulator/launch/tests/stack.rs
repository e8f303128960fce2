//! Memory taken from the stack while a kernel runs.

use super::*;

#[test]
fn each_thread_takes_what_it_wants() {
    // Thread i takes 8 * i + 4 bytes, then 4 more, and writes to the ends of both.
    let bench = Bench::kernel(
        "",
        "shl.b32 %r1, %i, 3; add.u32 %r1, %r1, 4; cvt.u64.u32 %rd1, %r1; alloca.u64 %rd2, %rd1, 32;
        alloca.u64 %rd3, 4; add.u64 %rd4, %rd2, %rd1;
        st.local.b32 [%rd2], %i; st.local.b32 [%rd4+-4], %r1; st.local.b32 [%rd3], 7;
        and.b64 %rd5, %rd2, 31; cvt.u32.u64 %r2, %rd5;
        ld.local.b32 %r3, [%rd4+-4]; add.u32 %r2, %r2, %r3; ld.local.b32 %r4, [%rd3]; add.u32 %r2, %r2, %r4;
        cvta.local.u64 %rd6, %rd2; ld.b32 %r5, [%rd6]; setp.ne.u32 %p1, %i, 0; selp.b32 %r5, %r5, 0, %p1;
        add.u32 %r2, %r2, %r5; st.global.b32 [%at], %r2;",
    );
    for (i, word) in bench.run(1, 64).into_iter().enumerate() {
        assert_eq!(word as usize, 8 * i + 4 + 7 + i);
    }
}

#[test]
fn functions_and_loops_give_back_what_they_took() {
    // A function takes a kilobyte a call, a loop as much a round: together far more than there is.
    let bench = Bench::new(
        ".func (.reg .b32 r) f(.reg .b32 n) { .reg .b64 %rd<4>; .reg .pred %p<2>;
        mov.b64 %rd1, 1024; alloca.u64 %rd2, %rd1; st.local.b32 [%rd2+1020], n;
        setp.gt.u32 %p1, n, 500; @%p1 bra $A; ld.local.b32 r, [%rd2+1020]; ret;
        $A: ld.local.b32 r, [%rd2+1020]; add.u32 r, r, 1; ret; }
        .visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<2>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
        mov.b64 %rd3, 16; alloca.u64 %rd4, %rd3; mov.u32 %r2, 0; mov.u32 %r3, 0; st.local.b32 [%rd4], %r1;
        $L: stacksave.u64 %rd5; mov.b64 %rd6, 1024; alloca.u64 %rd7, %rd6; st.local.b32 [%rd7], %r2;
        call (%r4), f, (%r2); add.u32 %r3, %r3, %r4; ld.local.b32 %r5, [%rd7]; add.u32 %r3, %r3, %r5;
        stackrestore.u64 %rd5; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1000; @%p1 bra $L;
        ld.local.b32 %r6, [%rd4]; add.u32 %r3, %r3, %r6; st.global.b32 [%rd1], %r3; ret; }",
    );
    let out = bench.buffer(128);
    clean(&bench.launch(1, 32, &[out.base()]));
    for (i, word) in read(&out).into_iter().enumerate() {
        assert_eq!(word as usize, 2 * (999 * 1000 / 2) + 499 + i);
    }
}

#[test]
fn more_than_there_is() {
    for size in ["70000", "-1"] {
        let text = format!("mov.b64 %rd1, {size}; alloca.u64 %rd2, %rd1;");
        let bench = Bench::kernel("", &text);
        let found = bench.launch(1, 32, &[bench.buffer(128).base()]);
        assert_eq!(found.fault.unwrap().kind, ReportKind::StackOverflow);
    }
    let bench = Bench::kernel("", "mov.b64 %rd1, 1048576; stackrestore.u64 %rd1;");
    let found = bench.launch(1, 32, &[bench.buffer(128).base()]);
    assert_eq!(found.fault.unwrap().kind, ReportKind::IllegalInstruction);
}

//! Local, constant, parameter and shared memory, generic addresses, printing.

use super::*;

#[test]
fn shared_tiles_static_and_dynamic() {
    let bench = Bench::new(
        ".extern .shared .align 16 .b8 dyn[];
        .visible .entry k(.param .u64 out) { .shared .align 4 .b8 own[128];
        .reg .b32 %r<12>; .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;
        mov.u32 %r3, own; add.u32 %r3, %r3, %r2; mov.u32 %r4, dyn; add.u32 %r4, %r4, %r2;
        st.shared.u32 [%r3], %r1; mul.lo.u32 %r5, %r1, %r1; st.shared.u32 [%r4+128], %r5;
        bar.sync 0;
        xor.b32 %r6, %r2, 124; mov.u32 %r3, own; add.u32 %r3, %r3, %r6; ld.shared.u32 %r7, [%r3];
        mov.u64 %rd2, dyn; cvta.shared.u64 %rd2, %rd2; cvt.u64.u32 %rd3, %r6; add.u64 %rd2, %rd2, %rd3;
        ld.u32 %r8, [%rd2+128]; add.u32 %r7, %r7, %r8;
        cvt.u64.u32 %rd4, %r2; add.u64 %rd1, %rd1, %rd4; st.global.u32 [%rd1], %r7; ret; }",
    );
    assert_eq!(bench.module.entries()[0].static_shared, 128);
    let out = bench.buffer(128);
    let outcome = bench.launch_with(&Launch {
        grid: [1, 1, 1],
        block: [32, 1, 1],
        cluster: [1, 1, 1],
        dynamic_shared: 256,
        params: out.base().to_le_bytes().to_vec(),
        cooperative: false,
    });
    clean(&outcome);
    for (i, word) in read(&out).into_iter().enumerate() {
        let other = 31 - i as u32;
        assert_eq!(word, other + other * other);
    }
}

#[test]
fn local_memory_is_each_threads_own() {
    let bench = Bench::kernel(
        ".local .align 8 .b8 depot[32]; .reg .b64 %SP, %SPL;",
        "mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL;
        add.u64 %rd1, %SPL, 8; st.local.u32 [%rd1], %i; add.u32 %r1, %i, 5; st.u32 [%SP+12], %r1;
        ld.local.v2.u32 {%r2, %r3}, [%SPL+8]; mul.lo.u32 %r4, %r2, %r3; st.global.u32 [%at], %r4;",
    );
    for (i, word) in bench.run(2, 64).into_iter().enumerate() {
        assert_eq!(word, (i * (i + 5)) as u32);
    }
}

#[test]
fn constants_globals_and_their_addresses() {
    let bench = Bench::new(
        ".const .align 4 .b32 table[4] = {10, 20, 30, 40};
        .global .align 8 .u64 ptr = generic(table);
        .global .align 4 .b32 counter = 5;
        .visible .entry k(.param .u64 out) { .reg .b32 %r<8>; .reg .b64 %rd<8>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
        and.b32 %r2, %r1, 3; mul.wide.u32 %rd3, %r2, 4; mov.u64 %rd4, table; add.u64 %rd4, %rd4, %rd3;
        ld.const.u32 %r3, [%rd4]; ld.const.u32 %r4, [table+8];
        ld.global.u64 %rd5, [ptr]; ld.u32 %r5, [%rd5+12]; ld.global.u32 %r6, [counter];
        add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5; add.u32 %r3, %r3, %r6; st.global.u32 [%rd1], %r3; ret; }",
    );
    assert_eq!(bench.module.global("table").map(|g| g.1), Some(16));
    for (i, word) in bench.run(1, 32).into_iter().enumerate() {
        assert_eq!(word, [10, 20, 30, 40][i % 4] + 30 + 40 + 5);
    }
}

#[test]
fn parameters_by_value_and_by_address() {
    let bench = Bench::new(
        ".visible .entry k(.param .u64 out, .param .u32 a, .param .align 8 .b8 s[16]) {
        .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b16 %h<3>;
        ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.u16 %h1, [s+2]; cvt.u32.u16 %r2, %h1;
        mov.b64 %rd2, s; cvta.param.u64 %rd3, %rd2; ld.u32 %r3, [%rd3+8]; ld.param.u32 %r4, [%rd2+12];
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; st.global.u32 [%rd1], %r1; ret; }",
    );
    let entry = &bench.module.entries()[0];
    let offsets: Vec<u32> = entry.params.iter().map(|p| p.offset).collect();
    assert_eq!((offsets, entry.param_bytes), (vec![0, 8, 16], 32));
    let out = bench.buffer(4);
    let mut params = out.base().to_le_bytes().to_vec();
    params.extend(7u32.to_le_bytes());
    params.extend(0u32.to_le_bytes());
    for word in [0x0003_0000u32, 0, 50, 900] {
        params.extend(word.to_le_bytes());
    }
    let outcome = bench.launch_with(&Launch {
        grid: [1, 1, 1],
        block: [1, 1, 1],
        cluster: [1, 1, 1],
        dynamic_shared: 0,
        params,
        cooperative: false,
    });
    clean(&outcome);
    assert_eq!(read(&out), vec![960]);
}

#[test]
fn printing() {
    let bench = Bench::new(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .global .align 1 .b8 fmt[22] = {37,100,32,37,53,46,50,102,124,37,115,124,37,45,52,120,124,37,99,10,0,0};
        .global .align 1 .b8 word[4] = {97,98,99,0};
        .visible .entry k(.param .u64 out) { .local .align 8 .b8 depot[40]; .reg .b32 %r<5>; .reg .b64 %rd<8>; .reg .f64 %fd<3>; .reg .f32 %f<3>;
        mov.u32 %r1, %ctaid.x; mov.u64 %rd1, depot; st.local.u32 [%rd1], %r1; mov.f64 %fd1, 0d400921FB54442D18; st.local.f64 [%rd1+8], %fd1;
        mov.u64 %rd2, word; cvta.global.u64 %rd2, %rd2; st.local.u64 [%rd1+16], %rd2; mov.u32 %r2, 255; st.local.u32 [%rd1+24], %r2; mov.u32 %r2, 33; st.local.u32 [%rd1+28], %r2;
        mov.u64 %rd3, fmt; cvta.global.u64 %rd3, %rd3; cvta.local.u64 %rd4, %rd1;
        { .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], %rd3; st.param.b64 [p1], %rd4;
        call.uni (r0), vprintf, (p0, p1); ld.param.b32 %r3, [r0]; } ret; }",
    );
    let out = bench.buffer(4);
    let outcome = bench.launch(2, 1, &[out.base()]);
    clean(&outcome);
    let text = String::from_utf8(outcome.printed).unwrap();
    assert_eq!(text, "0  3.14|abc|ff  |!\n1  3.14|abc|ff  |!\n");
}

#[test]
fn a_vector_store_leaves_elements_out() {
    // Of four 64-bit elements the first and the third are stored; two words follow one another.
    let body = "setp.ne.u32 %p1, %i, 0; @%p1 bra $E;
        mov.u64 %rd1, 0x200000001; mov.u64 %rd2, 0x600000005;
        st.global.v4.b64 [%out], {%rd1, _, %rd2, _}; $E:";
    let bench = Bench::kernel("", body);
    let out = bench.words(&[9; 8]);
    clean(&bench.launch(1, 8, &[out.base()]));
    assert_eq!(read(&out), [1, 2, 9, 9, 5, 6, 9, 9]);
    // What is left out need not be there.
    let short = bench.words(&[9; 6]);
    clean(&bench.launch(1, 8, &[short.base()]));
    assert_eq!(read(&short), [1, 2, 9, 9, 5, 6]);
}

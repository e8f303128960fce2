//! Arithmetic, moves, loads and stores.

use super::*;

#[test]
fn vector_addition() {
    let bench = Bench::new(
        ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c) .reqntid 128,1,1 {
        .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<8>;
        mov.u32 %r1, %tid.x;
        setp.gt.u32 %p1, %r1, 120;
        @%p1 bra $L;
        ld.param.b64 %rd4, [a]; ld.param.b64 %rd5, [b]; ld.param.b64 %rd6, [c];
        mul.wide.u32 %rd7, %r1, 4;
        add.s64 %rd1, %rd4, %rd7; add.s64 %rd2, %rd5, %rd7; add.s64 %rd3, %rd6, %rd7;
        ld.global.nc.b32 %r2, [%rd1]; ld.global.nc.b32 %r3, [%rd2];
        add.rn.f32 %r4, %r2, %r3;
        st.global.b32 [%rd3], %r4;
        $L: ret; }",
    );
    let a: Vec<u32> = (0..121).map(|i| (i as f32 * 0.5).to_bits()).collect();
    let b: Vec<u32> = (0..121).map(|i| (100.0 - i as f32).to_bits()).collect();
    let (a, b, c) = (bench.words(&a), bench.words(&b), bench.buffer(484));
    let outcome = bench.launch(1, 128, &[a.base(), b.base(), c.base()]);
    clean(&outcome);
    for (i, word) in read(&c).into_iter().enumerate() {
        assert_eq!(f32::from_bits(word), 100.0 - i as f32 * 0.5);
    }
    let stats = outcome.stats.unwrap();
    assert_eq!(stats.bytes_read, 121 * 8);
    assert_eq!(stats.sectors_read, 2 * (121u64 * 4).div_ceil(32));
    assert_eq!(stats.flops, 121);
    assert_eq!(stats.divergent_branches, 1);
}

#[test]
fn loops_and_wide_types() {
    // 64-bit factorials of 0 to 20, one a thread.
    let bench = Bench::kernel(
        "",
        "mul.wide.u32 %off, %i, 8; add.s64 %at, %out, %off;
        mov.u64 %rd1, 1; mov.u32 %r1, 0;
        $L: setp.ge.u32 %p1, %r1, %i; @%p1 bra $D;
        add.u32 %r1, %r1, 1; cvt.u64.u32 %rd2, %r1; mul.lo.u64 %rd1, %rd1, %rd2; bra.uni $L;
        $D: st.global.u64 [%at], %rd1;",
    );
    let out = bench.buffer(21 * 8);
    clean(&bench.launch(1, 21, &[out.base()]));
    let words = read(&out);
    let mut factorial = 1u64;
    for i in 0..21u64 {
        factorial *= i.max(1);
        let got = u64::from(words[2 * i as usize]) | u64::from(words[2 * i as usize + 1]) << 32;
        assert_eq!(got, factorial);
    }
}

#[test]
fn guards_and_selections() {
    let bench = Bench::kernel(
        "",
        "and.b32 %r1, %i, 1; setp.eq.u32 %p1|%p2, %r1, 0;
        mov.u32 %r2, 5; @%p1 mov.u32 %r2, 7; @!%p1 add.u32 %r2, %r2, 4;
        setp.lt.and.u32 %p3, %i, 10, !%p1;
        selp.b32 %r3, 100, 200, %p3; add.u32 %r2, %r2, %r3;
        @%p2 add.u32 %r2, %r2, 1000;
        st.global.u32 [%at], %r2;",
    );
    for (i, word) in bench.run(1, 40).into_iter().enumerate() {
        let odd = i % 2 == 1;
        let mut want = if odd { 9 } else { 7 };
        want += if i < 10 && odd { 100 } else { 200 };
        want += if odd { 1000 } else { 0 };
        assert_eq!(word, want, "{i}");
    }
}

#[test]
fn vectors_and_narrow_accesses() {
    let bench = Bench::kernel(
        "",
        "mul.wide.u32 %off, %i, 16; add.s64 %at, %out, %off;
        add.u32 %r1, %i, 1; add.u32 %r2, %i, 2; mov.b32 %r3, {%h1, %h2};
        mov.u16 %h1, 0x1234; mov.u16 %h2, 0xfffe; mov.b32 %r3, {%h1, %h2};
        st.global.v4.b32 [%at], {%i, %r1, %r2, %r3};
        ld.global.v2.b64 {%rd1, %rd2}, [%at];
        ld.global.s16 %r5, [%at+14]; ld.global.u8 %r6, [%at+13];
        mov.b64 {%r7, %r8}, %rd1; mov.b64 {%r9, _}, %rd2;
        sub.u32 %r7, %r8, %r7; add.u32 %r7, %r7, %r9; add.u32 %r7, %r7, %r5; add.u32 %r7, %r7, %r6;
        st.global.b32 [%at+4], %r7; st.global.b8 [%at], %r6;",
    );
    let out = bench.buffer(33 * 16);
    clean(&bench.launch(1, 33, &[out.base()]));
    let words = read(&out);
    for i in 0..33u32 {
        let row = &words[4 * i as usize..];
        assert_eq!(row[3], 0xfffe_1234);
        assert_eq!(
            row[1],
            (1 + i + 2).wrapping_add(-2i32 as u32).wrapping_add(0x12)
        );
        assert_eq!(row[0], (i & !0xff) | 0x12);
    }
}

#[test]
fn special_registers() {
    let bench = Bench::kernel(
        "",
        "mov.u32 %r1, %laneid; mov.u32 %r2, %lanemask_lt; popc.b32 %r2, %r2;
        mov.u32 %r3, %warpid; mad.lo.u32 %r1, %r3, 1000, %r1; mad.lo.u32 %r1, %r2, 100000, %r1;
        mov.u32 %r4, %nctaid.x; mad.lo.u32 %r1, %r4, 10000000, %r1;
        st.global.u32 [%at], %r1;",
    );
    for (i, word) in bench.run(3, 64).into_iter().enumerate() {
        let (lane, warp) = (i as u32 % 32, i as u32 % 64 / 32);
        assert_eq!(word, 30_000_000 + lane * 100_000 + warp * 1000 + lane);
    }
}

#[test]
fn carries_and_conversions() {
    let bench = Bench::kernel(
        "",
        "mov.u32 %r1, 0xffffffff; mov.u32 %r2, 1;
        add.cc.u32 %r3, %r1, %i; addc.u32 %r4, %r2, 0;
        cvt.rn.f32.u32 %f1, %i; mul.f32 %f1, %f1, 0f3F000000; cvt.rni.s32.f32 %r5, %f1;
        cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1; cvt.rzi.u32.f32 %r6, %f2;
        cvt.s32.s8 %r7, %i; cvt.sat.u8.s32 %r8, %r7;
        lop3.b32 %r9, %r5, %r6, %r8, 0x96; shl.b32 %r4, %r4, 16; add.u32 %r9, %r9, %r4;
        st.global.u32 [%at], %r9;",
    );
    for (i, word) in bench.run(1, 256).into_iter().enumerate() {
        let half = i as f32 * 0.5;
        let carry = 1 + u32::from(i > 0);
        let byte = i as u8 as i8;
        let want = (half.round_ties_even() as u32) ^ (half as u32) ^ (byte.max(0) as u32);
        assert_eq!(word, want + (carry << 16), "{i}");
    }
}

#[test]
fn unknown_instructions_are_named_at_load() {
    let load = |line: &str| {
        let text = format!(
            ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n\
             .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;\n{line}\nret; }}"
        );
        let space = Arc::new(AddressSpace::new());
        LoadedModule::load(&text, &spec(), 0, &space)
            .err()
            .map(|e| e.to_string())
    };
    for line in [
        "frobnicate.u32 %r1, %r2;",
        "add.u31 %r1, %r2, %r3;",
        "add.s32 %r1, %r2;",
        "tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [tex, {%r5,%r6}];",
        "ld.global.frob.u32 %r1, [%rd1];",
    ] {
        let error = load(line).unwrap();
        assert!(error.contains("line 6"), "{error}");
    }
    assert!(load("mov.u32 %r1, %nowhere;").unwrap().contains("%nowhere"));
    assert!(load("add.u64 %rd1, %r1, %rd2;").unwrap().contains("%r1"));
    assert!(load("bra $nowhere;").unwrap().contains("$nowhere"));
    assert_eq!(load("add.s32 %r1, %r2, %r3;"), None);
}

#[test]
fn parameters_beyond_all_bounds() {
    // More bytes than 32 bits count: the module loads, and no launch has so many.
    let params: Vec<String> = (0..5000)
        .map(|i| format!(".param .b8 p{i}[1048576]"))
        .collect();
    let bench = Bench::new(&format!(
        ".visible .entry k({}) {{ ret; }}",
        params.join(", ")
    ));
    assert!(bench.module.entries()[0].param_bytes > 1 << 23);
}

//! Products of matrices through whole programs.

use super::*;

/// The bits of a small whole number.
fn bits_of(ty: &str, value: i64) -> u64 {
    let single = u64::from((value as f32).to_bits());
    match ty {
        "f16" => u64::from(half::f16::from_f32(value as f32).to_bits()),
        "bf16" => single >> 16,
        "tf32" | "f32" => single,
        "f64" => (value as f64).to_bits(),
        _ => value as u64,
    }
}

fn width(ty: &str) -> usize {
    match ty {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" => 8,
        "f16" | "bf16" => 16,
        "f64" => 64,
        _ => 32,
    }
}

/// A matrix in memory, line after line, each of `columns` elements.
fn packed(ty: &str, values: &[i64]) -> Vec<u32> {
    let width = width(ty);
    let mut out = vec![0u32; (values.len() * width).div_ceil(32)];
    for (i, value) in values.iter().enumerate() {
        let code = bits_of(ty, *value);
        for bit in 0..width {
            let at = i * width + bit;
            out[at / 32] |= ((code >> bit & 1) as u32) << (at % 32);
        }
    }
    out
}

/// Loads A, B and C, multiplies and stores D, all without strides of their own. A is by rows, B by
/// columns. The counts of registers are those of the instruction set's table.
fn wmma(shape: [usize; 3], ty: [&str; 2], counts: [usize; 3], op: &str) {
    let [m, n, k] = shape;
    let ([ab, cd], [ra, rb, rc]) = (ty, counts);
    let list = |from: usize, count: usize, class: &str| {
        let names: Vec<String> = (from..from + count)
            .map(|r| format!("%{class}{r}"))
            .collect();
        format!("{{{}}}", names.join(", "))
    };
    let class = |ty: &str| if ty == "f64" { "d" } else { "w" };
    let (a, b) = (list(0, ra, class(ab)), list(20, rb, class(ab)));
    let (c, d) = (list(40, rc, class(cd)), list(60, rc, class(cd)));
    let types = match ab {
        "f16" => format!("{cd}.{cd}"),
        _ => format!("{cd}.{ab}.{ab}.{cd}"),
    };
    let name = format!("m{m}n{n}k{k}");
    let bench = Bench::new(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c) {{
        .reg .b32 %w<80>; .reg .f64 %d<80>; .reg .b64 %rd<5>;
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [a]; ld.param.u64 %rd3, [b]; ld.param.u64 %rd4, [c];
        wmma.load.a.sync.aligned.row.{name}.global.{ab} {a}, [%rd2]; wmma.load.b.sync.aligned.col.{name}.global.{ab} {b}, [%rd3];
        wmma.load.c.sync.aligned.row.{name}.global.{cd} {c}, [%rd4];
        wmma.mma{op}.sync.aligned.row.col.{name}.{types} {d}, {a}, {b}, {c};
        wmma.store.d.sync.aligned.col.{name}.global.{cd} [%rd1], {d}; ret; }}"
    ));
    let most = match ab {
        "b1" => 2,
        "s4" | "u4" => 6,
        _ => 9,
    };
    let low = if ab.starts_with('u') || ab == "b1" {
        0
    } else {
        -3
    };
    let value = |i: usize| (i * 7 + i / 5) as i64 % most + low;
    let va: Vec<i64> = (0..m * k).map(value).collect();
    // By columns: the k elements of a column side by side.
    let vb: Vec<i64> = (0..n * k).map(|i| value(i + 3)).collect();
    let vc: Vec<i64> = (0..m * n).map(|i| i as i64 % 11 - 5).collect();
    let inputs = [packed(ab, &va), packed(ab, &vb), packed(cd, &vc)].map(|w| bench.words(&w));
    let out = bench.buffer((m * n * width(cd) / 8) as u64);
    let [pa, pb, pc] = [0, 1, 2].map(|i| inputs[i].base());
    clean(&bench.launch(1, 32, &[out.base(), pa, pb, pc]));
    let mut want = vec![0; m * n];
    for row in 0..m {
        for column in 0..n {
            let products = (0..k).map(|i| match op {
                ".xor.popc" => va[row * k + i] ^ vb[column * k + i],
                ".and.popc" => va[row * k + i] & vb[column * k + i],
                _ => va[row * k + i] * vb[column * k + i],
            });
            want[column * m + row] = products.sum::<i64>() + vc[row * n + column];
        }
    }
    assert_eq!(read(&out), packed(cd, &want), "{name} {ab} {cd}");
}

#[test]
fn wmma_of_every_shape() {
    for shape in [[16, 16, 16], [8, 32, 16], [32, 8, 16]] {
        wmma(shape, ["f16", "f32"], [8, 8, 8], "");
        wmma(shape, ["f16", "f16"], [8, 8, 4], "");
        let [a, b] = [shape[0] / 4, shape[1] / 4];
        wmma(shape, ["bf16", "f32"], [a, b, 8], "");
        wmma(shape, ["s8", "s32"], [a / 2, b / 2, 8], "");
        wmma(shape, ["u8", "s32"], [a / 2, b / 2, 8], "");
    }
    wmma([16, 16, 8], ["tf32", "f32"], [4, 4, 8], "");
    wmma([8, 8, 4], ["f64", "f64"], [1, 1, 2], "");
    wmma([8, 8, 32], ["s4", "s32"], [1, 1, 2], "");
    wmma([8, 8, 32], ["u4", "s32"], [1, 1, 2], "");
    wmma([8, 8, 128], ["b1", "s32"], [1, 1, 2], ".xor.popc");
    wmma([8, 8, 128], ["b1", "s32"], [1, 1, 2], ".and.popc");
}

#[test]
fn a_sparse_product() {
    // Of each four of A's elements the second and the last are kept: metadata 0b1101 everywhere. A
    // is ones, B's row k holds k: the sum of k modulo 4 being 1 or 3, below 16, is 64.
    let bench = Bench::kernel(
        "",
        "mov.u32 %r1, 0x3c003c00; mov.u32 %r2, 0xdddddddd; and.b32 %r3, %i, 3; shl.b32 %r3, %r3, 1;
        cvt.rn.f16.u32 %h1, %r3; add.u32 %r4, %r3, 1; cvt.rn.f16.u32 %h2, %r4; mov.b32 %r5, {%h1, %h2};
        add.u32 %r3, %r3, 8; cvt.rn.f16.u32 %h1, %r3; add.u32 %r4, %r3, 1; cvt.rn.f16.u32 %h2, %r4; mov.b32 %r6, {%h1, %h2};
        mov.f32 %f1, 0f3F800000;
        mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r1,%r1}, {%r5,%r6}, {%f1,%f1,%f1,%f1}, %r2, 0x0;
        add.f32 %f2, %f2, %f3; add.f32 %f4, %f4, %f5; add.f32 %f2, %f2, %f4; st.global.f32 [%at], %f2;",
    );
    for word in bench.run(1, 32) {
        assert_eq!(f32::from_bits(word), 4.0 * (64.0 + 1.0));
    }
}

#[test]
fn a_product_with_factors_of_its_blocks() {
    // Ones of four bits; the factors of A are 2 and 1/2 for even and odd rows, those of B 1.
    let bench = Bench::kernel(
        "",
        "mov.u32 %r1, 0x22222222; shr.u32 %r2, %i, 2; and.b32 %r2, %r2, 1; setp.eq.u32 %p1, %r2, 0;
        selp.b32 %r3, 0x8080, 0x7e7e, %p1; mov.u32 %r4, 0x7f7f; mov.f32 %f1, 0f00000000; mov.u16 %h1, 0;
        mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0
            {%f2,%f3,%f4,%f5}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1}, %r3, {%h1, %h1}, %r4, {%h1, %h1};
        add.f32 %f2, %f2, %f5; st.global.f32 [%at], %f2;",
    );
    for (i, word) in bench.run(1, 32).into_iter().enumerate() {
        let factor = if i / 4 % 2 == 0 { 2.0 } else { 0.5 };
        assert_eq!(f32::from_bits(word), 2.0 * 64.0 * factor);
    }
}

#[test]
fn products_of_doubles_say_how_they_round() {
    let bench = Bench::kernel(
        "",
        "mov.f64 %fd1, 0d3FF0000000000000; mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn {%fd2, %fd3}, {%fd1}, {%fd1}, {%fd1, %fd1};
        cvt.rn.f32.f64 %f1, %fd3; st.global.f32 [%at], %f1;",
    );
    for word in bench.run(1, 32) {
        assert_eq!(f32::from_bits(word), 5.0);
    }
}

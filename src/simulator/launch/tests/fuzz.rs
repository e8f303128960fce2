//! No text, however broken, breaks the process.

use super::*;

const TEXTS: [&str; 3] = [
    ".visible .entry k(.param .u64 out) {
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<4>;
    .shared .align 16 .b8 tile[512]; .local .align 8 .b8 depot[32];
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; bar.sync 0;
    ld.shared.v2.u32 {%r4, %r5}, [tile+8]; cvt.rn.f32.u32 %f1, %r4; fma.rn.f32 %f2, %f1, %f1, 0f3F800000;
    cvt.f64.f32 %fd1, %f2; add.f64 %fd2, %fd1, %fd1; cvt.rn.f16.f32 %h1, %f2; mov.b32 %r6, {%h1, %h1};
    setp.lt.f32 %p1, %f1, %f2; @%p1 bra $L; add.u32 %r4, %r4, 1;
    $L: shfl.sync.bfly.b32 %r7, %r4, 1, 31, 0xffffffff; atom.shared.add.u32 %r8, [tile], 1; vote.sync.ballot.b32 %r9, %p1, -1;
    mov.u64 %rd4, depot; st.local.u32 [%rd4+4], %r9; ld.local.u64 %rd5, [%rd4]; selp.b32 %r10, %r7, %r8, %p1;
    lop3.b32 %r11, %r10, %r9, %r8, 0x96; prmt.b32 %r11, %r11, %r4, 0x5410; bfe.u32 %r12, %r11, 4, 8;
    st.global.u32 [%rd3], %r12; ret; }",
    ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }
    .const .align 4 .b32 c[4] = {1, 2, 3, 4};
    .visible .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>; .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call.uni (y), f, (x); ld.param.b32 %r3, [y]; }
    $T: .branchtargets $A, $B; brx.idx %r2, $T; $A: add.u32 %r3, %r3, 1; $B: ld.const.u32 %r4, [c+4];
    mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.shared.b64 %rd2, [bar]; mbarrier.test_wait.shared.b64 %p1, [bar], %rd2;
    cp.async.ca.shared.global [bar], [%rd1], 4; cp.async.wait_all; barrier.cluster.arrive; barrier.cluster.wait;
    add.cc.u32 %r5, %r3, %r4; addc.u32 %r6, %r5, 0; red.global.add.u32 [%rd1], %r6; exit; }",
    ".visible .entry k(.param .u64 out) { .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .f32 %f<9>; .reg .pred %p<2>; .shared .align 128 .b8 tile[1024];
    ld.param.u64 %rd1, [out]; mov.u32 %r1, tile; mov.u32 %r2, 0; mov.f32 %f1, 0f00000000;
    ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3,%r4}, [%r1];
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5}, {%r3,%r4}, {%r2}, {%f1,%f1,%f1,%f1};
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r3,%r4,%r5,%r6,%r7,%r8,%r9,%r10}, [%r1], 16;
    mov.u64 %rd2, 0x0000001000080000;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd2, %rd2, 1, 1, 1, 0, 0;
    st.global.v4.f32 [%rd1], {%f2,%f3,%f4,%f5}; ret; }",
];

const WORDS: [&str; 40] = [
    "u8",
    "s16",
    "b32",
    "u64",
    "f16",
    "bf16x2",
    "f32",
    "f64",
    "pred",
    "b128",
    "v2",
    "v4",
    "%r1",
    "%rd1",
    "%p1",
    "%f2",
    "%fd1",
    "%h1",
    "0",
    "-1",
    "0xffffffff",
    "tile",
    "out",
    "f",
    "c",
    "bar",
    "sync",
    "shared",
    "global",
    "local",
    "add",
    "mul",
    "ld",
    "st",
    "cvt",
    "mad",
    "hi",
    "wide",
    "%tid.x",
    "0f7FC00000",
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

/// Replaces words and bytes of a text.
fn mutate(text: &str, random: &mut Random) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '%' || c == '_' || c == '$';
    let mut parts: Vec<String> = Vec::new();
    for c in text.chars() {
        match parts.last_mut() {
            Some(last) if is_word(c) && last.chars().next().is_some_and(is_word) => last.push(c),
            _ => parts.push(c.to_string()),
        }
    }
    for _ in 0..1 + random.below(3) {
        let at = random.below(parts.len());
        match random.below(8) {
            0 => parts[at].clear(),
            1 => {
                let other = parts[random.below(parts.len())].clone();
                parts[at] = other;
            }
            2 => parts[at] = char::from(random.below(128) as u8).to_string(),
            _ => {
                // A word, rather than what stands between words.
                let words = (0..parts.len()).filter(|i| parts[*i].starts_with(is_word));
                let words: Vec<usize> = words.collect();
                let at = words[random.below(words.len())];
                parts[at] = WORDS[random.below(WORDS.len())].to_owned();
            }
        }
    }
    parts.concat()
}

#[test]
fn broken_texts() {
    let mut random = Random(7);
    let mut ran = 0;
    for round in 0..3000 {
        let body = mutate(TEXTS[round % TEXTS.len()], &mut random);
        let text = format!(".version 8.6\n.target sm_90a\n.address_size 64\n{body}");
        let space = Arc::new(AddressSpace::new());
        let Ok(module) = LoadedModule::load(&text, &spec(), 0, &space) else {
            continue;
        };
        let out = space.allocate(1024, 256, Kind::Device(0), "out").unwrap();
        for entry in module.entries() {
            let shape = Launch {
                grid: [2, 1, 1],
                block: [64, 1, 1],
                cluster: [1, 1, 1],
                dynamic_shared: 0,
                params: [out.base(); 16]
                    .iter()
                    .flat_map(|p| p.to_le_bytes())
                    .collect(),
                cooperative: false,
            };
            let options = Options {
                threads: 1,
                instruction_limit: 20_000,
                stats: true,
                ..Options::default()
            };
            launch(&module, entry, &shape, &options);
            ran += 1;
        }
    }
    assert!(ran > 100, "{ran}");
}

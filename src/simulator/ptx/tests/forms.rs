//! Instructions: every form of operand, and every kind of instruction that has a form of its own.

use super::*;

/// Each line is in canonical form, so it must come back as it is.
const LINES: &str = "
add.s32 %r1, %r2, %r3;
add.rn.ftz.sat.f32 %f1, %f2, 0f3F800000;
add.f64 %fd1, %fd2, 0dBFF8000000000000;
add.rn.f32x2 %rd1, %rd2, %rd3;
addc.cc.u32 %r1, %r2, 0;
mad.lo.s32 d, a, b, c;
mad24.hi.u32 d, a, b, c;
madc.hi.cc.u32 d, a, b, c;
fma.rn.relu.bf16x2 d, a, b, c;
dp4a.u32.s32 d, a, b, c;
bfind.shiftamt.s64 d, a;
szext.wrap.u32 d, a, b;
bmsk.clamp.b32 d, a, b;
fns.b32 d, mask, 0, 1;
testp.notanumber.f32 p, a;
copysign.f32 d, a, b;
min.ftz.NaN.xorsign.abs.f32 d, a, b, c;
tanh.approx.bf16x2 d, a;
ex2.approx.ftz.f16x2 d, a;
setp.lt.and.s32 p|q, a, b, !r;
setp.eq.f16x2 p|q, a, b;
setp.ne.s32 _|q, a, 0;
setp.ne.s32 p|_, a, 0;
set.gt.bf.f32.s32 d, a, b;
selp.b32 d, 1, 2, !p;
slct.ftz.s32.f32 d, a, b, c;
lop3.b32 d, a, b, c, 128;
lop3.or.b32 d|p, a, b, c, 63, q;
lop3.and.b32 _|p, a, b, c, 63, !q;
shf.r.wrap.b32 d, a, b, 3;
prmt.b32.f4e d, a, b, c;
cnot.b32 d, a;
mov.b32 %r1, %tid.x;
mov.u64 %rd1, %clock64;
mov.b32 %r1, %laneid;
mov.b64 {%r1, %r2}, %rd1;
mov.b64 {_, %r2}, %rd1;
mov.b128 {%rd1, %rd2}, %q;
mov.b32 %r1, {%h1, %h2};
mov.v4.b32 vec, {a, b, c, d};
mov.f32 a, vec.w;
mov.u64 d, variable;
mov.u64 d, variable+16;
mov.u64 d, variable+-16;
mov.u32 d, array[3];
ld.global.b32 d, array[%r1];
ld.global.b32 d, array[%r1+1];
mov.u64 d, function;
mov.u32 d, 32;
mov.pred p, 1;
ld.param.b64 %rd1, [k_param_0];
ld.param.v2.b64 {%rd1, %rd2}, [k_param_0+16];
ld.global.b32 %r1, [%rd1+-4];
ld.local.b32 %r1, [240];
ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
ld.global.L1::evict_last.L2::cache_hint.b32 d, [a], policy;
ld.global.nc.L2::evict_last.L2::256B.v8.f32 {a, b, c, d, e, f, g, _}, [p];
ld.relaxed.gpu.global.u32 d, [a];
ld.mmio.relaxed.sys.global.u32 d, [a];
ld.weak.global.u32 d, [a].unified;
ld.shared::cluster.u32 d, [a];
ld.param::func.b32 d, [a];
ldu.global.b32 d, [a];
st.global.v4.b32 [a], {1, 2, 3, %r1};
st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [a], {b, c}, [m];
st.bulk.weak.shared::cta [a], n, 0;
multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {a, b, c, d}, [p];
multimem.red.release.gpu.global.add.f32 [p], a;
prefetch.global.L2::evict_last [a+64];
prefetch.param.tensormap [map];
prefetchu.L1 [a];
applypriority.global.L2::evict_normal [a], 128;
discard.global.L2 [a], 128;
createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 p, 0f3F800000;
createpolicy.range.global.L2::evict_last.b64 p, [a], 64, 128;
isspacep.shared::cta p, a;
cvta.to.global.u64 d, a;
cvt.rn.satfinite.relu.e4m3x2.f32 d, a, b;
cvt.rs.relu.satfinite.e2m1x4.f32 d, {a, b, e, f}, rbits;
cvt.rz.satfinite.ue8m0x2.bf16x2 d, a;
cvt.pack.sat.s8.s32.b32 d, a, b, c;
mapa.shared::cluster.u32 d, a, b;
getctarank.u64 d, a;
cp.async.cg.shared.global.L2::128B [a], [b], 16, 8;
cp.async.ca.shared::cta.global [a], [b], 4, p;
cp.async.commit_group;
cp.async.wait_group 1;
cp.async.mbarrier.arrive.noinc.shared.b64 [m];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [a], [b], n, [m], mask;
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [a], [b], n, policy, mask;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [a], [b], n;
cp.async.bulk.prefetch.L2.global [a], n;
cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [a], [t, {c0}], [m];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.cta_group::2 [a+128], [t, {c0, 0}], [m], mask;
cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [a], [t, {c0, c1, c2, c3}], [m], {o0, o1};
cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [t, {c0, c1, c2, c3, c4}], [a];
cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [t, {c, r0, r1, r2, r3}], [a];
cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [t, {c0, c1}], [a];
cp.async.bulk.prefetch.tensor.3d.L2.global.tile [t, {c0, c1, c2}];
tensormap.replace.tile.global_address.global.b1024.b64 [t], a;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [t], 1, a;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [a], [b], 128;
fence.proxy.tensormap::generic.acquire.gpu [a], 128;
fence.mbarrier_init.release.cluster;
fence.proxy.async.shared::cta;
fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;
fence.acq_rel.gpu;
membar.sys;
atom.global.add.u32 d, [a], 1;
atom.acq_rel.gpu.global.cas.b32 d, [a], b, c;
atom.add.noftz.global.v2.bf16x2 {a, b}, [p], {c, d};
atom.shared.exch.b128 d, [a], b;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [a], b, [m];
red.global.add.v4.f32 [a], {b, c, d, e};
shfl.sync.bfly.b32 d, a, 16, 31, -1;
shfl.sync.idx.b32 d|p, a, b, 31, mask;
vote.sync.ballot.b32 d, p, -1;
vote.sync.any.pred p, !q, 65535;
match.all.sync.b32 d|p, a, mask;
activemask.b32 d;
redux.sync.min.abs.NaN.f32 d, a, mask;
elect.sync _|p, -1;
elect.sync d|p, mask;
bar.sync 0;
bar.sync a, b;
bar.red.popc.u32 d, 0, p;
bar.red.and.pred p, 1, 64, !q;
barrier.cta.arrive.aligned 2, 64;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire;
bar.warp.sync -1;
mbarrier.init.shared::cta.b64 [m], 1;
mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [m], 4096;
mbarrier.arrive.noComplete.b64 state, [m], 1;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [m], 1;
mbarrier.test_wait.shared.b64 p, [m], state;
mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [m], 0, 10000000;
mbarrier.pending_count.b64 d, state;
griddepcontrol.launch_dependents;
nanosleep.u32 100;
setmaxnreg.inc.sync.aligned.u32 240;
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [a], [m];
clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, h;
clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, h;
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a, b, c, d, e, f, g, h}, [p], 16;
wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {a}, {b}, {c}, {d};
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [p+64], {a, b}, stride;
mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {a}, {b}, {c}, {d}, s, {0, 1}, t, {0, 1};
mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 {a, b}, {c}, {d}, {e}, m, 1;
ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {a, b, c, d}, [p+16];
ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b6x16_p32 {a, b}, [p];
stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [p], {a};
movmatrix.sync.aligned.m8n8.trans.b16 d, a;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {a, b, c, d}, descA, descB, p, 1, -1, 0, 1;
wgmma.mma_async.sp.sync.aligned.m64n8k32.f16.f16.f16 {a, b}, {e, f, g, h}, descB, m, 0, p, 1, 1, 0;
wgmma.wait_group.sync.aligned 0;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [a], 128;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
tcgen05.ld.sync.aligned.16x64b.x2.pack::16b.b32 {a, b}, [t];
tcgen05.ld.red.sync.aligned.32x32b.x2.max.abs.f32 {a, b}, r, [t];
tcgen05.st.sync.aligned.16x32bx2.x1.unpack::16b.b32 [t], 16, {a};
tcgen05.mma.cta_group::1.kind::f16.collector::a::fill [d], descA, descB, idesc, {m0, m1, m2, m3}, p, 3;
tcgen05.mma.ws.sp.cta_group::1.kind::i8.collector::b0::lastuse [d], [a], descB, [sp], idesc, !p, zero;
tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [m], mask;
tcgen05.cp.cta_group::1.64x128b.warpx2::02_13.b8x16.b4x16_p64 [t], desc;
tcgen05.fence::before_thread_sync;
tcgen05.wait::ld.sync.aligned;
bra L;
@p bra.uni L;
@!%p1 bra L;
brx.idx.uni %r1, table;
call f;
call.uni f, (a, 1, 0d3FF0000000000000);
call.uni (r), f, (a, b), table;
call (r, s), %rd1, (a), proto;
call (_), f, ();
ret.uni;
exit;
trap;
brkpt;
pmevent.mask 7;
alloca.u64 p, n, 16;
stacksave.u64 d;
stackrestore.u64 d;
tex.2d.v4.f32.s32 {a, b, c, d}, [t, {x, y}];
tex.3d.v4.s32.f32 {a, b, c, _}|p, [t, s, {x, y, z, w}], {o0, o1, o2, o3}, depth;
tex.level.a2d.v4.f16x2.f32 {a, b, c, d}|p, [%rd1, {i, x, y, y}], lod, {dx, dy}, depth;
tld4.r.2d.v4.f32.f32 {a, b, c, d}|p, [t, s, {x, y}];
txq.level.width.b32 d, [t], lod;
suq.width.b32 d, [surf];
istypep.texref p, variable;
suld.b.2d.v2.b64.clamp {a, b}, [surf, {x, y}];
sust.p.1d.b32.trap [surf+8, {x}], {a};
sured.b.add.1d.u64.zero [surf, {x}], a;
vadd4.u32.u32.u32.add d.b3210, a.b7654, b.b0123, c;
vadd2.s32.s32.s32 d.h10, a.h32, b, c;
vmad.s32.s32.u32.shr7 d, -a.h1, b.b3, -c;
vset.u32.u32.lt.max d, a.b0, b.b1, c;
";

#[test]
fn instructions_come_back_as_they_were() {
    let lines: Vec<&str> = LINES.lines().filter(|line| !line.is_empty()).collect();
    with_body(LINES, |body| {
        assert_eq!(body.len(), lines.len());
        for (i, (statement, line)) in body.iter().zip(&lines).enumerate() {
            let Statement::Instr(instr) = statement else {
                panic!("{line} is no instruction")
            };
            assert_eq!(print_instr(instr), *line);
            // Three lines of header, two of the entry, one empty line before the first.
            assert_eq!(instr.line as usize, i + 7, "{line}");
        }
    });
}

#[test]
fn parts_of_an_instruction_stand_where_they_should() {
    with_body("@!p mad.lo.s32\n d, %tid.x, -3, c;", |body| {
        let Statement::Instr(instr) = &body[0] else {
            panic!()
        };
        assert_eq!(
            instr.guard,
            Some(Guard {
                negated: true,
                register: "p"
            })
        );
        assert_eq!((instr.line, instr.opcode), (6, "mad"));
        assert_eq!(instr.modifiers.as_slice(), ["lo", "s32"]);
        let name = |name, member| Operand::Name(Symbol { name, member });
        let wanted = [
            name("d", None),
            name("%tid", Some(Member::X)),
            Operand::Int(-3),
            name("c", None),
        ];
        assert_eq!(instr.operands, wanted);
    });
    with_body("ld.global.L1::evict_last.b8 d, [a+1+2*3, {x}];", |body| {
        let Statement::Instr(instr) = &body[0] else {
            panic!()
        };
        assert_eq!(
            instr.modifiers.as_slice(),
            ["global", "L1::evict_last", "b8"]
        );
        let Operand::Address(address) = &instr.operands[1] else {
            panic!()
        };
        assert_eq!(
            address.base,
            Base::Name(Symbol {
                name: "a",
                member: None
            })
        );
        assert_eq!(address.offset, 7);
        assert!(matches!(&address.extra[..], [Operand::Vector(v)] if v.len() == 1));
    });
}

#[test]
fn other_spellings_mean_the_same() {
    let pairs = [
        ("mov .b32 a , vec.r ;", "mov.b32 a, vec.x;"),
        ("mov.b32 a, vec.g;", "mov.b32 a, vec.y;"),
        ("mov.b32 a, vec.b;", "mov.b32 a, vec.z;"),
        ("mov.b32 a, vec.a;", "mov.b32 a, vec.w;"),
        ("mov.b32 a/* x */,// y\n 0x10;", "mov.b32 a, 16;"),
        ("@ ! p bra L ;", "@!p bra L;"),
        ("mov.f32 a, 0F3f800000;", "mov.f32 a, 0f3F800000;"),
        ("mov.f64 a, 1.5;", "mov.f64 a, 0d3FF8000000000000;"),
        ("mov.b32 a, WARP_SZ;", "mov.b32 a, 32;"),
        ("call f, ((1));", "call f, (1);"),
        ("ld.b32 a, b [ 1 ];", "ld.b32 a, b[1];"),
        ("ld.b32 a, [b + 4 + 4];", "ld.b32 a, [b+8];"),
        ("ld.b32 a, [8+8];", "ld.b32 a, [16];"),
        ("ld.b32 a, [WARP_SZ];", "ld.b32 a, [32];"),
    ];
    for (text, wanted) in pairs {
        with_body(text, |body| {
            let [Statement::Instr(instr)] = body else {
                panic!("{text}")
            };
            assert_eq!(print_instr(instr), wanted);
        });
    }
}

#[test]
fn statements_of_every_kind() {
    let text = "\
.reg .pred %p<3>, q;
.reg .v4 .f32 v;
.reg .b32 %r<0>;
.local .align 8 .b8 depot[16];
.shared .b32 a, b[2];
.param .align 4 .b8 p[12];
top: nested:
{ .reg .b16 x; { inner: ret; } }
table: .branchtargets top, nested;
who: .calltargets f, g;
proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 4 .b8 _[12]) .noreturn;
bare: .callprototype _;
.loc 1 2 3
.loc 1 20 30, function_name $L__info, inlined_at 1 2 3
.pragma \"nounroll\";
.section .debug_loc { .b8 1, 2
 .b64 a+4 label: }
@@DWARF .byte 0x01, anything ; goes {
ret;";
    with_body(text, |body| {
        let register = |line, ty, vector, name, count| Statement::Registers {
            line,
            ty,
            vector,
            name,
            count,
        };
        assert_eq!(body[0], register(6, Type::Pred, 1, "%p", Some(3)));
        assert_eq!(body[1], register(6, Type::Pred, 1, "q", None));
        assert_eq!(body[2], register(7, Type::F32, 4, "v", None));
        assert_eq!(body[3], register(8, Type::B32, 1, "%r", Some(0)));
        let variables: Vec<_> = body[4..8]
            .iter()
            .map(|s| match s {
                Statement::Variable(v) => (v.name, v.space, v.align, v.ty, v.dims.clone()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            variables,
            [
                ("depot", Space::Local, Some(8), Type::B8, vec![Some(16)]),
                ("a", Space::Shared, None, Type::B32, vec![]),
                ("b", Space::Shared, None, Type::B32, vec![Some(2)]),
                ("p", Space::Param, Some(4), Type::B8, vec![Some(12)]),
            ]
        );
        assert_eq!(
            body[8],
            Statement::Label {
                line: 12,
                name: "top"
            }
        );
        assert_eq!(
            body[9],
            Statement::Label {
                line: 12,
                name: "nested"
            }
        );
        let Statement::Block(block) = &body[10] else {
            panic!()
        };
        assert_eq!(block[0], register(13, Type::B16, 1, "x", None));
        assert!(matches!(&block[1], Statement::Block(inner) if inner.len() == 2));
        let targets = |line, label, calls, names| Statement::Targets {
            line,
            label,
            calls,
            names,
        };
        assert_eq!(body[11], targets(14, "table", false, vec!["top", "nested"]));
        assert_eq!(body[12], targets(15, "who", true, vec!["f", "g"]));
        let Statement::Prototype { label, signature } = &body[13] else {
            panic!()
        };
        assert_eq!((*label, signature.name, signature.line), ("proto", "_", 16));
        assert_eq!((signature.returns.len(), signature.params.len()), (1, 2));
        assert_eq!(signature.params[1].dims, [Some(12)]);
        assert!(signature.directives.no_return && !signature.is_entry);
        let Statement::Prototype { label, signature } = &body[14] else {
            panic!()
        };
        assert_eq!((*label, signature.params.len()), ("bare", 0));
        let loc = |line, column, function, inlined_at| {
            Statement::Loc(Loc {
                file: 1,
                line,
                column,
                function,
                inlined_at,
            })
        };
        assert_eq!(body[15], loc(2, 3, None, None));
        assert_eq!(body[16], loc(20, 30, Some("$L__info"), Some((1, 2, 3))));
        assert_eq!(
            body[17],
            Statement::Pragma {
                line: 20,
                text: "nounroll"
            }
        );
        assert!(matches!(&body[18], Statement::Instr(i) if i.opcode == "ret" && i.line == 24));
        assert_eq!(body.len(), 19);
    });
}

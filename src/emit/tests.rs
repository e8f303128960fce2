//! Kernels of small modules, run on this machine and compared with the evaluator.

use crate::base::Id;
use crate::emit::KernelRequest;
use crate::emit::Step;
use crate::emit::select::emit_kernel;
use crate::emit::workitems;
use crate::eval::evaluate;
use crate::executable::AllocId;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::front::hlo_text;
use crate::hlo::Op;
use crate::kernel::TileDot;
use crate::kernel::check::check;
use crate::literal::ArrayLiteral;
use crate::literal::Literal;
use crate::literal::compare::Tolerance;
use crate::literal::compare::compare;
use crate::literal::device_form::from_device;
use crate::literal::device_form::to_device;
use crate::llvm::testing;
use crate::shape::ArrayShape;
use crate::shape::Layout;
use crate::shape::PrimitiveType;
use crate::target::CapabilitySuffix;
use crate::target::Target;

/// Small numbers of any type that differ from place to place.
fn input(shape: &ArrayShape, salt: u64) -> ArrayLiteral {
    let mut out = ArrayLiteral::zeros(shape.clone());
    let width = shape.ty.byte_width();
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as i64 % 17 - 8
    };
    for chunk in out.bytes_mut().chunks_mut(width) {
        let n = next();
        let bytes = match shape.ty {
            PrimitiveType::F32 => (n as f32 * 0.375).to_le_bytes().to_vec(),
            PrimitiveType::F64 => (n as f64 * 0.375).to_le_bytes().to_vec(),
            PrimitiveType::BF16 => half::bf16::from_f32(n as f32).to_le_bytes().to_vec(),
            PrimitiveType::C64 => [(n as f32).to_le_bytes(), 0.5f32.to_le_bytes()].concat(),
            PrimitiveType::Pred => vec![u8::from(n > 0)],
            PrimitiveType::S4 => vec![((n as i8) >> 1) as u8],
            _ => n.to_le_bytes()[..width].to_vec(),
        };
        chunk.copy_from_slice(&bytes);
    }
    out
}

fn row_major(shape: &ArrayShape) -> ArrayShape {
    ArrayShape {
        layout: Some(Layout::row_major(shape.rank())),
        ..shape.clone()
    }
}

/// Emits the root instruction of a module whose operands are its parameters, checks and (on a CPU)
/// runs it, and compares with the evaluator.
fn agree_on(text: &str, target: &Target) {
    let module = hlo_text::parse(text).expect("the module parses");
    let instr = module.entry_comp().root;
    let root = module.instr(instr);
    let inputs: Vec<ArrayLiteral> = module
        .entry_comp()
        .params
        .iter()
        .enumerate()
        .map(|(i, &p)| {
            let shape = module.shape(p).as_array().expect("an array parameter");
            input(
                &ArrayShape {
                    layout: None,
                    ..shape.clone()
                },
                i as u64 + 1,
            )
        })
        .collect();
    let values: Vec<Literal> = inputs.iter().cloned().map(Literal::Array).collect();
    let wanted = evaluate(&module, &values).expect("the module evaluates");
    let operand = |i: usize| match module.instr(root.operands[i]).op {
        Op::Parameter { number, .. } => number,
        _ => panic!("operands are parameters"),
    };
    let mut buffers: Vec<Vec<u8>> = Vec::new();
    let mut place = |bytes: Vec<u8>, shape: &ArrayShape| {
        let slice = Slice {
            alloc: AllocId::from_index(buffers.len()),
            offset: 0,
            size: bytes.len() as u64,
        };
        buffers.push(bytes);
        ShapedSlice {
            slice,
            shape: row_major(shape),
        }
    };
    let args: Vec<ShapedSlice> = (0..root.operands.len())
        .map(|i| {
            let literal = &inputs[operand(i)];
            place(to_device(literal, literal.shape()), literal.shape())
        })
        .collect();
    let shapes: Vec<ArrayShape> = root
        .shape
        .leaves()
        .iter()
        .filter_map(|(_, s)| s.as_array().cloned())
        .collect();
    let results: Vec<ShapedSlice> = shapes
        .iter()
        .map(|s| place(vec![0xa5; s.byte_size()], s))
        .collect();
    let bytes = crate::analysis::scratch::bytes(&module, instr, target) as usize;
    let scratch = (bytes > 0).then(|| {
        let shape = ArrayShape::new(PrimitiveType::U8, [bytes]);
        place(vec![0; bytes], &shape)
    });
    let emitted = emit_kernel(&KernelRequest {
        module: &module,
        instr,
        args,
        results: results.clone(),
        scratch,
        target,
        name: "kernel".to_owned(),
    })
    .expect("the instruction is emitted");
    for step in &emitted.steps {
        match step {
            Step::Copy(copy) => {
                let from = copy.source.slice.alloc.index();
                buffers[copy.destination.slice.alloc.index()] = buffers[from].clone();
            }
            Step::Memset { .. } => panic!("no test wants a memset"),
            Step::Kernel(kernel) => {
                let found = check(&kernel.kernel);
                assert!(found.is_empty(), "{}", found[0]);
                run(kernel, target, &mut buffers);
            }
        }
    }
    let wanted = match &wanted {
        Literal::Tuple(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    for (i, result) in results.iter().enumerate() {
        let shape = ArrayShape {
            layout: None,
            ..shapes[i].clone()
        };
        let got = from_device(&buffers[result.slice.alloc.index()], &shape).expect("it fits");
        let tolerance = Tolerance {
            rtol: 1e-5,
            atol: 1e-5,
            ..Tolerance::default()
        };
        let wanted = wanted[i].as_array().expect("an array");
        let found = compare(&got, wanted, &tolerance).expect("equal shapes");
        assert_eq!(found.mismatches, 0, "result {i}: {}", found.describe());
    }
}

/// Runs a kernel on parts of the buffers.
fn run(kernel: &crate::emit::EmittedKernel, target: &Target, buffers: &mut [Vec<u8>]) {
    let slices: Vec<Slice> = kernel
        .args
        .iter()
        .chain(&kernel.results)
        .map(|s| s.slice)
        .collect();
    let part = |s: &Slice| s.offset as usize..(s.offset + s.size) as usize;
    let mut memory: Vec<Vec<u8>> = slices
        .iter()
        .map(|s| buffers[s.alloc.index()][part(s)].to_vec())
        .collect();
    if target.cpu().is_some() {
        testing::run(&kernel.kernel, target, &mut memory);
    } else {
        workitems::run(&kernel.kernel, &mut memory);
    }
    for (slice, bytes) in slices.iter().zip(memory).skip(kernel.args.len()) {
        buffers[slice.alloc.index()][part(slice)].copy_from_slice(&bytes);
    }
}

/// On two CPUs with wide and narrow vectors, and on a GPU.
fn agree(text: &str) {
    agree_on(text, &testing::x86_v3());
    agree_on(text, &testing::x86_v1());
    agree_on(text, &testing::gpu(8, 0, CapabilitySuffix::None, 80));
}

#[test]
fn rows_with_a_broadcast_and_an_odd_tail() {
    agree(
        "HloModule m
body {
  x = f32[5,19] parameter(0)
  y = f32[19] parameter(1)
  z = f32[5,19] broadcast(y), dimensions={1}
  p = f32[5,19] multiply(x, z)
  c = f32[] constant(2)
  d = f32[5,19] broadcast(c), dimensions={}
  ROOT s = f32[5,19] add(p, d)
}
ENTRY e {
  x = f32[5,19] parameter(0)
  y = f32[19] parameter(1)
  ROOT f = f32[5,19] fusion(x, y), kind=kLoop, calls=body
}",
    );
}

#[test]
fn movement_ops_in_one_body() {
    agree(
        "HloModule m
body {
  x = s32[4,6] parameter(0)
  zero = s32[] constant(0)
  p = s32[6,9] pad(x, zero), padding=1_1x2_1
  r = s32[6,9] reverse(p), dimensions={1}
  s = s32[5,8] slice(r), slice={[1:6], [0:8]}
  q = s32[8,5] reshape(s)
  t = s32[5,8] transpose(q), dimensions={1,0}
  i = s32[5,8] iota(), iota_dimension=1
  ROOT a = s32[5,8] add(t, i)
}
ENTRY e {
  x = s32[4,6] parameter(0)
  ROOT f = s32[5,8] fusion(x), kind=kLoop, calls=body
}",
    );
}

#[test]
fn packed_results_and_a_partial_byte() {
    agree("HloModule m\nENTRY e { x = s4[3,7] parameter(0)\n ROOT n = s4[3,7] negate(x) }");
}

#[test]
fn results_that_share_bytes_differently() {
    // Of the last elements, fewer than a byte of the narrowest holds, wider ones fill several.
    for size in [3, 5, 7] {
        agree(&format!(
            "HloModule m
body {{
  x = u1[{size}] parameter(0)
  y = u2[{size}] parameter(1)
  z = s4[{size}] parameter(2)
  a = u1[{size}] not(x)
  b = u2[{size}] not(y)
  c = s4[{size}] not(z)
  w = s8[{size}] convert(z)
  d = s8[{size}] not(w)
  ROOT t = (u1[{size}], u2[{size}], s4[{size}], s8[{size}]) tuple(a, b, c, d)
}}

ENTRY e {{
  x = u1[{size}] parameter(0)
  y = u2[{size}] parameter(1)
  z = s4[{size}] parameter(2)
  ROOT f = (u1[{size}], u2[{size}], s4[{size}], s8[{size}]) fusion(x, y, z), kind=kLoop, calls=body
}}"
        ));
    }
}

const SUM: &str = "sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT s = f32[] add(a, b) }";

#[test]
fn rows_and_columns_are_reduced() {
    for (dims, result) in [
        ("{1}", "f32[7,3]"),
        ("{0,2}", "f32[37]"),
        ("{0}", "f32[37,3]"),
    ] {
        agree(&format!(
            "HloModule m\n{SUM}
ENTRY e {{ x = f32[7,37,3] parameter(0)
 i = f32[] parameter(1)
 ROOT r = {result} reduce(x, i), dimensions={dims}, to_apply=sum }}"
        ));
    }
    agree(&format!(
        "HloModule m\n{SUM}
ENTRY e {{ x = f32[90,3,37] parameter(0)
 i = f32[] parameter(1)
 ROOT r = f32[37] reduce(x, i), dimensions={{0,1}}, to_apply=sum }}"
    ));
    agree(&format!(
        "HloModule m\n{SUM}
ENTRY e {{ x = f32[3,131] parameter(0)
 i = f32[] parameter(1)
 ROOT r = f32[3] reduce(x, i), dimensions={{1}}, to_apply=sum }}"
    ));
}

#[test]
fn long_rows_take_a_block_each() {
    agree(&format!(
        "HloModule m\n{SUM}
ENTRY e {{ x = f32[2,2051] parameter(0)
 i = f32[] parameter(1)
 ROOT r = f32[2] reduce(x, i), dimensions={{1}}, to_apply=sum }}"
    ));
}

#[test]
fn a_variadic_reduce_keeps_its_pairs() {
    agree(
        "HloModule m
pick { a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 g = pred[] compare(a, b), direction=GT
 e = pred[] compare(a, b), direction=EQ
 l = pred[] compare(i, j), direction=LT
 t = pred[] and(e, l)
 w = pred[] or(g, t)
 v = f32[] select(w, a, b)
 k = s32[] select(w, i, j)
 ROOT r = (f32[], s32[]) tuple(v, k) }
ENTRY e { x = f32[4,45] parameter(0)
 n = s32[4,45] parameter(1)
 a = f32[] parameter(2)
 b = s32[] parameter(3)
 ROOT r = (f32[4], s32[4]) reduce(x, n, a, b), dimensions={1}, to_apply=pick }",
    );
}

#[test]
fn tiles_turn_a_matrix() {
    agree_on(
        "HloModule m\nENTRY e { x = f32[133,150] parameter(0)\n ROOT t = f32[150,133] transpose(x), dimensions={1,0} }",
        &testing::x86_v3(),
    );
    agree(
        "HloModule m\nENTRY e { x = f32[19,3,23] parameter(0)\n ROOT t = f32[23,3,19] transpose(x), dimensions={2,1,0} }",
    );
}

#[test]
fn pieces_and_updates_are_written_in_their_place() {
    agree(
        "HloModule m\nENTRY e { x = f32[3,1] parameter(0)\n y = f32[3,10] parameter(1)\n ROOT c = f32[3,11] concatenate(x, y), dimensions={1} }",
    );
    agree(
        "HloModule m\nENTRY e { x = f32[6,9] parameter(0)\n u = f32[2,9] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n ROOT d = f32[6,9] dynamic-update-slice(x, u, i, j) }",
    );
}

#[test]
fn sorting_is_stable_and_takes_payloads() {
    agree(
        "HloModule m
less { a = s32[] parameter(0)
 b = s32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e { k = s32[3,70] parameter(0)
 v = f32[3,70] parameter(1)
 ROOT s = (s32[3,70], f32[3,70]) sort(k, v), dimensions={1}, is_stable=true, to_apply=less }",
    );
}

#[test]
fn long_rows_are_sorted_outside_shared_memory() {
    agree(
        "HloModule m
more { a = s16[] parameter(0)
 b = s16[] parameter(1)
 c = s64[] parameter(2)
 d = s64[] parameter(3)
 ROOT l = pred[] compare(a, b), direction=GT }
ENTRY e { k = s16[3001] parameter(0)
 v = s64[3001] parameter(1)
 ROOT s = (s16[3001], s64[3001]) sort(k, v), dimensions={0}, is_stable=true, to_apply=more }",
    );
}

#[test]
fn the_best_few_of_each_row() {
    for largest in [true, false] {
        agree_on(
            &format!(
                "HloModule m
ENTRY e {{ x = f32[3,91] parameter(0)
 ROOT t = (f32[3,5], s32[3,5]) topk(x), k=5, largest={largest} }}"
            ),
            &testing::x86_v3(),
        );
    }
}

#[test]
fn scattered_rows_are_added_in_place() {
    agree(&format!(
        "HloModule m\n{SUM}
ENTRY e {{ x = f32[9,13] parameter(0)
 i = s32[5,1] parameter(1)
 u = f32[5,13] parameter(2)
 ROOT s = f32[9,13] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=sum }}"
    ));
}

#[test]
fn windows_pool_and_accumulate() {
    agree(&format!(
        "HloModule m\n{SUM}
ENTRY e {{ x = f32[2,9,8] parameter(0)
 i = f32[] parameter(1)
 ROOT w = f32[2,4,8] reduce-window(x, i), window={{size=1x3x1 stride=1x2x1}}, to_apply=sum }}"
    ));
    for pad in ["0_0x8_0", "0_0x0_8"] {
        agree(&format!(
            "HloModule m\n{SUM}
ENTRY e {{ x = f32[4,9] parameter(0)
 i = f32[] parameter(1)
 ROOT w = f32[4,9] reduce-window(x, i), window={{size=1x9 pad={pad}}}, to_apply=sum }}"
        ));
    }
}

#[test]
fn products_and_solves() {
    agree(
        "HloModule m\nENTRY e { x = f32[3,5,7] parameter(0)\n y = f32[3,7,9] parameter(1)\n ROOT d = f32[3,5,9] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} }",
    );
}

#[test]
fn what_cannot_be_emitted_is_said() {
    let module = hlo_text::parse(
        "HloModule m\nENTRY e { x = c64[8] parameter(0)\n ROOT f = c64[8] fft(x), fft_type=FFT, fft_length={8} }",
    )
    .expect("the module parses");
    let instr = module.entry_comp().root;
    let shape = module.shape(instr).as_array().expect("an array").clone();
    let slice = |i: usize| ShapedSlice {
        slice: Slice {
            alloc: AllocId::from_index(i),
            offset: 0,
            size: 64,
        },
        shape: row_major(&shape),
    };
    let target = testing::x86_v3();
    let error = emit_kernel(&KernelRequest {
        module: &module,
        instr,
        args: vec![slice(0)],
        results: vec![slice(1)],
        scratch: None,
        target: &target,
        name: "kernel".to_owned(),
    })
    .expect_err("there is no emitter for it");
    let text = error.to_string();
    assert!(
        text.contains("no code for `fft` of (c64) giving c64 on x86-64-v3"),
        "{text}"
    );
}

/// What tiles multiply in the kernels of a product of these operands and result.
fn tile_dots([lhs, rhs, result]: [&str; 3], attributes: &str, target: &Target) -> Vec<TileDot> {
    let text = format!(
        "HloModule m\nENTRY e {{\n  x = {lhs} parameter(0)\n  y = {rhs} parameter(1)\n  \
         ROOT d = {result} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{attributes}\n}}"
    );
    let module = hlo_text::parse(&text).expect("the module parses");
    let instr = module.entry_comp().root;
    let mut count = 0;
    let mut place = |shape: &ArrayShape| {
        count += 1;
        let slice = Slice {
            alloc: AllocId::from_index(count),
            offset: 0,
            size: shape.byte_size() as u64,
        };
        ShapedSlice {
            slice,
            shape: row_major(shape),
        }
    };
    let operands = module.instr(instr).operands.iter();
    let array = |&id| module.shape(id).as_array().expect("an array").clone();
    let args: Vec<ShapedSlice> = operands.map(array).map(|shape| place(&shape)).collect();
    let results = vec![place(&array(&instr))];
    let bytes = crate::analysis::scratch::bytes(&module, instr, target) as usize;
    let scratch = (bytes > 0).then(|| place(&ArrayShape::new(PrimitiveType::U8, [bytes])));
    let emitted = emit_kernel(&KernelRequest {
        module: &module,
        instr,
        args,
        results,
        scratch,
        target,
        name: "kernel".to_owned(),
    })
    .expect("the instruction is emitted");
    let kernels = emitted.steps.iter().filter_map(|step| match step {
        Step::Kernel(kernel) => Some(&kernel.kernel),
        _ => None,
    });
    let mut dots = Vec::new();
    for kernel in kernels {
        assert!(check(kernel).is_empty(), "{}", check(kernel)[0]);
        testing::object(std::slice::from_ref(kernel), target);
        dots.extend(kernel.tile_dots());
    }
    dots
}

#[test]
fn tiles_multiply_what_they_are_made_for() {
    let amx = testing::x86_amx();
    let bytes = |left_signed, right_signed| TileDot::Bytes {
        left_signed,
        right_signed,
    };
    let of = |types: [&str; 3], attributes, target: &Target| {
        let [lhs, rhs, result] = types;
        let shapes = [
            format!("{lhs}[70,130]"),
            format!("{rhs}[130,50]"),
            format!("{result}[70,50]"),
        ];
        let [lhs, rhs, result] = shapes.each_ref().map(String::as_str);
        tile_dots([lhs, rhs, result], attributes, target)
    };
    for (types, kind) in [
        (["bf16", "bf16", "bf16"], TileDot::Bf16),
        (["bf16", "bf16", "f32"], TileDot::Bf16),
        (["s8", "s8", "s32"], bytes(true, true)),
        (["s8", "u8", "s32"], bytes(true, false)),
        (["u8", "s4", "s32"], bytes(false, true)),
        (["u8", "u8", "u32"], bytes(false, false)),
    ] {
        assert_eq!(of(types, "", &amx), [kind], "{types:?}");
        assert!(of(types, "", &testing::x86_v4()).is_empty());
    }
    let floats = ["f32", "f32", "f32"];
    assert!(of(floats, "", &amx).is_empty());
    let rounded = ", algorithm=dot_bf16_bf16_f32";
    assert_eq!(of(floats, rounded, &amx), [TileDot::Bf16]);
    for other in [
        ["f16", "f16", "f32"],
        ["s16", "s8", "s32"],
        ["s8", "s8", "s64"],
    ] {
        assert!(of(other, "", &amx).is_empty(), "{other:?}");
    }
    let small = ["bf16[9,32]", "bf16[32,40]", "bf16[9,40]"];
    assert!(tile_dots(small, "", &amx).is_empty());
}

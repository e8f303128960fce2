//! From a request to a kernel under construction: parameters, leaves, results.
//!
//! A lone op is a fusion of itself: its operands are the leaves. A parameter is `noalias` unless a
//! result shares its bytes.

use std::collections::BTreeMap;

use crate::analysis::scratch;
use crate::base::Id;
use crate::base::Result;
use crate::emit::elemental::Elemental;
use crate::emit::elemental::Source;
use crate::emit::elemental::array;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::value;
use crate::executable::KernelId;
use crate::executable::Launch;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::kernel::BufId;
use crate::kernel::Buffer;
use crate::kernel::KernelBuilder;
use crate::kernel::Space;
use crate::shape::ArrayShape;
use crate::shape::Layout;
use crate::shape::PrimitiveType;
use crate::target::GpuSpec;
use crate::target::Target;

/// A kernel under construction.
pub struct Setup<'a> {
    /// The builder, with a buffer for each argument and result.
    pub b: KernelBuilder,
    /// What the kernel computes.
    pub body: Body<'a>,
}

/// Which of a request's kernels is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The only one.
    Whole,
    /// Writes the scratch memory and no result.
    FillsScratch,
    /// Reads the scratch memory, as elements of that type, and writes the results.
    ReadsScratch(PrimitiveType),
}

/// What a kernel computes, and where from and to.
pub struct Body<'a> {
    /// Elements of the body.
    pub el: Elemental<'a>,
    /// The instructions whose values are the results, in order; a tuple-shaped one (a variadic
    /// reduce, a sort) stands for as many results as it has leaves.
    pub roots: Vec<InstrId>,
    /// The arrays to be written, in order.
    pub outputs: Vec<Source>,
    /// Bytes to work with.
    pub scratch: Option<ShapedSlice>,
    /// The scratch memory that another kernel has filled.
    pub filled: Option<BufId>,
    args: Vec<ShapedSlice>,
    arg_buffers: Vec<BufId>,
    results: Vec<ShapedSlice>,
}

/// The instruction that shapes a request's loops: the root of a fusion, or the lone op.
pub fn root_of(request: &KernelRequest<'_>) -> InstrId {
    match request.module.instr(request.instr).op {
        Op::Fusion { body, .. } => request.module.comp(body).root,
        _ => request.instr,
    }
}

/// The instructions whose values are the results of a request.
pub fn roots_of(request: &KernelRequest<'_>) -> Vec<InstrId> {
    let root = root_of(request);
    let instr = request.module.instr(root);
    match instr.op {
        Op::Tuple if root != request.instr => instr.operands.to_vec(),
        _ => vec![root],
    }
}

/// Leaves of the body: each instruction that is read from memory, with its arrays.
fn leaves(request: &KernelRequest<'_>) -> Vec<(InstrId, Vec<ShapedSlice>)> {
    let module = request.module;
    let instr = module.instr(request.instr);
    let mut rest = request.args.as_slice();
    let mut out = Vec::new();
    for (i, &operand) in instr.operands.iter().enumerate() {
        let shape = &module.instr(operand).shape;
        let count = shape
            .leaves()
            .iter()
            .filter(|(_, s)| s.as_array().is_some())
            .count();
        let (own, tail) = rest.split_at(count.min(rest.len()));
        rest = tail;
        let leaf = match instr.op {
            Op::Fusion { body, .. } => module.comp(body).params[i],
            _ => operand,
        };
        out.push((leaf, own.to_vec()));
    }
    out
}

/// The alignment of a slice's first byte.
fn alignment(target: &Target, slice: &Slice) -> u64 {
    let base = target
        .buffer_alignment
        .min(target.parameter_alignment)
        .max(1);
    if slice.offset == 0 {
        return base;
    }
    base.min(1 << slice.offset.trailing_zeros().min(12))
}

/// Whether a GPU has few `f64` units: all but the first of each data centre generation.
fn slow_double(gpu: &GpuSpec) -> bool {
    let (major, minor) = (gpu.capability.major, gpu.capability.minor);
    !(minor == 0 && (6..12).contains(&major))
}

impl<'a> Setup<'a> {
    /// Declares the parameters of a request's kernel.
    pub fn new(request: &KernelRequest<'a>) -> Self {
        Self::named(request, &request.name)
    }

    /// The same under another name, for a second kernel of a request.
    pub fn named(request: &KernelRequest<'a>, name: &str) -> Self {
        Self::part(request, name, Part::Whole)
    }

    /// One of several kernels of a request, with the buffers that part touches.
    pub fn part(request: &KernelRequest<'a>, name: &str, part: Part) -> Self {
        let mut b = KernelBuilder::new(name);
        b.set_slow_double(request.target.gpu().is_some_and(slow_double));
        let mut args: Vec<ShapedSlice> = Vec::new();
        let mut known: Vec<BufId> = Vec::new();
        let mut sources = BTreeMap::new();
        let results_here = if part == Part::FillsScratch {
            &[]
        } else {
            request.results.as_slice()
        };
        let scratch_slice = request.scratch.iter();
        let written: Vec<Slice> = results_here
            .iter()
            .chain(scratch_slice)
            .map(|r| r.slice)
            .collect();
        for (leaf, slices) in leaves(request) {
            if is_scalar_constant(request, leaf) {
                continue;
            }
            let arrays = slices
                .into_iter()
                .map(|shaped| {
                    let elem = value::storage(shaped.shape.ty);
                    let same = args.iter().position(|a| {
                        a.slice == shaped.slice && value::storage(a.shape.ty) == elem
                    });
                    let shape = shaped.shape.clone();
                    let buf = match same {
                        Some(i) => known[i],
                        None => {
                            let shared = written.iter().any(|w| w.overlaps(&shaped.slice));
                            let name = format!("arg{}", args.len());
                            let buf =
                                declare(&mut b, request.target, name, &shaped, false, !shared);
                            args.push(shaped);
                            known.push(buf);
                            buf
                        }
                    };
                    Source { buf, shape }
                })
                .collect();
            sources.insert(leaf, arrays);
        }
        let mut filled = None;
        if let (Part::ReadsScratch(ty), Some(whole)) = (part, &request.scratch) {
            let count = whole.slice.size as usize / ty.byte_width();
            let mut shape = ArrayShape::new(ty, [count]);
            shape.layout = Some(Layout::row_major(1));
            let shaped = ShapedSlice {
                slice: whole.slice,
                shape,
            };
            let name = "scratch".to_owned();
            filled = Some(declare(&mut b, request.target, name, &shaped, false, true));
            args.push(shaped);
        }
        let results = results_here.to_vec();
        let mut outputs = Vec::new();
        for (i, shaped) in results_here.iter().enumerate() {
            let shared = args.iter().any(|a| a.slice.overlaps(&shaped.slice));
            let name = format!("out{i}");
            let buf = declare(&mut b, request.target, name, shaped, true, !shared);
            let shape = shaped.shape.clone();
            outputs.push(Source { buf, shape });
        }
        let scratch = request.scratch.clone();
        let body = Body {
            el: Elemental::new(request.module, request.target, sources),
            roots: roots_of(request),
            outputs,
            scratch,
            filled,
            args,
            arg_buffers: known,
            results,
        };
        Self { b, body }
    }
}

impl Body<'_> {
    /// The finished kernel with its slices, or the first thing that could not be emitted.
    pub fn finish(self, b: KernelBuilder, launch: Launch) -> Result<Emitted> {
        self.el.finish()?;
        let kernel = b.finish(KernelId::from_index(0), launch);
        Ok(Emitted::kernel(kernel, self.args, self.results))
    }

    /// A part of the scratch memory as an array of `count` elements; `offset` is how much is used.
    /// Nothing when the scratch memory is too small.
    pub fn scratch_array(
        &mut self,
        b: &mut KernelBuilder,
        ty: PrimitiveType,
        count: u64,
        offset: &mut u64,
    ) -> Option<BufId> {
        let whole = self.scratch.as_ref()?;
        let size = count * ty.byte_width() as u64;
        let slice = Slice {
            alloc: whole.slice.alloc,
            offset: whole.slice.offset + *offset,
            size,
        };
        *offset += scratch::aligned(size);
        if slice.offset + slice.size > whole.slice.offset + whole.slice.size {
            return None;
        }
        let mut shape = ArrayShape::new(ty, [count as usize]);
        shape.layout = Some(Layout::row_major(1));
        let shaped = ShapedSlice { slice, shape };
        let name = format!("scratch{offset}");
        let buf = declare(b, self.el.target, name, &shaped, true, true);
        self.results.push(shaped);
        Some(buf)
    }

    /// The slice that a leaf is read from.
    pub fn slice_of(&self, leaf: InstrId) -> Option<&ShapedSlice> {
        let buf = self.el.source(leaf)?.buf;
        let i = self.arg_buffers.iter().position(|&b| b == buf)?;
        self.args.get(i)
    }

    /// For each result, the instruction that gives it and which of its values it is.
    pub fn result_values(&self) -> Vec<(InstrId, usize)> {
        let mut out = Vec::new();
        for &root in &self.roots {
            let count = self
                .el
                .module
                .instr(root)
                .shape
                .leaves()
                .iter()
                .filter(|(_, s)| s.as_array().is_some())
                .count();
            out.extend((0..count).map(|i| (root, i)));
        }
        out
    }
}

/// Whether a lone op's operand is a constant that needs no memory.
fn is_scalar_constant(request: &KernelRequest<'_>, leaf: InstrId) -> bool {
    let instr = request.module.instr(leaf);
    matches!(instr.op, Op::Constant(_)) && array(&instr.shape).element_count() == 1
}

fn declare(
    b: &mut KernelBuilder,
    target: &Target,
    name: String,
    shaped: &ShapedSlice,
    written: bool,
    noalias: bool,
) -> BufId {
    let ty = shaped.shape.ty;
    b.buffer(Buffer {
        name,
        elem: value::storage(ty),
        count: value::storage_count(ty, shaped.shape.element_count() as u64),
        space: Space::Global,
        align: alignment(target, &shaped.slice),
        written,
        noalias,
    })
}

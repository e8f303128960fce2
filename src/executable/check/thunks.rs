//! The rules of each thunk by itself: slices, shapes, launches, comparators, nesting.

use crate::collective::Topology;
use crate::executable::Access;
use crate::executable::AllocKind;
use crate::executable::BufferUse;
use crate::executable::CollectiveThunk;
use crate::executable::CollectiveThunkKind;
use crate::executable::ConvolutionThunk;
use crate::executable::CopyThunk;
use crate::executable::DotThunk;
use crate::executable::Executable;
use crate::executable::FftThunk;
use crate::executable::IndexExpr;
use crate::executable::KernelThunk;
use crate::executable::Launch;
use crate::executable::Parameter;
use crate::executable::Passing;
use crate::executable::Place;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::SortThunk;
use crate::executable::TargetNeeds;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::TopKThunk;
use crate::executable::WindowsThunk;
use crate::executable::check::Findings;
use crate::executable::check::MAX_NESTING;
use crate::executable::check::shape_fault;
use crate::executable::check::slice_fault;
use crate::shape::ArrayShape;
use crate::shape::PrimitiveType;

/// Largest number of workgroups of one launch.
const MAX_WORKGROUPS: u64 = 1 << 40;
/// Largest size of a padded or dilated dimension, so that index arithmetic cannot overflow.
const MAX_EXTENT: i128 = 1 << 50;
/// Largest numbers of workgroups of a CUDA launch along x, y, z.
const MAX_CUDA_GRID: [u64; 3] = [(1 << 31) - 1, 65535, 65535];

pub(super) fn check(executable: &Executable, findings: &mut Findings) {
    let mut checker = Checker {
        executable,
        findings,
    };
    checker.sequence(&executable.thunks, "thunks", 0);
}

struct Checker<'a, 'f> {
    executable: &'a Executable,
    findings: &'f mut Findings,
}

/// The array shapes a thunk names, beside their slices.
fn shaped(kind: &ThunkKind) -> Vec<&ShapedSlice> {
    match kind {
        ThunkKind::Kernel(t) => t.args.iter().chain(&t.results).collect(),
        ThunkKind::Copy(t) => vec![&t.source, &t.destination],
        ThunkKind::Sort(t) => t.inputs.iter().collect(),
        ThunkKind::Dot(t) => vec![&t.lhs, &t.rhs, &t.out],
        ThunkKind::Convolution(t) => vec![&t.input, &t.kernel, &t.output],
        ThunkKind::Fft(t) => vec![&t.input, &t.output],
        ThunkKind::CustomCall(t) => t.operands.iter().chain(&t.results).flatten().collect(),
        ThunkKind::Collective(t) => t.sources.iter().chain(&t.destinations).collect(),
        ThunkKind::LibraryFusion(t) => t.args.iter().chain(&t.results).collect(),
        ThunkKind::Memset { .. }
        | ThunkKind::Call(_)
        | ThunkKind::While(_)
        | ThunkKind::Conditional(_)
        | ThunkKind::Windows(_)
        | ThunkKind::Gemm(_)
        | ThunkKind::TopK(_)
        | ThunkKind::ReplicaId(_)
        | ThunkKind::PartitionId(_)
        | ThunkKind::RngGetAndUpdateState { .. }
        | ThunkKind::RngSeed(_)
        | ThunkKind::Foreign { .. } => Vec::new(),
    }
}

/// Whether the runtime's library computes the result, reading operands while it writes.
fn is_library(kind: &ThunkKind) -> bool {
    matches!(
        kind,
        ThunkKind::Dot(_) | ThunkKind::Convolution(_) | ThunkKind::Fft(_) | ThunkKind::TopK(_)
    )
}

impl Checker<'_, '_> {
    fn sequence(&mut self, sequence: &ThunkSequence, path: &str, depth: usize) {
        if depth > MAX_NESTING {
            let message = format!("sequences nest deeper than {MAX_NESTING}");
            self.findings.add(path, message);
            return;
        }
        for (i, thunk) in sequence.0.iter().enumerate() {
            let path = format!("{path}[{i}] `{}`", thunk.origin);
            let before = self.findings.list.len();
            self.slices(&thunk.kind, &path);
            if self.findings.list.len() == before
                && let Some(fault) = self.fault(&thunk.kind)
            {
                let message = format!("{}: {fault}", thunk.kind.name());
                self.findings.add(&path, message);
            }
            for (n, nested) in thunk.kind.nested().into_iter().enumerate() {
                self.sequence(nested, &format!("{path}.{n}"), depth + 1);
            }
        }
    }

    /// Whether a kernel of another producer lists a slice among arguments and results alike. XLA does
    /// so with all that a loop carries when it makes one kernel of the loop, written or not. Our
    /// own kernels are told apart by their arity, which is not known of those in a bundle.
    fn is_passed_through(&self, kind: &ThunkKind, slice: &Slice) -> bool {
        let ThunkKind::Kernel(thunk) = kind else {
            return false;
        };
        let kernel = self.executable.kernels.get(thunk.kernel);
        kernel.is_some_and(|kernel| kernel.arity.is_none())
            && thunk.args.iter().any(|arg| arg.slice == *slice)
    }

    /// Every slice lies in its allocation, may be used so, and is as large as its array.
    fn slices(&mut self, kind: &ThunkKind, path: &str) {
        for used in kind.own_uses() {
            if let Some(fault) = slice_fault(self.executable, &used.slice) {
                self.findings.add(path, fault);
                continue;
            }
            if used.slice.size == 0 {
                continue;
            }
            let allocation = &self.executable.allocs[used.slice.alloc];
            let writes = used.access != Access::Read && !self.is_passed_through(kind, &used.slice);
            let fault = match &allocation.kind {
                AllocKind::Constant(_) if writes => Some("a constant is written"),
                AllocKind::Parameter {
                    aliased_output: false,
                    ..
                } if writes => Some("a read-only parameter is written"),
                AllocKind::Tuple if self.is_passed_through(kind, &used.slice) => None,
                AllocKind::Tuple => Some("a table of pointers is used as data"),
                AllocKind::ThreadLocal => Some("memory of one thread is used by a thunk"),
                AllocKind::Constant(_)
                | AllocKind::Parameter { .. }
                | AllocKind::Owned
                | AllocKind::Window => None,
            };
            if let Some(fault) = fault {
                self.findings
                    .add(path, format!("{fault} ({:?})", used.slice.alloc));
            }
        }
        self.separate(kind, path);
        for shaped in shaped(kind) {
            if let Some(fault) = shape_fault(&shaped.shape) {
                self.findings.add(path, fault);
            } else if shaped.slice.size != shaped.shape.byte_size() as u64 {
                let message = format!(
                    "a slice of {} bytes holds an array of {} bytes",
                    shaped.slice.size,
                    shaped.shape.byte_size()
                );
                self.findings.add(path, message);
            }
        }
    }

    /// What the runtime's library writes shares no memory with what it reads, and the results of a
    /// library or a function of the host share none with each other.
    fn separate(&mut self, kind: &ThunkKind, path: &str) {
        if !is_library(kind) && !matches!(kind, ThunkKind::CustomCall(_)) {
            return;
        }
        let uses = kind.own_uses();
        let (results, operands): (Vec<&BufferUse>, Vec<&BufferUse>) =
            uses.iter().partition(|u| u.access == Access::Write);
        for (i, result) in results.iter().enumerate() {
            let shares = |other: &&BufferUse| result.slice.overlaps(&other.slice);
            if is_library(kind) && operands.iter().any(shares) {
                self.findings
                    .add(path, "a result shares memory with an operand");
            }
            if results[i + 1..].iter().any(shares) {
                self.findings.add(path, "two results share memory");
            }
        }
    }

    fn fault(&self, kind: &ThunkKind) -> Option<String> {
        match kind {
            ThunkKind::Kernel(thunk) => self.kernel_fault(thunk),
            ThunkKind::Copy(thunk) => copy_fault(thunk),
            ThunkKind::Memset { destination, value } => (destination.size % 4 != 0
                && !(*value == 0 && matches!(self.executable.needs, TargetNeeds::Cuda { .. })))
            .then(|| format!("{} bytes, wanted a multiple of four", destination.size)),
            ThunkKind::While(thunk) => (thunk.predicate.size != 1)
                .then(|| format!("a predicate of {} bytes, wanted one", thunk.predicate.size)),
            ThunkKind::Conditional(thunk) => {
                let size = thunk.branch_index.size;
                if size != if thunk.is_pred { 1 } else { 4 } {
                    Some(format!(
                        "a branch index of {size} bytes, wanted a pred or an s32"
                    ))
                } else if thunk.branches.is_empty() {
                    Some("there is no branch".to_owned())
                } else if thunk.is_pred && thunk.branches.len() != 2 {
                    Some(format!("{} branches for a pred", thunk.branches.len()))
                } else {
                    None
                }
            }
            ThunkKind::Windows(thunk) => self.windows_fault(thunk),
            ThunkKind::Gemm(thunk) => thunk.fault(),
            ThunkKind::Sort(thunk) => self.sort_fault(thunk),
            ThunkKind::Dot(thunk) => dot_fault(thunk),
            ThunkKind::Convolution(thunk) => convolution_fault(thunk),
            ThunkKind::Fft(thunk) => fft_fault(thunk),
            ThunkKind::TopK(thunk) => topk_fault(thunk),
            ThunkKind::Collective(thunk) => match self.executable.topology() {
                Ok(topology) => collective_fault(thunk, topology),
                // Too many devices to load; nothing looks at groups.
                Err(_) => None,
            },
            ThunkKind::ReplicaId(slice) | ThunkKind::PartitionId(slice) => {
                (slice.size != 4).then(|| format!("{} bytes for an id, wanted 4", slice.size))
            }
            ThunkKind::RngGetAndUpdateState { state, .. } => {
                (state.size != 16).then(|| format!("{} bytes for a state, wanted 16", state.size))
            }
            ThunkKind::RngSeed(slice) => {
                (slice.size != 8).then(|| format!("{} bytes for a seed, wanted 8", slice.size))
            }
            ThunkKind::LibraryFusion(thunk) => thunk.fault(dot_fault, convolution_fault),
            ThunkKind::Call(_) | ThunkKind::CustomCall(_) | ThunkKind::Foreign { .. } => None,
        }
    }

    fn kernel_fault(&self, thunk: &KernelThunk) -> Option<String> {
        let Some(kernel) = self.executable.kernels.get(thunk.kernel) else {
            return Some(format!("{:?} does not exist", thunk.kernel));
        };
        if kernel.is_comparator {
            return Some(format!("`{}` is a comparator", kernel.name));
        }
        let given = thunk.args.len() + thunk.results.len();
        if kernel.arity.is_some_and(|arity| arity != given) {
            return Some(format!(
                "{given} buffers for `{}`, which takes {:?}",
                kernel.name, kernel.arity
            ));
        }
        if let Some(fault) = passing_fault(&thunk.passing, given) {
            return Some(fault);
        }
        self.launch_fault(&thunk.launch)
    }

    fn windows_fault(&self, thunk: &WindowsThunk) -> Option<String> {
        if !matches!(self.executable.needs, TargetNeeds::Cuda { .. }) {
            return Some("a CPU has no such thunk".to_owned());
        }
        let allocs = &self.executable.allocs;
        for window in &thunk.windows {
            let Some(allocation) = allocs.get(window.alloc) else {
                return Some(format!("{:?} does not exist", window.alloc));
            };
            if allocation.kind != AllocKind::Window {
                return Some(format!("{:?} is no window", window.alloc));
            }
            if allocation.size.0 > window.buffer.size {
                return Some(format!(
                    "a window of {} bytes in a buffer of {} bytes",
                    allocation.size.0, window.buffer.size
                ));
            }
            if let Place::Indices(indices) = &window.place {
                let mut indices = indices.iter();
                if let Some(fault) = indices.find_map(|i| index_fault(&i.index)) {
                    return Some(fault);
                }
            }
        }
        None
    }

    fn launch_fault(&self, launch: &Launch) -> Option<String> {
        let groups = launch.workgroups;
        let total = groups
            .iter()
            .try_fold(1u64, |total, &n| total.checked_mul(n))
            .unwrap_or(u64::MAX);
        if total == 0 || total > MAX_WORKGROUPS || launch.workitems.contains(&0) {
            return Some(format!(
                "a launch of {groups:?} workgroups of {:?} workitems",
                launch.workitems
            ));
        }
        match self.executable.needs {
            TargetNeeds::Cpu { .. } => {
                (launch.workitems != [1; 3] || launch.cluster.is_some() || launch.shared_bytes != 0)
                    .then(|| "a CPU launch with workitems, clusters or shared memory".to_owned())
            }
            TargetNeeds::Cuda { .. } => {
                let items = launch
                    .workitems
                    .iter()
                    .try_fold(1u32, |total, &n| total.checked_mul(n));
                let too_large = groups.iter().zip(MAX_CUDA_GRID).any(|(&n, max)| n > max);
                (too_large || items.is_none_or(|items| items > 1024)).then(|| {
                    format!(
                        "a launch of {groups:?} blocks of {:?} threads is larger than CUDA allows",
                        launch.workitems
                    )
                })
            }
        }
    }

    fn sort_fault(&self, thunk: &SortThunk) -> Option<String> {
        let Some(first) = thunk.inputs.first() else {
            return Some("there is nothing to sort".to_owned());
        };
        let dimension = usize::try_from(thunk.dimension).ok();
        if dimension.is_none_or(|d| d >= first.shape.rank()) {
            return Some(format!(
                "dimension {} of rank {}",
                thunk.dimension,
                first.shape.rank()
            ));
        }
        let order = |s: &ArrayShape| s.layout_or_default().minor_to_major;
        let differs = |s: &&ShapedSlice| {
            s.shape.dims != first.shape.dims || order(&s.shape) != order(&first.shape)
        };
        if thunk.inputs.iter().any(|s| differs(&s)) {
            return Some("the arrays differ in dimensions or layout".to_owned());
        }
        if thunk.inputs.iter().any(|s| s.shape.ty.is_sub_byte()) {
            return Some("elements smaller than a byte".to_owned());
        }
        let overlapping = thunk.inputs.iter().enumerate().any(|(i, a)| {
            let rest = &thunk.inputs[i + 1..];
            rest.iter().any(|b| a.slice.overlaps(&b.slice))
        });
        if overlapping {
            return Some("two of the arrays share memory".to_owned());
        }
        let mut kernels = self.executable.kernels.values();
        let known = kernels.any(|k| k.is_comparator && k.name == thunk.comparator);
        (!known).then(|| format!("comparator `{}` does not exist", thunk.comparator))
    }
}

/// Largest number of elements of a box along one dimension.
const MAX_BOX: u32 = 256;

/// Whether parameters name buffers that exist, `given` of them, and maps are maps.
fn passing_fault(passing: &Passing, given: usize) -> Option<String> {
    let named = passing.parameters.iter().map(|parameter| match parameter {
        Parameter::Address(buffer) | Parameter::Map(buffer, _) => *buffer,
        Parameter::Bytes(_) => 0,
    });
    let mut named = named.chain(passing.zeroed.iter().copied());
    if named.any(|buffer| buffer >= given.max(1)) {
        return Some(format!("a parameter names a buffer beyond the {given}"));
    }
    passing.parameters.iter().find_map(|parameter| {
        let Parameter::Map(_, map) = parameter else {
            return None;
        };
        let rank = map.dims.len();
        let fits = (1..=5).contains(&rank)
            && map.strides.len() == rank - 1
            && map.boxes.len() == rank
            && map.steps.len() == rank
            && matches!(map.element_size, 1 | 2 | 4 | 8)
            && map.boxes.iter().all(|n| (1..=MAX_BOX).contains(n))
            && map.dims.iter().all(|&n| n > 0);
        (!fits).then(|| format!("a tensor map that no device has: {map:?}"))
    })
}

/// Whether an index is an integer, and operations have their operands.
fn index_fault(index: &IndexExpr) -> Option<String> {
    match index {
        IndexExpr::Constant(_) => None,
        IndexExpr::Load(slice, ty) => (!ty.is_integer() || slice.size != ty.byte_width() as u64)
            .then(|| format!("an index of type {ty} and {} bytes", slice.size)),
        IndexExpr::Apply(op, operands) if operands.len() != op.arity() => {
            Some(format!("{op:?} of {} operands", operands.len()))
        }
        IndexExpr::Apply(_, operands) => operands.iter().find_map(index_fault),
    }
}

fn copy_fault(thunk: &CopyThunk) -> Option<String> {
    let (source, destination) = (&thunk.source, &thunk.destination);
    if !source.shape.same_ignoring_layout(&destination.shape) {
        return Some("source and destination differ in element type or dimensions".to_owned());
    }
    let same_order = source.shape.layout_or_default().minor_to_major
        == destination.shape.layout_or_default().minor_to_major;
    if source.slice.overlaps(&destination.slice)
        && !(same_order && source.slice == destination.slice)
    {
        return Some("source and destination share memory".to_owned());
    }
    None
}

/// The sizes of these dimensions, when each exists and is named once over all lists.
fn sizes(shape: &ArrayShape, dims: &[i64]) -> Option<Vec<usize>> {
    let get = |&d: &i64| shape.dims.get(usize::try_from(d).ok()?).copied();
    dims.iter().map(get).collect()
}

fn all_different(lists: &[&[i64]]) -> bool {
    let mut all: Vec<i64> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    all.len() == count
}

fn dot_fault(thunk: &DotThunk) -> Option<String> {
    let [lhs_contracting, rhs_contracting, lhs_batch, rhs_batch] = &thunk.dims;
    let (lhs, rhs) = (&thunk.lhs.shape, &thunk.rhs.shape);
    let wrong = || Some("the dimension numbers do not fit the operands".to_owned());
    if !all_different(&[lhs_contracting, lhs_batch])
        || !all_different(&[rhs_contracting, rhs_batch])
    {
        return wrong();
    }
    let (Some(lc), Some(rc)) = (sizes(lhs, lhs_contracting), sizes(rhs, rhs_contracting)) else {
        return wrong();
    };
    let (Some(lb), Some(rb)) = (sizes(lhs, lhs_batch), sizes(rhs, rhs_batch)) else {
        return wrong();
    };
    if lc != rc || lb != rb {
        return wrong();
    }
    let free = |shape: &ArrayShape, contracting: &[i64], batch: &[i64]| -> Vec<usize> {
        let taken = |d: usize| contracting.iter().chain(batch).any(|&t| t == d as i64);
        let dims = shape.dims.iter().enumerate();
        dims.filter(|(d, _)| !taken(*d)).map(|(_, &n)| n).collect()
    };
    let mut wanted = lb;
    wanted.extend(free(lhs, lhs_contracting, lhs_batch));
    wanted.extend(free(rhs, rhs_contracting, rhs_batch));
    if wanted != thunk.out.shape.dims.as_slice() {
        return Some(format!(
            "a result of {:?}, wanted {wanted:?}",
            thunk.out.shape.dims.as_slice()
        ));
    }
    let (a, b, out) = (lhs.ty, rhs.ty, thunk.out.shape.ty);
    let known = (a == b && b == out)
        || (matches!(a, PrimitiveType::S8 | PrimitiveType::U8)
            && b == PrimitiveType::S8
            && out == PrimitiveType::S32)
        || (a == b && out == PrimitiveType::F32);
    (!known).then(|| format!("element types {a} and {b} to {out}"))
}

fn convolution_fault(t: &ConvolutionThunk) -> Option<String> {
    let rank = t.window.len() + 2;
    let wrong = || Some("the dimension numbers do not fit the operands".to_owned());
    let dims = |shape: &ArrayShape, first: i64, second: i64, spatial: &[i64]| {
        let complete = shape.rank() == rank && all_different(&[&[first, second], spatial]);
        let first = sizes(shape, &[first, second])?;
        let spatial = sizes(shape, spatial).filter(|s| s.len() + 2 == rank && complete)?;
        Some((first[0], first[1], spatial))
    };
    let input = dims(
        &t.input.shape,
        t.input_batch,
        t.input_feature,
        &t.input_spatial,
    );
    let kernel = dims(
        &t.kernel.shape,
        t.kernel_input_feature,
        t.kernel_output_feature,
        &t.kernel_spatial,
    );
    let output = dims(
        &t.output.shape,
        t.output_batch,
        t.output_feature,
        &t.output_spatial,
    );
    let (Some((batch, features, space)), Some((per_group, out_features, window)), Some(out)) =
        (input, kernel, output)
    else {
        return wrong();
    };
    let groups = usize::try_from(t.feature_group_count).unwrap_or(0);
    if groups == 0
        || per_group.checked_mul(groups) != Some(features)
        || !out_features.is_multiple_of(groups)
        || out.0 != batch
        || out.1 != out_features
    {
        return wrong();
    }
    for (d, w) in t.window.iter().enumerate() {
        let positive = [w.size, w.stride, w.window_dilation, w.base_dilation];
        let bounded = [w.padding_low, w.padding_high];
        if positive.iter().any(|&v| !(1..=1 << 32).contains(&v))
            || bounded.iter().any(|&v| v.unsigned_abs() > 1 << 40)
            || w.size as u64 != window[d] as u64
        {
            return Some(format!("dimension {d} of the window is out of range"));
        }
        let dilate = |n: i128, by: i64| {
            if n == 0 {
                0
            } else {
                (n - 1) * i128::from(by) + 1
            }
        };
        let padded = dilate(space[d] as i128, w.base_dilation)
            + i128::from(w.padding_low)
            + i128::from(w.padding_high);
        let reach = dilate(i128::from(w.size), w.window_dilation);
        if padded > MAX_EXTENT || reach > MAX_EXTENT {
            return Some(format!("dimension {d} of the window is out of range"));
        }
        let wanted = if padded < reach {
            0
        } else {
            (padded - reach) / i128::from(w.stride) + 1
        };
        if wanted != out.2[d] as i128 {
            return Some(format!(
                "{} results along dimension {d}, wanted {wanted}",
                out.2[d]
            ));
        }
    }
    let types = [&t.input, &t.kernel, &t.output].map(|s| s.shape.ty);
    let known = types.iter().all(|&ty| ty == types[0])
        || types == [PrimitiveType::S8, PrimitiveType::S8, PrimitiveType::S32];
    (!known).then(|| "the element types differ".to_owned())
}

fn fft_fault(thunk: &FftThunk) -> Option<String> {
    let rank = thunk.lengths.len();
    let (input, output) = (&thunk.input.shape, &thunk.output.shape);
    if !(1..=3).contains(&rank) || !(0..=3).contains(&thunk.kind) {
        return Some(format!("kind {} of {rank} dimensions", thunk.kind));
    }
    if input.rank() != output.rank() || input.rank() < rank {
        return Some("the ranks do not fit".to_owned());
    }
    let batch = input.rank() - rank;
    let lengths: Option<Vec<usize>> = thunk
        .lengths
        .iter()
        .map(|&n| usize::try_from(n).ok())
        .collect();
    let Some(full) = lengths else {
        return Some("a length is negative".to_owned());
    };
    let mut half = full.clone();
    if let Some(last) = half.last_mut() {
        *last = if *last == 0 { 0 } else { *last / 2 + 1 };
    }
    let (wanted_in, wanted_out) = match thunk.kind {
        2 => (&full, &half),
        3 => (&half, &full),
        _ => (&full, &full),
    };
    if input.dims[batch..] != wanted_in[..]
        || output.dims[batch..] != wanted_out[..]
        || input.dims[..batch] != output.dims[..batch]
    {
        return Some("the dimensions do not fit the lengths".to_owned());
    }
    let types_fit = match thunk.kind {
        2 => input.ty.complex_of() == Some(output.ty),
        3 => output.ty.complex_of() == Some(input.ty),
        _ => input.ty.is_complex() && input.ty == output.ty,
    };
    (!types_fit).then(|| format!("element types {} to {}", input.ty, output.ty))
}

fn topk_fault(thunk: &TopKThunk) -> Option<String> {
    let bytes = |columns: i64| {
        let count = thunk.batch_size.checked_mul(columns)?.checked_mul(4)?;
        u64::try_from(count).ok()
    };
    let fits = (0..=thunk.input_size).contains(&thunk.k)
        && thunk.batch_size >= 0
        && bytes(thunk.input_size) == Some(thunk.values.size)
        && bytes(thunk.k) == Some(thunk.output.size)
        && bytes(thunk.k) == Some(thunk.indices.size);
    (!fits).then(|| {
        format!(
            "{} rows of {} with {} kept do not fit the slices",
            thunk.batch_size, thunk.input_size, thunk.k
        )
    })
}

/// Groups fit the devices, and sizes fit the groups.
fn collective_fault(thunk: &CollectiveThunk, topology: Topology) -> Option<String> {
    let (mode, groups) = (thunk.mode, thunk.replica_groups.as_slice());
    if let CollectiveThunkKind::AllReduce { reduction }
    | CollectiveThunkKind::ReduceScatter { reduction } = &thunk.kind
        && !["sum", "prod", "min", "max"].contains(&reduction.as_str())
    {
        return Some(format!("unknown reduction `{reduction}`"));
    }
    if let CollectiveThunkKind::CollectivePermute { pairs } = &thunk.kind {
        // A source may have several targets, a target has one source.
        let targets = vec![pairs.iter().map(|pair| pair.1).collect::<Vec<_>>()];
        let mut sources = pairs.iter().map(|pair| vec![vec![pair.0]]);
        let fault = (!pairs.is_empty())
            .then(|| mode.check(topology, &targets, false).err())
            .flatten()
            .or_else(|| sources.find_map(|one| mode.check(topology, &one, false).err()));
        if fault.is_some() {
            return fault;
        }
    } else {
        let all = !matches!(thunk.kind, CollectiveThunkKind::CollectiveBroadcast);
        if let Err(fault) = mode.check(topology, groups, all) {
            return Some(fault);
        }
    }
    let size = mode.group_size(topology, groups).map(|size| size as u64);
    let (sources, destinations) = (&thunk.sources, &thunk.destinations);
    if sources.len() != destinations.len() {
        return Some("sources and destinations differ in number".to_owned());
    }
    let times = |small: &ShapedSlice, large: &ShapedSlice| {
        let wanted = size.and_then(|size| small.slice.size.checked_mul(size));
        wanted == Some(large.slice.size)
    };
    let is_same = |(from, to): (&ShapedSlice, &ShapedSlice)| from.slice.size == to.slice.size;
    let mut pairs = sources.iter().zip(destinations);
    let fits = match &thunk.kind {
        CollectiveThunkKind::AllGather => pairs.all(|(from, to)| times(from, to)),
        CollectiveThunkKind::ReduceScatter { .. } => pairs.all(|(from, to)| times(to, from)),
        CollectiveThunkKind::AllToAll => {
            let first = sources.first().map_or(0, |source| source.slice.size);
            let cuts = match (size, sources.len() as u64) {
                (Some(size), 1) => first.is_multiple_of(size),
                (Some(size), count) => size == count,
                (None, _) => false,
            };
            cuts && pairs.all(|(from, to)| from.slice.size == first && is_same((from, to)))
        }
        CollectiveThunkKind::AllReduce { .. }
        | CollectiveThunkKind::CollectivePermute { .. }
        | CollectiveThunkKind::CollectiveBroadcast => pairs.all(is_same),
    };
    (!fits).then(|| format!("sizes do not fit groups of {size:?} devices"))
}

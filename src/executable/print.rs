//! The text of a thunk sequence: one thunk a line, nested sequences indented.

use std::fmt::Write;

use crate::base::Id;
use crate::executable::CustomCallThunk;
use crate::executable::KernelId;
use crate::executable::KernelThunk;
use crate::executable::ShapedSlice;
use crate::executable::Slice;
use crate::executable::Thunk;
use crate::executable::ThunkKind;
use crate::executable::ThunkSequence;
use crate::executable::Window;

/// Prints thunks; `kernel_name` names a kernel.
pub fn thunks(sequence: &ThunkSequence, kernel_name: &dyn Fn(KernelId) -> String) -> String {
    let mut out = String::new();
    print_sequence(sequence, 0, kernel_name, &mut out);
    out
}

fn print_sequence(
    sequence: &ThunkSequence,
    depth: usize,
    kernel_name: &dyn Fn(KernelId) -> String,
    out: &mut String,
) {
    for thunk in &sequence.0 {
        let text = thunk_text(thunk, kernel_name);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:1$}{text}", "", 2 * depth);
        let names: Vec<String> = match &thunk.kind {
            ThunkKind::While(_) => vec!["condition".to_owned(), "body".to_owned()],
            ThunkKind::Conditional(c) => (0..c.branches.len())
                .map(|i| format!("branch {i}"))
                .collect(),
            _ => Vec::new(),
        };
        for (i, nested) in thunk.kind.nested().into_iter().enumerate() {
            let mut inner = depth + 1;
            if let Some(name) = names.get(i) {
                let _ = writeln!(out, "{:1$}{name}:", "", 2 * inner);
                inner += 1;
            }
            print_sequence(nested, inner, kernel_name, out);
        }
    }
}

fn thunk_text(thunk: &Thunk, kernel_name: &dyn Fn(KernelId) -> String) -> String {
    let mut out = format!("{} {}", thunk.kind.name(), thunk.origin);
    let rest = match &thunk.kind {
        ThunkKind::Kernel(kernel) => kernel_text(kernel, kernel_name),
        ThunkKind::Copy(copy) => format!("{} -> {}", array(&copy.source), array(&copy.destination)),
        ThunkKind::Memset { destination, value } => {
            format!("{} = {value:#x}", slice(destination))
        }
        ThunkKind::Call(_) => String::new(),
        ThunkKind::While(thunk) => {
            let predicate = format!("while {}", slice(&thunk.predicate));
            let trips = thunk.trip_count.map(|n| format!(", {n} times"));
            format!("{predicate}{}", trips.unwrap_or_default())
        }
        ThunkKind::Conditional(thunk) => {
            let ty = if thunk.is_pred { "pred" } else { "s32" };
            format!("{ty} {}", slice(&thunk.branch_index))
        }
        ThunkKind::Windows(thunk) => {
            let windows = thunk.windows.iter();
            let text = |w: &Window| format!("alloc{} in {}", w.alloc.index(), slice(&w.buffer));
            windows.map(text).collect::<Vec<_>>().join(", ")
        }
        ThunkKind::Gemm(gemm) => {
            let uses = gemm.uses();
            let uses: Vec<String> = uses.iter().map(|u| slice(&u.slice)).collect();
            uses.join(", ")
        }
        ThunkKind::Sort(sort) => format!("dimension {}: {}", sort.dimension, arrays(&sort.inputs)),
        ThunkKind::Dot(dot) => {
            format!(
                "{}, {} -> {}",
                array(&dot.lhs),
                array(&dot.rhs),
                array(&dot.out)
            )
        }
        ThunkKind::Convolution(conv) => format!(
            "{}, {} -> {}",
            array(&conv.input),
            array(&conv.kernel),
            array(&conv.output)
        ),
        ThunkKind::Fft(fft) => format!(
            "kind {} lengths {:?}: {} -> {}",
            fft.kind,
            fft.lengths,
            array(&fft.input),
            array(&fft.output)
        ),
        ThunkKind::TopK(topk) => format!(
            "{} of {}: {} -> {}, {}",
            topk.k,
            topk.input_size,
            slice(&topk.values),
            slice(&topk.output),
            slice(&topk.indices)
        ),
        ThunkKind::CustomCall(call) => custom_call_text(call),
        ThunkKind::Collective(collective) => format!(
            "{:?} {} {:?}: {} -> {}",
            collective.kind,
            collective.mode.name(),
            collective.replica_groups,
            arrays(&collective.sources),
            arrays(&collective.destinations)
        ),
        ThunkKind::LibraryFusion(fusion) => {
            format!("{} -> {}", arrays(&fusion.args), arrays(&fusion.results))
        }
        ThunkKind::ReplicaId(to) | ThunkKind::PartitionId(to) | ThunkKind::RngSeed(to) => slice(to),
        ThunkKind::RngGetAndUpdateState { state, delta } => format!("{} + {delta}", slice(state)),
        ThunkKind::Foreign { uses, .. } => {
            let uses: Vec<String> = uses.iter().map(|u| slice(&u.slice)).collect();
            uses.join(", ")
        }
    };
    if !rest.is_empty() {
        out.push_str(": ");
        out.push_str(&rest);
    }
    out
}

fn kernel_text(kernel: &KernelThunk, kernel_name: &dyn Fn(KernelId) -> String) -> String {
    let launch = &kernel.launch;
    let mut size = dims(&launch.workgroups);
    if launch.workitems != [1; 3] {
        let _ = write!(size, " of {}", dims(&launch.workitems));
    }
    if launch.shared_bytes > 0 {
        let _ = write!(size, ", {} shared bytes", launch.shared_bytes);
    }
    format!(
        "{}<{size}> {} -> {}",
        kernel_name(kernel.kernel),
        arrays(&kernel.args),
        arrays(&kernel.results)
    )
}

fn custom_call_text(call: &CustomCallThunk) -> String {
    let list = |slices: &[Option<ShapedSlice>]| {
        let text = |s: &Option<ShapedSlice>| s.as_ref().map_or_else(|| "token".to_owned(), array);
        format!(
            "({})",
            slices.iter().map(text).collect::<Vec<_>>().join(", ")
        )
    };
    let (operands, results) = (list(&call.operands), list(&call.results));
    format!(
        "`{}` api {} {operands} -> {results}",
        call.target, call.api_version
    )
}

/// The extents of a launch, ones at the end left out.
fn dims<T: ToString + PartialEq + From<u8>>(sizes: &[T; 3]) -> String {
    let one = T::from(1);
    let last = sizes.iter().rposition(|s| *s != one).unwrap_or(0);
    let texts: Vec<String> = sizes[..=last].iter().map(ToString::to_string).collect();
    texts.join("x")
}

fn arrays(slices: &[ShapedSlice]) -> String {
    format!(
        "({})",
        slices.iter().map(array).collect::<Vec<_>>().join(", ")
    )
}

/// `f32[2,3] alloc0[0..24]`
fn array(shaped: &ShapedSlice) -> String {
    let dims: Vec<String> = shaped.shape.dims.iter().map(ToString::to_string).collect();
    let dims = dims.join(",");
    format!("{}[{dims}] {}", shaped.shape.ty, slice(&shaped.slice))
}

fn slice(slice: &Slice) -> String {
    format!(
        "{:?}[{}..{}]",
        slice.alloc,
        slice.offset,
        slice.offset + slice.size
    )
}

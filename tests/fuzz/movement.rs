//! Ops that move elements.

use xla_aot::shape::PrimitiveType;

use super::make::Maker;
use super::program::Accuracy;
use super::program::list;

/// One of them.
pub fn any(maker: &mut Maker) -> usize {
    match maker.random.below(18) {
        0..2 => reshape(maker),
        2..4 => broadcast(maker),
        4..6 => transpose(maker),
        6 => reverse(maker),
        7..9 => slice(maker),
        9..11 => pad(maker),
        11 => concatenate(maker),
        12 => iota(maker),
        13 => dynamic(maker),
        14 => laid_out(maker),
        15 => size_of(maker),
        16 => bitcast(maker),
        _ => gather(maker),
    }
}

/// Adds an op of one operand that moves what it holds.
fn moves(maker: &mut Maker, x: usize, dims: &[usize], text: String, operands: &[usize]) -> usize {
    let accuracy = maker.moved(x);
    let ty = maker.array(x).0;
    let made = maker.op(ty, dims, text, operands, accuracy);
    maker.stays_whole(x, made)
}

fn reshape(maker: &mut Maker) -> usize {
    let x = maker.value(|_, _| true);
    let (_, from) = maker.array(x);
    let mut to = Vec::new();
    let mut run = 1;
    for &size in &from {
        // Take together, or split.
        run *= size;
        if maker.random.one_in(2) {
            let divisor = (2..6).find(|d| run % d == 0 && run > *d);
            match divisor {
                Some(d) if maker.random.one_in(2) => to.extend([run / d, d]),
                _ => to.push(run),
            }
            run = 1;
        }
        if maker.random.one_in(5) {
            to.push(1);
        }
    }
    if run != 1 {
        to.push(run);
    }
    if from.contains(&0) {
        to = from;
        to.reverse();
    }
    moves(maker, x, &to, format!("reshape(v{x})"), &[x])
}

/// The same memory under other dimensions, which is a reshape of what lies in order.
fn bitcast(maker: &mut Maker) -> usize {
    let x = maker.value(|ty, dims| ty.bit_width() >= 8 && !dims.is_empty());
    let (_, mut to) = maker.array(x);
    match maker.random.below(3) {
        0 => to.insert(maker.random.below(to.len() + 1), 1),
        1 => to = vec![to.iter().product()],
        _ => to.reverse(),
    }
    if maker.program.inside.iter().any(|(name, _)| *name == x) {
        return reshape(maker);
    }
    moves(maker, x, &to, format!("bitcast(v{x})"), &[x])
}

fn broadcast(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| dims.iter().product::<usize>() <= 400);
    let (_, from) = maker.array(x);
    let rank = from.len() + maker.random.below(3);
    let mut at = maker.random.choose(from.len(), rank);
    if maker.random.one_in(10) {
        at.reverse();
    }
    let mut to: Vec<usize> = (0..rank).map(|_| 1 + maker.random.below(4)).collect();
    for (i, &d) in at.iter().enumerate() {
        to[d] = from[i];
    }
    let text = format!("broadcast(v{x}), dimensions={{{}}}", list(&at));
    moves(maker, x, &to, text, &[x])
}

fn transpose(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| dims.len() > 1);
    let (_, from) = maker.array(x);
    let order = maker.random.order(from.len());
    let to: Vec<usize> = order.iter().map(|&d| from[d]).collect();
    let text = format!("transpose(v{x}), dimensions={{{}}}", list(&order));
    moves(maker, x, &to, text, &[x])
}

/// A copy in another layout, which nothing that reads it may see.
fn laid_out(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| dims.len() > 1);
    let (_, dims) = maker.array(x);
    let order = maker.random.order(dims.len());
    let made = moves(maker, x, &dims, format!("copy(v{x})"), &[x]);
    maker.program.inside.push((made, order));
    made
}

/// The size of a dimension.
fn size_of(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| !dims.is_empty());
    let at = maker.random.below(maker.array(x).1.len());
    let text = format!("get-dimension-size(v{x}), dimensions={{{at}}}");
    maker.op(PrimitiveType::S32, &[], text, &[x], Accuracy::Exact)
}

fn reverse(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| !dims.is_empty());
    let (_, dims) = maker.array(x);
    let some = maker.random.some(dims.len());
    let text = format!("reverse(v{x}), dimensions={{{}}}", list(&some));
    moves(maker, x, &dims, text, &[x])
}

fn slice(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| !dims.is_empty());
    let (_, from) = maker.array(x);
    let (mut to, mut cuts) = (Vec::new(), Vec::new());
    for &size in &from {
        let start = maker.random.below(size + 1);
        let start = if maker.random.one_in(2) { 0 } else { start };
        let limit = start + maker.random.below(size - start + 1);
        let limit = if maker.random.one_in(3) { size } else { limit };
        let stride = maker.random.pick(&[1, 1, 1, 2, 3, 7]);
        to.push((limit - start).div_ceil(stride));
        cuts.push(format!("[{start}:{limit}:{stride}]"));
    }
    let text = format!("slice(v{x}), slice={{{}}}", cuts.join(", "));
    moves(maker, x, &to, text, &[x])
}

fn pad(maker: &mut Maker) -> usize {
    let x = maker.exact(|_, dims| !dims.is_empty() && dims.iter().product::<usize>() < 500);
    let (ty, from) = maker.array(x);
    let value = maker.exact_of(ty, &[]);
    let (mut to, mut texts) = (Vec::new(), Vec::new());
    for &size in &from {
        let interior = maker.random.pick(&[0, 0, 0, 1, 2]);
        let spread = size + size.saturating_sub(1) * interior;
        let (low, high) = loop {
            let (low, high) = (maker.random.between(-3, 4), maker.random.between(-3, 4));
            if spread as i64 + low + high >= 0 {
                break (low, high);
            }
        };
        to.push((spread as i64 + low + high) as usize);
        texts.push(format!("{low}_{high}_{interior}"));
    }
    let text = format!("pad(v{x}, v{value}), padding={}", texts.join("x"));
    let accuracy = match (maker.moved(x), maker.moved(value)) {
        (Accuracy::Bits, Accuracy::Bits) => Accuracy::Bits,
        _ => Accuracy::Exact,
    };
    maker.op(ty, &to, text, &[x, value], accuracy)
}

fn concatenate(maker: &mut Maker) -> usize {
    let x = maker.exact(|_, dims| !dims.is_empty() && dims.iter().product::<usize>() < 1000);
    let (ty, dims) = maker.array(x);
    let at = maker.random.below(dims.len());
    let mut parts = vec![x];
    let mut total = dims[at];
    for _ in 0..maker.random.below(3) {
        let mut other = dims.clone();
        if maker.random.one_in(2) {
            other[at] = maker.random.below(4);
        }
        total += other[at];
        parts.push(maker.exact_of(ty, &other));
    }
    let mut to = dims;
    to[at] = total;
    let names: Vec<String> = parts.iter().map(|p| format!("v{p}")).collect();
    let text = format!("concatenate({}), dimensions={{{at}}}", names.join(", "));
    let bits = parts.iter().all(|&p| maker.moved(p) == Accuracy::Bits);
    let accuracy = if bits {
        Accuracy::Bits
    } else {
        Accuracy::Exact
    };
    maker.op(ty, &to, text, &parts, accuracy)
}

fn iota(maker: &mut Maker) -> usize {
    let ty = maker.ty_where(|ty| {
        ty.bit_width() >= 8 && ty != PrimitiveType::Pred && ty != PrimitiveType::F8E8M0FNU
    });
    let rank = 1 + maker.random.below(3);
    let dims = maker.dims_of(rank);
    let at = maker.random.below(rank);
    maker.op(
        ty,
        &dims,
        format!("iota(), iota_dimension={at}"),
        &[],
        Accuracy::Exact,
    )
}

/// Indices of some integer type: near `most`, or anywhere.
fn indices(maker: &mut Maker, ty: PrimitiveType, dims: &[usize], most: usize) -> usize {
    if maker.random.one_in(4) {
        maker.parameter(ty, dims)
    } else {
        maker.whole(ty, dims, -1, (most as i64 + 1).min(100))
    }
}

/// A type of indices.
pub fn index_type(maker: &mut Maker) -> PrimitiveType {
    use PrimitiveType::*;
    maker
        .random
        .pick(&[S32, S32, S64, U32, U8, S8, S16, U16, U64])
}

fn dynamic(maker: &mut Maker) -> usize {
    let x = maker.exact(|_, dims| !dims.is_empty());
    let (ty, dims) = maker.array(x);
    let sizes: Vec<usize> = dims.iter().map(|&d| maker.random.below(d + 1)).collect();
    let updates = maker.random.one_in(2).then(|| maker.exact_of(ty, &sizes));
    let index = index_type(maker);
    let starts: Vec<usize> = dims
        .iter()
        .map(|&d| indices(maker, index, &[], d))
        .collect();
    let names: Vec<String> = starts.iter().map(|s| format!("v{s}")).collect();
    let names = names.join(", ");
    let mut operands = vec![x];
    operands.extend(updates);
    operands.extend(starts);
    match updates {
        Some(update) => {
            let text = format!("dynamic-update-slice(v{x}, v{update}, {names})");
            maker.op(ty, &dims, text, &operands, Accuracy::Exact)
        }
        None => {
            let sizes_text = list(&sizes);
            let text =
                format!("dynamic-slice(v{x}, {names}), dynamic_slice_sizes={{{sizes_text}}}");
            moves(maker, x, &sizes, text, &operands)
        }
    }
}

/// What a gather and a scatter have in common: how windows lie in the array, and the indices.
pub struct Windows {
    /// Dimensions of the array that have none in the window.
    pub dropped: Vec<usize>,
    /// Dimensions of the array that go along with those of the indices.
    pub batching: Vec<usize>,
    /// The dimensions of the indices they go along with.
    pub batching_of: Vec<usize>,
    /// Dimension of the array that each part of an index is about.
    pub map: Vec<usize>,
    /// Where in the indices the parts of an index lie.
    pub vector_dim: usize,
    /// Size of the window in each dimension of the array.
    pub sizes: Vec<usize>,
    /// The indices.
    pub indices: usize,
    /// Dimensions of what is gathered or scattered.
    pub dims: Vec<usize>,
    /// Those of them that lie in the window.
    pub window_dims: Vec<usize>,
}

impl Windows {
    /// The attributes of a scatter.
    pub fn scatter_text(&self) -> String {
        format!(
            "update_window_dims={{{}}}, inserted_window_dims={{{}}}, \
             scatter_dims_to_operand_dims={{{}}}, input_batching_dims={{{}}}, \
             scatter_indices_batching_dims={{{}}}, index_vector_dim={}",
            list(&self.window_dims),
            list(&self.dropped),
            list(&self.map),
            list(&self.batching),
            list(&self.batching_of),
            self.vector_dim
        )
    }
}

/// Windows in an array of these dimensions.
pub fn windows(maker: &mut Maker, from: &[usize]) -> Windows {
    let mut batch: Vec<usize> = (0..maker.random.below(3))
        .map(|_| 1 + maker.random.below(5))
        .collect();
    let (mut dropped, mut batching, mut batching_of) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sizes, mut kept, mut mapped) = (Vec::new(), Vec::new(), Vec::new());
    for (d, &size) in from.iter().enumerate() {
        match maker.random.below(6) {
            0 if batch.len() < 3 => {
                // A dimension that goes along stands in both.
                batching.push(d);
                batching_of.push(batch.len());
                batch.push(size);
                sizes.push(1.min(size));
                continue;
            }
            1..4 if size > 0 => {
                dropped.push(d);
                sizes.push(1);
            }
            _ => {
                let window = maker.random.below(size + 1);
                let window = if maker.random.one_in(2) { size } else { window };
                sizes.push(window);
                kept.push(window);
            }
        }
        if maker.random.below(3) > 0 {
            mapped.push(d);
        }
    }
    let order = maker.random.order(mapped.len());
    let map: Vec<usize> = order.into_iter().map(|i| mapped[i]).collect();
    let mut dims = batch.clone();
    let mut vector_dim = maker.random.below(batch.len() + 1);
    // The positions of the indices' dimensions shift where the parts of an index lie before them.
    if map.len() == 1 && maker.random.one_in(2) {
        vector_dim = batch.len();
    } else {
        dims.insert(vector_dim, map.len());
        for at in &mut batching_of {
            *at += usize::from(*at >= vector_dim);
        }
    }
    let ty = index_type(maker);
    let most = from.iter().copied().max().unwrap_or(0);
    let indices = indices(maker, ty, &dims, most);
    let window_dims = maker.random.choose(kept.len(), kept.len() + batch.len());
    let (mut kept, mut batch) = (kept.into_iter(), batch.into_iter());
    let dims = (0..kept.len() + batch.len()).map(|d| {
        let next = if window_dims.contains(&d) {
            kept.next()
        } else {
            batch.next()
        };
        next.unwrap_or(1)
    });
    let dims = dims.collect();
    Windows {
        dropped,
        batching,
        batching_of,
        map,
        vector_dim,
        sizes,
        indices,
        dims,
        window_dims,
    }
}

fn gather(maker: &mut Maker) -> usize {
    let x = maker.value(|_, dims| {
        (1..4).contains(&dims.len()) && !dims.contains(&0) && dims.iter().product::<usize>() < 300
    });
    let (_, from) = maker.array(x);
    let w = windows(maker, &from);
    let text = format!(
        "gather(v{x}, v{}), offset_dims={{{}}}, collapsed_slice_dims={{{}}}, start_index_map={{{}}}, \
         operand_batching_dims={{{}}}, start_indices_batching_dims={{{}}}, index_vector_dim={}, \
         slice_sizes={{{}}}",
        w.indices,
        list(&w.window_dims),
        list(&w.dropped),
        list(&w.map),
        list(&w.batching),
        list(&w.batching_of),
        w.vector_dim,
        list(&w.sizes)
    );
    moves(maker, x, &w.dims, text, &[x, w.indices])
}

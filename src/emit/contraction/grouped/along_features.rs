//! Vectors of output features: a tile is of neighbouring output positions, so that a vector of the
//! kernel is read once for all of them, and one of the input for all elements of the window on it.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::analysis::contraction::Product;
use crate::analysis::grouped_conv;
use crate::analysis::grouped_conv::GroupedConv;
use crate::analysis::grouped_conv::Spread;
use crate::analysis::grouped_conv::Tiles;
use crate::base::Result;
use crate::emit::contraction::grouped::walk;
use crate::emit::contraction::grouped::walk::Near;
use crate::emit::contraction::grouped::walk::Operand;
use crate::emit::contraction::store::Store;
use crate::emit::contraction::tile;
use crate::emit::cost;
use crate::emit::loop_;
use crate::emit::request::Emitted;
use crate::emit::request::KernelRequest;
use crate::emit::setup::Body;
use crate::emit::setup::Setup;
use crate::emit::share;
use crate::emit::value;
use crate::kernel::BinaryOp;
use crate::kernel::BufId;
use crate::kernel::ExprId;
use crate::kernel::KernelBuilder;
use crate::kernel::Space;
use crate::kernel::Unroll;

/// Elements of the window in the walked dimension up to which their vectors stay in registers.
const KEPT_ELEMENTS: usize = 7;

/// Output features that are walked in vectors of that many.
#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    end: usize,
    lanes: usize,
}

pub(super) fn emit(
    request: &KernelRequest<'_>,
    product: &Product,
    conv: &GroupedConv,
    (spread, along, positions): (Spread, usize, usize),
) -> Result<Emitted> {
    let Setup { mut b, body } = Setup::new(request);
    let launch = {
        let store = Store::new(&body, product);
        let heavy = cost::of_body(&body.el, &body.roots).heavy;
        let scalar = value::register(product.accumulator);
        let staged = (!store.is_plain() && heavy).then(|| {
            let size = (positions * conv.lanes) as u64;
            b.scratch("tile", scalar, size, Space::Private)
        });
        let [input, kernel] = [0, 1].map(|i| {
            let operand = request.module.instr(product.hero).operands[i];
            Operand::new(&body.el, product, operand)
        });
        let emitter = Emitter {
            body: &body,
            product,
            conv,
            spread,
            along,
            tiles: grouped_conv::tiles(conv, along, positions),
            stretches: stretches(conv, loop_::is_in_place(request)),
            store,
            staged,
            input,
            kernel,
        };
        emitter.rows(&mut b)
    };
    body.finish(b, launch)
}

/// Whole vectors, and what is left: with a last vector that overlaps the one before it, where elements
/// may be computed twice, else with shorter ones.
fn stretches(conv: &GroupedConv, once: bool) -> Vec<Stretch> {
    let (features, lanes) = (conv.features(), conv.lanes);
    let whole = if once {
        features / lanes * lanes
    } else {
        features
    };
    let mut out = vec![Stretch {
        start: 0,
        end: whole,
        lanes,
    }];
    let (mut start, mut lanes) = (whole, lanes);
    while start < features {
        lanes /= 2;
        if features - start >= lanes {
            let end = start + lanes;
            out.push(Stretch { start, end, lanes });
            start = end;
        }
    }
    out
}

struct Emitter<'a, 'm> {
    body: &'a Body<'m>,
    product: &'a Product,
    conv: &'a GroupedConv,
    spread: Spread,
    /// The spatial dimension of the tiles.
    along: usize,
    tiles: Vec<Tiles>,
    stretches: Vec<Stretch>,
    store: Store<'a, 'm>,
    /// Sums of one tile on their way to the epilogue.
    staged: Option<BufId>,
    input: Operand<'a, 'm>,
    kernel: Operand<'a, 'm>,
}

/// A tile: its row, which of its kind it is, and its output features.
struct Place<'t> {
    batch: ExprId,
    /// Output positions; that of the walked dimension means nothing.
    spatial: SmallVec<[ExprId; 6]>,
    tiles: &'t Tiles,
    number: ExprId,
    feature: ExprId,
    lanes: usize,
    /// The lanes cross no multiple of this.
    block: i64,
}

/// Where the sums over one position of the other dimensions of the window are read.
struct Around {
    input: Near,
    kernel: Near,
}

impl Emitter<'_, '_> {
    /// All rows of output positions, shared out to tasks; where there are few, so are the features.
    fn rows(&self, b: &mut KernelBuilder) -> crate::executable::Launch {
        let conv = self.conv;
        let mut sizes: SmallVec<[usize; 6]> = SmallVec::new();
        sizes.push(conv.output[conv.dims.output_batch]);
        sizes.extend((0..conv.window.len()).map(|d| match d {
            d if d == self.along => 1,
            d => conv.positions(d),
        }));
        let rows = sizes.iter().product::<usize>() as i64;
        let tasks = walk::tasks(&self.body.el, conv, self.product);
        let vectors = (conv.features() / conv.lanes) as i64;
        let is_even = conv.features().is_multiple_of(conv.lanes);
        let parts = if is_even && rows < tasks {
            let wanted = cost::pieces(tasks, rows).min(vectors);
            cost::pieces(vectors, cost::pieces(vectors, wanted))
        } else {
            1
        };
        let el = &self.body.el;
        share::for_box(b, &el.splits, &[rows, parts], tasks, &mut |b, number| {
            el.scope(|| {
                let (row, part) = el.splits.split(b, number, parts);
                let at = el.splits.unravel(b, &sizes, row);
                let part = (parts > 1).then(|| {
                    let size = cost::pieces(vectors, parts) * conv.lanes as i64;
                    (part, size)
                });
                for tiles in &self.tiles {
                    self.row(b, (at[0], &at[1..]), tiles, part);
                }
            });
        })
    }

    /// The tiles of one kind of a row, over a part of the features of that size or over all.
    fn row(
        &self,
        b: &mut KernelBuilder,
        (batch, spatial): (ExprId, &[ExprId]),
        tiles: &Tiles,
        part: Option<(ExprId, i64)>,
    ) {
        let features = self.conv.features() as i64;
        let el = &self.body.el;
        b.for_range(tiles.count as i64, 1, |b, number| {
            for stretch in &self.stretches {
                let lanes = stretch.lanes as i64;
                let (start, end) = match part {
                    None => (b.index(stretch.start as i64), b.index(stretch.end as i64)),
                    Some((part, size)) => {
                        let start = b.mul_const(part, size);
                        let end = b.add_const(start, size);
                        let bound = b.index(features);
                        (start, b.binary(BinaryOp::SMin, end, bound))
                    }
                };
                let is_even = (stretch.end - stretch.start).is_multiple_of(stretch.lanes);
                let tile = |b: &mut KernelBuilder, feature: ExprId| {
                    el.scope(|| {
                        let last = b.index(features - lanes);
                        let place = Place {
                            batch,
                            spatial: SmallVec::from_slice(spatial),
                            tiles,
                            number,
                            feature: if is_even {
                                feature
                            } else {
                                b.binary(BinaryOp::SMin, feature, last)
                            },
                            lanes: stretch.lanes,
                            block: if is_even { lanes } else { features },
                        };
                        self.tile(b, &place);
                    });
                };
                if part.is_none() && stretch.end - stretch.start == stretch.lanes {
                    tile(b, start);
                } else {
                    let step = b.index(lanes);
                    b.for_loop((start, end, step), tile);
                }
            }
        });
    }

    fn tile(&self, b: &mut KernelBuilder, place: &Place<'_>) {
        let scalar = value::register(self.product.accumulator);
        let zero = tile::zeros(b, scalar, place.lanes);
        let mut sums = vec![zero; place.tiles.positions];
        if place.tiles.elements.iter().any(|e| !e.is_empty()) {
            let zero = b.index(0);
            let rank = self.conv.window.len();
            let at = SmallVec::from_elem((zero, zero), rank);
            sums = self.over_window(b, place, 0, at, sums);
        }
        match self.staged {
            None => {
                for (p, &sum) in sums.iter().enumerate() {
                    let position = b.index(p as i64);
                    self.write(b, place, position, sum);
                }
            }
            Some(staged) => {
                let lanes = place.lanes as i64;
                for (p, &sum) in sums.iter().enumerate() {
                    let at = b.index(p as i64 * lanes);
                    b.store(staged, at, sum);
                }
                b.for_range(sums.len() as i64, 1, |b, position| {
                    let at = b.mul_const(position, lanes);
                    let sum = b.load(staged, at, place.lanes as u16);
                    self.write(b, place, position, sum);
                });
            }
        }
    }

    /// Adds the products over the window from its dimension `d` on; `at` says where the ones before
    /// are, in input and kernel.
    fn over_window(
        &self,
        b: &mut KernelBuilder,
        place: &Place<'_>,
        d: usize,
        at: SmallVec<[(ExprId, ExprId); 4]>,
        sums: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let conv = self.conv;
        if d == conv.window.len() {
            return self.over_inputs(b, place, &at, sums);
        }
        if d == self.along {
            return self.over_window(b, place, d + 1, at, sums);
        }
        let dimension = (&conv.window[d], conv.size(d));
        let position = place.spatial[d];
        let el = &self.body.el;
        let next = &mut |b: &mut KernelBuilder, here, sums| {
            let mut at = at.clone();
            at[d] = here;
            self.over_window(b, place, d + 1, at, sums)
        };
        walk::over_elements(b, el, dimension, position, sums, next)
    }

    /// Adds the products over the input features of the groups and the walked dimension.
    fn over_inputs(
        &self,
        b: &mut KernelBuilder,
        place: &Place<'_>,
        at: &[(ExprId, ExprId)],
        mut sums: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let conv = self.conv;
        let dims = &conv.dims;
        let zero = b.index(0);
        let mut input: SmallVec<[ExprId; 6]> = SmallVec::from_elem(zero, conv.input.len());
        let mut kernel = input.clone();
        for (d, &(from, element)) in at.iter().enumerate() {
            input[dims.input_spatial[d]] = from;
            kernel[dims.kernel_spatial[d]] = element;
        }
        input[dims.input_spatial[self.along]] = b.mul_const(place.number, place.tiles.step);
        input[dims.input_batch] = place.batch;
        input[dims.input_feature] = self.first_input(b, place);
        kernel[dims.kernel_output_feature] = place.feature;
        let around = (input, kernel);
        let inputs = conv.inputs as i64;
        if self.spread == Spread::One && conv.inputs > grouped_conv::WRITTEN_OUT_INPUTS {
            let bounds = (zero, b.index(inputs), b.index(1));
            return b.for_carried(bounds, &sums, Unroll::Never, |b, i, sums| {
                self.body.el.scope(|| {
                    let (mut input, mut kernel) = (around.0.clone(), around.1.clone());
                    input[dims.input_feature] = b.add(input[dims.input_feature], i);
                    kernel[dims.kernel_input_feature] = i;
                    let around = self.around(b, input, kernel);
                    self.products(b, place, &around, 0, sums.to_vec())
                })
            });
        }
        let around = self.around(b, around.0, around.1);
        for i in 0..conv.inputs {
            sums = self.products(b, place, &around, i, sums);
        }
        sums
    }

    fn around(
        &self,
        b: &mut KernelBuilder,
        input: SmallVec<[ExprId; 6]>,
        kernel: SmallVec<[ExprId; 6]>,
    ) -> Around {
        Around {
            input: self.input.near(b, input),
            kernel: self.kernel.near(b, kernel),
        }
    }

    /// The first input feature of the groups of a vector.
    fn first_input(&self, b: &mut KernelBuilder, place: &Place<'_>) -> ExprId {
        let lanes = self.conv.lanes as i64;
        match self.spread {
            Spread::Same => place.feature,
            Spread::One => {
                let group = b.div_const(place.feature, self.conv.outputs as i64);
                b.mul_const(group, self.conv.inputs as i64)
            }
            Spread::Groups { features } => {
                let vector = b.div_const(place.feature, lanes);
                b.mul_const(vector, features as i64)
            }
        }
    }

    /// Adds the products of one input feature of each group over the walked dimension.
    fn products(
        &self,
        b: &mut KernelBuilder,
        place: &Place<'_>,
        around: &Around,
        input: usize,
        mut sums: Vec<ExprId>,
    ) -> Vec<ExprId> {
        let mut terms: Vec<(i64, usize, usize)> = Vec::new();
        for (p, elements) in place.tiles.elements.iter().enumerate() {
            terms.extend(elements.iter().map(|&(element, from)| (from, element, p)));
        }
        // Few elements of the window wait in registers for the input; else the sums wait for both.
        if self.conv.window[self.along].size <= KEPT_ELEMENTS {
            terms.sort_unstable();
        } else {
            terms.sort_unstable_by_key(|&(from, element, _)| (element, from));
        }
        let (mut inputs, mut weights) = (BTreeMap::new(), BTreeMap::new());
        for (from, element, p) in terms {
            let x = *inputs
                .entry(from)
                .or_insert_with(|| self.input(b, place, around, from, input));
            let y = *weights
                .entry(element)
                .or_insert_with(|| self.weight(b, place, around, element, input));
            sums[p] = tile::multiply_add(b, x, y, sums[p]);
        }
        sums
    }

    fn weight(
        &self,
        b: &mut KernelBuilder,
        place: &Place<'_>,
        around: &Around,
        element: usize,
        input: usize,
    ) -> ExprId {
        let dims = &self.conv.dims;
        let w = &self.conv.window[self.along];
        let element = if w.reversal {
            w.size - 1 - element
        } else {
            element
        };
        let distances = [
            (dims.kernel_spatial[self.along], element as i64),
            (dims.kernel_input_feature, input as i64),
        ];
        let run = (place.lanes, place.block);
        self.kernel.read(b, &around.kernel, &distances, run)
    }

    /// Of each group the input feature of that number, beside its output features.
    fn input(
        &self,
        b: &mut KernelBuilder,
        place: &Place<'_>,
        around: &Around,
        from: i64,
        input: usize,
    ) -> ExprId {
        let dims = &self.conv.dims;
        let read = |b: &mut KernelBuilder, feature: usize, run: (usize, i64)| {
            let distances = [
                (dims.input_spatial[self.along], from),
                (dims.input_feature, feature as i64),
            ];
            self.input.read(b, &around.input, &distances, run)
        };
        match self.spread {
            Spread::Same => read(b, 0, (place.lanes, place.block)),
            Spread::One => {
                let x = read(b, input, (1, 1));
                b.splat(x, place.lanes as u16)
            }
            Spread::Groups { features } => {
                let run = features.min(place.lanes);
                let first = read(b, 0, (run, run as i64));
                let second = match features > run {
                    true => read(b, run, (run, run as i64)),
                    false => first,
                };
                let feature = |lane: usize| lane / self.conv.outputs * self.conv.inputs + input;
                let picked: Vec<u16> = (0..place.lanes).map(|l| feature(l) as u16).collect();
                b.shuffle(first, second, &picked)
            }
        }
    }

    /// Writes the sums of a position of a tile.
    fn write(&self, b: &mut KernelBuilder, place: &Place<'_>, position: ExprId, sums: ExprId) {
        let mut spatial = place.spatial.clone();
        let tiles = place.tiles;
        let first = b.mul_const(place.number, tiles.positions as i64);
        let first = b.add_const(first, tiles.start as i64);
        spatial[self.along] = b.add(first, position);
        let el = &self.body.el;
        let what = (self.conv, self.product);
        let at = walk::position(b, el, what, place.batch, &spatial, place.feature);
        self.store.at(b, at, sums, place.block);
    }
}

//! Ops that move elements.

use crate::base::Result;
use crate::front::stablehlo::export::Exporter;
use crate::front::stablehlo::export::attributes;
use crate::front::stablehlo::export::attributes::dims;
use crate::front::stablehlo::export::attributes::int;
use crate::front::stablehlo::export::attributes::map;
use crate::front::stablehlo::types;
use crate::hlo::InstrId;
use crate::hlo::Op;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::ValueId;
use crate::shape::ArrayShape;
use crate::shape::Dims;
use crate::shape::Shape;
use crate::shape::index;

impl Exporter<'_> {
    /// The values of an instruction of this file; nothing for others.
    pub(super) fn movement(&mut self, id: InstrId) -> Result<Option<Vec<ValueId>>> {
        let module = self.module;
        let instr = &module.instrs[id];
        let list = |values: &mut dyn Iterator<Item = i64>| {
            let values: Vec<i64> = values.collect();
            Attr::i64_array(&values)
        };
        let (name, mut attrs) = match &instr.op {
            Op::Copy | Op::Domain(_) => return self.leaves(instr.operands[0]).map(Some),
            Op::Bitcast => return self.bitcast(id).map(Some),
            Op::Iota { dim } => ("iota", map([("iota_dimension", Attr::i64(int(*dim)))])),
            Op::Reshape { .. } => ("reshape", AttrMap::new()),
            Op::Broadcast { dims: of } => (
                "broadcast_in_dim",
                map([("broadcast_dimensions", dims(of))]),
            ),
            Op::Transpose { dims: of } => ("transpose", map([("permutation", dims(of))])),
            Op::Reverse { dims: of } => ("reverse", map([("dimensions", dims(of))])),
            Op::Slice { dims: of } => (
                "slice",
                map([
                    ("start_indices", list(&mut of.iter().map(|d| int(d.start)))),
                    ("limit_indices", list(&mut of.iter().map(|d| int(d.limit)))),
                    ("strides", list(&mut of.iter().map(|d| int(d.stride)))),
                ]),
            ),
            Op::Pad { dims: of } => (
                "pad",
                map([
                    ("edge_padding_low", list(&mut of.iter().map(|d| d.low))),
                    ("edge_padding_high", list(&mut of.iter().map(|d| d.high))),
                    ("interior_padding", list(&mut of.iter().map(|d| d.interior))),
                ]),
            ),
            Op::DynamicSlice { sizes } => ("dynamic_slice", map([("slice_sizes", dims(sizes))])),
            Op::DynamicUpdateSlice => ("dynamic_update_slice", AttrMap::new()),
            Op::Concatenate { dim } => ("concatenate", map([("dimension", Attr::i64(int(*dim)))])),
            Op::GetDimensionSize { dim } => (
                "get_dimension_size",
                map([("dimension", Attr::i64(int(*dim)))]),
            ),
            Op::SetDimensionSize { dim } => (
                "set_dimension_size",
                map([("dimension", Attr::i64(int(*dim)))]),
            ),
            Op::DynamicReshape => return self.dynamic_reshape(id).map(Some),
            Op::Gather {
                dims: of,
                slice_sizes,
                indices_are_sorted,
            } => {
                let entries = vec![
                    ("offset_dims", dims(&of.offset_dims)),
                    ("collapsed_slice_dims", dims(&of.collapsed_slice_dims)),
                    ("operand_batching_dims", dims(&of.operand_batching_dims)),
                    (
                        "start_indices_batching_dims",
                        dims(&of.start_indices_batching_dims),
                    ),
                    ("start_index_map", dims(&of.start_index_map)),
                    ("index_vector_dim", Attr::i64(int(of.index_vector_dim))),
                ];
                let mut attrs = map([
                    ("dimension_numbers", structure("gather", entries)),
                    ("slice_sizes", dims(slice_sizes)),
                ]);
                if *indices_are_sorted {
                    attrs.insert("indices_are_sorted".into(), Attr::Bool(true));
                }
                ("gather", attrs)
            }
            Op::Tuple => return self.all_leaves(&instr.operands).map(Some),
            Op::GetTupleElement { index } => {
                let Some(elements) = module.shape(instr.operands[0]).as_tuple() else {
                    return Err(self.unsupported(id, "an element of what is no tuple"));
                };
                let count = |shape: &Shape| shape.leaves().len();
                let start: usize = elements.iter().take(*index).map(count).sum();
                let end = start + elements.get(*index).map_or(0, count);
                let all = self.leaves(instr.operands[0])?;
                return Ok(all.get(start..end).map(<[ValueId]>::to_vec));
            }
            _ => return Ok(None),
        };
        if let Some(extra) = &instr.extra {
            attributes::discardable(extra, &mut attrs);
        }
        let operands = self.operands(id)?;
        let results = self.types(&instr.shape);
        let name = format!("stablehlo.{name}");
        self.push_op(&name, operands, results, attrs).map(Some)
    }

    /// Sizes that are scalars become a vector.
    fn dynamic_reshape(&mut self, id: InstrId) -> Result<Vec<ValueId>> {
        let instr = &self.module.instrs[id];
        let operands = self.operands(id)?;
        let Some((&x, sizes)) = operands.split_first() else {
            return Err(self.unsupported(id, "no operand"));
        };
        let mut parts = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let element = self.out.ty(size).element().clone();
            let ty = crate::mlir::Type::static_tensor(&[1], element);
            parts.push(self.push_one("stablehlo.reshape", vec![size], ty, AttrMap::new())?);
        }
        let vector = match parts.first() {
            None => self.int_constant(&[])?,
            Some(&first) => {
                let element = self.out.ty(first).element().clone();
                let ty = crate::mlir::Type::static_tensor(&[parts.len() as u64], element);
                let attrs = map([("dimension", Attr::i64(0))]);
                self.push_one("stablehlo.concatenate", parts, ty, attrs)?
            }
        };
        let results = self.types(&instr.shape);
        let name = "stablehlo.dynamic_reshape";
        self.push_op(name, vec![x, vector], results, AttrMap::new())
    }

    /// The same bytes: the elements in the order of memory, under other sizes and another layout.
    fn bitcast(&mut self, id: InstrId) -> Result<Vec<ValueId>> {
        let module = self.module;
        let x = self.one(module.instrs[id].operands[0])?;
        let source = module.shape(module.instrs[id].operands[0]).as_array();
        let target = module.shape(id).as_array();
        let (Some(source), Some(target)) = (source, target) else {
            return Err(self.unsupported(id, "a bitcast of what is no array"));
        };
        let widths = (source.ty.bit_width(), target.ty.bit_width());
        if widths.0 != widths.1 || source.is_dynamic() || target.is_dynamic() {
            return Err(self.unsupported(id, "a bitcast that changes the width of elements"));
        }
        let (from, to) = (memory_order(source), memory_order(target));
        let mut value = x;
        let mut sizes: Dims = from.iter().map(|&d| source.dims[d]).collect();
        if !from.is_sorted() {
            let ty = types::type_of(&Shape::array(source.ty, sizes.iter().copied()));
            let attrs = map([("permutation", dims(&from))]);
            value = self.push_one("stablehlo.transpose", vec![value], ty, attrs)?;
        }
        let physical: Dims = to.iter().map(|&d| target.dims[d]).collect();
        if physical != sizes {
            sizes = physical;
            let ty = types::type_of(&Shape::array(source.ty, sizes.iter().copied()));
            value = self.push_one("stablehlo.reshape", vec![value], ty, AttrMap::new())?;
        }
        if !to.is_sorted() {
            let back = index::inverse_permutation(&to);
            let ty = types::type_of(&Shape::array(source.ty, target.dims.iter().copied()));
            let attrs = map([("permutation", dims(&back))]);
            value = self.push_one("stablehlo.transpose", vec![value], ty, attrs)?;
        }
        if source.ty != target.ty {
            let ty = types::type_of(&Shape::array(target.ty, target.dims.iter().copied()));
            value = self.push_one("stablehlo.bitcast_convert", vec![value], ty, AttrMap::new())?;
        }
        Ok(vec![value])
    }
}

/// The dimensions of an array from major to minor.
fn memory_order(array: &ArrayShape) -> Dims {
    let layout = array.layout_or_default();
    layout.minor_to_major.iter().rev().copied().collect()
}

/// A structure of the dialect.
pub fn structure(kind: &str, entries: Vec<(&str, Attr)>) -> Attr {
    let zero = |attr: &Attr| attr.as_int() == Some(0);
    let entries = entries.into_iter().filter(|e| !zero(&e.1)).collect();
    Attr::structure("stablehlo", kind, attributes::fields(entries))
}

//! Attributes of dialects in MLIR text: `#stablehlo<precision HIGH>`, `#stablehlo.dot<...>`.

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::text::Reader;
use crate::mlir::types::Name;
use crate::mlir::types::Type;

/// What a field of a structured attribute holds.
#[derive(Clone, Copy)]
enum Field {
    /// `[0, 1]`
    Ints,
    /// `3`
    Int,
    /// `true`
    Bool,
    /// `f32`
    Type,
    /// `1.0e-3`, of type `f64`
    Float,
    /// `"x"`
    String,
    /// Any attribute
    Attr,
    /// `(1)2`
    SubAxis,
    /// `[<name = "x", size = 2>]`
    Axes,
}

/// Fields in the order in which the dialect prints them.
const STRUCTS: &[(&str, &[(&str, Field)])] = &[
    (
        "axis_ref",
        &[("name", Field::String), ("sub_axis_info", Field::SubAxis)],
    ),
    (
        "channel_handle",
        &[("handle", Field::Int), ("type", Field::Int)],
    ),
    (
        "dot",
        &[
            ("lhs_batching_dimensions", Field::Ints),
            ("rhs_batching_dimensions", Field::Ints),
            ("lhs_contracting_dimensions", Field::Ints),
            ("rhs_contracting_dimensions", Field::Ints),
        ],
    ),
    (
        "dot_algorithm",
        &[
            ("lhs_precision_type", Field::Type),
            ("rhs_precision_type", Field::Type),
            ("accumulation_type", Field::Type),
            ("lhs_component_count", Field::Int),
            ("rhs_component_count", Field::Int),
            ("num_primitive_operations", Field::Int),
            ("allow_imprecise_accumulation", Field::Bool),
        ],
    ),
    (
        "gather",
        &[
            ("offset_dims", Field::Ints),
            ("collapsed_slice_dims", Field::Ints),
            ("operand_batching_dims", Field::Ints),
            ("start_indices_batching_dims", Field::Ints),
            ("start_index_map", Field::Ints),
            ("index_vector_dim", Field::Int),
        ],
    ),
    (
        "mesh",
        &[("axes", Field::Axes), ("device_ids", Field::Attr)],
    ),
    (
        "mesh_axis",
        &[("name", Field::String), ("size", Field::Int)],
    ),
    (
        "output_operand_alias",
        &[
            ("output_tuple_indices", Field::Ints),
            ("operand_index", Field::Int),
            ("operand_tuple_indices", Field::Ints),
        ],
    ),
    (
        "ragged_dot",
        &[
            ("lhs_batching_dimensions", Field::Ints),
            ("rhs_batching_dimensions", Field::Ints),
            ("lhs_contracting_dimensions", Field::Ints),
            ("rhs_contracting_dimensions", Field::Ints),
            ("lhs_ragged_dimensions", Field::Ints),
            ("rhs_group_dimensions", Field::Ints),
        ],
    ),
    (
        "replica_group_mesh_axes",
        &[("mesh", Field::Attr), ("axes", Field::Attr)],
    ),
    (
        "result_accuracy",
        &[
            ("atol", Field::Float),
            ("rtol", Field::Float),
            ("ulps", Field::Int),
            ("mode", Field::Attr),
        ],
    ),
    (
        "scatter",
        &[
            ("update_window_dims", Field::Ints),
            ("inserted_window_dims", Field::Ints),
            ("input_batching_dims", Field::Ints),
            ("scatter_indices_batching_dims", Field::Ints),
            ("scatter_dims_to_operand_dims", Field::Ints),
            ("index_vector_dim", Field::Int),
        ],
    ),
];

/// The parts of a convolution's dimension numbers, in the order of their fields.
const CONV_FIELDS: [&str; 9] = [
    "input_batch_dimension",
    "input_feature_dimension",
    "input_spatial_dimensions",
    "kernel_input_feature_dimension",
    "kernel_output_feature_dimension",
    "kernel_spatial_dimensions",
    "output_batch_dimension",
    "output_feature_dimension",
    "output_spatial_dimensions",
];

impl<'a> Reader<'a> {
    /// `#alias`, `#dialect<...>` or `#dialect.kind<...>`.
    pub(super) fn hash_attr(&mut self) -> Result<Attr> {
        self.scan.expect("#")?;
        let start = self.scan.pos() - 1;
        let name = self.scan.suffix()?;
        let (dialect, kind) = match name.split_once('.') {
            Some(parts) => parts,
            None if self.scan.byte(0) != b'<' => return self.alias(b'#', name, start),
            None => (name, ""),
        };
        match dialect {
            "stablehlo" | "mhlo" => {
                if let Some(attr) = self.hlo_attr("stablehlo", kind)? {
                    return Ok(attr);
                }
            }
            "chlo" => {
                if let Some(attr) = self.hlo_attr("chlo", kind)? {
                    return Ok(attr);
                }
            }
            "sdy" => {
                if let Some(attr) = self.sdy_attr(kind)? {
                    return Ok(attr);
                }
            }
            _ => {}
        }
        if self.scan.byte(0) == b'<' {
            self.scan.bracketed()?;
        }
        let text = &self.scan.text()[start..self.scan.pos()];
        Ok(Attr::Opaque(self.names.get(text)))
    }
    /// An attribute of StableHLO or CHLO after its name; nothing, without having moved, when the
    /// kind is not known.
    fn hlo_attr(&mut self, dialect: &str, kind: &'a str) -> Result<Option<Attr>> {
        if kind.is_empty() {
            self.scan.expect("<")?;
            let Some(kind) = self.scan.keyword() else {
                return Err(self.scan.unexpected("the kind of an attribute"));
            };
            if self.scan.sees("<") {
                let attr = self.hlo_attr(dialect, kind)?;
                let Some(attr) = attr else {
                    return Err(self.scan.unexpected("an attribute that is known"));
                };
                self.scan.expect(">")?;
                return Ok(Some(attr));
            }
            let case = self.case()?;
            self.scan.expect(">")?;
            return Ok(Some(Attr::enumeration(dialect, kind, case)));
        }
        if kind == "conv" {
            self.scan.expect("<")?;
            let raw = self.scan.eat_keyword("raw");
            let attr = match raw {
                true => self.conv_fields()?,
                false => self.conv_dimensions()?,
            };
            self.scan.expect(">")?;
            return Ok(Some(attr));
        }
        if matches!(kind, "bounds" | "type_extensions") {
            return self.bounds(kind == "bounds").map(Some);
        }
        if let Ok(found) = STRUCTS.binary_search_by(|s| s.0.cmp(kind)) {
            return self.structure(dialect, kind, STRUCTS[found].1).map(Some);
        }
        if self.scan.byte(0) != b'<' {
            return Ok(None);
        }
        let back = self.scan.pos();
        self.scan.expect("<")?;
        if let Some(case) = self.scan.keyword()
            && self.scan.eat(">")
        {
            return Ok(Some(Attr::enumeration(dialect, kind, case)));
        }
        self.scan.set_pos(back);
        Ok(None)
    }
    /// A case of an enumeration.
    pub(super) fn case(&mut self) -> Result<&'a str> {
        match self.scan.keyword() {
            Some(case) => Ok(case),
            None => Err(self.scan.unexpected("a case of an enumeration")),
        }
    }
    /// `<4, ?>`, or `<bounds = [4, ?]>`.
    fn bounds(&mut self, bare: bool) -> Result<Attr> {
        self.scan.expect("<")?;
        let close = if bare { ">" } else { "]" };
        if !bare {
            self.scan.expect_keyword("bounds")?;
            self.scan.expect("=")?;
            self.scan.expect("[")?;
        }
        let mut bounds = Vec::new();
        while !self.scan.eat(close) {
            if !bounds.is_empty() {
                self.scan.expect(",")?;
            }
            bounds.push(self.size()?);
        }
        if !bare {
            self.scan.expect(">")?;
        }
        let fields = vec![("bounds".into(), Attr::i64_array(&bounds))];
        Ok(Attr::structure("stablehlo", "bounds", fields))
    }
    /// An integer, or `?`.
    fn size(&mut self) -> Result<i64> {
        match self.scan.eat("?") {
            true => Ok(Attr::DYNAMIC),
            false => self.scan.integer(),
        }
    }
    /// `[0, 1]`.
    pub(super) fn ints(&mut self) -> Result<Vec<i64>> {
        self.scan.expect("[")?;
        let mut values = Vec::new();
        while !self.scan.eat("]") {
            if !values.is_empty() {
                self.scan.expect(",")?;
            }
            values.push(self.size()?);
        }
        Ok(values)
    }
    /// `<a = 1, b = [2]>`: a struct of the table.
    pub(super) fn structure_of(&mut self, dialect: &str, kind: &str) -> Result<Attr> {
        let found = STRUCTS.binary_search_by(|s| s.0.cmp(kind));
        let fields = found.map_or(&[][..], |at| STRUCTS[at].1);
        self.structure(dialect, kind, fields)
    }
    /// Fields in any order between `<` and `>`; those that are absent or have their default value
    /// are left out.
    fn structure(&mut self, dialect: &str, kind: &str, known: &[(&str, Field)]) -> Result<Attr> {
        self.scan.expect("<")?;
        let mut found: Vec<Option<Attr>> = vec![None; known.len()];
        let mut seen = vec![false; known.len()];
        let mut first = true;
        while !self.scan.eat(">") {
            // A comma may stand before the closing `>`.
            if !first && self.scan.eat(",") && self.scan.eat(">") {
                break;
            }
            first = false;
            let word = self.scan.peek_keyword();
            let Some(at) = known.iter().position(|f| Some(f.0) == word) else {
                let names: Vec<&str> = known.iter().map(|f| f.0).collect();
                let wanted = format!("one of `{}`", names.join("`, `"));
                return Err(self.scan.unexpected(&wanted));
            };
            if seen[at] {
                return Err(self.scan.unexpected("a field that was not set before"));
            }
            seen[at] = true;
            self.scan.eat_keyword(known[at].0);
            self.scan.expect("=")?;
            found[at] = self.field(dialect, known[at].1)?;
        }
        let pairs = known.iter().zip(found);
        let fields = pairs.filter_map(|(f, attr)| Some((Name::from(f.0), attr?)));
        Ok(Attr::structure(dialect, kind, fields.collect()))
    }
    /// A field's value, when it is not the default.
    fn field(&mut self, dialect: &str, field: Field) -> Result<Option<Attr>> {
        Ok(match field {
            Field::Ints => {
                let ints = self.ints()?;
                (!ints.is_empty()).then(|| Attr::i64_array(&ints))
            }
            Field::Int => {
                let value = self.scan.integer()?;
                (value != 0).then(|| Attr::i64(value))
            }
            Field::Bool => {
                let value = self.scan.eat_keyword("true");
                if !value && !self.scan.eat_keyword("false") {
                    return Err(self.scan.unexpected("`true` or `false`"));
                }
                value.then_some(Attr::Bool(true))
            }
            Field::Float => {
                let bits = self.float64()?.to_bits();
                (bits << 1 != 0).then_some(Attr::Float {
                    bits,
                    ty: Type::F64,
                })
            }
            Field::Type => Some(Attr::Type(self.ty()?)),
            Field::String => Some(Attr::String(self.scan.string()?.into())),
            Field::Attr => Some(self.nested(|r| r.attr())?),
            Field::SubAxis => {
                self.scan.expect("(")?;
                let pre_size = self.scan.integer()?;
                self.scan.expect(")")?;
                let size = self.scan.integer()?;
                let parts = [("pre_size", pre_size), ("size", size)].into_iter();
                let parts = parts.filter(|part| part.1 != 0);
                let parts = parts.map(|(name, value)| (name.into(), Attr::i64(value)));
                Some(Attr::structure(dialect, "sub_axis_info", parts.collect()))
            }
            Field::Axes => {
                self.scan.expect("[")?;
                let mut axes = Vec::new();
                while !self.scan.eat("]") {
                    if !axes.is_empty() {
                        self.scan.expect(",")?;
                    }
                    axes.push(self.nested(|r| match r.scan.sees("#") {
                        true => r.hash_attr(),
                        false => r.structure_of(dialect, "mesh_axis"),
                    })?);
                }
                Some(Attr::array(axes))
            }
        })
    }
    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
    pub(super) fn conv_dimensions(&mut self) -> Result<Attr> {
        let input = self.conv_side([b'b', b'f'])?;
        self.scan.expect("x")?;
        let kernel = self.conv_side([b'i', b'o'])?;
        self.scan.expect("->")?;
        let output = self.conv_side([b'b', b'f'])?;
        let sides = [input, kernel, output];
        let parts = sides.into_iter().flat_map(|(named, spatial)| {
            let [first, second] = named.map(|n| (n != 0).then(|| Attr::i64(n)));
            let spatial = (!spatial.is_empty()).then(|| Attr::i64_array(&spatial));
            [first, second, spatial]
        });
        let fields = CONV_FIELDS.iter().zip(parts);
        let fields = fields.filter_map(|(name, attr)| Some((Name::from(*name), attr?)));
        Ok(Attr::structure("stablehlo", "conv", fields.collect()))
    }
    /// One side: the positions of the two dimensions with these names, and of the spatial ones.
    fn conv_side(&mut self, names: [u8; 2]) -> Result<([i64; 2], Vec<i64>)> {
        self.scan.expect("[")?;
        let start = self.scan.pos();
        let mut named = [None; 2];
        let mut spatial: Vec<(u64, i64)> = Vec::new();
        let mut index = 0;
        while !self.scan.eat("]") {
            if index > 0 {
                self.scan.expect(",")?;
            }
            let next = self.scan.peek();
            if next.is_ascii_digit() {
                spatial.push((self.scan.number()?, index));
            } else if let Some(at) = names.iter().position(|n| *n == next)
                && named[at].is_none()
            {
                self.scan.set_pos(self.scan.pos() + 1);
                named[at] = Some(index);
            } else {
                let [a, b] = names.map(char::from);
                let wanted = format!("`{a}`, `{b}` or a number, each once");
                return Err(self.scan.unexpected(&wanted));
            }
            index += 1;
        }
        spatial.sort_unstable();
        let in_order = spatial.iter().enumerate().all(|(i, s)| i as u64 == s.0);
        match named {
            [Some(a), Some(b)] if in_order => {
                Ok(([a, b], spatial.into_iter().map(|s| s.1).collect()))
            }
            _ => Err(self
                .scan
                .error_at(start, "dimension numbers that lack a dimension")),
        }
    }
    /// The fields of dimension numbers one by one, up to `>`.
    fn conv_fields(&mut self) -> Result<Attr> {
        let mut found = [const { None }; CONV_FIELDS.len()];
        let mut first = true;
        while !self.scan.sees(">") {
            if !first {
                self.scan.expect(",")?;
            }
            first = false;
            let word = self.scan.keyword();
            let Some(at) = CONV_FIELDS.iter().position(|f| Some(*f) == word) else {
                return Err(self.scan.unexpected("a field of dimension numbers"));
            };
            self.scan.expect("=")?;
            let kind = match CONV_FIELDS[at].ends_with("dimensions") {
                true => Field::Ints,
                false => Field::Int,
            };
            found[at] = self.field("stablehlo", kind)?;
        }
        let fields = CONV_FIELDS.iter().zip(found);
        let fields = fields.filter_map(|(name, attr)| Some((Name::from(*name), attr?)));
        Ok(Attr::structure("stablehlo", "conv", fields.collect()))
    }
}

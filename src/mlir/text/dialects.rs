//! Attributes of dialects in MLIR text: `#stablehlo<precision HIGH>`, `#stablehlo.dot<...>`.

use crate::base::Result;
use crate::mlir::attrs::Attr;
use crate::mlir::structure::integer_fields;
use crate::mlir::structure::is_single;
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

/// Structures whose fields are not all integers or lists of them, by name; and one of CHLO.
const STRUCTS: &[(&str, &[(&str, Field)])] = &[
    (
        "axis_ref",
        &[("name", Field::String), ("sub_axis_info", Field::SubAxis)],
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
        "mesh",
        &[("axes", Field::Axes), ("device_ids", Field::Attr)],
    ),
    (
        "mesh_axis",
        &[("name", Field::String), ("size", Field::Int)],
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
];

/// The fields of a structured attribute, when it is known, in the order in which the dialect prints
/// them.
fn fields_of(kind: &str) -> Option<Vec<(&'static str, Field)>> {
    if let Ok(found) = STRUCTS.binary_search_by(|known| known.0.cmp(kind)) {
        return Some(STRUCTS[found].1.to_vec());
    }
    let field = |name: &&'static str| match is_single(name) {
        true => (*name, Field::Int),
        false => (*name, Field::Ints),
    };
    Some(integer_fields(kind)?.iter().map(field).collect())
}

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
            let attr = match kind {
                "sub_axis_info" => self.field(dialect, Field::SubAxis)?,
                _ => Attr::enumeration(dialect, kind, self.case()?),
            };
            self.scan.expect(">")?;
            return Ok(Some(attr));
        }
        if kind == "conv" {
            self.scan.expect("<")?;
            if self.scan.eat_keyword("raw") {
                let fields = fields_of(kind).unwrap_or_default();
                return self.fields(dialect, kind, &fields).map(Some);
            }
            let attr = self.conv_dimensions()?;
            self.scan.expect(">")?;
            return Ok(Some(attr));
        }
        if matches!(kind, "bounds" | "type_extensions") {
            return self.bounds(kind == "bounds").map(Some);
        }
        if let Some(fields) = fields_of(kind) {
            return self.structure(dialect, kind, &fields).map(Some);
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
        let bounds = match bare {
            true => self.items(["<", ">"], Self::size)?,
            false => {
                self.scan.expect("<")?;
                self.scan.expect_keyword("bounds")?;
                self.scan.expect("=")?;
                let bounds = self.ints()?;
                self.scan.expect(">")?;
                bounds
            }
        };
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
        self.items(["[", "]"], Self::size)
    }
    /// `<a = 1, b = [2]>`: a struct of the table.
    pub(super) fn structure_of(&mut self, dialect: &str, kind: &str) -> Result<Attr> {
        self.structure(dialect, kind, &fields_of(kind).unwrap_or_default())
    }
    /// Fields in any order between `<` and `>`; those that are absent or have their default value
    /// are left out.
    fn structure(
        &mut self,
        dialect: &str,
        kind: &str,
        known: &[(&'static str, Field)],
    ) -> Result<Attr> {
        self.scan.expect("<")?;
        self.fields(dialect, kind, known)
    }
    /// As [`Self::structure`], behind the `<`.
    fn fields(
        &mut self,
        dialect: &str,
        kind: &str,
        known: &[(&'static str, Field)],
    ) -> Result<Attr> {
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
            let attr = self.field(dialect, known[at].1)?;
            found[at] = (!attr.is_default_field()).then_some(attr);
        }
        let pairs = known.iter().zip(found);
        let fields = pairs.filter_map(|(f, attr)| Some((Name::from(f.0), attr?)));
        Ok(Attr::structure(dialect, kind, fields.collect()))
    }
    /// A field's value.
    fn field(&mut self, dialect: &str, field: Field) -> Result<Attr> {
        Ok(match field {
            Field::Ints => Attr::i64_array(&self.ints()?),
            Field::Int => Attr::i64(self.scan.integer()?),
            Field::Bool => {
                let value = self.scan.eat_keyword("true");
                if !value && !self.scan.eat_keyword("false") {
                    return Err(self.scan.unexpected("`true` or `false`"));
                }
                Attr::Bool(value)
            }
            Field::Float => Attr::Float {
                bits: self.float64()?.to_bits(),
                ty: Type::F64,
            },
            Field::Type => Attr::Type(self.ty()?),
            Field::String => Attr::String(self.scan.string()?.into()),
            Field::Attr => self.nested(|r| r.attr())?,
            Field::SubAxis => {
                self.scan.expect("(")?;
                let pre_size = self.scan.integer()?;
                self.scan.expect(")")?;
                let size = self.scan.integer()?;
                let parts = [("pre_size", pre_size), ("size", size)].into_iter();
                let parts = parts.filter(|part| part.1 != 0);
                let parts = parts.map(|(name, value)| (name.into(), Attr::i64(value)));
                Attr::structure(dialect, "sub_axis_info", parts.collect())
            }
            Field::Axes => {
                let axes = self.items(["[", "]"], |r| {
                    r.nested(|r| match r.scan.sees("#") {
                        true => r.hash_attr(),
                        false => r.structure_of(dialect, "mesh_axis"),
                    })
                })?;
                Attr::array(axes)
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
        let names = integer_fields("conv").unwrap_or_default();
        let fields = names.iter().zip(parts);
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
}

//! The values of attributes. The name of an attribute says what form its value has.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::base::Cursor;
use crate::base::Result;
use crate::base::codes;
use crate::collective::MeshAxis;
use crate::collective::expand_iota;
use crate::collective::expand_mesh;
use crate::front::hlo_text::Reader;
use crate::front::hlo_text::attributes::Aliasing;
use crate::hlo::CompId;
use crate::hlo::ConvDims;
use crate::hlo::Domain;
use crate::hlo::OpMetadata;
use crate::hlo::PadDim;
use crate::hlo::Precision;
use crate::hlo::ReplicaGroups;
use crate::hlo::Sharding;
use crate::hlo::SliceDim;
use crate::hlo::Window;
use crate::hlo::WindowDim;
use crate::literal::Literal;
use crate::shape::Dims;
use crate::shape::Shape;
use crate::shape::text as shape_text;

/// The value of one attribute.
pub(super) enum Value<'a> {
    Int(i64),
    Bool(bool),
    Float(f64),
    Word(&'a str, usize),
    Text(Vec<u8>),
    Ints(Vec<i64>),
    IntLists(Vec<Vec<i64>>),
    Comp(CompId),
    Comps(Vec<CompId>),
    Window(Window),
    ConvDims(Box<ConvDims>),
    Pads(SmallVec<[PadDim; 4]>),
    Slices(SmallVec<[SliceDim; 4]>),
    Shape(Shape),
    Shapes(Vec<Shape>),
    Literal(Literal),
    Precisions(SmallVec<[Precision; 2]>),
    Aliasing(Aliasing),
    Groups(ReplicaGroups),
    Bools(Vec<bool>),
    Sharding(Sharding),
    Metadata(Box<OpMetadata>),
    Pairs(BTreeMap<String, String>),
    Names(Vec<(&'a str, usize)>),
    Domain(Box<Domain>),
    Raw(String),
}

impl<'a> Reader<'a> {
    /// The value of the attribute `name`, which stands at `place`.
    pub(super) fn value(&mut self, name: &'a str, place: usize) -> Result<Value<'a>> {
        Ok(match name {
            "index"
            | "channel_id"
            | "iota_dimension"
            | "feature_group_count"
            | "batch_group_count"
            | "feature_index"
            | "exponent_bits"
            | "mantissa_bits"
            | "delta"
            | "k"
            | "num_carries"
            | "index_vector_dim"
            | "inferred_dimension"
            | "cross_program_prefetch_index" => Value::Int(self.cursor.integer()?),
            "is_stable"
            | "lower"
            | "left_side"
            | "unit_diagonal"
            | "indices_are_sorted"
            | "unique_indices"
            | "constrain_layout"
            | "use_global_device_ids"
            | "is_host_transfer"
            | "custom_call_has_side_effect"
            | "is_composite"
            | "largest"
            | "is_reverse"
            | "is_associative" => Value::Bool(self.bool()?),
            "epsilon" => Value::Float(self.cursor.float()?),
            "direction" | "type" | "kind" | "distribution" | "algorithm" | "fft_type"
            | "transpose_a" | "schedule" | "api_version" | "padding_type" | "mode"
            | "conv_kind" => self.keyword_value()?,
            "custom_call_target"
            | "infeed_config"
            | "outfeed_config"
            | "async_execution_thread" => Value::Text(self.cursor.string()?),
            "backend_config" => Value::Text(self.string_or_dict()?),
            "dimensions"
            | "fft_length"
            | "dynamic_slice_sizes"
            | "lhs_contracting_dims"
            | "rhs_contracting_dims"
            | "lhs_batch_dims"
            | "rhs_batch_dims"
            | "lhs_ragged_dims"
            | "rhs_group_dims"
            | "offset_dims"
            | "collapsed_slice_dims"
            | "start_index_map"
            | "operand_batching_dims"
            | "start_indices_batching_dims"
            | "update_window_dims"
            | "inserted_window_dims"
            | "scatter_dims_to_operand_dims"
            | "input_batching_dims"
            | "scatter_indices_batching_dims"
            | "slice_sizes"
            | "source_target_pairs" => self.integers_or_lists()?,
            "to_apply" | "calls" | "condition" | "body" | "select" | "scatter"
            | "true_computation" | "false_computation" => Value::Comp(self.callee()?),
            "branch_computations" | "called_computations" => Value::Comps(self.callees()?),
            "window" => Value::Window(self.window()?),
            "dim_labels" => Value::ConvDims(Box::new(self.conv_dims()?)),
            "padding" => Value::Pads(self.pads()?),
            "slice" => Value::Slices(self.slices()?),
            "outfeed_shape" => Value::Shape(shape_text::parse(&mut self.cursor)?),
            "operand_layout_constraints" => {
                Value::Shapes(self.cursor.list("{", "}", shape_text::parse)?)
            }
            "literal" => Value::Literal(crate::literal::text::parse_with_shape(&mut self.cursor)?),
            "operand_precision" => Value::Precisions(self.precisions()?),
            "output_to_operand_aliasing" => Value::Aliasing(self.aliasing()?),
            "replica_groups" => Value::Groups(self.replica_groups()?),
            "parameter_replication" => Value::Bools(self.bools()?),
            "sharding" => Value::Sharding(self.sharding()?),
            "metadata" => Value::Metadata(Box::new(self.metadata()?)),
            "frontend_attributes" => Value::Pairs(self.frontend_attributes()?),
            "control-predecessors" => Value::Names(self.names_list()?),
            "domain" => Value::Domain(Box::new(self.domain()?)),
            "statistics" | "origin" | "result_accuracy" => {
                let text = self.cursor.braced()?;
                Value::Raw(text[1..text.len() - 1].to_owned())
            }
            "sparsity" => {
                let ends = |b: u8| b == b',' || b.is_ascii_whitespace();
                Value::Raw(self.cursor.raw_value(ends)?.to_owned())
            }
            _ => return Err(self.unknown(place, "attribute that is known", name)),
        })
    }

    fn keyword_value(&mut self) -> Result<Value<'a>> {
        self.cursor.skip_space();
        let place = self.cursor.pos();
        Ok(Value::Word(self.keyword()?, place))
    }

    fn keyword(&mut self) -> Result<&'a str> {
        match self.cursor.word() {
            Some(word) => Ok(word),
            None => Err(self.cursor.unexpected("a word")),
        }
    }

    /// A quoted string, unescaped, or `{...}` as it stands.
    fn string_or_dict(&mut self) -> Result<Vec<u8>> {
        if self.cursor.peek() == b'{' {
            Ok(self.cursor.braced()?.as_bytes().to_vec())
        } else {
            self.cursor.string()
        }
    }

    /// `{1,2}` or `{{1,2},{3,4}}`
    fn integers_or_lists(&mut self) -> Result<Value<'a>> {
        let start = self.cursor.pos();
        self.cursor.expect("{")?;
        let nested = self.cursor.peek() == b'{';
        self.cursor.set_pos(start);
        Ok(if nested {
            Value::IntLists(
                self.cursor
                    .list("{", "}", |c| c.list("{", "}", Cursor::integer))?,
            )
        } else {
            Value::Ints(self.integers()?)
        })
    }

    /// The name of a computation that is defined, or a computation in braces.
    fn callee(&mut self) -> Result<CompId> {
        if self.cursor.peek() == b'{' {
            let comp = self.body()?;
            self.unnamed.push((comp, "inline"));
            return Ok(comp);
        }
        let (name, place) = self.name("a computation")?;
        self.names.get(name).copied().ok_or_else(|| {
            let message = format!("no computation `{name}` is defined before this place");
            self.cursor.diagnostic(codes::TEXT_NAME, place, message)
        })
    }

    fn callees(&mut self) -> Result<Vec<CompId>> {
        self.cursor.expect("{")?;
        let mut out = Vec::new();
        while !self.cursor.eat("}") {
            if !out.is_empty() {
                self.cursor.expect(",")?;
            }
            out.push(self.callee()?);
        }
        Ok(out)
    }

    fn names_list(&mut self) -> Result<Vec<(&'a str, usize)>> {
        self.cursor.expect("{")?;
        let mut out = Vec::new();
        while !self.cursor.eat("}") {
            if !out.is_empty() {
                self.cursor.expect(",")?;
            }
            out.push(self.name("an instruction")?);
        }
        Ok(out)
    }

    /// `true`, or `{true,false}`
    pub(super) fn bools(&mut self) -> Result<Vec<bool>> {
        if !self.cursor.eat("{") {
            return Ok(vec![self.bool()?]);
        }
        let mut out = Vec::new();
        while !self.cursor.eat("}") {
            if !out.is_empty() {
                self.cursor.expect(",")?;
            }
            out.push(self.bool()?);
        }
        Ok(out)
    }

    fn precisions(&mut self) -> Result<SmallVec<[Precision; 2]>> {
        let list = self.cursor.list("{", "}", |c| {
            c.skip_space();
            let place = c.pos();
            let word = c.word().unwrap_or_default();
            Precision::from_name(word).ok_or_else(|| {
                c.set_pos(place);
                c.unexpected("a precision")
            })
        })?;
        // Asking every operand for the default is asking nothing.
        if list.iter().all(|p| *p == Precision::Default) {
            return Ok(SmallVec::new());
        }
        Ok(SmallVec::from_vec(list))
    }

    /// `{ {0}: (1, {}), ... }`
    fn aliasing(&mut self) -> Result<Aliasing> {
        self.cursor.list("{", "}", |c| {
            let result = c.list("{", "}", Cursor::integer)?;
            c.expect(":")?;
            c.expect("(")?;
            let operand = c.integer()?;
            c.expect(",")?;
            let index = c.list("{", "}", Cursor::integer)?;
            // Fusions may add the word of the alias kind, which says nothing more.
            if c.eat(",") && c.word().is_none() {
                return Err(c.unexpected("a word"));
            }
            c.expect(")")?;
            Ok((result, operand, index))
        })
    }

    /// `{{0,1},{2,3}}`, `[2,4]<=[4,2]T(1,0)`, or axes of a mesh, which are written out.
    fn replica_groups(&mut self) -> Result<ReplicaGroups> {
        match self.cursor.peek() {
            b'{' => {
                let groups = self
                    .cursor
                    .list("{", "}", |c| c.list("{", "}", Cursor::integer))?;
                Ok(ReplicaGroups::List(groups))
            }
            b'[' => {
                let dims = self.cursor.list("[", "]", Cursor::integer)?;
                self.cursor.expect("<=")?;
                let (reshape, transpose) = self.iota()?;
                Ok(ReplicaGroups::Iota {
                    dims,
                    reshape,
                    transpose,
                })
            }
            _ => self.mesh_groups().map(ReplicaGroups::List),
        }
    }

    /// `mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b', 'a':(1)2}`: groups along axes of a mesh.
    fn mesh_groups(&mut self) -> Result<Vec<Vec<i64>>> {
        let begin = self.cursor.pos();
        if !self.eat_word("mesh") {
            return Err(self.cursor.unexpected("groups of replicas"));
        }
        let mesh = self.cursor.list("[", "]", |c| {
            let name = c.utf8_string()?;
            c.expect("=")?;
            Ok((name, c.integer()?))
        })?;
        let mut devices = Vec::new();
        if self.cursor.eat(",") {
            if !self.eat_word("device_ids") {
                return Err(self.cursor.unexpected("`device_ids`"));
            }
            self.cursor.expect("=")?;
            self.cursor.expect("(")?;
            if self.cursor.peek() == b'[' {
                let (reshape, transpose) = self.iota()?;
                let listed = expand_iota(&reshape, &reshape, &transpose);
                devices = listed.unwrap_or_default().concat();
            } else {
                devices.push(self.cursor.integer()?);
                while self.cursor.eat(",") {
                    devices.push(self.cursor.integer()?);
                }
            }
            self.cursor.expect(")")?;
        }
        let axes = self.cursor.list("{", "}", |c| {
            let place = c.pos();
            let name = c.utf8_string()?;
            let axis = mesh.iter().position(|(known, _)| *known == name);
            let axis =
                axis.ok_or_else(|| c.error_at(place, format!("no axis is called `{name}`")))?;
            let mut part = None;
            if c.eat(":") {
                c.expect("(")?;
                let before = c.integer()?;
                c.expect(")")?;
                part = Some((before, c.integer()?));
            }
            Ok(MeshAxis { axis, part })
        })?;
        let sizes: Vec<i64> = mesh.iter().map(|(_, size)| *size).collect();
        let groups = expand_mesh(&sizes, &devices, &axes);
        groups.ok_or_else(|| {
            self.cursor
                .error_at(begin, "groups that do not fit their mesh")
        })
    }

    /// `[4,2]T(1,0)`: dimensions, and their permutation.
    pub(super) fn iota(&mut self) -> Result<(Vec<i64>, Vec<i64>)> {
        let reshape = self.cursor.list("[", "]", Cursor::integer)?;
        self.cursor.skip_space();
        let place = self.cursor.pos();
        let transpose = if self.eat_word("T") {
            self.cursor.list("(", ")", Cursor::integer)?
        } else {
            (0..reshape.len())
                .filter_map(|i| i64::try_from(i).ok())
                .collect()
        };
        let mut sorted = transpose.clone();
        sorted.sort_unstable();
        let whole = sorted
            .iter()
            .enumerate()
            .all(|(i, d)| usize::try_from(*d) == Ok(i));
        if reshape.is_empty() || !whole || sorted.len() != reshape.len() {
            let message = "an iota of devices without a permutation of its dimensions";
            return Err(self.cursor.error_at(place, message));
        }
        Ok((reshape, transpose))
    }

    /// `{size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=1x1 rhs_dilate=1x1 rhs_reversal=0x0}`
    fn window(&mut self) -> Result<Window> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let mut fields: BTreeMap<&str, Vec<Vec<i64>>> = BTreeMap::new();
        self.cursor.expect("{")?;
        while !self.cursor.eat("}") {
            self.cursor.skip_space();
            let place = self.cursor.pos();
            let name = self.keyword()?;
            self.cursor.expect("=")?;
            let numbers = self.crosses()?;
            let arity = match name {
                "pad" => 2,
                "size" | "stride" | "lhs_dilate" | "rhs_dilate" | "rhs_reversal" => 1,
                _ => return Err(self.unknown(place, "part of a window", name)),
            };
            if numbers.iter().any(|n| n.len() != arity) {
                let message = format!("`{name}` needs {arity} numbers a dimension");
                return Err(self.cursor.error_at(place, message));
            }
            if fields.insert(name, numbers).is_some() {
                return Err(self.cursor.error_at(place, format!("a second `{name}`")));
            }
            self.cursor.eat(",");
        }
        let rank = fields.get("size").map_or(0, Vec::len);
        if fields.values().any(|numbers| numbers.len() != rank) {
            let message = "a window whose parts have different numbers of dimensions";
            return Err(self.cursor.error_at(start, message));
        }
        let mut window: Window = smallvec::smallvec![WindowDim::default(); rank];
        for (name, numbers) in &fields {
            for (dim, number) in window.iter_mut().zip(numbers) {
                match *name {
                    "size" => {
                        dim.size = usize::try_from(number[0]).map_err(|_| {
                            self.cursor.error_at(start, "a window with a negative size")
                        })?;
                    }
                    "stride" => dim.stride = number[0],
                    "pad" => (dim.padding_low, dim.padding_high) = (number[0], number[1]),
                    "lhs_dilate" => dim.base_dilation = number[0],
                    "rhs_dilate" => dim.window_dilation = number[0],
                    _ => dim.reversal = number[0] != 0,
                }
            }
        }
        Ok(window)
    }

    /// Numbers joined by `_`, and those by `x`: `1_2x3_4`. Nothing at all is an empty list.
    fn crosses(&mut self) -> Result<Vec<Vec<i64>>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let text = self
            .cursor
            .take_while(|b| b.is_ascii_digit() || matches!(b, b'_' | b'x' | b'-'));
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let dims = text
            .split('x')
            .map(|dim| dim.split('_').map(str::parse).collect());
        let numbers: std::result::Result<_, std::num::ParseIntError> = dims.collect();
        numbers.map_err(|_| {
            self.cursor
                .error_at(start, format!("`{text}` in place of numbers"))
        })
    }

    /// `1_2x3_4_5`: low, high and interior padding a dimension.
    fn pads(&mut self) -> Result<SmallVec<[PadDim; 4]>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let mut out = SmallVec::new();
        for numbers in self.crosses()? {
            let (low, high, interior) = match numbers[..] {
                [low, high] => (low, high, 0),
                [low, high, interior] => (low, high, interior),
                _ => {
                    let message = "padding needs 2 or 3 numbers a dimension";
                    return Err(self.cursor.error_at(start, message));
                }
            };
            out.push(PadDim {
                low,
                high,
                interior,
            });
        }
        Ok(out)
    }

    /// `{[0:4:2], [1:3]}`
    fn slices(&mut self) -> Result<SmallVec<[SliceDim; 4]>> {
        let list = self.cursor.list("{", "}", |c| {
            c.expect("[")?;
            let start = c.size()?;
            c.expect(":")?;
            let limit = c.size()?;
            let stride = if c.eat(":") { c.size()? } else { 1 };
            c.expect("]")?;
            Ok(SliceDim {
                start,
                limit,
                stride,
            })
        })?;
        Ok(SmallVec::from_vec(list))
    }

    /// `b01f_01io->b01f`
    fn conv_dims(&mut self) -> Result<ConvDims> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let label = |b: u8| b.is_ascii_digit() || matches!(b, b'b' | b'f' | b'i' | b'o' | b'?');
        let lhs = self.cursor.take_while(label);
        let first = self.cursor.take_while(|b| b == b'_').len();
        let rhs = self.cursor.take_while(label);
        self.cursor.expect("->")?;
        let out = self.cursor.take_while(label);
        let bad = || {
            self.cursor
                .error_at(start, "labels unlike `b01f_01io->b01f`")
        };
        if first != 1 {
            return Err(bad());
        }
        let (input_batch, input_feature, input_spatial) = labels(lhs, 'b', 'f').ok_or_else(bad)?;
        let (kernel_input_feature, kernel_output_feature, kernel_spatial) =
            labels(rhs, 'i', 'o').ok_or_else(bad)?;
        let (output_batch, output_feature, output_spatial) =
            labels(out, 'b', 'f').ok_or_else(bad)?;
        let rank = input_spatial.len();
        if kernel_spatial.len() != rank || output_spatial.len() != rank {
            return Err(bad());
        }
        Ok(ConvDims {
            input_batch,
            input_feature,
            input_spatial,
            kernel_input_feature,
            kernel_output_feature,
            kernel_spatial,
            output_batch,
            output_feature,
            output_spatial,
        })
    }

    /// `{kind="sharding", entry={...}, exit={...}}`
    fn domain(&mut self) -> Result<Domain> {
        let mut domain = Domain {
            kind: String::new(),
            entry: None,
            exit: None,
        };
        self.cursor.expect("{")?;
        while !self.cursor.eat("}") {
            self.cursor.skip_space();
            let place = self.cursor.pos();
            let name = self.keyword()?;
            self.cursor.expect("=")?;
            match name {
                "kind" => domain.kind = self.cursor.utf8_string()?,
                "entry" => domain.entry = Some(self.sharding()?),
                "exit" => domain.exit = Some(self.sharding()?),
                _ => return Err(self.unknown(place, "part of a domain", name)),
            }
            self.cursor.eat(",");
        }
        Ok(domain)
    }
}

/// Positions of the two letters and of the digits `0`, `1`, ... in a text of labels.
fn labels(text: &str, first: char, second: char) -> Option<(usize, usize, Dims)> {
    let find = |wanted: char| text.chars().position(|c| c == wanted);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let spatial: Option<Dims> = (0..digits)
        .map(|d| find(char::from_digit(u32::try_from(d).ok()?, 10)?))
        .collect();
    // A letter or digit that stands twice leaves one of the others without a place.
    let named = text.chars().filter(|c| *c != '?').count();
    let dims = (find(first)?, find(second)?, spatial?);
    (named == digits + 2).then_some(dims)
}

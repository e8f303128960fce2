//! The attributes of one instruction, by name, until its opcode has taken what belongs to it.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::base::Cursor;
use crate::base::Diagnostic;
use crate::base::Result;
use crate::base::codes;
use crate::front::hlo_text::Reader;
use crate::front::hlo_text::value::Value;
use crate::hlo::CompId;
use crate::hlo::ConvDims;
use crate::hlo::Domain;
use crate::hlo::Extra;
use crate::hlo::OpMetadata;
use crate::hlo::PadDim;
use crate::hlo::Precision;
use crate::hlo::ReplicaGroups;
use crate::hlo::Sharding;
use crate::hlo::SliceDim;
use crate::hlo::Window;
use crate::literal::Literal;
use crate::shape::Dims;
use crate::shape::Shape;

/// What the text gives after the operands.
pub(super) struct Attributes<'a> {
    opcode: &'a str,
    opcode_place: usize,
    items: Vec<(&'a str, usize, Value<'a>)>,
}

/// Result index, operand number, operand index.
pub(super) type Aliasing = Vec<(Vec<i64>, i64, Vec<i64>)>;

macro_rules! takers {
    ($($name:ident: $variant:ident -> $ty:ty;)*) => {$(
        /// Takes the attribute of that name, when it is there.
        pub(super) fn $name(&mut self, name: &str) -> Option<$ty> {
            match self.take(name) {
                Some((_, Value::$variant(value))) => Some(value),
                _ => None,
            }
        }
    )*};
}

impl<'a> Attributes<'a> {
    pub(super) fn new(opcode: &'a str, opcode_place: usize) -> Self {
        Self {
            opcode,
            opcode_place,
            items: Vec::new(),
        }
    }
    /// The opcode as the text has it.
    pub(super) fn opcode(&self) -> &'a str {
        self.opcode
    }
    /// Where the opcode stands.
    pub(super) fn place(&self) -> usize {
        self.opcode_place
    }
    fn take(&mut self, name: &str) -> Option<(usize, Value<'a>)> {
        let at = self.items.iter().position(|(n, _, _)| *n == name)?;
        let (_, place, value) = self.items.swap_remove(at);
        Some((place, value))
    }
    takers! {
        take_int: Int -> i64;
        take_bool: Bool -> bool;
        take_float: Float -> f64;
        take_text: Text -> Vec<u8>;
        take_comp: Comp -> CompId;
        take_comps: Comps -> Vec<CompId>;
        take_window: Window -> Window;
        take_conv_dims: ConvDims -> Box<ConvDims>;
        take_pads: Pads -> SmallVec<[PadDim; 4]>;
        take_slices: Slices -> SmallVec<[SliceDim; 4]>;
        take_shape: Shape -> Shape;
        take_shapes: Shapes -> Vec<Shape>;
        take_literal: Literal -> Literal;
        take_precisions: Precisions -> SmallVec<[Precision; 2]>;
        take_aliasing: Aliasing -> Aliasing;
        take_groups: Groups -> ReplicaGroups;
        take_bools: Bools -> Vec<bool>;
        take_sharding: Sharding -> Sharding;
        take_metadata: Metadata -> Box<OpMetadata>;
        take_pairs: Pairs -> BTreeMap<String, String>;
        take_names: Names -> Vec<(&'a str, usize)>;
        take_domain: Domain -> Box<Domain>;
        take_raw: Raw -> String;
    }
    /// The flag `name`; false when it is not there.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        self.take_bool(name).unwrap_or(false)
    }
    /// What of the result shares memory with operands; nothing when nothing is said.
    pub(super) fn aliasing(&mut self) -> Aliasing {
        self.take_aliasing("output_to_operand_aliasing")
            .unwrap_or_default()
    }
    /// Takes what rides along with any instruction.
    pub(super) fn take_extra(&mut self) -> Option<Box<Extra>> {
        let extra = Extra {
            metadata: self.take_metadata("metadata").map(|m| *m),
            sharding: self.take_sharding("sharding"),
            frontend_attributes: self.take_pairs("frontend_attributes").unwrap_or_default(),
            backend_config: self.take_text("backend_config").unwrap_or_default(),
            result_accuracy: self.take_raw("result_accuracy"),
            statistics: self.take_raw("statistics"),
            origin: self.take_raw("origin"),
        };
        (extra != Extra::default()).then(|| Box::new(extra))
    }
    /// That the opcode cannot do without an attribute.
    pub(super) fn missing(&self, cursor: &Cursor<'_>, name: &str) -> Box<Diagnostic> {
        let message = format!("`{}` without its attribute `{name}`", self.opcode);
        cursor.diagnostic(codes::TEXT_SYNTAX, self.opcode_place, message)
    }
    /// The computation `name`, which the opcode needs.
    pub(super) fn need_comp(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<CompId> {
        self.take_comp(name)
            .ok_or_else(|| self.missing(cursor, name))
    }
    /// The integer `name`, not negative, which the opcode needs.
    pub(super) fn need_size(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<usize> {
        self.take_size(cursor, name)?
            .ok_or_else(|| self.missing(cursor, name))
    }
    /// The integer `name`, not negative.
    pub(super) fn take_size(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<Option<usize>> {
        match self.take(name) {
            Some((place, Value::Int(value))) => match usize::try_from(value) {
                Ok(size) => Ok(Some(size)),
                Err(_) => Err(cursor.error_at(place, format!("`{name}` is negative"))),
            },
            _ => Ok(None),
        }
    }
    /// The list of dimensions `name`, which the opcode needs.
    pub(super) fn need_dims(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<Dims> {
        match self.take_dims(cursor, name)? {
            Some(dims) => Ok(dims),
            None => Err(self.missing(cursor, name)),
        }
    }
    /// The list of dimensions `name`, or nothing in it.
    pub(super) fn dims_or_none(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<Dims> {
        Ok(self.take_dims(cursor, name)?.unwrap_or_default())
    }
    /// The list of dimensions `name`.
    pub(super) fn take_dims(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<Option<Dims>> {
        let Some((place, value)) = self.take(name) else {
            return Ok(None);
        };
        let Value::Ints(list) = value else {
            return Err(cursor.error_at(place, format!("`{name}` as a list of lists")));
        };
        let dims: std::result::Result<Dims, _> = list.into_iter().map(usize::try_from).collect();
        match dims {
            Ok(dims) => Ok(Some(dims)),
            Err(_) => Err(cursor.error_at(place, format!("`{name}` has a negative number"))),
        }
    }
    /// The list of lists `name`, or nothing in it.
    pub(super) fn lists_or_none(
        &mut self,
        cursor: &Cursor<'_>,
        name: &str,
    ) -> Result<Vec<Vec<i64>>> {
        match self.take(name) {
            Some((_, Value::IntLists(lists))) => Ok(lists),
            Some((place, Value::Ints(list))) if !list.is_empty() => {
                Err(cursor.error_at(place, format!("`{name}` as a list, not a list of lists")))
            }
            _ => Ok(Vec::new()),
        }
    }
    /// The single dimension in the list `name`.
    pub(super) fn take_dim(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<Option<usize>> {
        match self.take_dims(cursor, name)?.as_deref() {
            None => Ok(None),
            Some([dim]) => Ok(Some(*dim)),
            Some(dims) => {
                let message = format!("`{name}` with {} dimensions, not one", dims.len());
                Err(cursor.error_at(self.opcode_place, message))
            }
        }
    }
    /// The single dimension in the list `name`, which the opcode needs.
    pub(super) fn need_dim(&mut self, cursor: &Cursor<'_>, name: &str) -> Result<usize> {
        self.take_dim(cursor, name)?
            .ok_or_else(|| self.missing(cursor, name))
    }
    /// The word `name` as one of the words that `known` maps.
    pub(super) fn take_word<T>(
        &mut self,
        cursor: &Cursor<'_>,
        name: &str,
        known: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.take(name) {
            Some((_, Value::Word(word, place))) => match known(word) {
                Some(value) => Ok(Some(value)),
                None => {
                    let message = format!("`{word}` is no value of `{name}` here");
                    Err(cursor.diagnostic(codes::UNKNOWN_WORD, place, message))
                }
            },
            _ => Ok(None),
        }
    }
    /// The word `name`, which the opcode needs.
    pub(super) fn need_word<T>(
        &mut self,
        cursor: &Cursor<'_>,
        name: &str,
        known: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        match self.take_word(cursor, name, known)? {
            Some(value) => Ok(value),
            None => Err(self.missing(cursor, name)),
        }
    }
    /// That nothing is left that the opcode does not take.
    pub(super) fn finish(self, cursor: &Cursor<'_>) -> Result<()> {
        let Some((name, place, _)) = self.items.iter().min_by_key(|(_, place, _)| *place) else {
            return Ok(());
        };
        let message = format!("`{}` does not take an attribute `{name}`", self.opcode);
        Err(cursor.diagnostic(codes::UNKNOWN_WORD, *place, message))
    }
}

impl<'a> Reader<'a> {
    /// `name=value`
    pub(super) fn attribute(&mut self, list: &mut Attributes<'a>) -> Result<()> {
        self.cursor.skip_space();
        let place = self.cursor.pos();
        let Some(name) = self.cursor.word() else {
            return Err(self.cursor.unexpected("an attribute"));
        };
        if list.items.iter().any(|(n, _, _)| *n == name) {
            return Err(self
                .cursor
                .error_at(place, format!("a second attribute `{name}`")));
        }
        self.cursor.expect("=")?;
        let value = self.value(name, place)?;
        list.items.push((name, place, value));
        Ok(())
    }
}

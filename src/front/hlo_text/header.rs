//! The module as a whole: the `HloModule` line, the tables of stack frames, and what has to be
//! settled when all computations are read.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::base::Result;
use crate::front::hlo_text::Reader;
use crate::hlo::AliasKind;
use crate::hlo::AliasTarget;
use crate::hlo::FileLocation;
use crate::hlo::StackFrame;
use crate::shape::ProgramShape;
use crate::shape::ShapeIndex;
use crate::shape::text as shape_text;

impl Reader<'_> {
    pub(super) fn module(&mut self) -> Result<()> {
        let headed = self.eat_word("HloModule");
        if headed {
            let (name, _) = self.name("the name of the module")?;
            self.module.name = name.to_owned();
            while self.cursor.eat(",") {
                self.header_attribute()?;
            }
        }
        if self.eat_word("FileNames") {
            self.stack_frames()?;
        }
        while !self.cursor.at_end() {
            self.computation()?;
        }
        let Some(last) = self.module.comps.ids().last() else {
            return Err(self.cursor.unexpected("a computation"));
        };
        self.module.entry = self.entry.unwrap_or(last);
        if !headed {
            self.module.name = format!("module_{}", self.module.entry_comp().name);
        }
        self.name_the_unnamed();
        self.entry_layout();
        Ok(())
    }

    fn header_attribute(&mut self) -> Result<()> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let Some(name) = self.cursor.word() else {
            return Err(self.cursor.unexpected("an attribute of the module"));
        };
        self.cursor.expect("=")?;
        match name {
            "is_scheduled" => self.module.is_scheduled = self.bool()?,
            "replica_count" => self.module.config.replica_count = self.count()?,
            "num_partitions" => self.module.config.num_partitions = self.count()?,
            "entry_computation_layout" => {
                if self.module.config.entry_layout.is_some() {
                    return Err(self.cursor.error_at(start, format!("a second `{name}`")));
                }
                self.cursor.expect("{")?;
                let parameters = self.cursor.list("(", ")", shape_text::parse)?;
                self.cursor.expect("->")?;
                let result = shape_text::parse(&mut self.cursor)?;
                self.cursor.expect("}")?;
                self.module.config.entry_layout = Some(ProgramShape {
                    parameters,
                    parameter_names: Vec::new(),
                    result,
                });
            }
            "input_output_alias" => self.input_output_alias()?,
            "buffer_donor" => {
                self.module.buffer_donors = self.cursor.list("{", "}", |c| {
                    c.expect("(")?;
                    let parameter = c.size()?;
                    c.expect(",")?;
                    let index = c.list("{", "}", crate::base::Cursor::size)?;
                    c.expect(")")?;
                    Ok((parameter, ShapeIndex::from_vec(index)))
                })?;
            }
            "frontend_attributes" => {
                self.module.frontend_attributes = self.frontend_attributes()?
            }
            "allow_spmd_sharding_propagation_to_parameters" => {
                self.module.config.propagate_sharding_to_parameters = self.bools()?;
            }
            "allow_spmd_sharding_propagation_to_output" => {
                self.module.config.propagate_sharding_to_output = self.bools()?;
            }
            _ => {
                let value = self
                    .cursor
                    .raw_value(|b| b == b',' || b.is_ascii_whitespace())?;
                if value.is_empty() {
                    return Err(self.cursor.unexpected("a value"));
                }
                let value = value.to_owned();
                self.module.other_attributes.push((name.to_owned(), value));
            }
        }
        Ok(())
    }

    /// A number of devices, at least one; one is the same as none said.
    fn count(&mut self) -> Result<i64> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        match self.cursor.integer()? {
            1 => Ok(0),
            count if count > 1 => Ok(count),
            count => Err(self.cursor.error_at(start, format!("{count} devices"))),
        }
    }

    /// `{ {0}: (0, {}, may-alias), ... }`
    fn input_output_alias(&mut self) -> Result<()> {
        self.cursor.expect("{")?;
        while !self.cursor.eat("}") {
            self.cursor.skip_space();
            let start = self.cursor.pos();
            let output = self.shape_index()?;
            self.cursor.expect(":")?;
            self.cursor.expect("(")?;
            let parameter = self.cursor.size()?;
            self.cursor.expect(",")?;
            let index = self.shape_index()?;
            let mut kind = AliasKind::May;
            if self.cursor.eat(",") {
                kind = match self.cursor.word() {
                    Some("may-alias") => AliasKind::May,
                    Some("must-alias") => AliasKind::Must,
                    _ => return Err(self.cursor.unexpected("`may-alias` or `must-alias`")),
                };
            }
            self.cursor.expect(")")?;
            let target = AliasTarget {
                parameter,
                index,
                kind,
            };
            if self
                .module
                .input_output_alias
                .insert(output, target)
                .is_some()
            {
                return Err(self
                    .cursor
                    .error_at(start, "a result that is aliased twice"));
            }
            if !self.cursor.eat(",") && self.cursor.peek() != b'}' {
                return Err(self.cursor.unexpected("`,` or `}`"));
            }
        }
        Ok(())
    }

    /// `{0,1}`
    pub(super) fn shape_index(&mut self) -> Result<ShapeIndex> {
        let index = self.cursor.list("{", "}", crate::base::Cursor::size)?;
        Ok(ShapeIndex::from_vec(index))
    }

    /// The four tables after `FileNames`.
    fn stack_frames(&mut self) -> Result<()> {
        while self.cursor.peek().is_ascii_digit() {
            self.cursor.integer()?;
            let name = self.cursor.utf8_string()?;
            self.module.stack_frames.file_names.push(name);
        }
        self.table("FunctionNames")?;
        while self.cursor.peek().is_ascii_digit() {
            self.cursor.integer()?;
            let name = self.cursor.utf8_string()?;
            self.module.stack_frames.function_names.push(name);
        }
        self.table("FileLocations")?;
        while self.cursor.peek().is_ascii_digit() {
            self.cursor.integer()?;
            let mut location = FileLocation::default();
            self.numbers(&mut [
                ("file_name_id", &mut location.file_name_id),
                ("function_name_id", &mut location.function_name_id),
                ("line", &mut location.line),
                ("end_line", &mut location.end_line),
                ("column", &mut location.column),
                ("end_column", &mut location.end_column),
            ])?;
            self.module.stack_frames.file_locations.push(location);
        }
        self.table("StackFrames")?;
        while self.cursor.peek().is_ascii_digit() {
            self.cursor.integer()?;
            // The text counts parents from one, with 1 for none; the table has 0 for none.
            let mut frame = StackFrame {
                file_location_id: 0,
                parent_frame_id: 1,
            };
            self.numbers(&mut [
                ("file_location_id", &mut frame.file_location_id),
                ("parent_frame_id", &mut frame.parent_frame_id),
            ])?;
            frame.parent_frame_id = frame.parent_frame_id.saturating_sub(1);
            self.module.stack_frames.stack_frames.push(frame);
        }
        Ok(())
    }

    fn table(&mut self, name: &str) -> Result<()> {
        if self.eat_word(name) {
            Ok(())
        } else {
            Err(self.cursor.unexpected(&format!("`{name}`")))
        }
    }

    /// `{name=1 name=2}`, each put where `fields` says.
    fn numbers(&mut self, fields: &mut [(&str, &mut i32)]) -> Result<()> {
        self.cursor.expect("{")?;
        while !self.cursor.eat("}") {
            self.cursor.skip_space();
            let start = self.cursor.pos();
            let Some(name) = self.cursor.word() else {
                return Err(self.cursor.unexpected("a field or `}`"));
            };
            self.cursor.expect("=")?;
            let value = self.int32()?;
            match fields.iter_mut().find(|(field, _)| *field == name) {
                Some((_, field)) => **field = value,
                None => return Err(self.unknown(start, "field here", name)),
            }
            self.cursor.eat(",");
        }
        Ok(())
    }

    /// An integer of 32 bits.
    pub(super) fn int32(&mut self) -> Result<i32> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let value = self.cursor.integer()?;
        i32::try_from(value).map_err(|_| {
            self.cursor
                .error_at(start, format!("`{value}` does not fit 32 bits"))
        })
    }

    /// Gives the computations that had no name in the text one that nobody has.
    fn name_the_unnamed(&mut self) {
        let comps = self.module.comps.values();
        let mut taken: BTreeSet<String> = comps.map(|c| c.name.clone()).collect();
        let mut next: BTreeMap<&str, usize> = BTreeMap::new();
        for (comp, stem) in std::mem::take(&mut self.unnamed) {
            let number = next.entry(stem).or_default();
            let name = loop {
                let name = match *number {
                    0 => stem.to_owned(),
                    number => format!("{stem}.{number}"),
                };
                *number += 1;
                if taken.insert(name.clone()) {
                    break name;
                }
            };
            self.module.comps[comp].name = name;
        }
    }

    /// Takes the layouts of parameters and root where the header gave none.
    fn entry_layout(&mut self) {
        if self.module.config.entry_layout.is_none() {
            let mut program = self.module.program_shape(self.module.entry);
            program.parameter_names.clear();
            self.module.config.entry_layout = Some(program);
        }
    }
}

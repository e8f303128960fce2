//! `metadata={op_type="..." source_line=1}` and `frontend_attributes={key="value"}`.

use std::collections::BTreeMap;

use crate::base::Result;
use crate::front::hlo_text::Reader;
use crate::hlo::OpMetadata;

impl Reader<'_> {
    /// Fields in any order, with or without commas between them.
    pub(super) fn metadata(&mut self) -> Result<OpMetadata> {
        let mut metadata = OpMetadata::default();
        self.cursor.expect("{")?;
        while !self.cursor.eat("}") {
            self.cursor.skip_space();
            let place = self.cursor.pos();
            let Some(name) = self.cursor.word() else {
                return Err(self.cursor.unexpected("a field of the metadata or `}`"));
            };
            self.cursor.expect("=")?;
            match name {
                "op_type" => metadata.op_type = self.cursor.utf8_string()?,
                "op_name" => metadata.op_name = self.cursor.utf8_string()?,
                "source_file" => metadata.source_file = self.cursor.utf8_string()?,
                "deduplicated_name" => metadata.deduplicated_name = self.cursor.utf8_string()?,
                "scheduling_name" => metadata.scheduling_name = self.cursor.utf8_string()?,
                "source_line" => metadata.source_line = self.int32()?,
                "source_end_line" => metadata.source_end_line = self.int32()?,
                "source_column" => metadata.source_column = self.int32()?,
                "source_end_column" => metadata.source_end_column = self.int32()?,
                "stack_frame_id" => metadata.stack_frame_id = self.int32()?,
                "preserve_layout" => metadata.preserve_layout = self.bool()?,
                "profile_type" => {
                    self.cursor.expect("{")?;
                    while !self.cursor.eat("}") {
                        let profile = self.int32()?;
                        metadata.profile_type.push(profile);
                        self.cursor.eat(",");
                    }
                }
                "metadata_payload" => {
                    let ends = |b: u8| matches!(b, b',' | b'}') || b.is_ascii_whitespace();
                    metadata.metadata_payload = self.cursor.raw_value(ends)?.to_owned();
                }
                _ => return Err(self.unknown(place, "field of the metadata", name)),
            }
            self.cursor.eat(",");
        }
        Ok(metadata)
    }

    /// One or, in another pair of braces, several.
    pub(super) fn metadata_list(&mut self) -> Result<Vec<OpMetadata>> {
        let start = self.cursor.pos();
        self.cursor.expect("{")?;
        if self.cursor.peek() != b'{' {
            self.cursor.set_pos(start);
            return Ok(vec![self.metadata()?]);
        }
        let mut out = Vec::new();
        while !self.cursor.eat("}") {
            out.push(self.metadata()?);
            self.cursor.eat(",");
        }
        Ok(out)
    }

    /// Keys are names or quoted; values are quoted or `{...}`, which is kept as it stands.
    pub(super) fn frontend_attributes(&mut self) -> Result<BTreeMap<String, String>> {
        let mut pairs = BTreeMap::new();
        self.cursor.expect("{")?;
        while !self.cursor.eat("}") {
            if !pairs.is_empty() {
                self.cursor.expect(",")?;
            }
            let key = match self.cursor.word() {
                Some(word) => word.to_owned(),
                None => self.cursor.utf8_string()?,
            };
            self.cursor.expect("=")?;
            let value = if self.cursor.peek() == b'{' {
                self.cursor.braced()?.to_owned()
            } else {
                self.cursor.utf8_string()?
            };
            pairs.insert(key, value);
        }
        Ok(pairs)
    }
}

//! Locations of MLIR to metadata of HLO: names, source lines, stacks of calls.
//!
//! JAX gives an op the location `"jit(f)/mul"(stack)`, where the stack is made of call sites of
//! `"function"("file.py":line:column)`. Names become `op_name`, a name that ends in a colon
//! `op_type`, and a stack a frame of the module's index. A location without frames becomes a source
//! file and line.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hlo::FileLocation;
use crate::hlo::OpMetadata;
use crate::hlo::StackFrame;
use crate::hlo::StackFrameIndex;
use crate::mlir::Loc;
use crate::mlir::SourceLoc;

/// How deep locations may stand inside each other; what is deeper has no part in metadata.
const MAX_DEPTH: usize = 2000;

/// How many parts of one location are looked at for its names.
const MAX_PARTS: usize = 10_000;

/// How many bytes of a name there are in metadata. Locations are shared, and one op can become hundreds
/// of instructions, each with a copy of the name.
const MAX_NAME: usize = 4096;

/// The index of frames that grows, and what is known of shared locations.
#[derive(Debug, Default)]
pub struct Places {
    index: StackFrameIndex,
    files: BTreeMap<String, i32>,
    functions: BTreeMap<String, i32>,
    locations: BTreeMap<(i32, i32, i32, i32), i32>,
    frames: BTreeMap<(i32, i32), i32>,
    /// The frame of a whole stack, by the address of its location, which the module keeps alive.
    stacks: BTreeMap<usize, i32>,
    /// The metadata of a location, by its address.
    metadata: BTreeMap<usize, Option<OpMetadata>>,
}

impl Places {
    /// The index of all frames that were asked for.
    pub fn into_index(self) -> StackFrameIndex {
        self.index
    }
    /// What HLO says of an op at this location.
    pub fn metadata(&mut self, loc: &Loc) -> Option<OpMetadata> {
        if **loc == SourceLoc::Unknown {
            return None;
        }
        let address = Arc::as_ptr(loc) as usize;
        if let Some(known) = self.metadata.get(&address) {
            return known.clone();
        }
        let metadata = self.make(loc);
        self.metadata.insert(address, metadata.clone());
        metadata
    }

    fn make(&mut self, loc: &Loc) -> Option<OpMetadata> {
        let mut metadata = OpMetadata {
            op_name: name_of(loc),
            op_type: op_type_of(loc),
            ..OpMetadata::default()
        };
        let mut place = loc;
        while let SourceLoc::Name { child, .. } = &**place {
            if is_frame(place) {
                break;
            }
            place = child;
        }
        let frame = self.stack(place, 0, 0);
        if frame != 0 {
            metadata.stack_frame_id = frame;
        } else {
            source_line(place, &mut metadata, &mut 0);
        }
        (metadata != OpMetadata::default()).then_some(metadata)
    }

    /// The frame of a location that was called from `parent`; `parent` itself when it has none.
    fn stack(&mut self, loc: &Loc, parent: i32, depth: usize) -> i32 {
        if depth > MAX_DEPTH {
            return parent;
        }
        let address = Arc::as_ptr(loc) as usize;
        if parent == 0
            && let Some(&frame) = self.stacks.get(&address)
        {
            return frame;
        }
        let frame = match &**loc {
            SourceLoc::CallSite { callee, caller } => {
                let caller = self.stack(caller, parent, depth + 1);
                self.stack(callee, caller, depth + 1)
            }
            SourceLoc::Name { name, child } => match &**child {
                SourceLoc::File { .. } => self.frame(name, child, parent),
                _ => self.stack(child, parent, depth + 1),
            },
            SourceLoc::Fused { parts, .. } => {
                let mut frame = parent;
                for part in parts {
                    frame = self.stack(part, parent, depth + 1);
                    if frame != parent {
                        break;
                    }
                }
                frame
            }
            SourceLoc::Unknown | SourceLoc::File { .. } => parent,
        };
        if parent == 0 {
            self.stacks.insert(address, frame);
        }
        frame
    }

    fn frame(&mut self, function: &str, place: &SourceLoc, parent: i32) -> i32 {
        let SourceLoc::File {
            file,
            line,
            column,
            end_line,
            end_column,
        } = place
        else {
            return parent;
        };
        let file_name_id = numbered(&mut self.files, &mut self.index.file_names, file);
        let function_name_id = numbered(
            &mut self.functions,
            &mut self.index.function_names,
            function,
        );
        let (line, column) = (number(*line), number(*column));
        let locations = &mut self.index.file_locations;
        let key = (file_name_id, function_name_id, line, column);
        let file_location_id = *self.locations.entry(key).or_insert_with(|| {
            locations.push(FileLocation {
                file_name_id,
                function_name_id,
                line,
                end_line: number(*end_line),
                column,
                end_column: number(*end_column),
            });
            id_of(locations.len())
        });
        let frames = &mut self.index.stack_frames;
        let key = (file_location_id, parent);
        *self.frames.entry(key).or_insert_with(|| {
            frames.push(StackFrame {
                file_location_id,
                parent_frame_id: parent,
            });
            id_of(frames.len())
        })
    }
}

/// A line or column as HLO counts it.
fn number(n: u32) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

fn id_of(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn numbered(ids: &mut BTreeMap<String, i32>, names: &mut Vec<String>, name: &str) -> i32 {
    if let Some(&id) = ids.get(name) {
        return id;
    }
    names.push(name.to_owned());
    let id = id_of(names.len());
    ids.insert(name.to_owned(), id);
    id
}

/// Whether it is a frame of a stack: a function's name at a place in a file.
fn is_frame(loc: &SourceLoc) -> bool {
    matches!(loc, SourceLoc::Name { child, .. } if matches!(**child, SourceLoc::File { .. }))
}

/// The part of a name before `@`.
fn before_at(name: &str) -> &str {
    name.split_once('@').map_or(name, |(before, _)| before)
}

/// A name as metadata has it: no more than [`MAX_NAME`] bytes of it.
fn bounded(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME)]
}

/// The names in a location, callees before callers left out, with `;` between them; of what is longer
/// than [`MAX_NAME`] the beginning.
pub fn name_of(loc: &SourceLoc) -> String {
    let mut names: Option<String> = None;
    let mut todo = vec![loc];
    for _ in 0..MAX_PARTS {
        match todo.pop() {
            None => break,
            Some(SourceLoc::Name { name, child }) => match before_at(name) {
                name if name.ends_with(':') => todo.push(child),
                name => match &mut names {
                    None => names = Some(bounded(name).to_owned()),
                    Some(names) if names.len() > MAX_NAME => break,
                    Some(names) => {
                        names.push(';');
                        names.push_str(bounded(name));
                    }
                },
            },
            Some(SourceLoc::CallSite { callee, .. }) => todo.push(callee),
            Some(SourceLoc::Fused { parts, .. }) => todo.extend(parts.iter().rev().map(|p| &**p)),
            Some(SourceLoc::Unknown | SourceLoc::File { .. }) => {}
        }
    }
    let mut names = names.unwrap_or_default();
    names.truncate(names.floor_char_boundary(MAX_NAME));
    names
}

/// The first name that ends in a colon, without it.
fn op_type_of(loc: &SourceLoc) -> String {
    let mut place = loc;
    for _ in 0..MAX_PARTS {
        place = match place {
            SourceLoc::Name { name, child } => match before_at(name).strip_suffix(':') {
                Some(op_type) => return bounded(op_type).to_owned(),
                None => child,
            },
            SourceLoc::CallSite { callee, .. } => callee,
            SourceLoc::Fused { parts, .. } => match parts.first() {
                Some(first) => first,
                None => break,
            },
            SourceLoc::Unknown | SourceLoc::File { .. } => break,
        };
    }
    String::new()
}

/// The place of the last file in a location that is one or a fusion of several.
fn source_line(loc: &SourceLoc, metadata: &mut OpMetadata, seen: &mut usize) {
    *seen += 1;
    match loc {
        SourceLoc::File {
            file,
            line,
            column,
            end_line,
            end_column,
        } => {
            metadata.source_file = bounded(file).to_owned();
            metadata.source_line = number(*line);
            metadata.source_column = number(*column);
            metadata.source_end_line = number(*end_line);
            metadata.source_end_column = number(*end_column);
        }
        SourceLoc::Fused { parts, .. } if *seen < MAX_PARTS => {
            for part in parts
                .iter()
                .filter(|p| matches!(***p, SourceLoc::File { .. }))
            {
                source_line(part, metadata, seen);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, child: SourceLoc) -> SourceLoc {
        SourceLoc::Name {
            name: name.into(),
            child: Arc::new(child),
        }
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(
            name_of(&named("jit(f)/mul", SourceLoc::Unknown)),
            "jit(f)/mul"
        );
        // A character of two bytes that would end one byte too late is left out whole.
        let long = format!("a{}", "é".repeat(MAX_NAME));
        let cut = &long[..MAX_NAME - 1];
        assert_eq!(name_of(&named(&long, SourceLoc::Unknown)), cut);
        let mut places = Places::default();
        let typed = Arc::new(named(&format!("{long}:"), SourceLoc::Unknown));
        assert_eq!(places.metadata(&typed).unwrap().op_type, cut);
        let mut many = SourceLoc::Unknown;
        for _ in 0..40 {
            let part = Arc::new(named(&"b".repeat(1000), SourceLoc::Unknown));
            many = SourceLoc::Fused {
                parts: vec![part, Arc::new(many)],
                metadata: None,
            };
        }
        let names = name_of(&many);
        assert_eq!(names.len(), MAX_NAME);
        assert_eq!(names.split(';').next(), Some(&*"b".repeat(1000)));
    }
}

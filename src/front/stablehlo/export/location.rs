//! Metadata of HLO to locations of MLIR, the inverse of what the import does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::hlo::Instr;
use crate::hlo::Module;
use crate::hlo::OpMetadata;
use crate::mlir::Loc;
use crate::mlir::SourceLoc;

/// How many callers a frame may have.
const MAX_STACK: usize = 1000;

/// Locations of frames that were asked for.
#[derive(Debug)]
pub struct Places<'m> {
    module: &'m Module,
    stacks: BTreeMap<i32, Loc>,
    unknown: Loc,
}

fn number(n: i32) -> u32 {
    u32::try_from(n).unwrap_or(0)
}

impl<'m> Places<'m> {
    /// No location yet.
    pub fn new(module: &'m Module) -> Self {
        Self {
            module,
            stacks: BTreeMap::new(),
            unknown: SourceLoc::unknown(),
        }
    }
    /// Where an instruction comes from.
    pub fn of(&mut self, instr: &Instr) -> Loc {
        let metadata = instr.extra.as_ref().and_then(|e| e.metadata.as_ref());
        let Some(metadata) = metadata else {
            return self.unknown.clone();
        };
        let mut loc = match metadata.stack_frame_id {
            0 => file(metadata, &self.unknown),
            frame => self.stack(frame),
        };
        if !metadata.op_type.is_empty() {
            loc = named(&format!("{}:", metadata.op_type), loc);
        }
        if !metadata.op_name.is_empty() {
            loc = named(&metadata.op_name, loc);
        }
        loc
    }
    /// The name of a parameter as a location.
    pub fn name(&self, instr: &Instr) -> Loc {
        let metadata = instr.extra.as_ref().and_then(|e| e.metadata.as_ref());
        match metadata {
            Some(metadata) if !metadata.op_name.is_empty() => {
                named(&metadata.op_name, self.unknown.clone())
            }
            _ => self.unknown.clone(),
        }
    }
    /// A frame at the calls that led to it.
    fn stack(&mut self, frame: i32) -> Loc {
        if let Some(known) = self.stacks.get(&frame) {
            return known.clone();
        }
        let mut path = vec![frame];
        let mut loc: Option<Loc> = None;
        while path.len() < MAX_STACK {
            let parent = self.frame(path[path.len() - 1]).map_or(0, |f| f.1);
            if parent == 0 || path.contains(&parent) {
                break;
            }
            if let Some(known) = self.stacks.get(&parent) {
                loc = Some(known.clone());
                break;
            }
            path.push(parent);
        }
        for &frame in path.iter().rev() {
            let Some((callee, _)) = self.frame(frame) else {
                continue;
            };
            let whole = match loc.take() {
                Some(caller) => Arc::new(SourceLoc::CallSite { callee, caller }),
                None => callee,
            };
            self.stacks.insert(frame, whole.clone());
            loc = Some(whole);
        }
        loc.unwrap_or_else(|| self.unknown.clone())
    }
    /// The place of a frame, and the frame that called it.
    fn frame(&self, id: i32) -> Option<(Loc, i32)> {
        let index = &self.module.stack_frames;
        let at = |id: i32| usize::try_from(id).ok()?.checked_sub(1);
        let frame = index.stack_frames.get(at(id)?)?;
        let place = index.file_locations.get(at(frame.file_location_id)?)?;
        let file = index.file_names.get(at(place.file_name_id)?)?;
        let function = index.function_names.get(at(place.function_name_id)?)?;
        let loc = SourceLoc::File {
            file: file.as_str().into(),
            line: number(place.line),
            column: number(place.column),
            end_line: number(place.end_line),
            end_column: number(place.end_column),
        };
        Some((named(function, Arc::new(loc)), frame.parent_frame_id))
    }
}

fn named(name: &str, child: Loc) -> Loc {
    Arc::new(SourceLoc::Name {
        name: name.into(),
        child,
    })
}

fn file(metadata: &OpMetadata, unknown: &Loc) -> Loc {
    if metadata.source_file.is_empty() {
        return unknown.clone();
    }
    let line = number(metadata.source_line);
    let column = number(metadata.source_column);
    let or = |n: i32, other: u32| if n == 0 { other } else { number(n) };
    Arc::new(SourceLoc::File {
        file: metadata.source_file.as_str().into(),
        line,
        column,
        end_line: or(metadata.source_end_line, line),
        end_column: or(metadata.source_end_column, column),
    })
}

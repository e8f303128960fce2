//! The canonical text of modules, which XLA's own parser accepts.
//!
//! One form for one module: names with `%`, operands without shapes, computations in their order,
//! no text for what is default. What the reader of HLO text reads, this prints, so reading what was
//! printed gives the same module. Two things have no text: the lengths of generated code in
//! metadata, and names that HLO does not allow, which are changed as XLA changes them (and made
//! unique where they are not).

mod attributes;
mod names;
mod op;

use std::fmt::Write;

use crate::base::text::quote;
use crate::hlo::AliasKind;
use crate::hlo::CompId;
use crate::hlo::InstrId;
use crate::hlo::Module;
use crate::hlo::Sharding;
use crate::hlo::visit;
use crate::shape::ProgramShape;

use names::Names;

/// The text of a whole module.
pub fn module(module: &Module) -> String {
    let mut out = String::new();
    header(module, &mut out);
    stack_frames(module, &mut out);
    let names = Names::of(module);
    for comp in visit::comps_from(module, module.comps.ids()) {
        out.push('\n');
        computation(module, &names, comp, &mut out);
    }
    out
}

/// The text of one instruction, without `ROOT` and indentation.
pub fn instr(module: &Module, id: InstrId) -> String {
    let mut out = String::new();
    instruction(module, &Names::plain(module), id, &mut out);
    out
}

/// The text of a sharding.
pub fn sharding(sharding: &Sharding) -> String {
    let mut out = String::new();
    attributes::sharding(sharding, &mut out);
    out
}

fn computation(module: &Module, names: &Names<'_>, comp: CompId, out: &mut String) {
    let computation = &module.comps[comp];
    out.push_str(if comp == module.entry { "ENTRY " } else { "" });
    out.push('%');
    out.push_str(names.comp(comp));
    out.push_str(" {\n");
    for &id in &computation.instrs {
        out.push_str(if id == computation.root {
            "  ROOT "
        } else {
            "  "
        });
        instruction(module, names, id, out);
        out.push('\n');
    }
    out.push('}');
    if !computation.execution_thread.is_empty() {
        let thread = quote(computation.execution_thread.as_bytes());
        push(out, format_args!(", execution_thread={thread}"));
    }
    out.push('\n');
}

fn instruction(module: &Module, names: &Names<'_>, id: InstrId, out: &mut String) {
    let instr = &module.instrs[id];
    let opcode = instr.op.opcode();
    push(
        out,
        format_args!("%{} = {} {opcode}(", names.instr(id), instr.shape),
    );
    if !op::leaf(&instr.op, out) {
        for (i, &operand) in instr.operands.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            if i > 0 && i % 5 == 0 {
                push(out, format_args!("/*index={i}*/"));
            }
            push(out, format_args!("%{}", names.instr(operand)));
        }
    }
    out.push(')');
    op::attributes(module, names, id, out);
    let extra = instr.extra.as_deref();
    if let Some(extra) = extra {
        attributes::before_control(extra, out);
    }
    for (i, &before) in instr.control_predecessors.iter().enumerate() {
        out.push_str(if i > 0 {
            ", "
        } else {
            ", control-predecessors={"
        });
        push(out, format_args!("%{}", names.instr(before)));
    }
    if !instr.control_predecessors.is_empty() {
        out.push('}');
    }
    if let Some(extra) = extra {
        attributes::after_control(extra, out);
    }
}

/// Appends; writing to a string cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// Appends items with commas between them.
fn commas<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(",")
}

fn bools(list: &[bool]) -> String {
    format!("{{{}}}", commas(list))
}

fn header(module: &Module, out: &mut String) {
    push(
        out,
        format_args!("HloModule {}", names::sanitized(&module.name, "module")),
    );
    if module.is_scheduled {
        out.push_str(", is_scheduled=true");
    }
    aliases(module, out);
    if let Some(layout) = &module.config.entry_layout {
        push(
            out,
            format_args!(", entry_computation_layout={{{}}}", program(layout)),
        );
    }
    let config = &module.config;
    if !config.propagate_sharding_to_parameters.is_empty() {
        let list = bools(&config.propagate_sharding_to_parameters);
        push(
            out,
            format_args!(", allow_spmd_sharding_propagation_to_parameters={list}"),
        );
    }
    if !config.propagate_sharding_to_output.is_empty() {
        let list = bools(&config.propagate_sharding_to_output);
        push(
            out,
            format_args!(", allow_spmd_sharding_propagation_to_output={list}"),
        );
    }
    if config.replica_count > 1 {
        push(
            out,
            format_args!(", replica_count={}", config.replica_count),
        );
    }
    if config.num_partitions > 1 {
        push(
            out,
            format_args!(", num_partitions={}", config.num_partitions),
        );
    }
    if !module.frontend_attributes.is_empty() {
        out.push_str(", frontend_attributes=");
        attributes::pairs(&module.frontend_attributes, out);
    }
    for (name, value) in &module.other_attributes {
        push(out, format_args!(", {name}={value}"));
    }
    out.push('\n');
}

fn aliases(module: &Module, out: &mut String) {
    for (i, (output, target)) in module.input_output_alias.iter().enumerate() {
        out.push_str(if i > 0 {
            ", "
        } else {
            ", input_output_alias={ "
        });
        let kind = match target.kind {
            AliasKind::May => "may-alias",
            AliasKind::Must => "must-alias",
        };
        let (output, index) = (commas(output), commas(&target.index));
        push(
            out,
            format_args!("{{{output}}}: ({}, {{{index}}}, {kind})", target.parameter),
        );
    }
    if !module.input_output_alias.is_empty() {
        out.push_str(" }");
    }
    for (i, (parameter, index)) in module.buffer_donors.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { ", buffer_donor={ " });
        push(out, format_args!("({parameter}, {{{}}})", commas(index)));
    }
    if !module.buffer_donors.is_empty() {
        out.push_str(" }");
    }
}

fn program(program: &ProgramShape) -> String {
    let parameters: Vec<String> = program.parameters.iter().map(ToString::to_string).collect();
    format!("({})->{}", parameters.join(", "), program.result)
}

fn stack_frames(module: &Module, out: &mut String) {
    let tables = &module.stack_frames;
    if tables.stack_frames.is_empty() && tables.file_names.is_empty() {
        return;
    }
    out.push_str("\nFileNames\n");
    for (i, name) in tables.file_names.iter().enumerate() {
        push(out, format_args!("{} {}\n", i + 1, quote(name.as_bytes())));
    }
    out.push_str("\nFunctionNames\n");
    for (i, name) in tables.function_names.iter().enumerate() {
        push(out, format_args!("{} {}\n", i + 1, quote(name.as_bytes())));
    }
    out.push_str("\nFileLocations\n");
    for (i, l) in tables.file_locations.iter().enumerate() {
        let (file, function) = (l.file_name_id, l.function_name_id);
        push(
            out,
            format_args!(
                "{} {{file_name_id={file} function_name_id={function}",
                i + 1
            ),
        );
        push(
            out,
            format_args!(" line={} end_line={}", l.line, l.end_line),
        );
        push(
            out,
            format_args!(" column={} end_column={}}}\n", l.column, l.end_column),
        );
    }
    out.push_str("\nStackFrames\n");
    for (i, frame) in tables.stack_frames.iter().enumerate() {
        // The text has 1 where the table has 0 for no parent, and so on.
        let parent = frame.parent_frame_id.saturating_add(1);
        let location = frame.file_location_id;
        push(out, format_args!("{} {{file_location_id={location}", i + 1));
        push(out, format_args!(" parent_frame_id={parent}}}\n"));
    }
}

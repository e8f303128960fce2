//! Files that jaxlib wrote, in several versions, and files that are broken on purpose.
//!
//! `old` and `new` are two programs, each as plain bytecode (`plain`) and as portable artifacts; an
//! artifact must give the module that the plain form gives, which is read by other code.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::base::Location;
use crate::base::Severity;
use crate::mlir::Attr;
use crate::mlir::AttrMap;
use crate::mlir::Dense;
use crate::mlir::MAX_REGIONS;
use crate::mlir::Module;
use crate::mlir::OpId;
use crate::mlir::RegionId;
use crate::mlir::Type;
use crate::mlir::ValueId;
use crate::mlir::bytecode::container;
use crate::mlir::bytecode::cursor::Cursor;
use crate::mlir::bytecode::elements;
use crate::mlir::bytecode::emit::Emitter;
use crate::mlir::bytecode::read;
use crate::mlir::bytecode::vhlo_ops;
use crate::mlir::bytecode::write;
use crate::mlir::dialect;
use crate::mlir::print::print;
use crate::mlir::text;

const OLD: &[u8] = include_bytes!("../../../tests/mlir/old.plain.mlirbc");
const NEW: &[u8] = include_bytes!("../../../tests/mlir/new.plain.mlirbc");
const OLD_1_17: &[u8] = include_bytes!("../../../tests/mlir/old.1_17.mlirbc");
const ARTIFACTS: &[(&str, &[u8], &[u8])] = &[
    (
        "0.9",
        include_bytes!("../../../tests/mlir/old.0_9.mlirbc"),
        OLD,
    ),
    (
        "0.10",
        include_bytes!("../../../tests/mlir/old.0_10.mlirbc"),
        OLD,
    ),
    (
        "0.12",
        include_bytes!("../../../tests/mlir/old.0_12.mlirbc"),
        OLD,
    ),
    (
        "0.14",
        include_bytes!("../../../tests/mlir/old.0_14.mlirbc"),
        OLD,
    ),
    (
        "0.15",
        include_bytes!("../../../tests/mlir/old.0_15.mlirbc"),
        OLD,
    ),
    (
        "1.0",
        include_bytes!("../../../tests/mlir/old.1_0.mlirbc"),
        OLD,
    ),
    ("1.17", OLD_1_17, OLD),
    (
        "new 1.11",
        include_bytes!("../../../tests/mlir/new.1_11.mlirbc"),
        NEW,
    ),
    (
        "new 1.17",
        include_bytes!("../../../tests/mlir/new.1_17.mlirbc"),
        NEW,
    ),
];

/// Everything of a module but places and unused ids, one op a line.
fn describe(module: &Module) -> String {
    enum Item {
        Op(OpId),
        Region(RegionId),
    }
    let mut text = String::new();
    let mut names: BTreeMap<ValueId, usize> = BTreeMap::new();
    let mut name = |value: ValueId| {
        let next = names.len();
        *names.entry(value).or_insert(next)
    };
    let mut stack = vec![Item::Op(module.root)];
    while let Some(item) = stack.pop() {
        match item {
            Item::Op(id) => {
                let op = &module.ops[id];
                for value in &op.results {
                    let _ = write!(text, "%{}: {:?} ", name(*value), module.ty(*value));
                }
                let _ = write!(text, "= {}", op.name);
                for value in &op.operands {
                    let _ = write!(text, " %{}", name(*value));
                }
                let _ = writeln!(text, " {:?} {:?}", op.attrs, op.loc);
                stack.extend(op.regions.iter().rev().map(|region| Item::Region(*region)));
            }
            Item::Region(region) => {
                text.push_str("region\n");
                for block in &module.regions[region].blocks {
                    let block = &module.blocks[*block];
                    for (value, loc) in block.args.iter().zip(&block.arg_locs) {
                        let _ = writeln!(text, "%{} {:?} {loc:?}", name(*value), module.ty(*value));
                    }
                    stack.extend(block.ops.iter().rev().map(|op| Item::Op(*op)));
                }
            }
        }
    }
    text
}

fn op<'m>(module: &'m Module, name: &str) -> crate::mlir::OpRef<'m> {
    let id = module.ops.iter().find(|(_, op)| op.name == name);
    module.op(id.expect("the program has such an op").0)
}

#[test]
fn artifacts_of_every_version_are_the_program_they_were_made_of() {
    for (version, artifact, plain) in ARTIFACTS {
        let artifact = read(artifact).unwrap_or_else(|error| panic!("{version}: {error}"));
        let plain = read(plain).unwrap_or_else(|error| panic!("plain: {error}"));
        assert_eq!(describe(&artifact), describe(&plain), "{version}");
    }
}

#[test]
fn bytecode_is_the_program_of_the_text_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mlir");
    let entries = fs::read_dir(&folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".mlirbc"))
        .collect();
    names.sort();
    assert!(names.len() > 20, "the samples are there");
    for name in names {
        let (program, _) = name.split_once('.').unwrap();
        let source = fs::read_to_string(folder.join(format!("{program}.generic.mlir"))).unwrap();
        let wanted = text::read(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = read(&fs::read(folder.join(&name)).unwrap());
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(print(&found), print(&wanted), "{name}");
    }
}

#[test]
fn attributes_have_the_values_of_the_program() {
    let module = read(OLD_1_17).unwrap();
    let root = module.op(module.root);
    assert_eq!(root.attr("sym_name").and_then(Attr::as_str), Some("old"));
    let list = root.attr("a.list").and_then(Attr::as_array).unwrap();
    assert_eq!(list[2], Attr::symbol("f"));
    assert_eq!(list[3], Attr::Unit);
    let conv = op(&module, "stablehlo.convolution");
    assert_eq!(conv.attr_ints("window_strides").unwrap(), [2, 2]);
    assert_eq!(
        conv.opt_bools("window_reversal").unwrap(),
        Some(vec![true, false])
    );
    // Dilations of one are the default.
    assert_eq!(conv.attr("rhs_dilation"), None);
    let dims = conv.attr_struct("dimension_numbers", "conv").unwrap();
    assert_eq!(dims.ints("kernel_spatial_dimensions"), Some(vec![0, 1]));
    assert_eq!(dims.int("output_feature_dimension"), Some(3));
    let call = op(&module, "stablehlo.custom_call");
    assert_eq!(
        call.attr("backend_config"),
        Some(&Attr::String((*b"a\0\xFFb").into()))
    );
    assert_eq!(call.attr_int("api_version").unwrap(), 2);
    let reduce = op(&module, "stablehlo.all_reduce");
    assert_eq!(reduce.attr("use_global_device_ids"), Some(&Attr::Unit));
    let channel = reduce
        .attr_struct("channel_handle", "channel_handle")
        .unwrap();
    assert_eq!(
        (channel.int("handle"), channel.int("type")),
        (Some(1), Some(0))
    );
    assert_eq!(
        op(&module, "stablehlo.all_gather").attr("channel_handle"),
        None
    );
    let constants = module
        .ops
        .iter()
        .filter(|(_, op)| op.name == "stablehlo.constant");
    let constants: Vec<_> = constants.collect();
    let bytes = |index: usize| {
        let dense = module
            .op(constants[index].0)
            .opt_dense("value")
            .unwrap()
            .unwrap();
        (dense.splat, dense.bytes().unwrap().to_vec())
    };
    assert_eq!(bytes(0), (false, vec![1, 0, 1, 1, 0, 0, 1, 1, 0]));
    assert_eq!(bytes(1), (true, vec![1]));
    assert_eq!(bytes(2), (false, vec![0xF8, 7, 3]));
    assert_eq!(bytes(3), (false, vec![15, 7, 3]));
    assert_eq!(bytes(8), (false, vec![]));
    let mut ends = module.ops.iter().filter(|(_, op)| op.name == "func.return");
    let end = ends.next_back().unwrap().1;
    let (file, line, column) = end.loc.file_line().unwrap();
    assert_eq!((&**file, line, column), ("model.py", 12, 3));
    let quantized = op(&module, "stablehlo.uniform_quantize");
    let Type::Quantized(quantized) = quantized.result_type(0).unwrap().element() else {
        panic!("the result is quantized");
    };
    assert_eq!((quantized.storage_min, quantized.storage_max), (-127, 127));
    assert_eq!(quantized.scales, [0.5_f64.to_bits()]);
    assert_eq!(quantized.zero_points, [3]);
}

#[test]
fn what_is_written_is_read_back_and_bytes_depend_on_nothing_else() {
    let old = read(OLD).unwrap();
    for major_minor in [
        (0, 9),
        (0, 11),
        (0, 13),
        (0, 14),
        (0, 20),
        (1, 4),
        (1, 17),
        (1, 20),
    ] {
        let bytes = write(&old, major_minor).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            bytes,
            write(&read(&bytes).unwrap(), major_minor).unwrap(),
            "{major_minor:?}"
        );
        assert_eq!(
            describe(&read(&bytes).unwrap()),
            describe(&old),
            "{major_minor:?}"
        );
    }
}

#[test]
fn what_a_version_lacks_is_named() {
    let new = read(NEW).unwrap();
    for (version, words) in [
        ((0, 9), "needs StableHLO 1.7"),
        ((1, 5), "needs StableHLO 1.7"),
        ((2, 0), "versions from 0.9 to 1.20 are written"),
    ] {
        let error = write(&new, version).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn what_does_not_read_back_is_not_written() {
    let text = "func.func @f(%a: tensor<4xi32>) {\n\
        %0 = \"stablehlo.custom_call\"(%a) {call_target_name = \"c\", api_version = 20 : i32} : \
        (tensor<4xi32>) -> tensor<4xi32>\nreturn\n}";
    let error = write(&text::read(text).unwrap(), (1, 17)).unwrap_err();
    assert_eq!(error.severity, Severity::Unsupported);
    assert!(error.notes[0].contains("API version 20"), "{error}");
}

#[test]
fn the_name_of_a_part_in_vhlo_is_no_name_of_an_attribute() {
    let text = "func.func @f(%a: tensor<4xi32>) -> tensor<4xi32> {\n\
        %0 = \"stablehlo.all_gather\"(%a) {all_gather_dim = 0, channel_id = 3, \
        replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xi32>) -> tensor<4xi32>\n\
        return %0 : tensor<4xi32>\n}";
    let error = write(&text::read(text).unwrap(), (1, 17)).unwrap_err();
    assert!(error.message.contains("`channel_id`"), "{error}");
}

#[test]
fn what_an_op_of_vhlo_has_no_place_for_is_refused() {
    let text = |ty: &str, version: &str| {
        format!(
            "func.func @f(%a: tensor<4xi32>) -> tensor<4xi32> {{\n\
             %0 = \"stablehlo.collective_permute\"(%a) {{channel_handle = \
             #stablehlo.channel_handle<handle = 1, type = {ty}>, \
             source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}} : \
             (tensor<4xi32>) -> tensor<4xi32>\n\
             %1 = \"stablehlo.custom_call\"(%0) {{call_target_name = \"c\", \
             api_version = {version}}} : (tensor<4xi32>) -> tensor<4xi32>\n\
             return %1 : tensor<4xi32>\n}}"
        )
    };
    let written = |ty, version| write(&text::read(&text(ty, version)).unwrap(), (1, 17));
    assert!(written("1", "2 : i32").is_ok());
    let error = written("7", "2 : i32").unwrap_err();
    assert!(error.message.contains("`channel_handle`"), "{error}");
    let error = written("0", "2 : i255").unwrap_err();
    assert!(error.message.contains("API version"), "{error}");

    // Number zero is no channel, of whatever type.
    let none = text("1", "2 : i32").replace("handle = 1,", "handle = 0,");
    let none = text::read(&none).unwrap();
    assert_eq!(
        op(&none, "stablehlo.collective_permute").attr("channel_handle"),
        None
    );
}

#[test]
fn elements_that_no_program_holds_are_refused() {
    let count = |rows: u64, element| {
        let ty = Type::static_tensor(&[rows, 2], element);
        elements::count(&Cursor::new(&[], 0), &ty)
    };
    assert_eq!(count(3, Type::I64).unwrap(), 6);
    assert_eq!(count(1 << 30, Type::I1).unwrap(), 1 << 31);
    for rows in [1 << 59, 1 << 62, 1 << 63] {
        assert!(count(rows, Type::I64).is_err());
    }
}

#[test]
fn lists_have_one_form_whether_an_op_declares_them_or_not() {
    let text = "func.func @f(%a: tensor<4xi32>) -> tensor<4xi32> {\n\
        %0 = \"stablehlo.negate\"(%a) {strides = dense<[1, 2]> : tensor<2xi64>} : \
        (tensor<4xi32>) -> tensor<4xi32>\nreturn %0 : tensor<4xi32>\n}";
    let module = text::read(text).unwrap();
    let again = read(&write(&module, (1, 17)).unwrap()).unwrap();
    assert_eq!(print(&again), print(&module));
}

#[test]
fn what_a_form_of_an_op_needs_is_named() {
    let call = |attrs: &str, ty: &str| {
        format!("stablehlo.custom_call @f(%a) {{{attrs}}} : ({ty}) -> tensor<f32>")
    };
    let reduce = "stablehlo.reduce(%a init: %a) across dimensions = [] : (tensor<f32>, tensor<f32>) \
         -> tensor<f64>\nreducer(%b: tensor<f64>, %c: tensor<f64>) {\n\
         stablehlo.return %b : tensor<f64>\n}";
    let typed = "api_version = 4 : i32, backend_config = \"\"";
    for (op, ty, needed) in [
        (reduce.to_owned(), "tensor<f32>", (0, 17)),
        (call(typed, "tensor<f32>"), "tensor<f32>", (1, 3)),
        (
            call("", "!stablehlo.future<tensor<f32>>"),
            "!stablehlo.future<tensor<f32>>",
            (1, 17),
        ),
    ] {
        let text = format!("func.func @main(%a: {ty}) {{\n%0 = {op}\nreturn\n}}\n");
        let module = text::read(&text).unwrap_or_else(|error| panic!("{error}"));
        assert!(write(&module, needed).is_ok(), "{text}");
        let (major, minor) = needed;
        let error = write(&module, (major, minor - 1)).unwrap_err();
        let wanted = format!("needs StableHLO {major}.{minor}");
        assert!(error.message.contains(&wanted), "{error}");
    }
}

#[test]
fn symbols_are_written_where_vhlo_has_names() {
    let text = "func.func @main(%a: tensor<f32>) {\n\
         %0 = stablehlo.custom_call @f(%a) {backend_config = @\"\"} : (tensor<f32>) -> tensor<f32>\n\
         return\n}\n";
    let error = write(&text::read(text).unwrap(), vhlo_ops::NEWEST).unwrap_err();
    let wanted = "attribute `backend_config` is a symbol where something else should be";
    assert!(error.message.contains(wanted), "{error}");
}

#[test]
fn an_unknown_op_is_named_with_the_artifact_and_what_is_read() {
    let mut file = OLD_1_17.to_vec();
    let at = file.windows(11).position(|w| w == b"constant_v1").unwrap();
    file[at + 10] = b'9';
    let at = file.windows(4).position(|w| w == b"1.17").unwrap();
    file[at..at + 4].copy_from_slice(b"3.45");
    let error = read(&file).unwrap_err();
    assert_eq!(error.severity, Severity::Unsupported);
    assert!(matches!(error.location, Some(Location::Byte(_))));
    let text = error.to_string();
    for words in [
        "vhlo.constant_v9",
        "StableHLO_v3.45.0",
        "up to StableHLO 1.20",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn the_ops_of_vhlo_are_sorted_and_their_versions_leave_no_gap() {
    for pair in vhlo_ops::OPS.windows(2) {
        assert!((pair[0].name, pair[0].revision) < (pair[1].name, pair[1].revision));
        if pair[0].name == pair[1].name {
            let (major, minor) = pair[0].last;
            let next = [(major, minor + 1), (major + 1, 0)];
            assert!(next.contains(&pair[1].first), "{}", pair[0].name);
        }
    }
    for op in vhlo_ops::OPS {
        let full = format!("{}_v{}", op.name, op.revision);
        assert_eq!(vhlo_ops::find(&full).map(|op| op.name), Some(op.name));
        assert!(op.attrs.split(' ').is_sorted(), "{full}");
    }
}

#[test]
fn integers_are_as_the_format_document_says() {
    // The first byte's low zero bits count the bytes that follow.
    for (bytes, value) in [
        (&[0b0000_0001][..], 0),
        (&[0b1111_1111], 127),
        (&[0b0000_0010, 0b0000_0010], 128),
        (&[0b1111_1110, 0xFF], (1 << 14) - 1),
        (&[0x80, 1, 2, 3, 4, 5, 6, 7], 0x0007_0605_0403_0201),
        (&[0, 1, 2, 3, 4, 5, 6, 7, 8], 0x0807_0605_0403_0201),
    ] {
        assert_eq!(Cursor::new(bytes, 0).varint("a number").unwrap(), value);
        let mut out = Emitter::default();
        out.varint(value);
        assert_eq!(out.bytes, bytes);
    }
    for value in [0, -1, 1, i64::MIN, i64::MAX, -64, 64] {
        let mut out = Emitter::default();
        out.signed(value);
        assert_eq!(
            Cursor::new(&out.bytes, 0).signed("a number").unwrap(),
            value
        );
    }
}

#[test]
fn each_beginning_of_a_file_is_a_diagnostic() {
    for file in [OLD_1_17, OLD, ARTIFACTS[0].1] {
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "the first {length} bytes");
        }
    }
}

/// A file with the dialects `builtin` and `vhlo` and the op names `module` and `tuple_v1`, with
/// these attributes and types (dialect, bytes), and this program. String 4 and on are `more`.
fn file_with(
    more: &[String],
    attrs: &[(u64, Vec<u8>)],
    types: &[(u64, Vec<u8>)],
    program: &[u8],
) -> Vec<u8> {
    let mut out = Emitter {
        bytes: container::MAGIC.to_vec(),
    };
    out.varint(1);
    out.bytes.extend(b"test\0");
    let strings = ["builtin", "vhlo", "module", "tuple_v1"].into_iter();
    let strings: Vec<&str> = strings.chain(more.iter().map(String::as_str)).collect();
    let mut section = Emitter::default();
    section.count(strings.len());
    strings
        .iter()
        .rev()
        .for_each(|text| section.count(text.len() + 1));
    for text in strings {
        section.bytes.extend(text.as_bytes());
        section.byte(0);
    }
    out.section(container::section::STRINGS, &section.bytes);
    let mut section = Emitter::default();
    for number in [2, 0, 2, 0, 1, 2, 1, 1, 3] {
        section.varint(number);
    }
    out.section(container::section::DIALECTS, &section.bytes);
    let (mut entries, mut offsets) = (Emitter::default(), Emitter::default());
    offsets.count(attrs.len());
    offsets.count(types.len());
    for (dialect, bytes) in attrs.iter().chain(types) {
        offsets.varint(*dialect);
        offsets.varint(1);
        offsets.flagged(bytes.len() as u64, true);
        entries.bytes.extend(bytes);
    }
    out.section(container::section::ENTRY_OFFSETS, &offsets.bytes);
    out.section(container::section::ENTRIES, &entries.bytes);
    out.section(container::section::IR, program);
    out.bytes
}

fn file_of(more: &[String], attrs: &[(u64, Vec<u8>)], program: &[u8]) -> Vec<u8> {
    file_with(more, attrs, &[], program)
}

fn file(attrs: &[(u64, Vec<u8>)], program: &[u8]) -> Vec<u8> {
    file_of(&[], attrs, program)
}

fn numbers(values: &[u64]) -> Vec<u8> {
    let mut out = Emitter::default();
    values.iter().for_each(|value| out.varint(*value));
    out.bytes
}

/// A module whose region has this content; attribute 0 is the unknown location.
fn module_of(attrs: &[(u64, Vec<u8>)], content: &[u8]) -> Vec<u8> {
    let mut program = numbers(&[2, 0]);
    program.push(0x10);
    program.extend(numbers(&[0, 3]));
    program.extend(content);
    file(attrs, &program)
}

fn unknown() -> (u64, Vec<u8>) {
    (0, numbers(&[15]))
}

fn message(file: &[u8]) -> String {
    read(file)
        .map(|_| "a module".to_owned())
        .unwrap_or_else(|error| error.message.clone())
}

#[test]
fn an_empty_module_is_one() {
    let file = module_of(&[unknown()], &numbers(&[0]));
    assert_eq!(message(&file), "a module");
}

#[test]
fn what_is_announced_and_not_there_is_refused_before_memory_is_taken() {
    for count in [1 << 20, 1 << 40, u64::MAX >> 1] {
        // Blocks, values, ops, arguments, strings in lists.
        for content in [
            numbers(&[count]),
            numbers(&[1, count]),
            numbers(&[1, 0, count << 1]),
            numbers(&[1, 1, 1, count]),
        ] {
            assert!(read(&module_of(&[unknown()], &content)).is_err());
        }
        let list = (1, numbers(&[1, count]));
        let used = file(&[list], &[3, 1, 0, 1]);
        assert!(read(&used).is_err());
    }
}

#[test]
fn what_no_text_can_say_is_refused() {
    // A value is announced and used, and nothing defines it.
    let content = [numbers(&[1, 1, 2, 1]), vec![4], numbers(&[0, 1, 0])].concat();
    let found = message(&module_of(&[unknown()], &content));
    assert!(
        found.contains("operand 0 is used before it is defined"),
        "{found}"
    );

    // The result of an op in the op's own region; and after it, which is as it should be.
    let user = [numbers(&[1]), vec![4], numbers(&[0, 1, 0])].concat();
    let op = |ops: u64, inside: &[u8]| {
        let head = [numbers(&[1]), vec![0x12], numbers(&[0, 1, 0, 2, 1, 0, ops])].concat();
        [&head, inside].concat()
    };
    let typed = |content: Vec<u8>| {
        let program = [numbers(&[2, 0]), vec![0x10], numbers(&[0, 3]), content].concat();
        message(&file_with(
            &[],
            &[unknown()],
            &[(0, numbers(&[1]))],
            &program,
        ))
    };
    let found = typed([numbers(&[1, 1, 2]), op(2, &user)].concat());
    assert!(
        found.contains("operand 0 is used before it is defined"),
        "{found}"
    );
    let found = typed([numbers(&[1, 1, 4]), op(0, &[]), user].concat());
    assert_eq!(found, "a module");

    // The first block of a region comes after itself.
    let content = [numbers(&[1, 0, 2, 1]), vec![8], numbers(&[0, 1, 0])].concat();
    let found = message(&module_of(&[unknown()], &content));
    assert!(found.contains("block 0 of 1 is a successor"), "{found}");

    // The name of an op with a backslash.
    let mut named = module_of(&[unknown()], &numbers(&[0]));
    let at = named.windows(8).position(|w| w == b"tuple_v1").unwrap();
    named[at + 5] = b'\\';
    let found = message(&named);
    assert!(found.contains("the name of an op is"), "{found}");

    // A module in the module, of two blocks.
    let content = [
        numbers(&[1, 0, 2, 0]),
        vec![0x10],
        numbers(&[0, 3, 2, 0, 0, 0]),
    ]
    .concat();
    let found = message(&module_of(&[unknown()], &content));
    assert!(found.contains("one block without arguments"), "{found}");

    // Two modules in the module, each with a symbol.
    let string = |number: u64| (0, numbers(&[2, number]));
    let symbol = |attr: u64| (0, numbers(&[1, 1, 1, attr]));
    let attrs = [
        unknown(),
        string(4),
        string(5),
        string(6),
        symbol(2),
        symbol(3),
    ];
    let strings = ["sym_name", "twice", "once"].map(str::to_owned);
    let inner =
        |symbol: u64| [numbers(&[0]), vec![0x11], numbers(&[0, symbol, 3, 1, 0, 0])].concat();
    for (second, wanted) in [(4, "symbol `@twice` is defined twice"), (5, "a module")] {
        let content = [numbers(&[1, 0, 4]), inner(4), inner(second)].concat();
        let program = [numbers(&[2, 0]), vec![0x10], numbers(&[0, 3]), content].concat();
        assert_eq!(message(&file_of(&strings, &attrs, &program)), wanted);
    }
}

#[test]
fn regions_do_not_nest_without_end() {
    // Each op has one region with one block with one op.
    let nested = |depth: usize| {
        let mut content = numbers(&[1, 0, 2]);
        for level in 0..depth {
            content.extend(numbers(&[1]));
            content.push(if level + 1 == depth { 0 } else { 0x10 });
            content.extend(numbers(&[0]));
            if level + 1 < depth {
                content.extend(numbers(&[2, 1, 0, 2]));
            }
        }
        module_of(&[unknown()], &content)
    };
    // The module has a region too.
    let deepest = read(&nested(MAX_REGIONS)).unwrap();
    let text = print(&deepest);
    assert_eq!(print(&text::read(&text).unwrap()), text);
    for depth in [MAX_REGIONS + 1, 20_000] {
        assert!(message(&nested(depth)).contains("regions nested deeper"));
    }
}

#[test]
fn attributes_do_not_nest_without_end() {
    // Attribute i holds attribute i + 1; the last one is the unknown location.
    let chain = |length: u64| -> Vec<(u64, Vec<u8>)> {
        let links = (0..length).map(|i| (1, numbers(&[1, 1, i + 1])));
        links.chain([unknown()]).collect()
    };
    let attrs = |attrs: Vec<(u64, Vec<u8>)>| {
        let mut program = numbers(&[2, 0]);
        program.push(1);
        program.extend(numbers(&[attrs.len() as u64 - 1, 0]));
        message(&file(&attrs, &program))
    };
    assert!(attrs(chain(100)).contains("where an op's attributes should be"));
    assert!(attrs(chain(100_000)).contains("nests 201 deep"));
    // A list of two of a list of two of a list of two.
    let double = |length: u64| -> Vec<(u64, Vec<u8>)> {
        let links = (0..length).map(|i| (1, numbers(&[1, 2, i + 1, i + 1])));
        links.chain([unknown()]).collect()
    };
    assert!(attrs(double(60)).contains("parts"));
    // A list that holds itself, and two that hold each other.
    let itself = vec![(1, numbers(&[1, 1, 0])), unknown()];
    assert!(attrs(itself).contains("part of itself"));
    let other = vec![
        (1, numbers(&[1, 1, 1])),
        (1, numbers(&[1, 1, 0])),
        unknown(),
    ];
    assert!(attrs(other).contains("part of itself"));
}

#[test]
fn what_is_shared_is_not_copied_without_end() {
    // One long string, which 40 000 attributes are: 2 GB, from 300 KB.
    let long = ["x".repeat(50_000)];
    let string = (0, numbers(&[2, 4]));
    let list = numbers(&[&[0, 40_000][..], &(1..=40_000).collect::<Vec<u64>>()].concat());
    let attrs: Vec<(u64, Vec<u8>)> = [(0, list)]
        .into_iter()
        .chain(std::iter::repeat_n(string, 40_000))
        .chain([unknown()])
        .collect();
    let program = [numbers(&[2, 0]), vec![1], numbers(&[40_001, 0])].concat();
    let error = read(&file_of(&long, &attrs, &program)).unwrap_err();
    assert!(error.message.contains("used too often"), "{error}");

    // One string of a megabyte, which 10 000 ops have: 10 GB when it is written out.
    let long = ["x".repeat(1 << 20), "a".to_owned()];
    let attrs = [
        unknown(),
        (0, numbers(&[2, 4])),
        (0, numbers(&[2, 5])),
        (0, numbers(&[1, 1, 2, 1])),
    ];
    let op = [numbers(&[1]), vec![1], numbers(&[0, 3])].concat();
    let content = |ops: usize| [numbers(&[1, 0, (ops as u64) << 1]), op.repeat(ops)].concat();
    let program = |ops| [numbers(&[2, 0]), vec![0x10], numbers(&[0, 3]), content(ops)].concat();
    assert!(read(&file_of(&long, &attrs, &program(100))).is_ok());
    let error = read(&file_of(&long, &attrs, &program(10_000))).unwrap_err();
    assert!(error.message.contains("too large"), "{error}");

    // A tuple of two tuples of two tuples: a value of a million parts, which 1000 others are too.
    let tuples = (0..20).map(|i| (0, numbers(&[15, 2, i, i])));
    let types: Vec<(u64, Vec<u8>)> = [(0, numbers(&[12]))].into_iter().chain(tuples).collect();
    let values = |count: usize| {
        let op = [numbers(&[1]), vec![2], numbers(&[0, 1, 20])].concat();
        let content = [
            numbers(&[1, count as u64, (count << 1) as u64]),
            op.repeat(count),
        ];
        let program = [
            numbers(&[2, 0]),
            vec![0x10],
            numbers(&[0, 3]),
            content.concat(),
        ];
        read(&file_with(&[], &[unknown()], &types, &program.concat()))
    };
    assert!(values(1).is_ok());
    let error = values(1000).unwrap_err();
    assert!(error.message.contains("values of large types"), "{error}");

    // One dictionary of 1000 entries, which 20 000 ops have: 1.5 GB, from 100 KB.
    let names: Vec<String> = (0..1000).map(|i| format!("name{i}")).collect();
    let dict: Vec<u64> = (0..1000).flat_map(|i| [i + 2, 0]).collect();
    let dict = (0, numbers(&[&[1, 1000][..], &dict].concat()));
    let strings = (4..1004).map(|i| (0, numbers(&[2, i])));
    let attrs: Vec<(u64, Vec<u8>)> = [unknown(), dict].into_iter().chain(strings).collect();
    let op = [numbers(&[1]), vec![1], numbers(&[0, 1])].concat();
    let content = [numbers(&[1, 0, 20_000 << 1]), op.repeat(20_000)].concat();
    let program = [numbers(&[2, 0]), vec![0x10], numbers(&[0, 3]), content].concat();
    let error = read(&file_of(&names, &attrs, &program)).unwrap_err();
    assert!(error.message.contains("too large"), "{error}");
}

#[test]
fn a_list_of_dimensions_that_stands_for_a_million_is_not_expanded() {
    let mut attrs = AttrMap::new();
    let ty = Type::static_tensor(&[1 << 20], Type::I64);
    let splat = Attr::Dense(Dense::new(ty, 1_i64.to_le_bytes().to_vec()));
    attrs.insert("window_strides".into(), splat.clone());
    dialect::canonicalize("stablehlo.dynamic_slice", &mut attrs);
    assert_eq!(attrs.get("window_strides"), Some(&splat));
}

#[test]
fn ops_of_another_dialect_stand_between_casts() {
    let new = read(NEW).unwrap();
    let text = describe(&new);
    assert!(
        text.contains("chlo.erf") && !text.contains("unrealized"),
        "{text}"
    );
    let bytes = write(&new, (1, 17)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(describe(&read(&bytes).unwrap()), text);
    let cast = b"unrealized_conversion_cast";
    assert!(bytes.windows(cast.len()).any(|window| window == cast));
    let error = write(&new, (1, 10)).unwrap_err();
    assert!(error.message.contains("need StableHLO 1.11"), "{error}");
}

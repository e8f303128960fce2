//! Pretty forms against the generic forms that jaxlib printed of the same programs, round trips,
//! wrong texts, and limits. Texts with random damage: see `tests/fuzz/files`.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::base::Code;
use crate::base::Location;
use crate::mlir::MAX_REGIONS;
use crate::mlir::attrs::DenseData;
use crate::mlir::print::print;
use crate::mlir::print::print_pretty;
use crate::mlir::print::print_pretty_with_locations;
use crate::mlir::print::print_with_locations;

/// Programs in the pretty form, each with its generic form.
fn samples() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mlir");
    let entries = fs::read_dir(folder).expect("the samples are there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let read = |path: &Path| fs::read_to_string(path).expect("a sample");
    let generic = |path: &PathBuf| path.to_string_lossy().ends_with(".generic.mlir");
    let text = |path: &&PathBuf| path.extension().is_some_and(|e| e == "mlir");
    let pretty = paths.iter().filter(text).filter(|path| !generic(path));
    let pair = |path: &PathBuf| {
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        (name, read(path), read(&path.with_extension("generic.mlir")))
    };
    pretty.map(pair).collect()
}

fn module(text: &str) -> Module {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

fn first_difference(a: &str, b: &str) -> String {
    let differs = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    differs.map_or_else(String::new, |(a, b)| format!("{a}\n{b}"))
}

#[test]
fn pretty_and_generic_forms_are_one_module() {
    assert!(samples().len() >= 10, "the samples are there");
    for (name, pretty, generic) in samples() {
        let (a, b) = (print(&module(&pretty)), print(&module(&generic)));
        assert!(a == b, "{name}:\n{}", first_difference(&a, &b));
    }
}

#[test]
fn what_is_printed_reads_back() {
    for (name, pretty, _) in samples() {
        let first = module(&pretty);
        let text = print(&first);
        let again = print(&module(&text));
        assert!(
            text == again,
            "{name}:\n{}",
            first_difference(&text, &again)
        );
        let again = print(&module(&print_pretty(&first)));
        assert!(
            text == again,
            "{name}:\n{}",
            first_difference(&text, &again)
        );
        let text = print_with_locations(&first);
        for printed in [&text, &print_pretty_with_locations(&first)] {
            let again = print_with_locations(&module(printed));
            assert!(
                text == again,
                "{name}:\n{}",
                first_difference(&text, &again)
            );
        }
    }
}

#[test]
fn shardy_is_printed_as_shardy_prints_it() {
    let (_, text, _) = samples()
        .into_iter()
        .find(|sample| sample.0 == "shardy")
        .expect("the sample");
    let printed = print_pretty(&module(&text));
    assert!(text == printed, "{}", first_difference(&text, &printed));
}

#[test]
fn the_pretty_form_has_locations_where_mlir_has_them() {
    let text = "#loc1 = loc(\"f.py\":3:4)\n#loc2 = loc(\"x\"(#loc1))\n\
        func.func @f(%a: tensor<4xf32> {a.b} loc(\"a\"), %b: tensor<f32>) -> tensor<f32> {\n\
        %0 = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [0] : \
        (tensor<4xf32>, tensor<f32>) -> tensor<f32> loc(#loc2)\n\
        %1 = stablehlo.reduce(%a init: %b) across dimensions = [0] : \
        (tensor<4xf32>, tensor<f32>) -> tensor<f32>\n\
        reducer(%c: tensor<f32> loc(\"c\"), %d: tensor<f32>) {\n\
        %2 = stablehlo.add %c, %d : tensor<f32> loc(#loc1)\n\
        stablehlo.return %2 : tensor<f32>\n} loc(#loc2)\n\
        return %1 : tensor<f32> loc(\"x\"(\"f.py\":3:4))\n} loc(#loc1)\n";
    let printed = print_pretty_with_locations(&module(text));
    let wanted = [
        "module {",
        "  func.func @f(%arg0: tensor<4xf32> {a.b} loc(#loc0), %arg1: tensor<f32> loc(unknown)) \
         -> tensor<f32> {",
        "    %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [0] \
         : (tensor<4xf32>, tensor<f32>) -> tensor<f32> loc(#loc2)",
        "    %1 = stablehlo.reduce(%arg0 init: %arg1) across dimensions = [0] : (tensor<4xf32>, \
         tensor<f32>) -> tensor<f32>",
        "     reducer(%arg2: tensor<f32> loc(#loc3), %arg3: tensor<f32> loc(unknown))  {",
        "      %2 = stablehlo.add %arg2, %arg3 : tensor<f32> loc(#loc1)",
        "      stablehlo.return %2 : tensor<f32> loc(unknown)",
        "    } loc(#loc2)",
        "    return %1 : tensor<f32> loc(#loc2)",
        "  } loc(#loc1)",
        "} loc(unknown)",
        "#loc0 = loc(\"a\")",
        "#loc1 = loc(\"f.py\":3:4)",
        "#loc2 = loc(\"x\"(#loc1))",
        "#loc3 = loc(\"c\")",
    ];
    assert_eq!(printed.lines().collect::<Vec<&str>>(), wanted);
}

#[test]
fn what_pretty_forms_cannot_say_reads_back() {
    // Types of functions look like types of operands and results; numbers without type would be
    // integers where their bits are spelled; words of other dialects stay as they are.
    let text = "module attributes {a.a = [0x7FF8000000000000 : f64, 1.0, 0x7FF0000000000000 : f64, \
        2 : i64], a.t = 0x3F8 : tf32, a.o = #arith.overflow<nsw>} {\n\
        func.func @f(%a: (f32) -> f32, %b: tensor<4xi32>) -> ((f32) -> f32) {\n\
        %0 = \"stablehlo.negate\"(%a) : ((f32) -> f32) -> ((f32) -> f32)\n\
        %1 = \"chlo.erf\"(%a) : ((f32) -> f32) -> ((f32) -> f32)\n\
        %2 = \"stablehlo.iota\"() {iota_dimension = 0 : i64} : () -> ((f32) -> f32)\n\
        %3 = \"arith.cmpi\"(%b, %b) {predicate = 0 : i64} : (tensor<4xi32>, tensor<4xi32>) -> i1\n\
        %4 = \"arith.addi\"(%b, %b) {overflowFlags = 7 : i32} : (tensor<4xi32>, tensor<4xi32>) -> \
        tensor<4xi32>\n\
        %5 = \"sdy.propagation_barrier\"(%b) {allowed_direction = 1 : i64} : (tensor<4xi32>) -> \
        tensor<4xi32>\n\
        %6 = \"arith.constant\"() {value = 1 : i32} : () -> i8\n\
        return {a.b} %0 : (f32) -> f32\n}\n}\n";
    let first = module(text);
    let wanted = print(&first);
    for printed in [&wanted, &print_pretty(&first)] {
        assert_eq!(print(&module(printed)), wanted, "{printed}");
    }
    let root = first.op(first.root);
    let list = root.attr("a.a").and_then(Attr::as_array).expect("a list");
    assert!(matches!(list[0], Attr::Float { ty: Type::F64, .. }));
}

#[test]
fn elements_of_all_widths_have_one_form() {
    for (text, printed) in [
        (
            "dense<\"0xFFFF01\"> : tensor<1xi17>",
            "dense<-1> : tensor<1xi17>",
        ),
        ("dense<\"0x07\"> : tensor<1xi3>", "dense<-1> : tensor<1xi3>"),
        (
            "dense<\"0xFF\"> : tensor<1xui3>",
            "dense<7> : tensor<1xui3>",
        ),
        ("dense<131071> : tensor<1xi17>", "dense<-1> : tensor<1xi17>"),
        (
            "dense<\"0xFF\"> : tensor<1xf4E2M1FN>",
            "dense<-6.000000e+00> : tensor<1xf4E2M1FN>",
        ),
        (
            "dense<\"0x0102030405060708090A\"> : tensor<1xf80>",
            "dense<\"0x0102030405060708090A\"> : tensor<1xf80>",
        ),
        (
            "dense<0x7FFF> : tensor<1xtf32>",
            "dense<0x07FFF> : tensor<1xtf32>",
        ),
    ] {
        let attr = attr_of(text);
        assert_eq!(crate::mlir::print::attr(&attr), printed);
        assert_eq!(attr_of(printed), attr);
    }
}

#[test]
fn quantized_types_are_whole() {
    let read = |inside: &str| read_type(&format!("!quant.uniform<{inside}>"));
    for (inside, printed) in [
        ("i8:f32, 2.0:-3", "i8:f32, 2.000000e+00:-3"),
        (
            "u8<1:9>:f32:1, {0.5,0.25:1}",
            "u8<1:9>:f32:1, {5.000000e-01,2.500000e-01:1}",
        ),
        (
            "i8:f32:{0:2, 1:1}, {{1.0, 2.0}, {3.0:1, 4.0}}",
            "i8:f32:{0:2, 1:1}, {{1.000000e+00, 2.000000e+00}, {3.000000e+00:1, 4.000000e+00}}",
        ),
    ] {
        let ty = read(inside).unwrap_or_else(|error| panic!("{inside}: {error}"));
        let printed = format!("!quant.uniform<{printed}>");
        assert_eq!(crate::mlir::print::ty(&ty), printed);
        assert_eq!(read_type(&printed).expect("it was printed"), ty);
    }
    for (inside, what) in [
        (
            "i8:f32:{0:2, 1:1}, {{1.0}, 2.0}",
            "where a list of scales should stand",
        ),
        (
            "i8:f32:{0:2, 1:1}, {1.0, {2.0}}",
            "where a scale should stand",
        ),
        (
            "i8:f32:{0:2, 1:1}, {{1.0}, {2.0, 3.0}}",
            "2 scales where 1 should be",
        ),
        ("i8:f32:{0:2, 1:1}, {{}, {}}", "0 scales"),
        ("i8:f32:1, {{1.0}}", "more than one list of scales"),
        ("i33:f32, 1.0", "stores 33 bits"),
        (
            "i8<-129:3>:f32, 1.0",
            "from -129 to 3 where -128 to 127 fit",
        ),
        ("i8:f32, 0x7FF0000000000000", "no number"),
    ] {
        let error = read(inside).expect_err(inside);
        assert!(error.message.contains(what), "{inside}: {error}");
    }
}

fn attr_of(text: &str) -> Attr {
    read_attr(text).unwrap_or_else(|error| panic!("{error}"))
}

fn dense(text: &str) -> (bool, Vec<u8>) {
    match attr_of(text) {
        Attr::Dense(dense) => match dense.data {
            DenseData::Bytes(bytes) => (dense.splat, bytes.to_vec()),
            DenseData::Strings(_) => panic!("{text}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn elements_are_packed_as_literals_are() {
    assert_eq!(
        dense("dense<[1, -2]> : tensor<2xi16>"),
        (false, vec![1, 0, 0xfe, 0xff])
    );
    assert_eq!(
        dense("dense<[7, -8]> : tensor<2xi4>"),
        (false, vec![7, 0xf8])
    );
    assert_eq!(
        dense("dense<[15, 8]> : tensor<2xui4>"),
        (false, vec![15, 8])
    );
    assert_eq!(
        dense("dense<[true, false]> : tensor<2xi1>"),
        (false, vec![1, 0])
    );
    assert_eq!(dense("dense<[1, 1]> : tensor<2xi8>"), (true, vec![1]));
    assert_eq!(dense("dense<3> : tensor<0x5xi8>"), (false, vec![]));
    assert_eq!(dense("dense<\"0xF8\"> : tensor<7xi4>"), (true, vec![0xf8]));
    assert_eq!(
        dense("dense<\"0x0001\"> : tensor<2xi1>"),
        (false, vec![0, 1])
    );
    // Eight booleans to a byte, as older printers have it.
    let packed = dense("dense<\"0x0580\"> : tensor<16xi1>").1;
    let set: Vec<usize> = (0..16).filter(|i| packed[*i] == 1).collect();
    assert_eq!(set, [0, 2, 15]);
    let half = 1.5f32.to_le_bytes();
    assert_eq!(dense("dense<1.5> : tensor<9xf32>"), (true, half.to_vec()));
    assert_eq!(
        dense("dense<0x3FC00000> : tensor<f32>"),
        (true, half.to_vec())
    );
    let complex = dense("dense<[(1.5, 0.0), (0.0, 1.5)]> : tensor<2xcomplex<f32>>").1;
    assert_eq!(complex[..4], half);
    assert_eq!(complex[12..], half);
}

#[test]
fn a_splat_is_not_expanded() {
    let (splat, bytes) = dense("dense<1> : tensor<100000x100000x1000000xi8>");
    assert!(splat && bytes == [1]);
    let error = read_attr("dense<1> : tensor<4294967296x4294967296xi64>").expect_err("too large");
    assert_eq!(error.code, codes::INPUT_LIMIT);
}

#[test]
fn integers_of_no_bits_read_back() {
    for text in ["dense<0> : tensor<1xi0>", "dense<> : tensor<0xi0>"] {
        assert_eq!(crate::mlir::print::attr(&attr_of(text)), text);
        assert_eq!(attr_of(text).ints(), None);
    }
    for refused in ["array<i0>", "array<i3>", "array<tensor<2xi8>>"] {
        assert!(read_attr(refused).is_err(), "{refused}");
    }
    assert_eq!(crate::mlir::print::attr(&attr_of("0 : i0")), "0 : i0");
    assert!(read_attr("-1 : i0").is_err() && read_attr("1 : i0").is_err());
}

#[test]
fn strings_unescape() {
    let Attr::String(bytes) = attr_of(r#""a\22b\\c\0A\C3\A9\FF\n""#) else {
        panic!("a string");
    };
    assert_eq!(&*bytes, b"a\"b\\c\n\xc3\xa9\xff\n");
}

#[test]
fn locations_are_kept() {
    let text = "module {\n  func.func @f(%a: tensor<f32>) -> tensor<f32> {\n    \
        %0 = stablehlo.sine %a : tensor<f32> loc(#loc2)\n    return %0 : tensor<f32>\n  }\n}\n\
        #loc1 = loc(\"f.py\":3:4 to 5:6)\n#loc2 = loc(\"jit(f)/sin\"(#loc1))\n";
    let module = module(text);
    let sine = module
        .ops
        .values()
        .find(|op| op.name == "stablehlo.sine")
        .expect("the op");
    assert_eq!(sine.place, 3);
    let (file, line, column) = sine.loc.file_line().expect("a file");
    assert_eq!((file.as_str(), line, column), ("f.py", 3, 4));
    let SourceLoc::Name { name, child } = &*sine.loc else {
        panic!("{:?}", sine.loc);
    };
    assert_eq!(name.as_str(), "jit(f)/sin");
    assert!(matches!(
        **child,
        SourceLoc::File {
            end_line: 5,
            end_column: 6,
            ..
        }
    ));
}

/// The code and place of what is wrong with a text.
fn wrong(text: &str) -> (Code, usize, usize, String) {
    let error = match read(text) {
        Ok(_) => panic!("this was read:\n{text}"),
        Err(error) => error,
    };
    match error.location {
        Some(Location::Text { line, column, .. }) => (error.code, line, column, error.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_wrong_has_its_place() {
    let function =
        |body: &str| format!("func.func @f(%a: tensor<f32>) {{\n  {body}\n  return\n}}\n");
    let cases: &[(&str, Code, usize, usize, &str)] = &[
        (
            "%0 = stablehlo.sine %b : tensor<f32>",
            codes::TEXT_NAME,
            2,
            23,
            "`%b` is used",
        ),
        (
            "%0 = stablehlo.sine %a#1 : tensor<f32>",
            codes::TEXT_NAME,
            2,
            23,
            "is 1 values",
        ),
        (
            "%0 = stablehlo.sine %a : tensor<f64>",
            codes::TEXT_NAME,
            2,
            23,
            "tensor<f32>",
        ),
        (
            "%a = stablehlo.sine %a : tensor<f32>",
            codes::TEXT_NAME,
            2,
            3,
            "defined twice",
        ),
        (
            "%0:2 = stablehlo.sine %a : tensor<f32>",
            codes::TEXT_SYNTAX,
            2,
            3,
            "1 results",
        ),
        (
            "%0 = stablehlo.nothing %a : tensor<f32>",
            codes::UNKNOWN_WORD,
            2,
            8,
            "stablehlo.nothing",
        ),
        (
            "%0 = stablehlo.sine %a : tensor<4*f32>",
            codes::TEXT_SYNTAX,
            2,
            36,
            "`*`",
        ),
        (
            "%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi8>",
            codes::TEXT_SYNTAX,
            2,
            34,
            "2 elements",
        ),
        (
            "%0 = stablehlo.constant dense<300> : tensor<i8>",
            codes::TEXT_SYNTAX,
            2,
            33,
            "`300`",
        ),
        (
            "%0 = stablehlo.constant dense<\"0x00\"> : tensor<3xi16>",
            codes::TEXT_SYNTAX,
            2,
            33,
            "1 bytes",
        ),
        (
            "%0 = stablehlo.sine %a {x = #q} : tensor<f32>",
            codes::TEXT_NAME,
            2,
            31,
            "`q`",
        ),
        (
            "%0 = stablehlo.sine %a {x, x} : tensor<f32>",
            codes::TEXT_SYNTAX,
            2,
            30,
            "twice",
        ),
        (
            "%0 = stablehlo.sine %a : !t",
            codes::TEXT_NAME,
            2,
            29,
            "`t`",
        ),
        (
            "\"a.jmp\"()[^bb7] : () -> ()",
            codes::TEXT_NAME,
            2,
            13,
            "`^bb7`",
        ),
        (
            "%0 = \"x.y\"(%a, %a) : (tensor<f32>) -> i1",
            codes::TEXT_SYNTAX,
            2,
            43,
            "1 types",
        ),
        (
            "%0 = stablehlo.constant dense<\"ab> : tensor<i8>",
            codes::TEXT_SYNTAX,
            2,
            33,
            "not closed",
        ),
    ];
    for (body, code, line, column, part) in cases {
        let found = wrong(&function(body));
        assert_eq!(
            (found.0, found.1, found.2),
            (*code, *line, *column),
            "{body}: {}",
            found.3
        );
        assert!(found.3.contains(part), "{body}: {}", found.3);
    }
    let twice = wrong("module {\nfunc.func private @f()\nfunc.func private @f()\n}");
    assert_eq!((twice.0, twice.1), (codes::TEXT_NAME, 3));
    let open = wrong("module {\n");
    assert_eq!((open.0, open.1), (codes::TEXT_SYNTAX, 2));
    // A function's values are its own.
    let outside = wrong("func.func @f(%a: i1) {\nfunc.func @g() {\n\"x.y\"(%a) : (i1) -> ()\n}\n}");
    assert_eq!((outside.0, outside.1), (codes::TEXT_NAME, 3));
}

#[test]
fn a_module_has_one_block_without_arguments() {
    for text in [
        "module { ^b(%a: i1): }",
        "module { module { ^b(%a: i1): } }",
        "module { ^b: ^c: }",
        "\"builtin.module\"() : () -> ()",
        "\"builtin.module\"() ({ ^b(%a: i1): }) : () -> ()",
        "module { \"builtin.module\"() ({ }) : () -> () }",
    ] {
        let found = wrong(text);
        assert_eq!((found.0, found.1), (codes::TEXT_SYNTAX, 1), "{text}");
        assert!(
            found.3.contains("one block without arguments"),
            "{text}: {}",
            found.3
        );
    }
    assert!(read("module { ^b: }").is_ok());
}

#[test]
fn the_pretty_form_says_it_all_or_is_generic() {
    for op in [
        // Bits are counted by an i32, an i64 is something else.
        "%0 = \"stablehlo.reduce_precision\"(%a) {exponent_bits = 8 : i64, mantissa_bits = 0 : i64} \
         : (tensor<f32>) -> tensor<f32>",
        "%0 = stablehlo.reduce_precision %a, format = e2147483647m131077 : tensor<f32>",
        // Lists have 64-bit integers, and precisions are the dialect's own.
        "%0 = \"stablehlo.slice\"(%a) {start_indices = array<i32: 0>, limit_indices = array<i64: 2>, \
         strides = array<i64: 1>} : (tensor<f32>) -> tensor<f32>",
        "%0 = \"stablehlo.dot\"(%a, %a) {precision_config = [#mhlo<precision HIGH>, #mhlo<precision HIGH>]} \
         : (tensor<f32>, tensor<f32>) -> tensor<f32>",
        // A name that has a type.
        "\"builtin.module\"() <{sym_name = \"m\" : i1}> ({\n^b:\n}) : () -> ()",
        "\"func.func\"() <{function_type = () -> (), sym_name = \"g\" : i1}> ({\n}) : () -> ()",
        "%0 = \"func.return\"() : () -> tensor<f32>",
        // Flags are words.
        "%0 = \"arith.negf\"(%a) <{fastmath = #arith.fastmath<{v = 7 : i32}>}> : (tensor<f32>) -> tensor<f32>",
        // The type of a predicate would be taken for that of the whole op.
        "%0 = \"stablehlo.select\"(%b, %a, %a) : ((i1) -> i1, tensor<f32>, tensor<f32>) -> tensor<f32>",
        "%0 = \"sdy.sharding_constraint\"(%a) {sharding = #sdy.mesh<[\"x\"=2]>} : \
         (tensor<f32>) -> tensor<f32>",
    ] {
        let end = if op.contains("return") { "" } else { "return" };
        let text = format!("func.func @f(%a: tensor<f32>, %b: (i1) -> i1) {{\n{op}\n{end}\n}}");
        let first = module(&text);
        assert_eq!(print(&module(&print_pretty(&first))), print(&first));
    }
    // A function gives nothing, and so has no names for results.
    let text = "%0:2 = \"func.func\"() <{function_type = () -> (), sym_name = \"f\"}> ({\n}) : () -> (i1, i1)";
    let first = module(text);
    assert_eq!(print(&module(&print_pretty(&first))), print(&first));
}

#[test]
fn nothing_comes_after_the_end_of_a_block() {
    // The form of a return without operands would take the name of the next result for one.
    let found =
        wrong("func.func @f() {\nreturn\n%0 = stablehlo.constant dense<1> : tensor<i32>\n}");
    assert_eq!((found.1, found.2), (3, 1));
    let found = wrong("func.func @f() {\nreturn\nstablehlo.constant dense<1> : tensor<i32>\n}");
    assert_eq!((found.0, found.1, found.2), (codes::TEXT_SYNTAX, 3, 1));
    assert!(found.3.contains("`func.return`"), "{}", found.3);
}

#[test]
fn names_of_ops_are_plain_and_the_first_block_comes_first() {
    let found = wrong("func.func @f() {\n\"a.é\"() : () -> ()\n}");
    assert_eq!((found.0, found.1), (codes::TEXT_SYNTAX, 2));
    let found = wrong("func.func @f() {\n^b0:\n\"cf.br\"()[^b0] : () -> ()\n}");
    assert_eq!((found.0, found.1, found.2), (codes::TEXT_SYNTAX, 3, 11));
    let later =
        "func.func @f() {\n\"cf.br\"()[^b1] : () -> ()\n^b1:\n\"cf.br\"()[^b1] : () -> ()\n}";
    assert!(read(later).is_ok());
}

#[test]
fn nesting_is_bounded() {
    let deep = |open: &str, inside: &str, close: &str| {
        let text = format!("{}{inside}{}", open.repeat(5000), close.repeat(5000));
        let error = read_attr(&text).expect_err("too deep");
        assert_eq!(error.code, codes::INPUT_LIMIT, "{open}: {error}");
    };
    deep("[", "1", "]");
    deep("{a = ", "1", "}");
    deep("tuple<", "i1", ">");
    deep("tensor<2x", "f32", ">");
    deep("complex<", "f32", ">");
    deep("() -> (", "", ")");
    deep("loc(callsite(", "\"a\"", " at unknown))");
}

#[test]
fn numbers_of_values_may_be_large() {
    let text = "%9999999 = \"a.b\"() : () -> i1\n\"a.c\"(%9999999) : (i1) -> ()\n\
        %3 = \"a.b\"() ({\n%600 = \"a.b\"() : () -> i1\n}) : () -> i1\n\
        %300 = \"a.b\"() : () -> i1\n%600 = \"a.b\"() : () -> i1\n";
    assert!(read(text).is_ok());
    let twice = wrong(&format!("{text}%9999999 = \"a.b\"() : () -> i1\n"));
    assert_eq!((twice.0, twice.1), (codes::TEXT_NAME, 8));
}

#[test]
fn regions_are_bounded() {
    let text = format!(
        "{}{}",
        "\"a.b\"() ({".repeat(5000),
        "}) : () -> ()".repeat(5000)
    );
    assert_eq!(wrong(&text).0, codes::INPUT_LIMIT);
    let fits = format!(
        "{}{}",
        "\"a.b\"() ({".repeat(MAX_REGIONS),
        "}) : () -> ()".repeat(MAX_REGIONS)
    );
    assert!(read(&fits).is_ok());
}

#[test]
fn aliases_are_bounded() {
    // Each doubles the one before; all together would not fit any memory.
    let mut text = "#a0 = [1, 1]\n".to_owned();
    for i in 1..100 {
        text.push_str(&format!("#a{i} = [#a{0}, #a{0}]\n", i - 1));
    }
    assert_eq!(wrong(&text).0, codes::INPUT_LIMIT);
    // Types too, also where their text is known.
    for wrap in ["!a", "tensor<2x!a", "tensor<2x!a"] {
        let close = if wrap.contains('<') { ">" } else { "" };
        let mut text = "!a0 = tuple<i1, i1>\n".to_owned();
        for i in 1..100 {
            let before = format!("{wrap}{}{close}", i - 1);
            text.push_str(&format!("!a{i} = tuple<{before}, {before}>\n"));
        }
        assert_eq!(wrong(&text).0, codes::INPUT_LIMIT);
    }
    // A long text that stands often, and a blob.
    let long = "x".repeat(1 << 20);
    let ops = |attr: &str| format!("\"a.b\"() {{{attr}}} : () -> ()\n").repeat(2000);
    let text = format!("{}#a = \"{long}\"\n", ops("a = #a"));
    assert_eq!(wrong(&text).0, codes::INPUT_LIMIT);
    let blob = "0x04000000".to_owned() + &"00".repeat(1 << 20);
    let text = format!(
        "{}{{-# dialect_resources: {{ builtin: {{ k: \"{blob}\" }} }} #-}}\n",
        ops("a = dense_resource<k> : tensor<1048576xi8>")
    );
    assert_eq!(wrong(&text).0, codes::INPUT_LIMIT);
    // Places deep in calls of calls.
    let mut text = "#loc0 = loc(\"f.py\":1:1)\n".to_owned();
    for i in 1..150 {
        text.push_str(&format!(
            "#loc{i} = loc(callsite(#loc0 at #loc{}))\n",
            i - 1
        ));
    }
    text.push_str("module {\n} loc(#loc149)\n");
    let deep = print_with_locations(&module(&text));
    assert_eq!(print_with_locations(&module(&deep)), deep);
    assert!(
        deep.contains("#loc149 = loc(callsite(#loc0 at #loc148))"),
        "{deep}"
    );
    // Each is one level deeper than the one before.
    let mut text = "#a0 = [1]\n".to_owned();
    for i in 1..100_000 {
        text.push_str(&format!("#a{i} = [#a{}]\n", i - 1));
    }
    assert_eq!(wrong(&text).0, codes::INPUT_LIMIT);
    assert!(wrong("#a = [#a]\n").3.contains("stands for itself"));
    let other = wrong("!a = unit\nfunc.func @f() -> !a\n");
    assert!(
        other.3.contains("a unit attribute where a type should be"),
        "{}",
        other.3
    );
    assert!(
        wrong("!a = tuple<!b>\n!b = tuple<!a>\n")
            .3
            .contains("stands for itself")
    );
}

#[test]
fn a_large_dictionary_is_read_in_its_own_time() {
    // The last name comes first: each is put before all others.
    let names = (0..60_000).rev().map(|i| format!("n{i:05} = {i}"));
    let text = format!("{{{}}}", names.collect::<Vec<_>>().join(", "));
    let Attr::Dict(map) = attr_of(&text) else {
        panic!("a dictionary");
    };
    assert_eq!(map.len(), 60_000);
    assert_eq!(map.get("n00007"), Some(&Attr::i64(7)));
    let twice = read_attr("{a, c,\n b, a}").expect_err("twice");
    assert!(matches!(
        twice.location,
        Some(Location::Text {
            line: 2,
            column: 5,
            ..
        })
    ));
    let twice = wrong("\"a.b\"() <{a}> {b, a} : () -> ()");
    assert_eq!((twice.1, twice.2), (1, 19));
}

#[test]
fn an_axis_part_alone_is_spelled_as_mlir_spells_it() {
    let text = "#stablehlo<sub_axis_info(1)2>";
    let attr = attr_of(text);
    let part = attr.as_struct("stablehlo", "sub_axis_info");
    assert_eq!(part.and_then(|part| part.int("size")), Some(2));
    assert_eq!(crate::mlir::print::attr(&attr), text);
}

#[test]
fn names_are_shared() {
    let module = module("module {\n\"a.b\"() : () -> ()\n\"a.b\"() : () -> ()\n}");
    let names: Vec<&str> = module.ops.values().map(|op| op.name.as_str()).collect();
    assert!(std::ptr::eq(names[0], names[1]));
    assert_eq!(Arc::strong_count(&module.ops[module.root].loc), 3);
}

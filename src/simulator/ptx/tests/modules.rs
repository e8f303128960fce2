//! What stands outside of bodies: every directive, every declaration, every first value.

use super::*;

fn module(text: &str) -> Module<'_> {
    match parse(text) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn headers() {
    let text = ".version 6.0 .target sm_60";
    let read = module(text);
    assert_eq!(
        (read.version, read.target.sm, read.address_size),
        ((6, 0), 60, 32)
    );
    assert_eq!(read.target.suffix, Suffix::None);
    for (target, sm, suffix) in [
        ("sm_90a", 90, Suffix::Accelerated),
        ("sm_100f", 100, Suffix::Family),
        ("sm_121", 121, Suffix::None),
        ("compute_75", 75, Suffix::None),
    ] {
        let text = format!(
            "// a\n.version 9.0\n.target {target}, debug, texmode_independent\n.address_size 64"
        );
        let read = module(&text);
        assert_eq!((read.target.sm, read.target.suffix), (sm, suffix));
        assert_eq!(read.target.options, ["debug", "texmode_independent"]);
        assert_eq!((read.version, read.address_size), ((9, 0), 64));
    }
}

#[test]
fn directives_of_a_module() {
    let text = wrap(
        "# 1 \"a.cu\" 2\n#line 7\n.file 1 \"a b.cu\", 1234567890123, 5\n.file 2 \"c\\\"d\"\n\
         .pragma \"one\", \"two\";\n.func f;\n.alias g, f;\n\
         .section .debug_info\n{\n.b8 1, 0x2 // x\n.b64 .debug_abbrev\n}\n@@DWARF \" not closed {\n.loc 1 2 3",
    );
    let read = module(&text);
    let files: Vec<_> = read.files.iter().map(|f| (f.index, f.name)).collect();
    assert_eq!(files, [(1, "a b.cu"), (2, "c\\\"d")]);
    assert_eq!(read.pragmas, ["one", "two"]);
    assert_eq!(
        read.aliases,
        [Alias {
            line: 10,
            name: "g",
            of: "f"
        }]
    );
    assert_eq!(read.functions.len(), 1);
}

#[test]
fn functions() {
    let text = wrap(
        "
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.visible .entry all (
  .param .u64 .ptr .global .align 16 p0,
  .param .u64 .ptr p1,
  .param .align 64 .b8 p2[128],
  .param .v4 .f32 p3,
  .param .texref p4)
.maxntid 128
.reqntid 16, 8
.minnctapersm 2
.maxnctapersm 3
.maxnreg 64
.reqnctapercluster 2, 1, 1
.explicitcluster
.maxclusterrank 8
.blocksareclusters
.pragma \"nounroll\";
.somethingnew 4, 5
.flag
{ ret; }
.weak .func .attribute(.unified(0xAB, 0xCD)) (.reg .b32 r) local (.reg .f64 a, .reg .b32 b) .noreturn .abi_preserve 16 .abi_preserve_control 2
{ exit; }
.func bare { ret; }
.entry early .maxntid 1, 2, 3 () { }
.func nothing;
",
    );
    let read = module(&text);
    let names: Vec<_> = read
        .functions
        .iter()
        .map(|f| (f.line, f.name, f.is_entry))
        .collect();
    let wanted = [
        (5, "vprintf", false),
        (6, "all", true),
        (25, "local", false),
        (27, "bare", false),
        (28, "early", true),
        (29, "nothing", false),
    ];
    assert_eq!(names, wanted);
    let [print, all, local, bare, early, nothing] = &read.functions[..] else {
        panic!()
    };
    assert_eq!(
        (print.linkage, print.params.len(), print.returns.len()),
        (Linkage::Extern, 2, 1)
    );
    assert!(print.body.is_none() && nothing.body.is_none());
    assert_eq!(all.linkage, Linkage::Visible);
    let p = &all.params;
    let pointer = |space, align| Some(Pointer { space, align });
    assert_eq!(p[0].pointer, pointer(Some(Space::Global), 16));
    assert_eq!((p[0].align, p[0].ty, p[0].line), (None, Type::U64, 7));
    assert_eq!(p[1].pointer, pointer(None, 4));
    assert_eq!(
        (p[2].align, &p[2].dims[..], p[2].pointer),
        (Some(64), &[Some(128)][..], None)
    );
    assert_eq!((p[3].vector, p[3].ty), (4, Type::F32));
    assert_eq!((p[4].ty, p[4].space), (Type::Texref, Space::Param));
    let wanted = Directives {
        max_threads: Some([128, 1, 1]),
        required_threads: Some([16, 8, 1]),
        min_blocks_per_core: Some(2),
        max_blocks_per_core: Some(3),
        max_registers: Some(64),
        cluster: Some([2, 1, 1]),
        explicit_cluster: true,
        max_cluster_rank: Some(8),
        blocks_are_clusters: true,
        pragmas: vec!["nounroll"],
        others: vec![("somethingnew", vec![4, 5]), ("flag", vec![])],
        ..Directives::default()
    };
    assert_eq!(all.directives, wanted);
    let wanted = Directives {
        no_return: true,
        unified: Some((0xab, 0xcd)),
        abi_preserve: Some(16),
        abi_preserve_control: Some(2),
        ..Directives::default()
    };
    assert_eq!((local.linkage, &local.directives), (Linkage::Weak, &wanted));
    assert_eq!(
        (local.params[0].space, local.returns[0].name),
        (Space::Reg, "r")
    );
    assert_eq!((bare.params.len(), bare.linkage), (0, Linkage::Internal));
    assert!(bare.body.as_ref().is_some_and(|b| b.len() == 1));
    assert_eq!(early.directives.max_threads, Some([1, 2, 3]));
    assert!(early.body.as_ref().is_some_and(Vec::is_empty));
}

#[test]
fn variables() {
    let text = wrap(
        "
.extern .shared .align 16 .b8 dynamic[];
.visible .global .align 8 .u32 a, b[2][3];
.weak .const .f32 c = 1.5;
.common .global .v2 .f16x2 d;
.global .attribute(.managed) .s32 e;
.global .attribute(.unified(1, 2), .managed) .b128 f;
.const[3] .b8 g[WARP_SZ*2];
.tex .u32 h;
.local .bf16 i;
.global .surfref j;
",
    );
    let read = module(&text);
    let names: Vec<_> = read.variables.iter().map(|v| (v.line, v.name)).collect();
    let wanted = ["dynamic", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let lines = [5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 14];
    assert_eq!(names, lines.into_iter().zip(wanted).collect::<Vec<_>>());
    let v = &read.variables;
    assert_eq!(
        (v[0].linkage, v[0].align, &v[0].dims[..]),
        (Linkage::Extern, Some(16), &[None][..])
    );
    assert_eq!(
        (v[2].linkage, v[2].align, v[2].ty),
        (Linkage::Visible, Some(8), Type::U32)
    );
    assert_eq!(v[2].dims, [Some(2), Some(3)]);
    assert_eq!((v[3].space, v[3].linkage), (Space::Const, Linkage::Weak));
    assert_eq!(v[3].init, Some(Init::F64(1.5f64.to_bits())));
    assert_eq!(
        (v[4].vector, v[4].ty, v[4].linkage),
        (2, Type::F16x2, Linkage::Common)
    );
    assert!(v[5].managed && v[6].managed && !v[4].managed);
    assert_eq!((v[6].unified, v[6].ty), (Some((1, 2)), Type::B128));
    assert_eq!((v[7].bank, &v[7].dims[..]), (Some(3), &[Some(64)][..]));
    assert_eq!(
        (v[8].space, v[9].space, v[9].ty),
        (Space::Tex, Space::Local, Type::Bf16)
    );
    assert_eq!(v[10].ty, Type::Surfref);
}

#[test]
fn first_values() {
    let init = |text: &str, check: &dyn Fn(&Init<'_>)| {
        let text = wrap(&format!(".global .b32 x[] = {text};"));
        check(module(&text).variables[0].init.as_ref().unwrap());
    };
    let symbol = |name, offset, generic, mask| {
        Init::Symbol(Box::new(SymbolInit {
            name,
            offset,
            generic,
            mask,
        }))
    };
    init("-1+2*3", &|i| assert_eq!(*i, Init::Int(5)));
    init("0f3F800000", &|i| assert_eq!(*i, Init::F32(0x3f80_0000)));
    init("-1.0", &|i| assert_eq!(*i, Init::F64((-1f64).to_bits())));
    init("{1, -2, 0xFFFFFFFFFFFFFFFF}", &|i| {
        assert_eq!(*i, Init::Integers(vec![1, -2, -1]))
    });
    init("{1, 2.0, 3}", &|i| {
        assert_eq!(
            *i,
            Init::List(vec![Init::Int(1), Init::F64(2f64.to_bits()), Init::Int(3)])
        );
    });
    init("{{1, 2}, {3}, {}}", &|i| {
        let row = |v: &[i64]| Init::Integers(v.to_vec());
        assert_eq!(
            *i,
            Init::List(vec![row(&[1, 2]), row(&[3]), Init::List(vec![])])
        );
    });
    init("f", &|i| assert_eq!(*i, symbol("f", 0, false, None)));
    init("g+4+4", &|i| assert_eq!(*i, symbol("g", 8, false, None)));
    init("generic(g)", &|i| {
        assert_eq!(*i, symbol("g", 0, true, None))
    });
    init("generic(g)+8", &|i| {
        assert_eq!(*i, symbol("g", 8, true, None))
    });
    init("generic", &|i| {
        assert_eq!(*i, symbol("generic", 0, false, None))
    });
    init("{0xff(g+4), 0xff00(generic(g)+4), 7}", &|i| {
        let wanted = vec![
            symbol("g", 4, false, Some(0xff)),
            symbol("g", 4, true, Some(0xff00)),
            Init::Int(7),
        ];
        assert_eq!(*i, Init::List(wanted));
    });
    init(
        "{addr_mode_0 = wrap, filter_mode = nearest, width = 4}",
        &|i| {
            let wanted = vec![
                ("addr_mode_0", symbol("wrap", 0, false, None)),
                ("filter_mode", symbol("nearest", 0, false, None)),
                ("width", Init::Int(4)),
            ];
            assert_eq!(*i, Init::Fields(wanted));
        },
    );
}

#[test]
fn every_type_is_read() {
    let words = "pred b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f16 f16x2 bf16 bf16x2 tf32 \
                 f32 f64 texref samplerref surfref";
    for word in words.split_whitespace() {
        let ty = Type::parse(word).unwrap();
        assert_eq!(format!("{ty:?}").to_lowercase(), word);
        let text = wrap(&format!(".global .{word} x;"));
        assert_eq!(module(&text).variables[0].ty, ty);
        // The size is the number in the word, in bits, times two for a pair.
        let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let (bits, lanes) = digits.split_once('x').unwrap_or((digits, "1"));
        if let (Ok(bits), Ok(lanes)) = (bits.parse::<u32>(), lanes.parse::<u32>()) {
            assert_eq!(ty.bytes(), bits * lanes / 8, "{word}");
        }
    }
    assert_eq!(Type::parse("f8"), None);
    assert_eq!(Type::Pred.bytes(), 0);
    assert_eq!(Type::Texref.bytes(), 8);
}

#[test]
fn places_of_names_and_lines() {
    let text = wrap_body("  add.s32 a, b, c;\r\n\tret;");
    let read = module(&text);
    let body = read.functions[0].body.as_ref().unwrap();
    let Statement::Instr(instr) = &body[0] else {
        panic!()
    };
    let Operand::Name(symbol) = &instr.operands[1] else {
        panic!()
    };
    let at = |line, column, excerpt: &str, width| crate::base::Location::Text {
        line,
        column,
        excerpt: excerpt.to_owned(),
        width,
    };
    assert_eq!(
        read.location(symbol.name),
        at(6, 14, "  add.s32 a, b, c;", 1)
    );
    assert_eq!(
        read.location(instr.modifiers[0]),
        at(6, 7, "  add.s32 a, b, c;", 3)
    );
    assert_eq!(read.line(6), at(6, 3, "  add.s32 a, b, c;", 16));
    assert_eq!(read.line(7), at(7, 2, "\tret;", 4));
    assert_eq!(read.location("elsewhere"), at(1, 1, ".version 9.0", 9));
    assert_eq!(read.line(1_000_000), at(9, 1, "", 1));
}

#[test]
fn zeros_after_the_text_are_not_read() {
    let text = wrap_body("ret;") + "\0\0";
    assert_eq!(module(&text).functions.len(), 1);
    assert!(parse(&text.replace("ret", "r\0t")).is_err());
}

//! The pretty forms of the dialects that stand beside StableHLO.

use crate::mlir::text::formats::ARROW1;
use crate::mlir::text::formats::ARROW2;
use crate::mlir::text::formats::BINARY;
use crate::mlir::text::formats::CAST;
use crate::mlir::text::formats::DICT_RETURN;
use crate::mlir::text::formats::Given;
use crate::mlir::text::formats::Sdy;
use crate::mlir::text::formats::Step;
use crate::mlir::text::formats::Step::ArgsRegion;
use crate::mlir::text::formats::Step::Bool;
use crate::mlir::text::formats::Step::Choice;
use crate::mlir::text::formats::Step::Dict;
use crate::mlir::text::formats::Step::Flag;
use crate::mlir::text::formats::Step::Flags;
use crate::mlir::text::formats::Step::Int;
use crate::mlir::text::formats::Step::Key;
use crate::mlir::text::formats::Step::Optional;
use crate::mlir::text::formats::Step::Shardy;
use crate::mlir::text::formats::Step::String;
use crate::mlir::text::formats::Step::Symbol;
use crate::mlir::text::formats::Step::SymbolName;
use crate::mlir::text::formats::Step::Text;
use crate::mlir::text::formats::Step::Typed;
use crate::mlir::text::formats::Step::Value;
use crate::mlir::text::formats::Step::Values;
use crate::mlir::text::formats::Types;
use crate::mlir::text::formats::UNARY;

/// Ops of CHLO, by name. Those that are missing have the form of `broadcast_` or unary ops.
pub(super) const CHLO: &[(&str, &[Step])] = &[
    (
        "broadcast_select",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Value,
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("mulhi", ARROW2),
    ("next_after", ARROW2),
    ("polygamma", ARROW2),
    (
        "top_k",
        &[
            Text("("),
            Value,
            Text(","),
            Key("k"),
            Int("k", 64),
            Optional(&[Text(","), Key("is_stable"), Bool("is_stable")]),
            Text(")"),
            Dict,
            Typed(Types::Arrow),
        ],
    ),
    ("zeta", ARROW2),
];

pub(super) const CHLO_BROADCAST: &[Step] = &[Value, Text(","), Value, Dict, Typed(Types::Function)];

pub(super) const CHLO_UNARY: &[&str] = &[
    "_asin_acos_kernel",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bessel_i1e",
    "conj",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "is_inf",
    "is_neg_inf",
    "is_pos_inf",
    "lgamma",
    "sinh",
    "square",
    "tan",
];

/// How partial results are put together, by number.
pub(in crate::mlir) const REDUCTIONS: &[&str] = &["sum", "max", "min"];

/// The steps of a collective op of Shardy after those given.
macro_rules! collective {
    ($($step:expr),* $(,)?) => {
        &[
            $($step,)*
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ]
    };
}

const REDUCTION: Step = Optional(&[Choice("reduction_op", REDUCTIONS, 32)]);

/// Ops of Shardy, by name.
pub(super) const SDY: &[(&str, &[Step])] = &[
    (
        "all_gather",
        collective![Shardy("gathering_axes", Sdy::AxisLists)],
    ),
    (
        "all_reduce",
        collective![REDUCTION, Shardy("reduction_axes", Sdy::AxisList)],
    ),
    (
        "all_slice",
        collective![Shardy("slicing_axes", Sdy::AxisLists)],
    ),
    ("all_to_all", collective![Shardy("params", Sdy::AllToAll)]),
    ("collective_permute", collective![]),
    (
        "data_flow_edge",
        &[
            Value,
            Optional(&[Key("sharding"), Shardy("sharding", Sdy::Sharding)]),
            Dict,
            Typed(Types::Same),
        ],
    ),
    ("func_data_flow_edge", UNARY),
    (
        "manual_computation",
        &[
            Text("("),
            Values,
            Text(")"),
            Key("in_shardings"),
            Shardy("in_shardings", Sdy::Shardings),
            Key("out_shardings"),
            Shardy("out_shardings", Sdy::Shardings),
            Key("manual_axes"),
            Shardy("manual_axes", Sdy::ManualAxes),
            ArgsRegion,
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "mesh",
        &[
            SymbolName("sym_name"),
            Text("="),
            Shardy("mesh", Sdy::Mesh),
            Dict,
        ],
    ),
    (
        "named_computation",
        &[
            Text("<"),
            String("name"),
            Text(">"),
            Text("("),
            Values,
            Text(")"),
            Optional(&[Key("in_shardings"), Shardy("in_shardings", Sdy::Shardings)]),
            Optional(&[
                Key("out_shardings"),
                Shardy("out_shardings", Sdy::Shardings),
            ]),
            ArgsRegion,
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "propagation_barrier",
        &[
            Value,
            Key("allowed_direction"),
            Choice(
                "allowed_direction",
                &["NONE", "FORWARD", "BACKWARD", "BOTH"],
                32,
            ),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "reduce_scatter",
        collective![REDUCTION, Shardy("reduce_scatter_axes", Sdy::AxisLists)],
    ),
    (
        "replicated_to_unreduced",
        collective![Shardy("axes", Sdy::AxisList)],
    ),
    (
        "reshard",
        &[
            Value,
            Shardy("sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
    ),
    ("return", DICT_RETURN),
    (
        "sharded_to_unreduced",
        collective![Shardy("axes", Sdy::AxisLists)],
    ),
    (
        "sharding_constraint",
        &[
            Value,
            Shardy("sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "sharding_group",
        &[
            Value,
            Key("group_id"),
            Int("group_id", 64),
            Dict,
            Typed(Types::Gives(Given::Nothing)),
        ],
    ),
];

/// Ops of `func` and `builtin` with a plain form.
pub(super) const FUNC: &[(&str, &[Step])] = &[
    (
        "call",
        &[
            Symbol("callee"),
            Text("("),
            Values,
            Text(")"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("return", DICT_RETURN),
];

/// Predicates of `arith.cmpi`, by number.
const PREDICATES: &[&str] = &[
    "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
];
/// Predicates of `arith.cmpf`, by number.
const FLOAT_PREDICATES: &[&str] = &[
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
    "une", "uno", "true",
];
/// How results are rounded, by number.
const ROUNDING: &[&str] = &[
    "to_nearest_even",
    "downward",
    "upward",
    "toward_zero",
    "to_nearest_away",
];

const OVERFLOW: Step = Flags("overflow", "overflowFlags");
const FASTMATH: Step = Flags("fastmath", "fastmath");
const EXACT: Step = Flag("exact", "isExact");
const ROUNDED: Step = Optional(&[Choice("roundingmode", ROUNDING, 32)]);

/// Two operands of one type, and what may follow them.
macro_rules! binary {
    ($($step:expr),*) => {
        &[Value, Text(","), Value, $($step,)* Dict, Typed(Types::Same)]
    };
}
/// An operand, what may follow it, and the two types of a cast.
macro_rules! cast {
    ($($step:expr),*) => {
        &[Value, $($step,)* Dict, Typed(Types::Cast)]
    };
}

/// Ops of `arith`, by name.
pub(super) const ARITH: &[(&str, &[Step])] = &[
    ("addf", binary![ROUNDED, FASTMATH]),
    ("addi", binary![OVERFLOW]),
    ("andi", BINARY),
    ("bitcast", CAST),
    ("ceildivsi", BINARY),
    ("ceildivui", BINARY),
    (
        "cmpf",
        &[
            Choice("predicate", FLOAT_PREDICATES, 64),
            Text(","),
            Value,
            Text(","),
            Value,
            FASTMATH,
            Dict,
            Typed(Types::Gives(Given::Compared)),
        ],
    ),
    (
        "cmpi",
        &[
            Choice("predicate", PREDICATES, 64),
            Text(","),
            Value,
            Text(","),
            Value,
            Dict,
            Typed(Types::Gives(Given::Compared)),
        ],
    ),
    ("divf", binary![ROUNDED, FASTMATH]),
    ("divsi", binary![EXACT]),
    ("divui", binary![EXACT]),
    ("extf", cast![FASTMATH]),
    ("extsi", CAST),
    ("extui", cast![Flag("nneg", "nonNeg")]),
    ("floordivsi", BINARY),
    ("fptosi", CAST),
    ("fptoui", CAST),
    ("index_cast", CAST),
    ("index_castui", cast![Flag("nneg", "nonNeg")]),
    ("maximumf", binary![FASTMATH]),
    ("maxnumf", binary![FASTMATH]),
    ("maxsi", BINARY),
    ("maxui", BINARY),
    ("minimumf", binary![FASTMATH]),
    ("minnumf", binary![FASTMATH]),
    ("minsi", BINARY),
    ("minui", BINARY),
    ("mulf", binary![ROUNDED, FASTMATH]),
    ("muli", binary![OVERFLOW]),
    (
        "mulsi_extended",
        &[Value, Text(","), Value, Dict, Typed(Types::All(2))],
    ),
    (
        "mului_extended",
        &[Value, Text(","), Value, Dict, Typed(Types::All(2))],
    ),
    ("negf", &[Value, FASTMATH, Dict, Typed(Types::Same)]),
    ("ori", BINARY),
    ("remf", binary![FASTMATH]),
    ("remsi", BINARY),
    ("remui", BINARY),
    (
        "select",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Value,
            Dict,
            Typed(Types::Select),
        ],
    ),
    ("shli", binary![OVERFLOW]),
    ("shrsi", binary![EXACT]),
    ("shrui", binary![EXACT]),
    ("sitofp", CAST),
    ("subf", binary![ROUNDED, FASTMATH]),
    ("subi", binary![OVERFLOW]),
    ("truncf", cast![ROUNDED, FASTMATH]),
    ("trunci", cast![OVERFLOW]),
    ("uitofp", cast![Flag("nneg", "nonNeg")]),
    ("xori", BINARY),
];

/// Ops of `shape`, by name.
pub(super) const SHAPE: &[(&str, &[Step])] = &[
    ("any", &[Values, Dict, Typed(Types::Arrow)]),
    (
        "assuming_all",
        &[Values, Dict, Typed(Types::Gives(Given::Witness))],
    ),
    ("assuming_yield", DICT_RETURN),
    ("broadcast", &[Values, Dict, Typed(Types::Arrow)]),
    ("concat", ARROW2),
    (
        "cstr_broadcastable",
        &[Values, Dict, Typed(Types::Gives(Given::Witness))],
    ),
    (
        "cstr_eq",
        &[Values, Dict, Typed(Types::Gives(Given::Witness))],
    ),
    ("get_extent", ARROW2),
    (
        "is_broadcastable",
        &[Values, Dict, Typed(Types::Gives(Given::Bool))],
    ),
    ("num_elements", ARROW1),
    (
        "shape_eq",
        &[Values, Dict, Typed(Types::Gives(Given::Bool))],
    ),
    ("shape_of", ARROW1),
    (
        "size_to_index",
        &[Value, Dict, Typed(Types::Gives(Given::Index))],
    ),
    ("to_extent_tensor", ARROW1),
    ("value_as_shape", ARROW1),
    ("value_of", ARROW1),
];

/// Ops of `tensor`, by name.
pub(super) const TENSOR: &[(&str, &[Step])] = &[
    ("cast", CAST),
    ("dim", &[Value, Text(","), Value, Dict, Typed(Types::Size)]),
    (
        "empty",
        &[Text("("), Values, Text(")"), Dict, Typed(Types::Results)],
    ),
    (
        "extract",
        &[
            Value,
            Text("["),
            Values,
            Text("]"),
            Dict,
            Typed(Types::Element),
        ],
    ),
    ("from_elements", &[Values, Dict, Typed(Types::FromElements)]),
    (
        "reshape",
        &[
            Value,
            Text("("),
            Value,
            Text(")"),
            Dict,
            Typed(Types::Function),
        ],
    ),
];

pub(super) const CONVERSION_CAST: &[Step] = &[Values, Dict, Typed(Types::Cast)];

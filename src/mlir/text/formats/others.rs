//! The pretty forms of the dialects that stand beside StableHLO.

use crate::mlir::text::formats::ARROW1;
use crate::mlir::text::formats::ARROW2;
use crate::mlir::text::formats::BINARY;
use crate::mlir::text::formats::CAST;
use crate::mlir::text::formats::Given;
use crate::mlir::text::formats::RETURN;
use crate::mlir::text::formats::Sdy;
use crate::mlir::text::formats::Step;
use crate::mlir::text::formats::Step::ArgsRegion;
use crate::mlir::text::formats::Step::Bool;
use crate::mlir::text::formats::Step::Choice;
use crate::mlir::text::formats::Step::Dict;
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

const SDY_COLLECTIVE: &[Step] = &[
    Shardy("gathering_axes", Sdy::AxisLists),
    Value,
    Key("out_sharding"),
    Shardy("out_sharding", Sdy::Sharding),
    Dict,
    Typed(Types::Same),
];

/// Ops of Shardy, by name.
pub(super) const SDY: &[(&str, &[Step])] = &[
    ("all_gather", SDY_COLLECTIVE),
    (
        "all_reduce",
        &[
            Shardy("reduction_axes", Sdy::AxisList),
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "all_slice",
        &[
            Shardy("slicing_axes", Sdy::AxisLists),
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "collective_permute",
        &[
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
    ),
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
        &[
            Shardy("reduce_scatter_axes", Sdy::AxisLists),
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "replicated_to_unreduced",
        &[
            Shardy("axes", Sdy::AxisList),
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
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
    ("return", RETURN),
    (
        "sharded_to_unreduced",
        &[
            Shardy("axes", Sdy::AxisLists),
            Value,
            Key("out_sharding"),
            Shardy("out_sharding", Sdy::Sharding),
            Dict,
            Typed(Types::Same),
        ],
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
    ("return", RETURN),
];

/// Predicates of `arith.cmpi`, by number.
const PREDICATES: &[&str] = &[
    "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
];

/// Ops of `arith`, by name.
pub(super) const ARITH: &[(&str, &[Step])] = &[
    ("addf", BINARY),
    ("addi", BINARY),
    ("andi", BINARY),
    (
        "cmpi",
        &[
            Choice("predicate", PREDICATES, 64),
            Text(","),
            Value,
            Text(","),
            Value,
            Dict,
            Typed(Types::Gives(Given::Bool)),
        ],
    ),
    ("divf", BINARY),
    ("divsi", BINARY),
    ("divui", BINARY),
    ("extf", CAST),
    ("extsi", CAST),
    ("extui", CAST),
    ("fptosi", CAST),
    ("fptoui", CAST),
    ("index_cast", CAST),
    ("index_castui", CAST),
    ("maxsi", BINARY),
    ("maxui", BINARY),
    ("minsi", BINARY),
    ("minui", BINARY),
    ("mulf", BINARY),
    ("muli", BINARY),
    ("negf", UNARY),
    ("ori", BINARY),
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
    ("sitofp", CAST),
    ("subf", BINARY),
    ("subi", BINARY),
    ("trunci", CAST),
    ("uitofp", CAST),
    ("xori", BINARY),
];

/// Ops of `shape`, by name.
pub(super) const SHAPE: &[(&str, &[Step])] = &[
    ("any", &[Values, Dict, Typed(Types::Arrow)]),
    (
        "assuming_all",
        &[Values, Dict, Typed(Types::Gives(Given::Witness))],
    ),
    ("assuming_yield", RETURN),
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

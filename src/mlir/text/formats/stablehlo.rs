//! The pretty forms of StableHLO, which `mhlo` has too.

use crate::mlir::text::formats::BINARY;
use crate::mlir::text::formats::OPERANDS;
use crate::mlir::text::formats::RESULTS;
use crate::mlir::text::formats::RETURN;
use crate::mlir::text::formats::Step;
use crate::mlir::text::formats::Step::Bool;
use crate::mlir::text::formats::Step::Case;
use crate::mlir::text::formats::Step::ConvDims;
use crate::mlir::text::formats::Step::Dict;
use crate::mlir::text::formats::Step::DotDims;
use crate::mlir::text::formats::Step::ExponentMantissa;
use crate::mlir::text::formats::Step::Int;
use crate::mlir::text::formats::Step::Ints;
use crate::mlir::text::formats::Step::Key;
use crate::mlir::text::formats::Step::Optional;
use crate::mlir::text::formats::Step::Precision;
use crate::mlir::text::formats::Step::PrecisionAlgorithm;
use crate::mlir::text::formats::Step::Regions;
use crate::mlir::text::formats::Step::Slice;
use crate::mlir::text::formats::Step::String;
use crate::mlir::text::formats::Step::SymbolName;
use crate::mlir::text::formats::Step::Text;
use crate::mlir::text::formats::Step::Typed;
use crate::mlir::text::formats::Step::Value;
use crate::mlir::text::formats::Step::Values;
use crate::mlir::text::formats::Step::ValuesComma;
use crate::mlir::text::formats::Step::Window;
use crate::mlir::text::formats::Types;
use crate::mlir::text::formats::UNARY;

/// Ops of StableHLO, by name.
pub(super) const OPS: &[(&str, &[Step])] = &[
    ("abs", UNARY),
    ("add", BINARY),
    ("after_all", &[Values, Dict, Typed(Types::Same)]),
    ("and", BINARY),
    ("atan2", BINARY),
    ("bitcast_convert", OPERANDS),
    (
        "broadcast",
        &[
            Value,
            Text(","),
            Key("sizes"),
            Ints("broadcast_sizes"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "broadcast_in_dim",
        &[
            Value,
            Text(","),
            Key("dims"),
            Ints("broadcast_dimensions"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("cbrt", UNARY),
    ("ceil", UNARY),
    (
        "cholesky",
        &[
            Value,
            Optional(&[Text(","), Key("lower"), Bool("lower")]),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "clamp",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Value,
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "compare",
        &[
            Case("comparison_direction", "comparison_direction"),
            Text(","),
            Value,
            Text(","),
            Value,
            Optional(&[Text(","), Case("compare_type", "comparison_type")]),
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "complex",
        &[Value, Text(","), Value, Dict, Typed(Types::Complex)],
    ),
    (
        "composite",
        &[
            String("name"),
            Values,
            Regions,
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "concatenate",
        &[
            ValuesComma,
            Key("dim"),
            Int("dimension", 64),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("convert", UNARY),
    (
        "convolution",
        &[
            Text("("),
            Values,
            Text(")"),
            Key("dim_numbers"),
            ConvDims,
            Text(","),
            Key("window"),
            Text("{"),
            Window,
            Text("}"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("cosine", UNARY),
    ("count_leading_zeros", UNARY),
    ("create_token", RESULTS),
    (
        "custom_call",
        &[
            SymbolName("call_target_name"),
            Text("("),
            Values,
            Text(")"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("divide", BINARY),
    (
        "dot",
        &[
            Value,
            Text(","),
            Value,
            Precision,
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "dot_general",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            DotDims,
            PrecisionAlgorithm,
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "dynamic_broadcast_in_dim",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Key("dims"),
            Ints("broadcast_dimensions"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "dynamic_iota",
        &[
            Value,
            Text(","),
            Key("dim"),
            Int("iota_dimension", 64),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("dynamic_pad", OPERANDS),
    ("dynamic_reshape", OPERANDS),
    (
        "dynamic_slice",
        &[
            Value,
            Text(","),
            ValuesComma,
            Key("sizes"),
            Ints("slice_sizes"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("dynamic_update_slice", OPERANDS),
    (
        "einsum",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Key("config"),
            String("einsum_config"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("exponential", UNARY),
    ("exponential_minus_one", UNARY),
    (
        "fft",
        &[
            Value,
            Text(","),
            Key("type"),
            Case("fft_type", "fft_type"),
            Text(","),
            Key("length"),
            Ints("fft_length"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("floor", UNARY),
    (
        "get_dimension_size",
        &[
            Value,
            Text(","),
            Key("dim"),
            Int("dimension", 64),
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "get_tuple_element",
        &[
            Value,
            Text("["),
            Int("index", 32),
            Text("]"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("imag", UNARY),
    (
        "iota",
        &[
            Key("dim"),
            Int("iota_dimension", 64),
            Dict,
            Typed(Types::Results),
        ],
    ),
    ("is_finite", OPERANDS),
    ("log", UNARY),
    ("log_plus_one", UNARY),
    ("logistic", UNARY),
    ("maximum", BINARY),
    ("minimum", BINARY),
    ("multiply", BINARY),
    ("negate", UNARY),
    ("not", UNARY),
    ("optimization_barrier", &[Dict, Typed(Types::Barrier)]),
    ("or", BINARY),
    (
        "pad",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Key("low"),
            Ints("edge_padding_low"),
            Text(","),
            Key("high"),
            Ints("edge_padding_high"),
            Text(","),
            Key("interior"),
            Ints("interior_padding"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("partition_id", RESULTS),
    ("popcnt", UNARY),
    ("power", BINARY),
    ("real", UNARY),
    ("real_dynamic_slice", OPERANDS),
    (
        "reduce_precision",
        &[
            Value,
            Text(","),
            Key("format"),
            ExponentMantissa,
            Dict,
            Typed(Types::Same),
        ],
    ),
    ("remainder", BINARY),
    ("replica_id", RESULTS),
    ("reshape", OPERANDS),
    ("return", RETURN),
    (
        "reverse",
        &[
            Value,
            Text(","),
            Key("dims"),
            Ints("dimensions"),
            Dict,
            Typed(Types::Same),
        ],
    ),
    (
        "rng",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Value,
            Text(","),
            Key("distribution"),
            Case("rng_distribution", "rng_distribution"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    (
        "rng_bit_generator",
        &[
            Value,
            Text(","),
            Key("algorithm"),
            Case("rng_algorithm", "rng_algorithm"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("round_nearest_afz", UNARY),
    ("round_nearest_even", UNARY),
    ("rsqrt", UNARY),
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
    (
        "set_dimension_size",
        &[
            Value,
            Text(","),
            Value,
            Text(","),
            Key("dim"),
            Int("dimension", 64),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("shift_left", BINARY),
    ("shift_right_arithmetic", BINARY),
    ("shift_right_logical", BINARY),
    ("sign", UNARY),
    ("sine", UNARY),
    ("slice", &[Value, Slice, Dict, Typed(Types::Function)]),
    ("sqrt", UNARY),
    ("subtract", BINARY),
    ("tan", UNARY),
    ("tanh", UNARY),
    (
        "transpose",
        &[
            Value,
            Text(","),
            Key("dims"),
            Ints("permutation"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("tuple", &[Values, Dict, Typed(Types::Tuple)]),
    (
        "unary_einsum",
        &[
            Value,
            Text(","),
            Key("config"),
            String("einsum_config"),
            Dict,
            Typed(Types::Function),
        ],
    ),
    ("uniform_dequantize", UNARY),
    ("uniform_quantize", UNARY),
    ("xor", BINARY),
];

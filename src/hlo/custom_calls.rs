//! Custom calls that mean something to the compiler, by name.

/// Pads a dynamic array to its bounds and tells its sizes.
pub const PAD_TO_STATIC: &str = "PadToStatic";

/// Makes an array dynamic, given its sizes.
pub const SLICE_TO_DYNAMIC: &str = "SliceToDynamic";

/// Custom calls that give their operand back, several operands as a tuple, or nothing: annotations
/// for partitioners and placers.
const ANNOTATIONS: &[&str] = &[
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "LayoutConstraint",
    "PinToDevice",
    "MoveToHost",
    "MoveToDevice",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape",
    "xla.sdy.LocalToGlobalShape",
    "xla.sdy.ShardingConstraint",
    "xla.sdy.PropagationBarrier",
    "xla.sdy.ShardingGroup",
];

/// Whether a call of that name gives its operands back, or nothing.
pub fn is_annotation(target: &str) -> bool {
    ANNOTATIONS.contains(&target)
}

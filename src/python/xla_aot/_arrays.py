"""Arrays of Python's as arrays of programs, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError
from ._library import Memory

if TYPE_CHECKING:
    from ._program import Array

ml_dtypes: Any
try:
    import ml_dtypes
except ImportError:  # Types that NumPy lacks are then their bits.
    ml_dtypes = None

# Element types by the names that programs have for them: NumPy's, or those of ml_dtypes.
_PLAIN = {
    "pred": "bool",
    "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128",
}
_NARROW = {
    "bf16": "bfloat16",
    "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz", "f8e3m4": "float8_e3m4", "f8e8m0fnu": "float8_e8m0fnu",
    "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn", "f4e2m1fn": "float4_e2m1fn",
    "s4": "int4", "u4": "uint4", "s2": "int2", "u2": "uint2", "s1": "int1", "u1": "uint1",
}


def dtype_of(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type. Without ml_dtypes narrow types are integers: values for
    integers below a byte, bits for floats."""
    if name in _PLAIN:
        return np.dtype(_PLAIN[name])
    narrow = getattr(ml_dtypes, _NARROW.get(name, ""), None)
    found: np.dtype[Any]
    if narrow is not None:
        found = np.dtype(narrow)
        return found
    return np.dtype({"bf16": "uint16", "s4": "int8", "s2": "int8", "s1": "int8"}.get(name, "uint8"))


def is_jax(value: Any) -> bool:
    """Whether it is an array of JAX's, without importing JAX."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def to_numpy(value: Any, wanted: Array) -> NDArray[Any]:
    """An array over the same memory where that is possible."""
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        return np.asarray(value, wanted.dtype)
    known = isinstance(value, np.ndarray) or hasattr(value, "__array__")
    if not known and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def to_program(value: Any, wanted: Array) -> tuple[NDArray[Any], tuple[int, ...]]:
    """The bytes of an argument as the program wants them, and its sizes. What lies so is not copied."""
    array = to_numpy(value, wanted)
    if array.dtype != wanted.dtype:
        bits = array.dtype.kind in "iu" and array.dtype.itemsize == wanted.dtype.itemsize
        if not (bits and wanted.dtype.kind == "V"):
            raise InputError(
                f"`{wanted.name}` has elements of type {array.dtype}, wanted {wanted.dtype}",
                code="XA8001",
                help=f"convert it: x.astype({str(wanted.dtype)!r})",
            )
    if not wanted.fits(array.shape):
        raise InputError(
            f"`{wanted.name}` has the shape {array.shape}, wanted {wanted.sizes}", code="XA8001"
        )
    shape = array.shape
    ordered = np.ascontiguousarray(array.transpose(wanted.layout[::-1]))
    if wanted.element_bits < 8:
        ordered = pack(ordered, wanted.element_bits)
    return ordered, shape


def from_program(memory: Memory, shape: tuple[int, ...], told: Array) -> NDArray[Any]:
    """An array in memory of the library's; narrow elements are unpacked into memory of their own."""
    order = told.layout[::-1]
    physical = tuple(shape[d] for d in order)
    count = int(np.prod(physical, dtype=np.int64))
    raw: NDArray[np.uint8] = np.asarray(memory)
    elements: NDArray[Any]
    if told.element_bits < 8:
        elements = unpack(raw, told.element_bits, count, told.type.startswith("s")).view(told.dtype)
    else:
        elements = raw[: count * told.dtype.itemsize].view(told.dtype)
    return elements.reshape(physical).transpose(np.argsort(order))


def pack(array: NDArray[Any], bits: int) -> NDArray[Any]:
    """One element a byte to several, the first in the low bits."""
    each = 8 // bits
    values = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    rows = np.zeros((-(-values.size // each), each), np.uint8)
    rows.reshape(-1)[: values.size] = values
    shifted = rows << (np.arange(each, dtype=np.uint8) * bits)
    packed: NDArray[Any] = np.bitwise_or.reduce(shifted, axis=1, dtype=np.uint8)
    return packed


def unpack(raw: NDArray[Any], bits: int, count: int, is_signed: bool) -> NDArray[Any]:
    """The other way; signs are extended."""
    each = 8 // bits
    values = (raw[:, None] >> (np.arange(each, dtype=np.uint8) * bits)).reshape(-1)[:count]
    values = (values << (8 - bits)).astype(np.uint8)
    if is_signed:
        return values.view(np.int8) >> (8 - bits)
    return values >> (8 - bits)


def to_jax(array: NDArray[Any]) -> Any:
    """An array of JAX's, over the same memory where JAX takes it."""
    import jax
    import jax.numpy as jnp

    try:
        return jax.dlpack.from_dlpack(array)
    except (TypeError, BufferError, RuntimeError, ValueError):
        return jnp.asarray(array)

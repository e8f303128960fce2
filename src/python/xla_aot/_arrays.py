"""Arrays of Python's as arrays of programs, and back."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
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


def narrow_range(name: str) -> tuple[int, int] | None:
    """The least and the largest integer that stands for an element of a type that NumPy lacks, if
    it does not fill a byte: a value, or the bits of a float."""
    found = re.match(r"([suf])([1-7])(?!\d)", name)
    if not found:
        return None
    span = 1 << int(found.group(2))
    return (-span // 2, span // 2 - 1) if found.group(1) == "s" else (0, span - 1)


def is_jax(value: Any) -> bool:
    """Whether it is an array of JAX's, without importing JAX."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def to_numpy(value: Any, wanted: Array) -> NDArray[Any]:
    """An array over the same memory where that is possible."""
    if isinstance(value, (bool, int, float, complex, list, tuple)):
        return of_numbers(value, wanted)
    known = isinstance(value, np.ndarray) or hasattr(value, "__array__")
    if not known and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def of_numbers(value: Any, wanted: Array) -> NDArray[Any]:
    """Numbers, and lists of them, as an array of the program's type. Floats are rounded to it."""
    is_float = wanted.type.startswith(("f", "bf", "c"))
    if is_float and wanted.dtype.kind in "iu":
        raise InputError(
            f"`{wanted.name}` has numbers, wanted {wanted.type}, which NumPy lacks",
            code="XA8001",
            help=f"install ml_dtypes, or give its bits as an array of {wanted.dtype}",
        )
    try:
        given = np.asarray(value).dtype
        if given.kind in "SU":
            raise TypeError("text is no number")
        if given.kind == "c" and wanted.dtype.kind != "c":
            raise TypeError("a complex number is not a real one")
        array = np.asarray(value, wanted.dtype)
        if not is_float:
            exact = array if array.dtype.kind in "biu" else array.astype(np.int64)
            if (exact.astype(object) != np.asarray(value, object)).any():
                raise ValueError(f"not all are numbers of {wanted.type}")
    except (TypeError, ValueError, OverflowError) as error:
        message = f"`{wanted.name}` has numbers that do not fit: {error}"
        raise InputError(message, code="XA8001") from error
    return array


def checked(value: Any, wanted: Array) -> NDArray[Any]:
    """An argument as an array of the program's type, over the same memory where that is possible."""
    array = to_numpy(value, wanted)
    given = array.dtype
    if given != wanted.dtype:
        is_wide_enough = given.kind in "iu" and given.isnative and given.itemsize == wanted.dtype.itemsize
        if not (is_wide_enough and wanted.type in _NARROW):
            raise InputError(
                f"`{wanted.name}` has elements of type {given}, wanted {wanted.dtype}",
                code="XA8001",
                help=f"convert it: x.astype({str(wanted.dtype)!r})",
            )
    span = narrow_range(wanted.type)
    if span and given.kind in "iu" and array.size and not span[0] <= array.min() <= array.max() <= span[1]:
        raise InputError(
            f"`{wanted.name}` has numbers that {wanted.type} does not have",
            code="XA8001",
            help=f"they are from {span[0]} to {span[1]}",
        )
    if not wanted.fits(array.shape):
        raise InputError(
            f"`{wanted.name}` has the shape {array.shape}, wanted {wanted.sizes}", code="XA8001"
        )
    return array if given == wanted.dtype else array.view(wanted.dtype)


def to_program(value: Any, wanted: Array) -> tuple[NDArray[Any], tuple[int, ...]]:
    """The bytes of an argument as the program wants them, and its sizes. What lies so is not copied."""
    array = checked(value, wanted)
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


def to_jax(array: NDArray[Any], told: Array) -> Any:
    """An array of JAX's, over the same memory where JAX takes it; as it is when JAX lacks the type."""
    import jax
    import jax.numpy as jnp

    if told.type in ("s1", "u1", "f6e2m3fn", "f6e3m2fn"):
        return array
    with wide_types():
        try:
            return jax.dlpack.from_dlpack(array)
        except (TypeError, BufferError, RuntimeError, ValueError):
            return jnp.asarray(array)


def wide_types() -> AbstractContextManager[Any]:
    """Where JAX makes arrays of the types that they have, of 64 bits too."""
    import jax
    import jax.experimental

    # Before JAX 0.8 it has its place among the experiments.
    place: Any = jax if hasattr(jax, "enable_x64") else jax.experimental
    made: AbstractContextManager[Any] = place.enable_x64(True)
    return made

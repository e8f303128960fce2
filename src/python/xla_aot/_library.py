"""The C library: found, opened, its functions declared. `xla_aot.h` says what they do."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from . import _errors

if TYPE_CHECKING:
    from typing_extensions import Self

ABI = 1
ALIGNMENT = 64

_p = ctypes.c_void_p
_s = ctypes.c_char_p
_n = ctypes.c_size_t
_i = ctypes.c_int32


class ArrayInfo(ctypes.Structure):
    """`xla_aot_array`"""

    _fields_ = [
        ("struct_size", _n),
        ("name", _s),
        ("type_name", _s),
        ("type", _i),
        ("element_bits", _i),
        ("rank", _n),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
        ("dynamic", ctypes.POINTER(ctypes.c_uint8)),
        ("minor_to_major", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", _n),
        ("parameter", _n),
        ("path_length", _n),
        ("path", ctypes.POINTER(ctypes.c_int64)),
        ("donated", _i),
    ]


class Call(ctypes.Structure):
    """`xla_aot_call`"""

    _fields_ = [
        ("struct_size", _n),
        ("argument_count", _n),
        ("arguments", ctypes.POINTER(_p)),
        ("argument_bytes", ctypes.POINTER(_n)),
        ("argument_dims", ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))),
        ("result_count", _n),
        ("results", ctypes.POINTER(_p)),
        ("result_bytes", ctypes.POINTER(_n)),
        ("result_dims", ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))),
    ]


# Name, what it gives, what it takes.
_FUNCTIONS: list[tuple[str, Any, list[Any]]] = [
    ("xla_aot_abi", ctypes.c_uint32, []),
    ("xla_aot_version", _s, []),
    ("xla_aot_devices", _s, []),
    ("xla_aot_error_kind", _i, [_p]),
    ("xla_aot_error_code", _i, [_p]),
    ("xla_aot_error_message", _s, [_p]),
    ("xla_aot_error_help", _s, [_p]),
    ("xla_aot_error_text", _s, [_p]),
    ("xla_aot_error_free", None, [_p]),
    ("xla_aot_memory_new", _p, [_n]),
    ("xla_aot_memory_free", None, [_p]),
    ("xla_aot_bundle_read", _p, [_p, _n, ctypes.POINTER(_p)]),
    ("xla_aot_bundle_free", None, [_p]),
    ("xla_aot_bundle_name", _s, [_p]),
    ("xla_aot_bundle_platform", _s, [_p]),
    ("xla_aot_bundle_target", _s, [_p]),
    ("xla_aot_bundle_describe", _s, [_p]),
    ("xla_aot_bundle_devices", _n, [_p]),
    ("xla_aot_bundle_argument_count", _n, [_p]),
    ("xla_aot_bundle_result_count", _n, [_p]),
    ("xla_aot_bundle_argument", _p, [_p, _n, ctypes.POINTER(ArrayInfo)]),
    ("xla_aot_bundle_result", _p, [_p, _n, ctypes.POINTER(ArrayInfo)]),
    ("xla_aot_bundle_import_count", _n, [_p]),
    ("xla_aot_bundle_import", _s, [_p, _n]),
    ("xla_aot_bundle_import_is_provided", _i, [_p, _n]),
    ("xla_aot_bundle_jax_prefix", _p, [_p, ctypes.POINTER(_p), ctypes.POINTER(_n)]),
    ("xla_aot_options_new", _p, []),
    ("xla_aot_options_free", None, [_p]),
    ("xla_aot_options_set_device", _p, [_p, _s]),
    ("xla_aot_options_set_threads", _p, [_p, _n]),
    ("xla_aot_options_add_call", _p, [_p, _s, _p]),
    ("xla_aot_program_load", _p, [_p, _p, ctypes.POINTER(_p)]),
    ("xla_aot_program_free", None, [_p]),
    ("xla_aot_program_threads", _n, [_p]),
    ("xla_aot_program_run", _p, [_p, ctypes.POINTER(Call)]),
]


def _open() -> ctypes.CDLL:
    """Opens the library: the one that XLA_AOT_LIBRARY names, that of the package, the system's."""
    name = f"libxla_aot.so.{ABI}"
    chosen = os.environ.get("XLA_AOT_LIBRARY")
    shipped = Path(__file__).with_name(name)
    path = chosen or (str(shipped) if shipped.exists() else name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"cannot open {path}: {error}; set XLA_AOT_LIBRARY to where libxla_aot.so.{ABI} is"
        ) from None
    for function, gives, takes in _FUNCTIONS:
        try:
            found = getattr(library, function)
        except AttributeError:
            raise ImportError(f"{path} has no {function}: it is older than this package") from None
        found.restype, found.argtypes = gives, takes
    if library.xla_aot_abi() != ABI:
        raise ImportError(f"{path} has interface {library.xla_aot_abi()}, wanted {ABI}")
    return library


C = _open()

_KINDS = {1: _errors.InputError, 2: _errors.UsageError, 3: _errors.BundleError}


def check(error: int | None) -> None:
    """Raises what a function of the library gave, unless that is nothing."""
    if not error:
        return
    try:
        kind = _KINDS.get(C.xla_aot_error_kind(error), _errors.InternalError)
        number = C.xla_aot_error_code(error)
        raise kind(
            text(C.xla_aot_error_message(error)),
            code=f"XA{number:04}" if number else None,
            help=text(C.xla_aot_error_help(error)),
            text=text(C.xla_aot_error_text(error)),
        )
    finally:
        C.xla_aot_error_free(error)


def text(found: bytes | None) -> str:
    """Text of the library's as Python's."""
    return (found or b"").decode()


def c_text(given: str) -> bytes:
    """Text for the library."""
    if "\0" in given:
        raise _errors.UsageError(f"{given!r} has a zero character")
    return given.encode()


class Owned:
    """What is one with something of the library's: it cannot be copied, nor leave the process."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise _errors.UsageError(
            f"a {type(self).__name__} cannot be pickled: pickle the bytes of its file"
        )


def version() -> str:
    """The version of the library."""
    return text(C.xla_aot_version())


def devices() -> tuple[str, ...]:
    """What the library can run on: "cpu", "cuda", "simulator"."""
    return tuple(text(C.xla_aot_devices()).split(","))


class Memory(Owned):
    """Zeroed memory of the library's, which NumPy arrays may lie in."""

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    @classmethod
    def new(cls, size: int) -> Memory:
        address = C.xla_aot_memory_new(size)
        if not address:
            raise MemoryError(f"there is no memory of {size} bytes")
        return cls(address, size)

    def __del__(self, free: Any = C.xla_aot_memory_free) -> None:
        free(self.address)

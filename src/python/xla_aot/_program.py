"""Bundles and programs."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _arrays, _trees
from ._errors import InputError, UsageError
from ._library import ALIGNMENT, ArrayInfo, C, Call, Memory, Owned, c_text, check, text

#: A path, or the bytes of a bundle.
Source = str | os.PathLike[str] | bytes | bytearray | memoryview

#: A function that programs call: what `jax.ffi.pycapsule` gives, a function of ctypes, or an address.
Function = Any


@dataclasses.dataclass(frozen=True)
class Array:
    """An array that a program takes or gives."""

    #: The parameter's name, or "result"; of an array in a tuple with its place after it.
    name: str
    #: The program's name of the element type: "f32".
    type: str
    #: The type of the elements of NumPy arrays for it.
    dtype: np.dtype[Any]
    #: Sizes; of a dimension that may be smaller, the bound.
    shape: tuple[int, ...]
    #: Which dimensions may be smaller when the program runs.
    dynamic: tuple[bool, ...]
    #: The dimensions from the one that varies fastest in memory on.
    layout: tuple[int, ...]
    #: Bits of an element in memory.
    element_bits: int
    #: Number of the parameter it is part of; 0 for results.
    parameter: int
    #: Where it is in that parameter, or in the result: numbers of elements of tuples.
    path: tuple[int, ...]
    #: Whether the program was compiled to reuse its memory. Arguments are never written to: such
    #: ones are copied.
    donated: bool

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether an array may have that shape."""
        pairs = zip(shape, self.shape, self.dynamic)
        return len(shape) == len(self.shape) and all(
            size == bound or (may and size < bound) for size, bound, may in pairs
        )

    @property
    def sizes(self) -> str:
        """The shape as text, "(<=8, 4)"."""
        each = [f"{'<=' if may else ''}{n}" for n, may in zip(self.shape, self.dynamic)]
        return f"({', '.join(each)}{',' if len(each) == 1 else ''})"

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{self.sizes}"


def _array(info: ArrayInfo) -> Array:
    rank = range(info.rank)
    name = text(info.type_name)
    return Array(
        name=text(info.name),
        type=name,
        dtype=_arrays.dtype_of(name),
        shape=tuple(info.dims[d] for d in rank),
        dynamic=tuple(bool(info.dynamic[d]) for d in rank),
        layout=tuple(info.minor_to_major[d] for d in rank),
        element_bits=info.element_bits,
        parameter=info.parameter,
        path=tuple(info.path[i] for i in range(info.path_length)),
        donated=bool(info.donated),
    )


class Bundle(Owned):
    """A bundle that has been read: what it holds, whatever machine it is for."""

    #: The name of the module it was compiled from.
    name: str
    #: "cpu" or "cuda".
    platform: str
    #: What it was compiled for: a triple, or a compute capability such as "sm_90a".
    target: str
    #: How many devices run it together.
    devices: int
    #: The arrays that it takes, on each device.
    arguments: tuple[Array, ...]
    #: The arrays that it gives, on each device.
    results: tuple[Array, ...]
    #: The functions that it calls by name, and whether each comes with the library.
    imports: dict[str, bool]

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        view = np.frombuffer(data, np.uint8)
        handle = ctypes.c_void_p()
        check(C.xla_aot_bundle_read(view.ctypes.data, view.nbytes, ctypes.byref(handle)))
        self._handle = handle
        self.name = text(C.xla_aot_bundle_name(handle))
        self.platform = text(C.xla_aot_bundle_platform(handle))
        self.target = text(C.xla_aot_bundle_target(handle))
        self.devices = C.xla_aot_bundle_devices(handle)
        count = C.xla_aot_bundle_argument_count(handle)
        self.arguments = self._arrays(C.xla_aot_bundle_argument, count)
        self.results = self._arrays(C.xla_aot_bundle_result, C.xla_aot_bundle_result_count(handle))
        imports = range(C.xla_aot_bundle_import_count(handle))
        self.imports = {
            text(C.xla_aot_bundle_import(handle, i)): bool(
                C.xla_aot_bundle_import_is_provided(handle, i)
            )
            for i in imports
        }

    def _arrays(self, ask: Callable[..., int | None], count: int) -> tuple[Array, ...]:
        found = []
        for number in range(count):
            info = ArrayInfo(struct_size=ctypes.sizeof(ArrayInfo))
            check(ask(self._handle, number, ctypes.byref(info)))
            found.append(_array(info))
        return tuple(found)

    def __del__(self, free: Callable[..., None] = C.xla_aot_bundle_free) -> None:
        free(getattr(self, "_handle", None))

    def describe(self) -> dict[str, Any]:
        """All there is to say of it: what `xla-aot inspect --json` prints."""
        found: dict[str, Any] = json.loads(text(C.xla_aot_bundle_describe(self._handle)))
        return found

    def load(
        self,
        *,
        device: str | None = None,
        threads: int | None = None,
        calls: Mapping[str, Function] | None = None,
    ) -> Program:
        """Checks it against this machine and loads it.

        `device` is "cpu", "cuda:N", or "sim:h100_sxm" for a simulated GPU; by default what fits.
        `threads` work on a run on a CPU; by default all the process may use. `calls` are functions
        that the program calls by name, by the convention of XLA's typed FFI: what
        `jax.ffi.pycapsule` gives, functions of ctypes, or addresses.

        Raises BundleError when it cannot run here.
        """
        return Program(self, device, threads, dict(calls or {}))

    def __repr__(self) -> str:
        return f"<xla_aot.Bundle {self.name} for {self.target}>"

    def __str__(self) -> str:
        lines = [f"{self.name} for {self.target}"]
        lines += [f"  {array}" for array in self.arguments]
        lines += [f"  -> {array}" for array in self.results]
        return "\n".join(lines)


def contents(source: Source) -> bytes | bytearray | memoryview:
    """The bytes of a source."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source
    with open(source, "rb") as file:
        return file.read()


def read(source: Source) -> Bundle:
    """Reads a bundle from a file or from bytes.

    Raises BundleError when it is damaged, OSError when there is no such file.
    """
    return Bundle(contents(source))


def load(
    source: Source,
    *,
    device: str | None = None,
    threads: int | None = None,
    calls: Mapping[str, Function] | None = None,
) -> Program:
    """Reads a bundle from a file or from bytes and loads it: see `read` and `Bundle.load`."""
    return read(source).load(device=device, threads=threads, calls=calls)


def aligned(array: Any) -> NDArray[Any]:
    """A copy of an array in memory that programs take without copying it again: for weights, which
    many calls share. NumPy's own memory seldom is."""
    array = np.asarray(array)
    copy: NDArray[Any] = np.asarray(Memory.new(array.nbytes))[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _address(function: Function) -> ctypes.c_void_p:
    if isinstance(function, int):
        return ctypes.c_void_p(function)
    if type(function).__name__ == "PyCapsule":
        api = ctypes.pythonapi
        api.PyCapsule_GetName.restype = ctypes.c_char_p
        api.PyCapsule_GetName.argtypes = [ctypes.py_object]
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        name = api.PyCapsule_GetName(function)
        return ctypes.c_void_p(api.PyCapsule_GetPointer(function, name))
    try:
        return ctypes.cast(function, ctypes.c_void_p)
    except ctypes.ArgumentError:
        raise UsageError(
            f"a call is a {type(function).__name__}, wanted a capsule, a function of ctypes or an address"
        ) from None


class Program(Owned):
    """A loaded program, called like the function that was compiled.

    Arguments are arrays of NumPy or JAX, anything else that gives its memory by `__array__` or
    DLPack, and plain numbers and lists. They are not copied where they lie as the program wants
    them; those of another type or shape are errors, and so are numbers that the type does not have.
    Types that NumPy lacks may be given as integers of their width: values for integers, bits for
    floats. Results are NumPy arrays, or arrays of JAX's when an argument is one and JAX has the
    type. A result in tuples comes in tuples.

    A program that came from `jax.export` takes the trees that the exported function takes; others
    take their arrays in order, or by name.
    """

    #: The bundle it was loaded from.
    bundle: Bundle

    def __init__(
        self, bundle: Bundle, device: str | None, threads: int | None, calls: dict[str, Function]
    ) -> None:
        self.bundle = bundle
        self._calls = calls
        self._names = [array.name for array in bundle.arguments]
        options = ctypes.c_void_p(C.xla_aot_options_new())
        handle = ctypes.c_void_p()
        try:
            if device is not None:
                check(C.xla_aot_options_set_device(options, c_text(device)))
            if threads is not None:
                if not 1 <= operator.index(threads) < 1 << 31:
                    raise UsageError(f"{threads} threads, wanted 1 or more")
                check(C.xla_aot_options_set_threads(options, operator.index(threads)))
            for name, function in calls.items():
                check(C.xla_aot_options_add_call(options, c_text(name), _address(function)))
            check(C.xla_aot_program_load(bundle._handle, options, ctypes.byref(handle)))
        finally:
            C.xla_aot_options_free(options)
        self._handle = handle

    def __del__(self, free: Callable[..., None] = C.xla_aot_program_free) -> None:
        free(getattr(self, "_handle", None))

    @property
    def arguments(self) -> tuple[Array, ...]:
        """The arrays that it takes, on each device."""
        return self.bundle.arguments

    @property
    def results(self) -> tuple[Array, ...]:
        """The arrays that it gives, on each device."""
        return self.bundle.results

    @property
    def threads(self) -> int:
        """Threads that work on a run."""
        count: int = C.xla_aot_program_threads(self._handle)
        return count

    def describe(self) -> dict[str, Any]:
        """All there is to say of its bundle: see `Bundle.describe`."""
        return self.bundle.describe()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it once.

        Raises InputError when an argument does not fit or the program fails, UsageError when there
        are more or fewer arguments than it takes.
        """
        if self.bundle.devices != 1:
            raise UsageError(
                f"the program runs on {self.bundle.devices} devices, each with arguments of its own",
                help="call `each` with a list of arrays for each device",
            )
        arrays = _trees.flatten(self._names, args, kwargs)
        return self._nested(self.each([arrays])[0])

    def flat(self, *arrays: Any) -> list[Any]:
        """Runs it once on arrays in the order of `arguments`; gives those of `results`."""
        return self.each([arrays])[0]

    def each(self, arrays: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Runs it once on all its devices: for each the arrays in the order of `arguments`. Gives for
        each those of `results`."""
        devices, count = self.bundle.devices, len(self.arguments)
        if len(arrays) != devices:
            raise UsageError(f"arrays for {len(arrays)} devices, wanted {devices}")
        for own in arrays:
            if len(own) != count:
                raise UsageError(f"{len(own)} arrays, wanted {count}: {', '.join(self._names)}")
        values = [value for own in arrays for value in own]
        results = self._run(values)
        if any(_arrays.is_jax(value) for value in values):
            told = self.results * devices
            results = [_arrays.to_jax(result, array) for result, array in zip(results, told)]
        each = len(self.results)
        return [results[device * each : (device + 1) * each] for device in range(devices)]

    def _nested(self, results: list[Any]) -> Any:
        return _trees.nest([array.path for array in self.results], results)

    def _run(self, values: list[Any]) -> list[Any]:
        wanted = self.arguments * self.bundle.devices
        told = self.results * self.bundle.devices
        given = [_arrays.to_program(value, array) for value, array in zip(values, wanted)]
        n, m = len(given), len(told)
        pointers = (ctypes.c_void_p * n)(*(array.ctypes.data for array, _ in given))
        sizes = (ctypes.c_size_t * n)(*(array.nbytes for array, _ in given))
        dims = (ctypes.POINTER(ctypes.c_int64) * n)()
        for i, (_, shape) in enumerate(given):
            if any(wanted[i].dynamic):
                dims[i] = _pointer((ctypes.c_int64 * len(shape))(*shape))
        results = (ctypes.c_void_p * m)()
        shapes = [(ctypes.c_int64 * len(array.shape))() for array in told]
        places = (ctypes.POINTER(ctypes.c_int64) * m)()
        for i, place in enumerate(shapes):
            places[i] = _pointer(place)
        call = Call(ctypes.sizeof(Call), n, pointers, sizes, dims, m, results, None, places)
        check(C.xla_aot_program_run(self._handle, ctypes.byref(call)))
        memory = [Memory(address, _bytes(array)) for address, array in zip(results, told)]
        return [
            _arrays.from_program(own, tuple(sizes_now), array)
            for own, sizes_now, array in zip(memory, shapes, told)
        ]

    def __repr__(self) -> str:
        return f"<xla_aot.Program {self.bundle.name} for {self.bundle.target}>"

    def __str__(self) -> str:
        return str(self.bundle)


def _bytes(array: Array) -> int:
    count = int(np.prod(array.shape, dtype=np.int64))
    return -(-count * array.element_bits // 8)


def _pointer(numbers: ctypes.Array[ctypes.c_int64]) -> Any:
    return ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))

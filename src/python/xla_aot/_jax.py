"""Bundles in JAX's own runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ctypes

from . import _arrays, _trees
from ._errors import BundleError, InputError, UsageError
from ._library import C, check
from ._program import Bundle, Source, contents


def _payload(data: bytes, bundle: Bundle) -> bytes:
    """The bundle as JAX's runtime wants it: within its envelope."""
    prefix, size = ctypes.c_void_p(), ctypes.c_size_t()
    check(C.xla_aot_bundle_jax_prefix(bundle._handle, ctypes.byref(prefix), ctypes.byref(size)))
    return ctypes.string_at(prefix, size.value) + data


def as_jax(source: Source, *, device: Any = None) -> Callable[..., Any]:
    """A bundle as a function on JAX arrays, run by JAX's own runtime.

    `device` is a device of JAX's; by default the first of the bundle's platform. The function is
    called as `load(source)` would be, and gives JAX arrays. It cannot be traced: it is machine code
    already. As of any function of JAX's, arrays for donated parameters are gone afterwards. Needs
    jaxlib 0.9.1 or later.

    Raises BundleError when JAX's runtime does not take the bundle.
    """
    import jax
    from jax._src.lib import xla_client

    data = contents(source)
    bundle = Bundle(data)
    if bundle.devices != 1:
        raise UsageError(f"the bundle runs on {bundle.devices} devices, wanted 1")
    if device is None:
        device = jax.devices(bundle.platform)[0]
    try:
        executable = device.client.deserialize_executable(
            _payload(bytes(data), bundle), executable_devices=xla_client.DeviceList((device,))
        )
    except Exception as error:
        raise BundleError(f"JAX's runtime refuses the bundle: {error}") from error
    names = [array.name for array in bundle.arguments]
    paths = [array.path for array in bundle.results]

    def call(*args: Any, **kwargs: Any) -> Any:
        values = _trees.flatten(names, args, kwargs)
        arrays = [_place(value, array, device) for value, array in zip(values, bundle.arguments)]
        outputs = executable.execute_sharded(arrays).disassemble_into_single_device_arrays()
        return _trees.nest(paths, [shards[0] for shards in outputs])

    call.__name__ = call.__qualname__ = bundle.name
    call.__doc__ = str(bundle)
    return call


def _place(value: Any, wanted: Any, device: Any) -> Any:
    """An argument on the device, in the layout that the program wants."""
    import jax
    from jax.experimental.layout import Format, Layout

    if isinstance(value, jax.core.Tracer):
        raise UsageError(f"`{wanted.name}` is traced, and the program is machine code already")
    if not _arrays.is_jax(value):
        value = _arrays.checked(value, wanted)
    if value.dtype != wanted.dtype or not wanted.fits(tuple(value.shape)):
        raise InputError(
            f"`{wanted.name}` is {value.dtype}{list(value.shape)}, wanted {wanted.dtype}{wanted.sizes}",
            code="XA8001",
        )
    order = wanted.layout[::-1]
    place: Any = device
    if order != tuple(range(len(order))):
        place = Format(Layout(order), jax.sharding.SingleDeviceSharding(device))
    with _arrays.wide_types():
        return jax.device_put(value, place)

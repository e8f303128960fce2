"""Runs programs that xla-aot compiled, on NumPy and JAX arrays.

    import numpy as np
    import xla_aot

    program = xla_aot.load("model.xla")
    print(program)
    result = program(np.ones((2, 3), np.float32))

`load` reads a bundle, checks it against this machine and loads it; what it gives is called like the
function that was compiled. `read` only reads one, on any machine, and tells what is in it. `as_jax`
gives a bundle to JAX's own runtime instead of this one.

The work is done by a C library, `libxla_aot`, which comes with the package. It lets go of Python's
lock while a program runs, and several threads may call one program.
"""

from ._errors import BundleError, Error, InputError, InternalError, UsageError
from ._jax import as_jax
from ._library import devices, version
from ._program import Array, Bundle, Program, aligned, load, read

__version__ = version()

__all__ = [
    "Array",
    "Bundle",
    "BundleError",
    "Error",
    "InputError",
    "InternalError",
    "Program",
    "UsageError",
    "aligned",
    "as_jax",
    "devices",
    "load",
    "read",
    "version",
]

#!/usr/bin/env python3
"""Compares programs of the fuzzer with jaxlib's CPU backend.

    scripts/fuzz.sh --dump DIR --programs N --seed S     writes programs, inputs and our results
    scripts/fuzz-jaxlib.py DIR                           runs them in jaxlib, in other processes

A program that jaxlib refuses or dies on is counted and left, and so are those with floats of six
bits, on which it dies, and with integers of one bit, which it takes for truth values. KNOWN lists
where jaxlib is known to give something else than the specification; results that follow from such an
op are not compared.
"""

import os
import re
import subprocess
import sys

# A pattern of the program's text, and why jaxlib differs.
KNOWN = [
    (r"select-and-scatter\(", "where elements of a window are equal, a later one is chosen"),
    (r"scatter_dims_to_operand_dims=\{\}", "of updates without an index only the last one counts"),
    (r"subtract\((\w+), \1\)", "x - x + x is taken for x, also where x is infinite"),
    (r"= \(?[su][124]\[[^\n]*sort\(", "sorts of packed integers give other numbers"),
    (r"(?s)f4e2m1fn\[.*= [su]\d+\[[^=]*convert\(", "f4e2m1fn becomes the end of an integer's range"),
    (r"fnuz\[", "a small negative number becomes NaN where it should become zero"),
    (r"= [su]\d+\[[^=]*power\(", "powers of negative integers that wrap"),
    (r"= c\d+\[[^=]*(divide|exponential|logistic)\(", "infinite quotients and powers of e are NaN in parts"),
    (r"c\d+\[[^\n]*(maximum|minimum|compare)\(", "complex numbers are ordered another way"),
    (r"(?s)entry_computation_layout.*\"TopK\"", "results of TopK in another layout have holes"),
    (r"= c\d+\[[^=]*convolution\([^\n]*feature_group_count", "groups of complex numbers give zeros"),
]


def worker(folder, names):
    import jax
    import ml_dtypes
    import numpy as np
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib import _hlo
    from jaxlib.mlir import ir

    jax.config.update("jax_enable_x64", True)
    client = xla_bridge.get_backend("cpu")
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    odd = {"bf16": "bfloat16", "f8e5m2": "float8_e5m2", "f8e4m3": "float8_e4m3",
           "f8e4m3fn": "float8_e4m3fn", "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
           "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz",
           "f8e3m4": "float8_e3m4", "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fn": "float4_e2m1fn",
           "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn"}
    whole = {"s4": "int4", "u4": "uint4", "s2": "int2", "u2": "uint2", "s1": "int1", "u1": "uint1"}

    def typed(array, ty):
        if ty in odd:
            return array.view(getattr(ml_dtypes, odd[ty]))
        return array.astype(getattr(ml_dtypes, whole[ty])) if ty in whole else array

    def plain(array):
        kind = array.dtype
        if kind in (np.bool_, np.complex64, np.complex128) or kind.kind in "iu":
            return array
        return array.astype(np.float64) if kind.kind != "i" else array

    def differs(got, want, accuracy):
        got, want = plain(got), plain(want)
        if got.shape != want.shape:
            return "shape"
        if got.dtype.kind in "iu" and got.dtype.itemsize == want.dtype.itemsize:
            got = got.view(want.dtype)
        size = None
        if got.dtype.kind == "c":
            # A part is as near as the whole number is large.
            size = np.abs(want)[..., None] * np.ones(2)
            got = np.stack([got.real, got.imag], -1)
            want = np.stack([want.real, want.imag], -1)
            size = np.where(np.isfinite(size), size, np.abs(want))
        if got.dtype.kind not in "f":
            bad = got.astype(object) != want.astype(object) if got.dtype != want.dtype else got != want
        else:
            word, _, by = accuracy.partition(" ")
            by = float(by) if by else 0.0
            finite = np.abs(want[np.isfinite(want)])
            scale = np.abs(want) if size is None else size
            if word == "spread":
                scale = max(finite.max(), 1.0) if finite.size else 1.0
            with np.errstate(all="ignore"):
                near = np.abs(got - want) <= by * scale + 2e-38  # subnormal numbers are zero
            none = np.isnan(got), np.isnan(want)
            if size is not None:
                # A complex number is none when a part is not.
                none = [n.any(-1, keepdims=True) for n in none]
            bad = ~((got == want) | (none[0] & none[1]) | near)
        if np.any(bad):
            at = tuple(int(i[0]) for i in np.nonzero(bad))
            return f"element {at} is {got[at]} for jaxlib and {want[at]} for us"
        return None

    for name in names:
        print("at", name, flush=True)
        path = os.path.join(folder, name)
        text = open(path + ".hlo").read()
        if re.search(r"f6e|\b[su]1\[", text):
            print("refused", name, "floats of six bits, integers of one", flush=True)
            continue
        accuracies = re.findall(r"^// out\d+: (.*)$", text, re.M)
        entry = text[text.index("ENTRY"):]
        types = re.findall(r"= (\w+)\[[^=\n]*\] parameter\((\d+)\)", entry)
        result = re.search(r"ROOT out = \((.*?)\) tuple", entry).group(1)
        results = re.findall(r"(\w+)\[", result)
        try:
            proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
            with mlir.make_ir_context():
                module = xla_client._xla.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
                module = ir.Module.parse(module)
                executable = client.compile_and_load(module, devices, xla_client.CompileOptions())
            arrays = np.load(path + ".npz")
            arguments = [typed(arrays[f"in{i}"], ty) for i, (ty, _) in enumerate(types)]
            buffers = [jax.device_put(a) for a in arguments]
            outputs = [np.asarray(b[0]) for b in executable.execute_sharded(buffers).disassemble_into_single_device_arrays()]
        except Exception as error:  # jaxlib refuses in many ways
            print("refused", name, str(error).splitlines()[0][:160], flush=True)
            continue
        wanted = np.load(path + ".want.npz")
        for i, (ty, accuracy) in enumerate(zip(results, accuracies)):
            found = differs(outputs[i], typed(wanted[f"out{i}"], ty), accuracy)
            if found:
                known = [why for pattern, why in KNOWN if re.search(pattern, text)]
                word = "known" if known else "differs"
                print(word, name, f"out{i}: {found}", *known[:1], flush=True)
                break


def main():
    folder = sys.argv[1]
    names = [f[:-4] for f in sorted(os.listdir(folder)) if f.endswith(".hlo")]
    counts = {"at": 0, "refused": 0, "known": 0, "differs": 0, "died": 0}
    why = {}
    while names:
        run = subprocess.Popen([sys.executable, __file__, "--worker", folder, *names[:200]],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        last = None
        for line in run.stdout:
            word, name, *rest = line.split(maxsplit=2)
            counts[word] += 1
            if word == "at":
                last = name
            elif word == "differs":
                print(line.strip(), flush=True)
            elif word == "refused":
                why[rest[0].strip()[:80]] = why.get(rest[0].strip()[:80], 0) + 1
        if run.wait() != 0:
            counts["died"] += 1
            print("jaxlib dies on", last, flush=True)
            names = names[names.index(last) + 1:] if last else []
        else:
            names = names[200:]
    for text, times in sorted(why.items(), key=lambda row: -row[1])[:10]:
        print(f"{times:6} x refused: {text}")
    print(f"{counts['at']} programs, {counts['differs']} differ, {counts['known']} differ as known, "
          f"{counts['refused']} refused, jaxlib died on {counts['died']}")
    sys.exit(1 if counts["differs"] else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        worker(sys.argv[2], sys.argv[3:])
    else:
        main()

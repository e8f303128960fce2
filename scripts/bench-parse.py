#!/usr/bin/env python3
"""Times the reading of StableHLO against jaxlib's, in turns.

    scripts/bench-parse.py [--rounds N] XLA-AOT FOLDER ...

Each FOLDER has a program.mlir and a program.mlirbc, as those of tests/programs and of models have.
Two things are timed on both sides: the parser alone, and all up to HLO: reading, the conversion and
its checks, which for ours is `xla-aot compile --stop-after front`. The least of N rounds counts,
which other work on the machine does not spoil. A ratio below 1 says that ours takes less time.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

from jax._src.interpreters.mlir import make_ir_context
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def parsed(content):
    context = make_ir_context()
    start = time.perf_counter()
    if content.startswith(b"ML\xefR"):
        stablehlo.deserialize_portable_artifact(context, content)
    else:
        ir.Module.parse(content, context=context)
    return time.perf_counter() - start


def converted(content):
    start = time.perf_counter()
    _jax.mlir.mlir_module_to_xla_computation(content)
    return time.perf_counter() - start


def ours(program, path):
    command = [program, "compile", path, "--stop-after", "front", "--time-passes", "--json"]
    done = subprocess.run(command, check=True, capture_output=True)
    for line in done.stderr.splitlines() + done.stdout.splitlines():
        record = json.loads(line)
        if "times" in record:
            steps = {step["name"]: step["s"] for step in record["times"]["steps"]}
            return steps["front/read"], steps["front"]
    sys.exit(f"{program} told no times")


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("program", metavar="XLA-AOT")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    options = parser.parse_args()
    ratios = []
    print(f"{'ms':28} {'form':7} {'parser: ours':>12} {'jaxlib':>7} {'ratio':>6}", end="")
    print(f" {'to HLO: ours':>13} {'jaxlib':>7} {'ratio':>6}")
    for folder in options.folders:
        for form in ["mlir", "mlirbc"]:
            path = os.path.join(folder, "program." + form)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                content = file.read()
            times = []
            for _ in range(options.rounds):
                times.append((*ours(options.program, path), parsed(content), converted(content)))
            read, front, parse, whole = (1000 * min(column) for column in zip(*times))
            ratios.append((read / parse, front / whole))
            name = os.path.basename(os.path.normpath(folder))
            print(f"{name:28} {form:7} {read:12.2f} {parse:7.2f} {read / parse:6.2f}", end="")
            print(f" {front:13.2f} {whole:7.2f} {front / whole:6.2f}")
    if not ratios:
        sys.exit("no program.mlir or program.mlirbc was found")
    parse, whole = map(mean, zip(*ratios))
    print(f"geometric mean of {len(ratios)}: {parse:.2f} of its parser, {whole:.2f} up to HLO")


if __name__ == "__main__":
    main()

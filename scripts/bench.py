#!/usr/bin/env python3
"""Times programs compiled by xla-aot against jaxlib on this machine, in turn, in one run.

  bench.py XLA_AOT CORPUS [NAME ...]

CORPUS is a folder of conformance programs (kinds `bench` and `big` are timed, or the ones named).
Prints a table: compile and run time of both, their ratios, bundle size, and the geometric means.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import numpy as np
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir

ROUNDS = 5


def inputs(corpus, case, path):
    tool = os.path.join(corpus, "compare.py")
    subprocess.run([sys.executable, tool, "--inputs", case, path], check=True)
    with np.load(path) as arrays:
        return [arrays[f"in{i}"] for i in range(len(arrays.files))]


def jax_program(case):
    """(compile seconds, callable on device arrays, list of dtypes)"""
    client = xla_bridge.get_backend("cpu")
    text = open(os.path.join(case, "program.mlir")).read()
    with mlir.make_ir_context():
        started = time.perf_counter()
        module = ir.Module.parse(text)
        devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
        executable = client.compile_and_load(module, devices, xla_client.CompileOptions())
        seconds = time.perf_counter() - started
    return seconds, client, executable


def seconds_of(prepare, call, at_least=0.3):
    times = []
    total = 0.0
    while total < at_least or len(times) < 3:
        arguments = prepare()
        started = time.perf_counter()
        call(arguments)
        times.append(time.perf_counter() - started)
        total += times[-1]
    return statistics.median(times)


def main():
    tool, corpus = sys.argv[1], sys.argv[2]
    wanted = sys.argv[3:]
    rows = []
    for kind in ("bench", "big"):
        folder = os.path.join(corpus, kind)
        for name in sorted(os.listdir(folder)):
            if wanted and name not in wanted:
                continue
            case = os.path.join(folder, name)
            with tempfile.TemporaryDirectory() as work:
                rows.append(measure(tool, corpus, case, name, work))
                print(json.dumps(rows[-1]), flush=True)
    print(f"{'program':36} {'compile':>17} {'ratio':>6} {'run ms':>19} {'ratio':>6} {'bundle':>8}")
    for row in rows:
        ours, theirs = row["compile_s"], row["jax_compile_s"]
        print(
            f"{row['name']:36} {ours:8.3f} {theirs:8.3f} {ours / theirs:6.2f} "
            f"{row['run_s'] * 1e3:9.3f} {row['jax_run_s'] * 1e3:9.3f} "
            f"{row['run_s'] / row['jax_run_s']:6.2f} {row['bundle_bytes'] / 1024:7.0f}K"
        )
    def mean(a, b):
        return math.exp(statistics.mean(math.log(r[a] / r[b]) for r in rows))
    print(f"geometric means: compile {mean('compile_s', 'jax_compile_s'):.2f}, "
          f"run {mean('run_s', 'jax_run_s'):.2f}")


def measure(tool, corpus, case, name, work):
    arrays_file, bundle = os.path.join(work, "in.npz"), os.path.join(work, "out.xla")
    arrays = inputs(corpus, case, arrays_file)
    spec = json.load(open(os.path.join(case, "case.json")))
    started = time.perf_counter()
    program = os.path.join(case, "program.pb")
    subprocess.run([tool, "-q", "compile", program, "--target-cpu", "native", "-o", bundle], check=True)
    compile_s = time.perf_counter() - started
    jax_compile_s, client, executable = jax_program(case)
    device = client.local_devices()[0]
    import ml_dtypes
    typed = [
        a.view(ml_dtypes.bfloat16) if s["dtype"] == "bf16" else a
        for a, s in zip(arrays, spec["inputs"])
    ]
    placed = [jax.device_put(a, device) for a in typed]

    def prepare():
        # A donated argument is gone after a run.
        for i, array in enumerate(placed):
            if array.is_deleted():
                placed[i] = jax.device_put(typed[i], device).block_until_ready()
        return placed

    def run(arguments):
        for out in executable.execute(arguments):
            out.block_until_ready()

    ours, theirs = [], []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [tool, "-q", "bench", bundle, "--input", arrays_file, "--json"],
            check=True, capture_output=True, text=True,
        )
        ours.append(json.loads(done.stdout.strip().splitlines()[-1])["median_s"])
        theirs.append(seconds_of(prepare, run))
    return {
        "name": name, "compile_s": compile_s, "jax_compile_s": jax_compile_s,
        "run_s": statistics.median(ours), "jax_run_s": statistics.median(theirs),
        "bundle_bytes": os.path.getsize(bundle),
    }


if __name__ == "__main__":
    main()

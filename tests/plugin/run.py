"""Runs compiled programs through the stock JAX CUDA plugin on the simulated driver, and compares.

    python run.py --library DIR --bundles DIR --programs DIR [--python PYTHON] [NAME ...]

  --library   a folder with the simulator as libcuda.so.1, libcudart.so.12 and libnvidia-ml.so.1
  --bundles   KIND/NAME.xla, made with `xla-aot compile --format jax` for the target
  --programs  KIND/NAME/{case.json,inputs.npz,expected.npz}
  --python    an interpreter that has jax, jax-cuda12-plugin and numpy (default: this one)
  --target    the GPU that is simulated (default: h100_sxm)
  --checks    what the simulator checks: all, none, or a list (default: all)
  --results   a folder that gets NAME.npz with what each program gave
  --table     a file that gets a line of JSON a program
  --seconds   the longest that one program may take (default: 300)

Names are parts of KIND/NAME; without any, every bundle is run. A program is `right`, `wrong`
(numbers differ), `refused` (an error that says why, when it is loaded or run), `found` (right
numbers, but the simulator's checks found something), `crashed` or `stuck`. One that stops because it
needs a library that is not installed, such as cuFFT, is told as `library`. The exit status is 0 only
if all others are right.

The plugin runs in a process of its own, so that one which ends it costs one program.
"""

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

NARROW = {
    "bf16": "bfloat16",
    "f8e5m2": "float8_e5m2",
    "f8e4m3": "float8_e4m3",
    "f8e3m4": "float8_e3m4",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e8m0fnu": "float8_e8m0fnu",
    "f4e2m1fn": "float4_e2m1fn",
    "s4": "int4",
    "u4": "uint4",
    "s2": "int2",
    "u2": "uint2",
}


# How the plugin's errors name the libraries that it opens when a program needs them.
LIBRARIES = re.compile(r"cuFFT|cuBLAS|cuDNN|DNN support|NCCL|cuSOLVER|cuSPARSE")


# What the worker does: everything with JAX in it.


def start_client():
    import jax
    from jax._src import hardware_utils, xla_bridge

    jax.config.update("jax_enable_x64", True)
    # There are no device files of NVIDIA's driver to find.
    hardware_utils.has_visible_nvidia_gpu = lambda: True
    return xla_bridge.get_backend("cuda")


def typed(stored, dtype):
    """An array as its type, from the bits that an npz file holds."""
    import ml_dtypes
    import numpy as np

    name = NARROW.get(dtype)
    if name is None:
        return stored
    kind = np.dtype(getattr(ml_dtypes, name))
    if dtype[0] in "su":
        return stored.astype(kind)
    return np.ascontiguousarray(stored).view(kind).reshape(stored.shape)


def stored(array, dtype, like):
    """The bits of an array, as an npz file holds them."""
    import numpy as np

    array = np.asarray(array)
    if dtype not in NARROW:
        return array
    if dtype[0] in "su":
        return array.astype(like)
    return np.ascontiguousarray(array).view(like).reshape(array.shape)


def place(jax, array, device, layout):
    """Puts an array on the device, its elements in the order that the program wants.

    JAX would compile a program that moves them; the plugin itself looks at sizes alone, so an array
    goes there as another one whose dimensions are in that order.
    """
    from jax.experimental.layout import Layout

    order = Layout.from_pjrt_layout(layout).major_to_minor
    if order is not None and tuple(order) != tuple(range(array.ndim)):
        array = array.transpose(order).copy(order="C")
    return jax.device_put(array, device)


def run_bundle(client, bundle, case_dir, results):
    import jax
    import numpy as np
    from jax._src.lib import xla_client

    with open(os.path.join(case_dir, "case.json")) as file:
        case = json.load(file)
    with np.load(os.path.join(case_dir, "inputs.npz")) as file:
        inputs = [typed(file[spec["name"]], spec["dtype"]) for spec in case["inputs"]]
    expected = {}
    if os.path.exists(os.path.join(case_dir, "expected.npz")):
        with np.load(os.path.join(case_dir, "expected.npz")) as file:
            expected = {name: file[name] for name in file.files}

    device = client.local_devices()[0]
    with open(bundle, "rb") as file:
        payload = file.read()
    started = time.perf_counter()
    executable = client.deserialize_executable(
        payload, executable_devices=xla_client.DeviceList((device,))
    )
    loaded = time.perf_counter()
    layouts = executable.get_parameter_layouts()
    arguments = [place(jax, array, device, layout) for array, layout in zip(inputs, layouts)]
    jax.block_until_ready(arguments)
    outputs = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    outputs = [np.asarray(shards[0]) for shards in outputs]
    done = time.perf_counter()

    answer = {"load_s": loaded - started, "run_s": done - loaded}
    kept, complaints = {}, []
    if len(outputs) != len(case["outputs"]):
        complaints.append(f"{len(outputs)} results, expected {len(case['outputs'])}")
    for array, spec in zip(outputs, case["outputs"]):
        want = expected.get(spec["name"])
        like = want.dtype if want is not None else array.dtype
        kept[spec["name"]] = stored(array, spec["dtype"], like)
        complaint = judge(array, want, spec)
        if complaint:
            complaints.append(f"{spec['name']}: {complaint}")
    if results:
        np.savez(results, **kept)
    answer["state"] = "wrong" if complaints else "right"
    answer["text"] = "; ".join(complaints)
    return answer


def work():
    """Reads a line of JSON a program, answers with one. Standard output is the answers' alone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        client = start_client()
    except Exception as error:
        tell({"state": "refused", "text": f"no client: {error}"})
        return
    import jax
    import jaxlib

    tell({
        "state": "ready",
        "text": f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, "
        f"{client.platform_version.strip()}, {len(client.local_devices())} x "
        f"{client.local_devices()[0].device_kind}",
    })
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            answer = run_bundle(client, ask["bundle"], ask["case"], ask["results"])
        except Exception as error:
            text = " ".join(str(error).split())
            state = "library" if LIBRARIES.search(text) else "refused"
            answer = {"state": state, "text": f"{type(error).__name__}: {text[:600]}"}
        tell(answer)


# What numbers are right.


def judge(array, want, spec):
    """What is wrong with a result, or nothing."""
    import numpy as np

    dtype, tolerance = spec["dtype"], spec.get("tolerance", {})
    if tuple(array.shape) != tuple(spec["shape"]):
        return f"shape {list(array.shape)}, expected {spec['shape']}"
    kind = tolerance.get("kind", "close")
    if kind == "any" or array.size == 0:
        return ""
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    if kind in ("range", "stats"):
        return judge_spread(array.astype(np.float64), tolerance, kind)
    if want is None:
        return "no expected value"
    want = typed(want, dtype)
    if array.dtype.kind in "biu" or (dtype in NARROW and dtype[0] in "su"):
        got, right = array.astype(np.int64), want.astype(np.int64)
        if dtype == "u64":
            got, right = array, want
        off = np.abs(got.astype(np.float64) - right.astype(np.float64))
        passed = (got == right) | ((off <= tolerance["atol"]) if tolerance.get("atol") else False)
    else:
        got, right = array.astype(wide), want.astype(wide)
        passed, off = near(got, right, array, want, tolerance)
    bad = int(passed.size - np.count_nonzero(passed))
    if bad <= int(tolerance.get("mismatch_frac", 0.0) * passed.size):
        return ""
    worst = np.unravel_index(int(np.argmax(np.where(passed, -1.0, off))), passed.shape)
    return (
        f"{bad} of {passed.size} off, at {[int(i) for i in worst]}: "
        f"{got[worst].item()!r} instead of {right[worst].item()!r}"
    )


def near(got, right, array, want, tolerance):
    import numpy as np

    atol, rtol = tolerance.get("atol", 0.0), tolerance.get("rtol", 0.0)
    with np.errstate(all="ignore"):
        off = np.abs(got - right)
        finite = np.isfinite(got) & np.isfinite(right)
        passed = (got == right) | (finite & (off <= atol + rtol * np.abs(right)))
        if got.dtype.kind == "c":
            both = np.isnan(got) & np.isnan(right)
            for part in (np.real, np.imag):
                a, b = part(got), part(right)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                both_parts = same if part is np.real else both_parts & same
            passed |= both | both_parts
            if tolerance.get("any_nonfinite"):
                passed |= ~np.isfinite(got) & ~np.isfinite(right)
        else:
            passed |= np.isnan(got) & np.isnan(right)
            if tolerance.get("ulp"):
                steps = np.abs(ladder(array) - ladder(want))
                passed |= ~np.isnan(got) & ~np.isnan(right) & (steps <= tolerance["ulp"])
            if tolerance.get("signed_zero"):
                zeros = (got == 0) & (right == 0)
                passed &= ~(zeros & (np.signbit(got) != np.signbit(right)))
    return passed, np.where(np.isnan(off), np.inf, off)


def ladder(array):
    """Floats as numbers that grow by one a representable value."""
    import numpy as np

    size = array.dtype.itemsize
    bits = np.ascontiguousarray(array).view(f"i{size}").reshape(array.shape)
    if size == 8:
        # Steps of over 2^53 need not be exact.
        lowest = np.float64(-(2.0**63))
        return np.where(bits < 0, lowest - bits.astype(np.float64), bits.astype(np.float64))
    bits = bits.astype(np.int64)
    lowest = -(1 << (8 * size - 1))
    return np.where(bits < 0, lowest - bits, bits)


def judge_spread(values, tolerance, kind):
    import numpy as np

    if kind == "stats":
        at = np.asarray(tolerance["index"], dtype=np.int64)
        want = np.asarray(tolerance["value"], dtype=np.float64)
        limit = tolerance.get("atol", 0) + tolerance.get("rtol", 0) * np.abs(want)
        bad = int(np.count_nonzero(~(np.abs(values.ravel()[at] - want) <= limit)))
        return f"{bad} of {len(at)} samples off" if bad else ""
    high = values < tolerance["hi"] if tolerance.get("open") else values <= tolerance["hi"]
    if not np.all((values >= tolerance["lo"]) & high):
        return f"from {values.min()} to {values.max()}"
    for name, found in (("mean", values.mean()), ("std", values.std())):
        if name in tolerance and abs(found - tolerance[name]) > tolerance[f"{name}_tol"]:
            return f"{name} {found}, expected {tolerance[name]}"
    return ""


# What the parent does: it needs no JAX.


class Worker:
    """A process with the plugin in it."""

    def __init__(self, options, reports):
        environment = dict(os.environ)
        old = environment.get("LD_LIBRARY_PATH")
        library = os.path.abspath(options.library)
        environment.update(
            LD_LIBRARY_PATH=f"{library}:{old}" if old else library,
            JAX_PLATFORMS="cuda",
            JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",
            TF_CPP_MIN_LOG_LEVEL=environment.get("TF_CPP_MIN_LOG_LEVEL", "3"),
            # Every buffer an allocation of its own, so that the checks see where it ends.
            XLA_PYTHON_CLIENT_ALLOCATOR=options.allocator,
            XLA_PYTHON_CLIENT_PREALLOCATE="false",
            XLA_AOT_SIM_TARGET=options.target,
            XLA_AOT_SIM_CHECKS=options.checks,
            XLA_AOT_SIM_REPORTS=reports,
        )
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [options.python, os.path.abspath(__file__), "--worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment,
        )
        self.answers = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.hello = self.answer(options.seconds)

    def listen(self):
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put(None)

    def answer(self, seconds):
        try:
            answer = self.answers.get(timeout=seconds)
        except queue.Empty:
            return {"state": "stuck", "text": f"no answer in {seconds} s"}
        if answer is None:
            self.process.wait()
            return {"state": "crashed", "text": f"exit {self.process.returncode}: {self.said()}"}
        return answer

    def said(self):
        """What the process said last."""
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        telling = [line for line in lines if re.match(r"F\d{4} |F0000|simulated GPU", line)]
        return " | ".join((telling or lines)[-2:])[-600:]

    def ask(self, program, seconds):
        self.process.stdin.write(json.dumps(program) + "\n")
        self.process.stdin.flush()
        return self.answer(seconds)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def bundles_of(options):
    found = []
    for kind in sorted(os.listdir(options.bundles)):
        folder = os.path.join(options.bundles, kind)
        if not os.path.isdir(folder):
            continue
        for file in sorted(os.listdir(folder)):
            name = f"{kind}/{file.removesuffix('.xla')}"
            wanted = not options.names or any(part in name for part in options.names)
            if file.endswith(".xla") and wanted:
                found.append((name, os.path.join(folder, file)))
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", required=True)
    parser.add_argument("--bundles", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--target", default="h100_sxm")
    parser.add_argument("--checks", default="all")
    parser.add_argument("--allocator", default="platform")
    parser.add_argument("--results")
    parser.add_argument("--table")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.results:
        os.makedirs(options.results, exist_ok=True)
    programs = bundles_of(options)
    if not programs:
        parser.error("no bundles")

    table = open(options.table, "w") if options.table else None
    counts, worker = {}, None
    with tempfile.TemporaryDirectory() as scratch:
        reports = os.path.join(scratch, "reports")
        seen = 0
        for name, bundle in programs:
            if worker is None:
                worker = Worker(options, reports)
                if worker.hello["state"] != "ready":
                    print(worker.hello["text"])
                    print(worker.said())
                    worker.end()
                    return 2
                print(worker.hello["text"], flush=True)
            results = options.results and os.path.abspath(
                os.path.join(options.results, os.path.basename(name) + ".npz")
            )
            ask = {
                "bundle": os.path.abspath(bundle),
                "case": os.path.abspath(os.path.join(options.programs, name)),
                "results": results,
            }
            started = time.perf_counter()
            answer = worker.ask(ask, options.seconds)
            found = []
            if os.path.exists(reports):
                with open(reports, errors="replace") as file:
                    found = file.read().splitlines()
            if len(found) > seen and answer["state"] == "right":
                answer = {**answer, "state": "found", "text": found[seen]}
            elif len(found) > seen:
                answer["text"] += f" | simulator: {found[seen]}"
            seen = len(found)
            state = answer["state"]
            counts[state] = counts.get(state, 0) + 1
            if table:
                table.write(json.dumps({"name": name, **answer}) + "\n")
                table.flush()
            seconds = time.perf_counter() - started
            print(f"{state:8} {name:48} {seconds:7.2f} s  {answer['text']}".rstrip(), flush=True)
            # An error of a kernel stays in the process's context.
            if state in ("crashed", "stuck") or "CUDA_ERROR" in answer["text"]:
                worker.end()
                worker = None
        if worker:
            worker.end()
    print(", ".join(f"{counts[state]} {state}" for state in sorted(counts)))
    return 0 if set(counts) <= {"right", "library"} else 1


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        work()
    else:
        sys.exit(main())

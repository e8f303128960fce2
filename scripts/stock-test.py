#!/usr/bin/env python3
"""Holds our CPU bundles against stock jaxlib's, in both directions.

    scripts/stock-test.py [OPTION ...] XLA-AOT PROGRAMS [NAME ...]

XLA-AOT is the program, PROGRAMS a folder of cases, KIND/NAME/{case.json,program.pb,...}, such as
tests/programs. NAME is a part of KIND/NAME; without any, all are taken.

  --python PATH   an interpreter that has jax, jaxlib and numpy (default: this one)
  --direction D   out, in, cache or devices (default: out and in); may be repeated
  --every N       take every N-th case
  --table FILE    a file that gets a line of JSON a case
  --keep DIR      a folder that keeps bundles and arrays
  --seconds S     the longest that one step of a case may take (default: 300)

The directions:

  out      we compile, jaxlib loads and runs; results are held against the case's
  in       jaxlib compiles, runs and serializes, we load and run; results are held against jaxlib's
  cache    jax.jit writes its persistent compilation cache and serialize_executable its payload; we
           run what is in them, put our code in its place, and jax runs that
  devices  the programs of PROGRAMS/*.hlo, such as tests/devices, on several devices, out and in

A case is `right`, `wrong` (numbers differ), `ours` (we refuse what is compiled or loaded), `theirs`
(jaxlib refuses our bundle), `crashed` (its process ended), `stuck`, `none` (jaxlib makes no bundle of
the program), or `known` (`inspect` or KNOWN says why jaxlib cannot). jaxlib runs in a process of its own, which is
started again when it ends; one process runs all programs up to there. The exit status is 0 only when
all are right, none or known.
"""

import argparse
import collections
import importlib.util
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Where jaxlib differs from the specification, whoever compiled the program.
KNOWN = {
    ("out", "all_reduce_min.hlo"): "its collectives leave NaN and the signs of zeros out",
}
# As many devices as any program of several devices needs.
DEVICES = 8
ENVELOPED = (0, 9, 1)


def plugin_test():
    """The test of the CUDA plugin: how arrays are stored, placed and judged."""
    path = os.path.join(HERE, "..", "tests", "plugin", "run.py")
    spec = importlib.util.spec_from_file_location("plugin_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What the worker does: everything with JAX in it.


class Stock:
    """Stock jaxlib, with programs of cases."""

    def __init__(self):
        import jax
        import jaxlib
        import numpy as np
        from jax._src import xla_bridge
        from jax._src.lib import lapack, xla_client

        jax.config.update("jax_enable_x64", True)
        lapack._lapack.initialize()
        self.jax, self.np, self.xla_client = jax, np, xla_client
        self.tools = plugin_test()
        self.client = xla_bridge.get_backend("cpu")
        self.version = jaxlib.__version__

    def devices(self, count=1):
        devices = tuple(self.client.local_devices()[:count])
        return devices if not hasattr(self.xla_client, "DeviceList") else self.xla_client.DeviceList(devices)

    def load(self, payload, count=1):
        return self.client.deserialize_executable(payload, executable_devices=self.devices(count))

    # One device.

    def arguments(self, executable, ask):
        with open(os.path.join(ask["case"], "case.json")) as file:
            case = json.load(file)
        with self.np.load(ask["inputs"]) as file:
            stored = [file[spec["name"]] for spec in case["inputs"]]
        inputs = [self.tools.typed(a, spec["dtype"]) for a, spec in zip(stored, case["inputs"])]
        layouts = executable.get_parameter_layouts()
        device = self.client.local_devices()[0]
        return case, [self.tools.place(self.jax, a, device, at) for a, at in zip(inputs, layouts)]

    def run(self, executable, arguments):
        results = executable.execute_sharded(arguments)
        parts = results.disassemble_into_single_device_arrays()
        return [self.np.asarray(shards[0]) for shards in parts]

    def judge(self, case, outputs, wanted):
        """What is wrong with results, or nothing."""
        if len(outputs) != len(case["outputs"]):
            return f"{len(outputs)} results, expected {len(case['outputs'])}"
        said = []
        for array, spec in zip(outputs, case["outputs"]):
            fault = self.tools.judge(array, wanted.get(spec["name"]), spec)
            said += [f"{spec['name']}: {fault}"] if fault else []
        return "; ".join(said)

    def expected(self, path):
        if not os.path.exists(path):
            return {}
        with self.np.load(path) as file:
            return {name: file[name] for name in file.files}

    def out(self, ask):
        with open(ask["bundle"], "rb") as file:
            executable = self.load(file.read())
        case, arguments = self.arguments(executable, ask)
        outputs = self.run(executable, arguments)
        fault = self.judge(case, outputs, self.expected(os.path.join(ask["case"], "expected.npz")))
        answer = {"state": "wrong" if fault else "right", "text": fault}
        try:
            executable.cost_analysis()
            executable.get_compiled_memory_stats()
            executable.hlo_modules()[0].to_string()
        except Exception as error:
            answer = {"state": "wrong", "text": f"analysis: {str(error).splitlines()[0]}"}
        return answer

    def module(self, case, context):
        """The program of a case, as JAX hands programs to jaxlib."""
        from jaxlib.mlir import ir

        text = os.path.join(case, "program.mlir")
        if os.path.exists(text):
            with open(text) as file:
                return ir.Module.parse(file.read(), context=context)
        return self.module_of_hlo(os.path.join(case, "program"), context)

    def module_of_hlo(self, path, context):
        from jaxlib.mlir import ir
        try:
            from jaxlib import _hlo
            from_text, computation = _hlo.hlo_module_from_text, _hlo.XlaComputation
        except ImportError:
            from_text = self.xla_client._xla.hlo_module_from_text
            computation = self.xla_client.XlaComputation
        if os.path.exists(path + ".pb"):
            with open(path + ".pb", "rb") as file:
                proto = file.read()
        else:
            with open(path + ".hlo") as file:
                proto = from_text(file.read()).as_serialized_hlo_module_proto()
        made = self.xla_client._xla.mlir.xla_computation_to_mlir_module(computation(proto))
        return ir.Module.parse(made, context=context)

    def compile(self, module, replicas=1, partitions=1):
        options = self.xla_client.CompileOptions()
        options.num_replicas, options.num_partitions = replicas, partitions
        count = replicas * partitions
        ids = self.np.arange(count).reshape(replicas, partitions)
        options.device_assignment = self.xla_client.DeviceAssignment.create(ids)
        options.executable_build_options.use_spmd_partitioning = partitions > 1
        try:
            return self.client.compile_and_load(module, self.devices(count), options)
        except TypeError:
            # Older ones take bytecode.
            from jax._src.interpreters import mlir
            code = mlir.module_to_bytecode(module)
            return self.client.compile_and_load(code, self.devices(count), options)

    def serialize(self, executable):
        return (executable.serialize() if hasattr(executable, "serialize")
                else self.client.serialize_executable(executable))

    def make(self, ask):
        from jax._src.interpreters import mlir

        with mlir.make_ir_context() as context:
            executable = self.compile(self.module(ask["case"], context))
        payload = self.serialize(executable)
        case, arguments = self.arguments(executable, ask)
        outputs = self.run(executable, arguments)
        with open(ask["bundle"], "wb") as file:
            file.write(payload)
        pairs = zip(case["outputs"], outputs)
        given = self.expected(os.path.join(ask["case"], "expected.npz"))
        like = {name: array.dtype for name, array in given.items()}
        wanted = {spec["name"]: self.tools.stored(a, spec["dtype"], like.get(spec["name"], "u1"))
                  for spec, a in pairs}
        self.np.savez(ask["results"], **wanted)
        return {"state": "ready", "text": ""}

    def compare(self, ask):
        """Our results against jaxlib's."""
        with open(os.path.join(ask["case"], "case.json")) as file:
            case = json.load(file)
        got = self.expected(ask["got"])
        outputs = [self.tools.typed(got[spec["name"]], spec["dtype"]) for spec in case["outputs"]]
        fault = self.judge(case, outputs, self.expected(ask["results"]))
        return {"state": "wrong" if fault else "right", "text": fault}

    # Several devices.

    def on_devices(self, executable, arguments):
        """Results of each device; arguments are lists of arrays, a device each."""
        jax, np = self.jax, self.np
        devices = self.client.local_devices()[: len(arguments)]
        mesh = jax.sharding.Mesh(np.array(devices), ("d",))
        alike = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        placed = []
        for arrays in zip(*arguments):
            shards = [jax.device_put(a, d) for a, d in zip(arrays, devices)]
            shape = arrays[0].shape
            placed.append(jax.make_array_from_single_device_arrays(shape, alike, shards))
        results = executable.execute_sharded(placed)
        parts = results.disassemble_into_single_device_arrays()
        return [[np.asarray(shards[d]) for shards in parts] for d in range(len(devices))]

    def differ(self, got, wanted):
        np = self.np
        for device, (arrays, wants) in enumerate(zip(got, wanted)):
            if len(arrays) != len(wants):
                return f"device {device}: {len(arrays)} results, expected {len(wants)}"
            for number, (array, want) in enumerate(zip(arrays, wants)):
                a, b = np.asarray(array), np.asarray(want)
                if a.shape != b.shape:
                    return f"device {device}: out{number} has the shape {a.shape}, not {b.shape}"
                wide = np.complex128 if b.dtype.kind == "c" else np.float64
                if not np.allclose(a.astype(wide), b.astype(wide), rtol=1e-6, equal_nan=True):
                    return f"device {device}: out{number} is {a.tolist()}, not {b.tolist()}"
        return ""

    def devices_out(self, ask):
        program = DeviceProgram(self, ask["path"])
        with open(ask["bundle"], "rb") as file:
            executable = self.load(file.read(), program.count)
        got = self.on_devices(executable, program.inputs)
        fault = self.differ(got, program.outputs)
        return {"state": "wrong" if fault else "right", "text": fault}

    def devices_in(self, ask):
        from jax._src.interpreters import mlir

        program = DeviceProgram(self, ask["path"])
        with mlir.make_ir_context() as context:
            module = self.module_of_hlo(ask["path"].removesuffix(".hlo"), context)
            executable = self.compile(module, program.replicas, program.partitions)
        payload = self.serialize(executable)
        with open(ask["bundle"], "wb") as file:
            file.write(payload)
        got = self.on_devices(executable, program.inputs)
        fault = self.differ(got, program.outputs)
        return {"state": "none" if fault else "ready", "text": f"its own results: {fault}"}

    def devices_inputs(self, ask):
        """Writes each device's inputs as a file."""
        program = DeviceProgram(self, ask["path"])
        for device, arrays in enumerate(program.inputs):
            pairs = zip(arrays, program.types)
            stored = {f"in{i}": self.tools.stored(a, ty, bits(ty)) for i, (a, ty) in enumerate(pairs)}
            self.np.savez(f"{ask['inputs']}.{device}.npz", **stored)
        return {"state": "ready", "text": "", "count": program.count}

    def devices_compare(self, ask):
        program = DeviceProgram(self, ask["path"])
        got = []
        for device in range(program.count):
            arrays = self.expected(ask["got"].replace(".npz", f".{device}.npz"))
            types = program.result_types[device]
            got.append([self.tools.typed(arrays[f"out{i}"], ty) for i, ty in enumerate(types)])
        fault = self.differ(got, program.outputs)
        return {"state": "wrong" if fault else "right", "text": fault}

    # JAX's own containers.

    def functions(self):
        """Functions as users write them, with arguments."""
        jax, np = self.jax, self.np
        jnp = jax.numpy
        rng = np.random.default_rng(1)
        f32 = lambda *dims: rng.standard_normal(dims).astype(np.float32)
        spd = f32(6, 6)
        spd = spd @ spd.T + 6 * np.eye(6, dtype=np.float32)

        def network(w, x):
            return jnp.tanh(x @ w[0]) @ w[1]

        def step(w, x, y):
            loss = lambda w: ((network(w, x) - y) ** 2).mean()
            value, slope = jax.value_and_grad(loss)(w)
            return value, [a - 0.1 * b for a, b in zip(w, slope)]

        def walk(x):
            return jax.lax.scan(lambda c, a: (c * 0.5 + a, c), x[0], x)

        return {
            "add": (lambda x, y: x + y, (f32(16), f32(16))),
            "softmax": (lambda x: jax.nn.softmax(x), (f32(8, 32),)),
            "step": (step, ([f32(8, 16), f32(16, 4)], f32(32, 8), f32(32, 4))),
            "scan": (walk, (f32(12, 5),)),
            "sort": (lambda x: (jnp.sort(x), jnp.argsort(x)), (f32(100),)),
            "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), (f32(4, 16),)),
            "cholesky": (lambda x: jnp.linalg.cholesky(x), (spd,)),
            "solve": (lambda a, b: jnp.linalg.solve(a, b), (spd, f32(6))),
            "svd": (lambda x: jnp.linalg.svd(x)[1], (f32(5, 3),)),
            "random": (lambda k: jax.random.normal(k, (7,)), (jax.random.PRNGKey(3),)),
            "while": (lambda n: jax.lax.fori_loop(0, n, lambda i, s: s + i * i, 0), (np.int32(9),)),
            "cond": (lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), (f32(9),)),
            "conv": (lambda x, k: jax.lax.conv(x, k, (1, 1), "SAME"), (f32(1, 3, 8, 8), f32(4, 3, 3, 3))),
            "f64": (lambda x: jnp.exp(x).sum(), (rng.standard_normal(33),)),
        }

    def cache_names(self, _):
        return {"state": "ready", "text": "", "names": list(self.functions())}

    def cache_make(self, ask):
        """Compiles a function with the cache on; writes its program, entry, payload and arrays."""
        import pickle
        from jax.experimental import serialize_executable

        jax, np = self.jax, self.np
        jax.config.update("jax_compilation_cache_dir", ask["folder"])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        from jax._src import compilation_cache
        compilation_cache.reset_cache()
        function, arguments = self.functions()[ask["name"]]
        lowered = jax.jit(function).lower(*arguments)
        with open(ask["program"], "w") as file:
            file.write(lowered.as_text())
        compiled = lowered.compile()
        with open(ask["payload"], "wb") as file:
            file.write(serialize_executable.serialize(compiled)[0])
        flat = [np.asarray(a) for a in jax.tree.leaves(arguments)]
        np.savez(ask["inputs"], **{f"in{i}": a for i, a in enumerate(flat)})
        results = [np.asarray(a) for a in jax.tree.leaves(compiled(*arguments))]
        np.savez(ask["results"], **{f"out{i}": a for i, a in enumerate(results)})
        return {"state": "ready", "text": ""}

    def near(self, got, wanted):
        for number, (a, b) in enumerate(zip(got, wanted)):
            if a.shape != b.shape or not self.np.allclose(a, b, rtol=1e-4, atol=1e-5):
                return f"out{number} is {a.ravel()[:4]}, not {b.ravel()[:4]}"
        return "" if len(got) == len(wanted) else f"{len(got)} results, expected {len(wanted)}"

    def arrays_of(self, path):
        arrays = self.expected(path)
        return [arrays[f"out{i}"] for i in range(len(arrays))]

    def cache_compare(self, ask):
        fault = self.near(self.arrays_of(ask["got"]), self.arrays_of(ask["results"]))
        return {"state": "wrong" if fault else "right", "text": fault}

    def cache_hit(self, ask):
        """Runs a function whose entry in the cache is ours."""
        from jax import monitoring
        from jax._src import compilation_cache

        jax, np = self.jax, self.np
        hits = []
        monitoring.register_event_listener(
            lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
        jax.config.update("jax_compilation_cache_dir", ask["folder"])
        compilation_cache.reset_cache()
        jax.clear_caches()
        function, arguments = self.functions()[ask["name"]]
        compiled = jax.jit(function).lower(*arguments).compile()
        if not hits:
            return {"state": "theirs", "text": "jax did not take the entry of its cache"}
        got = [np.asarray(a) for a in jax.tree.leaves(compiled(*arguments))]
        fault = self.near(got, self.arrays_of(ask["results"]))
        return {"state": "wrong" if fault else "right", "text": fault}

    def payload_load(self, ask):
        """Runs a payload of serialize_executable that holds our code."""
        from jax.experimental import serialize_executable

        jax, np = self.jax, self.np
        function, arguments = self.functions()[ask["name"]]
        lowered = jax.jit(function).lower(*arguments)
        with open(ask["payload"], "rb") as file:
            payload = file.read()
        trees = jax.tree.structure((arguments, {})), lowered.out_tree
        compiled = serialize_executable.deserialize_and_load(
            payload, *trees, execution_devices=jax.devices("cpu")[:1])
        got = [np.asarray(a) for a in jax.tree.leaves(compiled(*arguments))]
        fault = self.near(got, self.arrays_of(ask["results"]))
        return {"state": "wrong" if fault else "right", "text": fault}


def bits(ty):
    """The type that an npz file holds elements as."""
    return {"bf16": "<u2", "s4": "i1", "s2": "i1", "s1": "i1"}.get(ty, "u1")


class DeviceProgram:
    """A program of several devices, with what its head says: see tests/suite/devices.rs."""

    def __init__(self, stock, path):
        with open(path) as file:
            head = [line[4:].strip() for line in file if line.startswith("//! ")]
        self.stock = stock
        self.inputs, self.outputs, self.types, self.result_types = {}, {}, [], {}
        self.replicas = self.partitions = 1
        for line in head:
            word, _, rest = line.partition(" ")
            if word == "devices":
                self.replicas, self.partitions = map(int, rest.split())
            elif word in ("in", "out"):
                device, _, values = rest.partition(" ")
                arrays = [self.array(*part) for part in
                          re.findall(r"(\w+)\[([\d,]*)\](?:\{[\d,]*\})? *(\{.*?\}(?=,? *(?:\w+\[|\)|$))|[^,{} )]+)", values)]
                types = re.findall(r"(\w+)\[[\d,]*\]", values)
                if word == "in":
                    self.inputs[int(device)], self.types = arrays, types
                else:
                    self.outputs[int(device)], self.result_types[int(device)] = arrays, types
        self.count = self.replicas * self.partitions
        self.inputs = [self.inputs.get(d, []) for d in range(self.count)]
        self.outputs = [self.outputs[d] for d in range(self.count)]
        self.result_types = [self.result_types[d] for d in range(self.count)]

    def array(self, ty, dims, text):
        np, tools = self.stock.np, self.stock.tools
        import ml_dtypes

        dims = [int(d) for d in dims.split(",") if d]
        words = re.findall(r"\([^)]*\)|[^\s,{}]+", text)
        if ty in ("c64", "c128"):
            values = [complex(*map(float, w.strip("()").split(","))) for w in words]
        elif ty == "pred":
            values = [w in ("true", "1") for w in words]
        else:
            values = [float(w) for w in words]
        plain = {"pred": "bool", "c64": "complex64", "c128": "complex128", "f16": "float16",
                 "f32": "float32", "f64": "float64"}
        plain.update({f"{s}{n}": f"{'u' * (s == 'u')}int{n}" for s in "su" for n in (8, 16, 32, 64)})
        kind = np.dtype(plain[ty]) if ty in plain else np.dtype(getattr(ml_dtypes, tools.NARROW[ty]))
        return np.array(values).astype(kind).reshape(dims)


def work():
    """Reads a line of JSON a request, answers with one. Standard output is the answers' alone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(answer):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        stock = Stock()
    except Exception as error:
        tell({"state": "theirs", "text": f"no client: {error}"})
        return
    tell({"state": "ready", "text": f"jaxlib {stock.version}", "version": stock.version})
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            answer = getattr(stock, ask["do"])(ask)
        except Exception as error:
            text = " ".join(str(error).split())
            answer = {"state": "theirs", "text": f"{type(error).__name__}: {text[:400]}"}
        tell(answer)


# What the parent does: it needs no JAX.


class Worker:
    """A process with jaxlib in it, started again when it has ended."""

    def __init__(self, options):
        self.options, self.process, self.starts = options, None, 0

    def start(self):
        environment = dict(os.environ)
        environment.update(
            JAX_PLATFORMS="cpu",
            TF_CPP_MIN_LOG_LEVEL="3",
            XLA_FLAGS=f"--xla_force_host_platform_device_count={DEVICES}",
        )
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(
            [self.options.python, os.path.abspath(__file__), "--worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=environment,
        )
        self.starts += 1
        self.answers = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process, self.answers), daemon=True).start()
        self.hello = self.answer()
        if self.hello["state"] != "ready":
            sys.exit(f"{self.hello['text']}\n{self.said()}")

    @staticmethod
    def listen(process, answers):
        for line in process.stdout:
            answers.put(json.loads(line))
        answers.put(None)

    def answer(self):
        try:
            answer = self.answers.get(timeout=self.options.seconds)
        except queue.Empty:
            self.end()
            return {"state": "stuck", "text": f"no answer in {self.options.seconds} s"}
        if answer is None:
            self.process.wait()
            text = f"exit {self.process.returncode}: {self.said()}"
            self.end()
            return {"state": "crashed", "text": text}
        return answer

    def said(self):
        """What the process said last."""
        self.log.seek(0)
        lines = [line.strip() for line in self.log if line.strip()]
        telling = [line for line in lines if re.match(r"F\d{4} |F0000", line)]
        return " | ".join((telling or lines)[-2:])[-400:]

    def ask(self, do, **what):
        if self.process is None:
            self.start()
        self.process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Test:
    """The directions, for one interpreter."""

    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.worker = Worker(options)
        self.worker.start()
        self.version = self.worker.hello["version"]
        numbers = tuple(int(part) for part in self.version.split(".")[:3])
        self.compat = [] if numbers >= ENVELOPED else ["--jaxlib-compat", self.version]

    def tool(self, *args):
        """Runs our program. Nothing when all is well, else what it says."""
        command = [self.options.program, "-q", *args]
        try:
            done = subprocess.run(command, capture_output=True, check=False,
                                  timeout=self.options.seconds)
        except subprocess.TimeoutExpired:
            return {"state": "stuck", "text": f"`{' '.join(command)}`"}
        if done.returncode == 0:
            return None
        said = done.stderr.decode(errors="replace").splitlines()
        return {"state": "ours", "text": f"exit {done.returncode}: {' '.join(said[:4])[:400]}"}

    def path(self, name, suffix):
        return os.path.join(self.scratch, name.replace("/", "+") + suffix)

    def inputs(self, name, case):
        path = os.path.join(case, "inputs.npz")
        if os.path.exists(path):
            return path
        made = self.path(name, ".in.npz")
        recipes = os.path.join(self.options.programs, "compare.py")
        subprocess.run([self.options.python, recipes, "--inputs", case, made], check=True,
                       stdout=subprocess.DEVNULL)
        return made

    def compile(self, program, bundle, *more):
        return self.tool("compile", program, "--target-cpu", "native", *self.compat, *more,
                         "-o", bundle)

    def case_out(self, name, case):
        bundle = self.path(name, ".ours.xla")
        program = os.path.join(case, "program.pb")
        if not os.path.exists(program):
            program = os.path.join(case, "program.hlo")
        refused = self.compile(program, bundle, "--format", "jax")
        if refused and "does not know the op" in refused["text"]:
            return {**refused, "state": "known"}
        if refused:
            return refused
        answer = self.worker.ask("out", bundle=bundle, case=case, inputs=self.inputs(name, case))
        if answer["state"] != "right":
            command = [self.options.program, "inspect", "--json", bundle]
            told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            runtimes = told["runtimes"]
            if runtimes["obstacles"]:
                return {"state": "known", "text": "; ".join(runtimes["obstacles"])}
            numbers = [[int(n) for n in release.split(".")] for release in runtimes["releases"]]
            own = [int(n) for n in self.version.split(".")[:3]]
            if not numbers[0] <= own <= numbers[1]:
                return {"state": "known", "text": f"for {' to '.join(runtimes['releases'])}"}
        return answer

    def case_in(self, name, case):
        bundle, got = self.path(name, ".theirs.xla"), self.path(name, ".got.npz")
        results, inputs = self.path(name, ".want.npz"), self.inputs(name, case)
        made = self.worker.ask("make", bundle=bundle, case=case, inputs=inputs, results=results)
        if made["state"] != "ready":
            return {**made, "state": "none"}
        refused = self.tool("run", bundle, "--input", inputs, "--output", got)
        return refused or self.worker.ask("compare", case=case, got=got, results=results)

    def devices_out(self, name, path):
        bundle = self.path(name, ".ours.xla")
        with open(path) as file:
            replicas, partitions = re.search(r"^//! devices (\d+) (\d+)", file.read(), re.M).groups()
        refused = self.compile(path, bundle, "--format", "jax", "--num-replicas", replicas,
                               "--num-partitions", partitions)
        return refused or self.worker.ask("devices_out", bundle=bundle, path=path)

    def devices_in(self, name, path):
        bundle, got, inputs = (self.path(name, s) for s in (".theirs.xla", ".got.npz", ".in"))
        made = self.worker.ask("devices_in", bundle=bundle, path=path)
        if made["state"] != "ready":
            return {**made, "state": "none"}
        count = self.worker.ask("devices_inputs", path=path, inputs=inputs)["count"]
        given = [w for d in range(count) for w in ("--device-input", f"{d}={inputs}.{d}.npz")]
        refused = self.tool("run", bundle, *given, "--output", got)
        return refused or self.worker.ask("devices_compare", path=path, got=got)

    def cached(self, name):
        """Yields a direction and its answer for each way through JAX's containers."""
        paths = {what: self.path(name, f".{what}") for what in
                 ("folder", "mlir", "payload", "in.npz", "want.npz", "got.npz", "ours")}
        made = self.worker.ask("cache_make", name=name, folder=paths["folder"],
                               program=paths["mlir"], payload=paths["payload"],
                               inputs=paths["in.npz"], results=paths["want.npz"])
        if made["state"] != "ready":
            yield "cache made", made
            return
        entries = [f for f in os.listdir(paths["folder"]) if f.endswith("-cache")]
        entry = max((os.path.join(paths["folder"], f) for f in entries), key=os.path.getmtime)
        for what, path in (("cache", entry), ("payload", paths["payload"])):
            refused = self.tool("run", path, "--input", paths["in.npz"], "--output", paths["got.npz"])
            yield f"{what} read", refused or self.worker.ask(
                "cache_compare", got=paths["got.npz"], results=paths["want.npz"])
        refused = self.compile(paths["mlir"], entry, "--into", entry)
        yield "cache written", refused or self.worker.ask(
            "cache_hit", name=name, folder=paths["folder"], results=paths["want.npz"])
        refused = self.compile(paths["mlir"], paths["ours"], "--into", paths["payload"])
        yield "payload written", refused or self.worker.ask(
            "payload_load", name=name, payload=paths["ours"], results=paths["want.npz"])

    def cases(self):
        found = []
        for kind in sorted(os.listdir(self.options.programs)):
            folder = os.path.join(self.options.programs, kind)
            if os.path.isdir(folder):
                names = [f"{kind}/{name}" for name in sorted(os.listdir(folder))]
                found += [n for n in names if os.path.exists(
                    os.path.join(self.options.programs, n, "case.json"))]
        # Large programs come last.
        found.sort(key=lambda name: name.split("/")[0] in ("bench", "big"))
        return self.wanted(found)

    def device_programs(self):
        folder = self.options.programs
        names = [f for f in sorted(os.listdir(folder)) if f.endswith(".hlo")]
        def runs(name):
            with open(os.path.join(folder, name)) as file:
                return "//! error" not in file.read()
        return self.wanted([n for n in names if runs(n)])

    def wanted(self, names):
        parts = self.options.names
        names = [n for n in names if not parts or any(part in n for part in parts)]
        return names[:: self.options.every]

    def all(self):
        """Yields kind, name, direction and answer."""
        programs = self.options.programs
        for direction in self.options.direction or ["out", "in"]:
            if direction == "cache":
                for name in self.wanted(self.worker.ask("cache_names")["names"]):
                    for what, answer in self.cached(name):
                        yield "jit", name, what, answer
            elif direction == "devices":
                for name in self.device_programs():
                    path = os.path.abspath(os.path.join(programs, name))
                    yield "devices", name, "out", self.devices_out(name, path)
                    yield "devices", name, "in", self.devices_in(name, path)
            else:
                one = self.case_out if direction == "out" else self.case_in
                for name in self.cases():
                    answer = one(name, os.path.abspath(os.path.join(programs, name)))
                    yield name.split("/")[0], name, direction, answer
                    self.tidy()

    def tidy(self):
        if not self.options.keep:
            for file in os.listdir(self.scratch):
                os.remove(os.path.join(self.scratch, file))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--direction", action="append",
                        choices=["out", "in", "cache", "devices"])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--table")
    parser.add_argument("--keep")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("program")
    parser.add_argument("programs")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    table = open(options.table, "w") if options.table else None
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as made:
        scratch = options.keep or made
        os.makedirs(scratch, exist_ok=True)
        test = Test(options, scratch)
        print(test.worker.hello["text"], flush=True)
        started = time.perf_counter()
        for kind, name, direction, answer in test.all():
            known = KNOWN.get((direction, name))
            if known and answer["state"] != "right":
                answer = {**answer, "state": "known", "text": known}
            state = answer["state"]
            counts[direction, kind, state] += 1
            if table:
                row = {"name": name, "direction": direction, "version": test.version, **answer}
                table.write(json.dumps(row) + "\n")
                table.flush()
            if state != "right":
                print(f"{direction:8} {state:8} {name:44} {answer['text']}".rstrip(), flush=True)
        test.worker.end()
        seconds = time.perf_counter() - started
    print(f"\njaxlib {test.version}, {test.worker.starts} processes of it, {seconds:.0f} s")
    report(counts)
    return 0 if {state for _, _, state in counts} <= {"right", "none", "known"} else 1


def report(counts):
    states = ["right", "wrong", "ours", "theirs", "crashed", "stuck", "none", "known"]
    print(f"{'direction':16}{'kind':20}" + "".join(f"{state:>9}" for state in states))
    rows = sorted({(direction, kind) for direction, kind, _ in counts})
    for direction in sorted({direction for direction, _ in rows}):
        kinds = [kind for d, kind in rows if d == direction]
        for kind in [*kinds, *(["all"] if len(kinds) > 1 else [])]:
            of = kinds if kind == "all" else [kind]
            sums = [sum(counts[direction, k, state] for k in of) for state in states]
            print(f"{direction:16}{kind:20}" + "".join(f"{n:9}" for n in sums))


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        work()
    else:
        sys.exit(main())

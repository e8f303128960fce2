#!/usr/bin/env python3
"""Runs the test programs of StableHLO's interpreter.

    scripts/stablehlo-tests.py XLA-AOT FOLDER [eval | native | sim:TARGET]

FOLDER is `stablehlo/tests/interpret` of a checkout of StableHLO. Its programs check themselves with
ops of a dialect of their own: each becomes a program whose results are pairs of what an op gave and
what it should give. The evaluator runs them, or a compiled bundle on this CPU or on a simulated GPU.
Programs with ops of the interpreter itself (several processes, probes) are counted and left.
Needs NumPy and ml_dtypes.
"""

import collections
import glob
import os
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

FLOATS = {f"f8{name[7:].upper()}": getattr(ml_dtypes, name)
          for name in dir(ml_dtypes) if name.startswith("float8_")}
FLOATS["bf16"] = ml_dtypes.bfloat16

# What the interpreter itself allows where a program does not say.
TOLERANCE = 1e-3


class Check:
    """A check of a program: `eq`, `almost_eq` or `close`, the two values and their type."""

    def __init__(self, line, number):
        kind, values, types = re.match(r"\s*check\.expect_(\w+) (.*?) : +(\(?tensor.*)$", line).groups()
        types, _, more = types.partition("{")
        self.type = re.findall(r"tensor<[^>]*>+", types)[0]
        said = re.search(r"tolerance = ([0-9.e+-]+)", values + more)
        self.tolerance = float(said[1]) if said else TOLERANCE
        got, wanted = re.sub(r", (tolerance|max_ulp_difference) = .*", "", values).split(",", 1)
        self.constant = ""
        self.is_exact = kind.startswith("eq")
        if kind.endswith("_const"):
            self.constant = f"%wanted{number} = stablehlo.constant {wanted.strip()} : {self.type}"
            wanted = f"%wanted{number}"
        if kind == "close":
            self.tolerance = 0.01
        self.values = [got.strip(), wanted.strip()]

    def fault(self, got, wanted):
        """What is wrong with a value, if anything."""
        element = re.sub(r"tensor<(?:[0-9?]+x)*([^,>]*(?:<\w+>)?).*", r"\1", self.type)
        if element in FLOATS:
            got, wanted = got.view(FLOATS[element]), wanted.view(FLOATS[element])
        if got.shape != wanted.shape:
            return f"{got.shape} should be {wanted.shape}"
        if self.is_exact and got.dtype.kind in "iub":
            right = got == wanted
        else:
            parts = np.complex128(got), np.complex128(wanted)
            tolerance = 0 if self.is_exact else self.tolerance
            right = near(*(x.real for x in parts), tolerance) & near(*(x.imag for x in parts), tolerance)
        return None if np.all(right) else f"{got} should be {wanted}"


def near(x, y, tolerance):
    with np.errstate(invalid="ignore"):
        distance = np.abs(x - y) <= tolerance * np.maximum(1, np.abs(y))
    return (x == y) | (np.isnan(x) & np.isnan(y)) | distance


def programs(text):
    """The programs of a file: its sections, and the functions of a section that call no other."""
    for section in re.split(r"^// -----.*$", text, flags=re.M):
        section = re.sub(r"^ *//.*\n", "", section, flags=re.M)
        # A check may stand on several lines.
        section = re.sub(r"check\.expect[^:]*:", lambda m: re.sub(r"\s+", " ", m[0]), section)
        starts = [m.start() for m in re.finditer(r"^func\.func (public )?@\w+\(\) *\{", section, re.M)]
        if len(starts) > 1 and not re.search(r"(?<!func )(?<!public )@", section):
            ends = starts[1:] + [len(section)]
            yield from (section[start:end] for start, end in zip(starts, ends))
        else:
            yield section


def converted(program):
    """The program as one that returns what is checked, and the checks."""
    checks, lines = [], []
    for line in program.splitlines():
        if "check.expect" in line:
            checks.append(Check(line, len(checks)))
            line = checks[-1].constant
        elif checks and re.match(r"\s*(func\.)?return\s*$", line):
            values = [value for check in checks for value in check.values]
            types = [check.type for check in checks for _ in check.values]
            line = f"func.return {', '.join(values)} : {', '.join(types)}"
        lines.append(line)
    text = "\n".join(lines)
    # The last function without arguments is the one that checks.
    main = list(re.finditer(r"func\.func (?:public )?@\w+\(\)[^{]*\{", text))[-1]
    types = ", ".join(check.type for check in checks for _ in check.values)
    head = f"func.func public @main() -> ({types}) {{"
    return text[:main.start()] + head + text[main.end():], checks


def run(program, engine, path):
    """Runs the file; gives its results, or raises what was said."""
    results = path + ".npz"
    if engine == "eval":
        commands = [["eval", path]]
    elif engine == "native":
        commands = [["compile", path, "-o", path + ".xla"], ["run", path + ".xla"]]
    else:
        target = engine.partition(":")[2] or "h100_sxm"
        commands = [["compile", path, "--target", target, "-o", path + ".xla"],
                    ["run", path + ".xla", "--device", "sim"]]
    commands[-1] += ["-o", results]
    for command in commands:
        done = subprocess.run([program, "-q", *command], capture_output=True, timeout=300, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace").partition("\n")[0])
    with np.load(results) as archive:
        return [archive[f"out{i}"] for i in range(len(archive.files))]


def main(program, source, engine="eval"):
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for place in sorted(glob.glob(os.path.join(source, "**/*.mlir"), recursive=True)):
            name = os.path.relpath(place, source).replace(os.sep, "-")
            with open(place) as file:
                parts = [part for part in programs(file.read()) if "check.expect" in part]
            for number, part in enumerate(parts):
                if "interpreter." in part or "serialized" in part:
                    counts["of the interpreter itself"] += 1
                    continue
                text, checks = converted(part)
                path = os.path.join(folder, f"{name}.{number}.mlir")
                with open(path, "w") as file:
                    file.write(text)
                try:
                    values = run(program, engine, path)
                    pairs = zip(checks, values[::2], values[1::2])
                    faults = [fault for check, *pair in pairs if (fault := check.fault(*pair))]
                    outcome = "wrong" if faults else "right"
                except RuntimeError as error:
                    outcome, faults = "refused", [str(error).replace(folder + "/", "")]
                counts[outcome] += 1
                for fault in faults:
                    print(f"{name} {number} {outcome}: {fault}", flush=True)
    print(f"{engine}:", ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))


main(*sys.argv[1:])

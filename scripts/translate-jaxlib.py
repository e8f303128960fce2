#!/usr/bin/env python3
"""Lets jaxlib read what `xla-aot translate` writes.

    scripts/translate-jaxlib.py [--every N] XLA-AOT CORPUS [KIND ...]

Each program of the corpus, in each of its forms, is translated to each form. jaxlib must read it,
print it, and what it printed must be the program that it was before: the translation of jaxlib's
text to HLO text is held against the translation of ours. Every N-th program is taken. What differs
is listed, with counts at the end.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from jax._src.interpreters.mlir import make_ir_context
from jaxlib import _hlo
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

FORMS = ["hlo-text", "hlo-proto", "stablehlo-text", "stablehlo-bytecode"]
SOURCES = ["program.pb", "program.hlo", "program.mlir", "program.mlirbc"]


def translate(program, path, form):
    command = [program, "translate", path, "--to", form, "-q"]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError("ours: " + done.stderr.decode(errors="replace").splitlines()[0])
    return done.stdout


def canonical(program, folder, content):
    """The lines of the HLO text of a program, apart from numbers and order."""
    path = os.path.join(folder, "again")
    with open(path, "wb") as file:
        file.write(content)
    text, tables = frames(translate(program, path, "hlo-text").decode())
    text = re.sub(r"stack_frame_id=(\d+)", lambda m: "at " + frame(tables, int(m[1])), text)
    # Numbers at the end of names, and the order of what does not depend on each other, are given
    # anew by whoever reads a module.
    return sorted(re.sub(r"\.\d+\b", "", text).splitlines())


def frames(text):
    """The text without its tables of stack frames, and these by their names."""
    kept, tables, table = [], {}, None
    for line in text.splitlines():
        row = re.fullmatch(r"(\d+) (.*)", line)
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = tables.setdefault(line, {})
        elif table is not None and row:
            table[int(row[1])] = row[2]
        else:
            table = None
            kept.append(line)
    return "\n".join(kept), tables


def frame(tables, number):
    """The places of a stack frame, innermost first: their numbers are given anew by each writer."""
    places = []
    while number:
        row = dict(part.split("=") for part in tables["StackFrames"][number].strip("{}").split())
        place = tables["FileLocations"][int(row["file_location_id"])]
        for key, table in (("file_name_id", "FileNames"), ("function_name_id", "FunctionNames")):
            place = re.sub(rf"{key}=(\d+)", lambda m: tables[table][int(m[1])], place)
        places.append(place)
        # The text counts parents from one more; the outermost frame has none.
        number = int(row.get("parent_frame_id", 1)) - 1
    return " ".join(places)


def through_jaxlib(form, content):
    """What jaxlib makes of it, as bytes that we read again."""
    if form == "hlo-text":
        options = _hlo.HloPrintOptions()
        options.print_large_constants = True
        return _hlo.hlo_module_from_text(content.decode()).to_string(options).encode()
    if form == "hlo-proto":
        module = _hlo.HloModule.from_serialized_hlo_module_proto(content)
        return module.as_serialized_hlo_module_proto()
    with make_ir_context() as made, ir.Location.unknown():
        if form == "stablehlo-text":
            module = ir.Module.parse(content.decode())
        else:
            module = stablehlo.deserialize_portable_artifact(made, content)
        module.operation.verify()
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True).encode()


def check(program, case, counts, folder):
    for source in SOURCES:
        path = os.path.join(case, source)
        if not os.path.exists(path):
            continue
        for form in FORMS:
            what = f"{source.split('.')[1]} to {form}"
            counts[what, "tried"] += 1
            try:
                ours = translate(program, path, form)
                theirs = through_jaxlib(form, ours)
                same = canonical(program, folder, ours) == canonical(program, folder, theirs)
                outcome = "equal" if same else "differs"
            except Exception as error:  # noqa: BLE001
                outcome = "failed"
                print(f"{case} {what}: {str(error).splitlines()[0][:200]}", flush=True)
            if outcome == "differs":
                print(f"{case} {what}: differs", flush=True)
            counts[what, outcome] += 1


def main(args):
    every = 1
    if args[:1] == ["--every"]:
        every, args = int(args[1]), args[2:]
    program, corpus, *kinds = args
    with open(os.path.join(corpus, "index.json")) as file:
        index = json.load(file)
    rows = index["cases"]
    cases = [os.path.join(corpus, row["path"]) for row in rows
             if not kinds or row["path"].split("/")[0] in kinds]
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases[::every]:
            check(program, case, counts, folder)
    for what in sorted({what for what, _ in counts}):
        parts = ("tried", "equal", "differs", "failed")
        print(f"{what}:", ", ".join(f"{counts[what, part]} {part}" for part in parts))


main(sys.argv[1:])

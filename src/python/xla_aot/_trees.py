"""Arguments by the names that a bundle has for them.

A program that came from `jax.export` calls its parameters after the trees of the function that was
exported: `args[0]['w']`, `args[1][2]`, `kwargs['scale']`. Such a program is called as that function
was; other programs take their arrays in order, or by name.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from ._errors import InputError, UsageError

_STEP = re.compile(r"\[(?P<item>-?\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]|\.(?P<field>\w+)")

Step = tuple[str, Any]


def steps(name: str) -> tuple[Step, ...] | None:
    """The way from all arguments to one array, or None when the name is no such way."""
    root = re.match(r"(args|kwargs)(?=\[)", name)
    if not root:
        return None
    found: list[Step] = [("root", root.group())]
    at = root.end()
    while at < len(name):
        step = _STEP.match(name, at)
        if not step:
            return None
        item = step.group("item")
        try:
            found.append(("item", ast.literal_eval(item)) if item else ("field", step.group("field")))
        except (SyntaxError, ValueError):
            return None
        at = step.end()
    return tuple(found)


def flatten(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arrays that names stand for, out of the arguments of a call."""
    ways = [steps(name) for name in names]
    if names and all(way is not None for way in ways):
        return _by_ways(names, [way for way in ways if way is not None], args, kwargs)
    if len(args) > len(names):
        raise UsageError(f"{len(args)} arguments, wanted {len(names)}: {', '.join(names)}")
    unknown = [name for name in kwargs if name not in names]
    if unknown:
        raise UsageError(f"there is no argument `{unknown[0]}`; there are: {', '.join(names)}")
    values = list(args)
    for name in names[: len(args)]:
        if name in kwargs:
            raise UsageError(f"`{name}` is given twice")
    for name in names[len(args) :]:
        if name not in kwargs:
            raise UsageError(f"`{name}` is missing; there are: {', '.join(names)}")
        values.append(kwargs[name])
    return values


def _by_ways(
    names: list[str], ways: list[tuple[Step, ...]], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    roots = {"args": args, "kwargs": kwargs}
    firsts = {(way[0][1], way[1][1]) for way in ways}
    positions = [key for root, key in firsts if root == "args"]
    # A tree without arrays has no name; JAX passes it all the same.
    if positions and len(args) < max(positions) + 1:
        raise UsageError(f"{len(args)} arguments, wanted {max(positions) + 1}")
    unknown = [key for key in kwargs if ("kwargs", key) not in firsts]
    if unknown:
        raise UsageError(f"there is no argument `{unknown[0]}`")
    values = []
    for name, way in zip(names, ways):
        value: Any = roots[way[0][1]]
        for kind, key in way[1:]:
            try:
                value = getattr(value, key) if kind == "field" else value[key]
            except (KeyError, IndexError, TypeError, AttributeError):
                raise InputError(
                    f"`{name}` is missing", code="XA8001", help=f"the arguments are: {', '.join(names)}"
                ) from None
        values.append(value)
    return values


def nest(paths: list[tuple[int, ...]], values: list[Any]) -> Any:
    """Arrays as the tuples that they came from: one that is in no tuple is itself."""
    if paths == [()]:
        return values[0]
    out = []
    heads = sorted({path[0] for path in paths})
    for head in heads:
        inside = [(path[1:], value) for path, value in zip(paths, values) if path[0] == head]
        out.append(nest([path for path, _ in inside], [value for _, value in inside]))
    return tuple(out)

#!/usr/bin/env python3
"""Writes points.txt: functions of f64, c64 and c128 at chosen points, by mpmath with 1200 bits.

One line a point: the HLO op and the type, then the bits of the arguments and of the value, 16
hexadecimal digits a number, real part first. c64 has arguments that f32 holds; its values are those
of f64. Infinities and NaN follow by numpy, whose complex functions are those of C99 Annex G, and by
SEMANTICS.md. Needs mpmath and numpy.
"""
import itertools
import math
import random
import struct
import sys

import mpmath
import numpy
from mpmath import mp, mpc, mpf

mp.prec = 1200
random.seed(20)


def bits(x):
    return f"{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def rounded(x):
    """The nearest f64, to even, subnormal numbers and infinities included."""
    x = mpf(x)
    if x == 0 or mpmath.isnan(x) or mpmath.isinf(x):
        return float(x)
    exponent = max(mpmath.frexp(x)[1] - 53, -1074)
    scaled = mpmath.ldexp(x, -exponent)
    whole = int(mpmath.floor(scaled))
    rest = scaled - whole
    if rest > mpf(1) / 2 or (rest == mpf(1) / 2 and whole & 1):
        whole += 1
    try:
        return float(mpmath.ldexp(mpf(whole), exponent))
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")


def uniform(low, high, count):
    return [random.uniform(low, high) for _ in range(count)]


def scaled(low, high, count, signed=True):
    """Numbers of all sizes between two powers of two."""
    out = []
    for _ in range(count):
        x = random.uniform(1, 2) * 2.0 ** random.randint(low, high)
        out.append(-x if signed and random.random() < 0.5 else x)
    return out


def near(points, count=4):
    out = []
    for x in points:
        for ulps in [0, 1, -1, 2, -3, 1000, -1000, 1 << 20, -(1 << 20), 1 << 35, -(1 << 35)][: 3 + count]:
            raw = struct.unpack("<q", struct.pack("<d", x))[0] + ulps
            out.append(struct.unpack("<d", struct.pack("<q", raw))[0])
    return out


REAL = {
    "exponential": (mpmath.exp, uniform(-745, 709.7, 40) + scaled(-60, 3, 40) + near([709.78, 1.0, -708.3])),
    "exponential-minus-one": (mpmath.expm1, uniform(-40, 709.7, 40) + scaled(-200, 2, 50)),
    "log": (mpmath.log, scaled(-1022, 1022, 60, False) + near([1.0, 2.0, 0.5, 2.718281828459045], 8)),
    "log-plus-one": (mpmath.log1p, scaled(-200, 1000, 60, False) + uniform(-0.999999, 0.5, 40)),
    "logistic": (lambda x: 1 / (1 + mpmath.exp(-x)), uniform(-700, 40, 50) + scaled(-40, 3, 40)),
    "tanh": (mpmath.tanh, uniform(-20, 20, 50) + scaled(-200, 3, 50)),
    "sqrt": (mpmath.sqrt, scaled(-1022, 1022, 60, False)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), scaled(-1022, 1022, 60, False)),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), scaled(-1022, 1022, 60)),
    "sine": (mpmath.sin, uniform(-10, 10, 40) + scaled(-100, 1000, 60) + near([3.141592653589793, 1e5], 6)),
    "cosine": (mpmath.cos, uniform(-10, 10, 40) + scaled(-100, 1000, 60) + near([1.5707963267948966, 1e5], 6)),
    "tan": (mpmath.tan, uniform(-10, 10, 40) + scaled(-100, 1000, 60) + near([1.5707963267948966], 6)),
    "erf": (mpmath.erf, uniform(-6, 6, 60) + scaled(-200, 2, 40)),
    "acos": (mpmath.acos, uniform(-1, 1, 60) + near([0.9999999], 4) + scaled(-100, -1, 20)),
    "asin": (mpmath.asin, uniform(-1, 1, 60) + near([0.9999999], 4) + scaled(-100, -1, 20)),
    "acosh": (mpmath.acosh, uniform(1, 30, 40) + scaled(1, 1020, 40, False) + near([1.0000001], 4)),
    "asinh": (mpmath.asinh, uniform(-30, 30, 40) + scaled(-200, 1020, 60)),
    "atanh": (mpmath.atanh, uniform(-1, 1, 60) + scaled(-200, -2, 40)),
    "cosh": (mpmath.cosh, uniform(-710, 710, 50) + scaled(-60, 3, 30)),
    "sinh": (mpmath.sinh, uniform(-710, 710, 50) + scaled(-200, 3, 50)),
}
PAIRS = list(zip(scaled(-40, 40, 60), scaled(-40, 40, 60))) + list(zip(uniform(-4, 4, 40), uniform(-4, 4, 40)))
POWERS = [(abs(a), b) for a, b in zip(scaled(-20, 20, 60), uniform(-40, 40, 60))]
POWERS += [(a, float(n)) for a, n in zip(uniform(-3, 3, 40), range(-20, 20))]
BINARY = {
    "atan2": (mpmath.atan2, PAIRS),
    "power": (lambda a, b: mpmath.power(a, int(b) if b == int(b) else b), POWERS),
}
# Moderate complex numbers, and those near an axis or the unit circle.
PLANE = list(zip(uniform(-6, 6, 40), uniform(-6, 6, 40)))
PLANE += list(zip(scaled(-30, 4, 30), scaled(-30, 4, 30)))
PLANE += [(1 + 1e-9, 1e-12), (-1e-200, 1e-200), (3e150, -4e150), (1e-9, 1.0), (-0.5, 1e-20), (20.0, 1e-7)]
SMALL = [(a, b) for a, b in PLANE if max(abs(a), abs(b)) < 1e3]
COMPLEX = {
    "exponential": (mpmath.exp, SMALL),
    "exponential-minus-one": (lambda z: mpmath.exp(z) - 1, SMALL),
    "log": (mpmath.log, PLANE),
    "log-plus-one": (lambda z: mpmath.log(1 + z), PLANE),
    "logistic": (lambda z: 1 / (1 + mpmath.exp(-z)), SMALL),
    "tanh": (mpmath.tanh, SMALL),
    "sqrt": (mpmath.sqrt, PLANE),
    "rsqrt": (lambda z: 1 / mpmath.sqrt(z), PLANE),
    "sine": (mpmath.sin, SMALL),
    "cosine": (mpmath.cos, SMALL),
    "tan": (mpmath.tan, SMALL),
    "acos": (mpmath.acos, PLANE),
    "asin": (mpmath.asin, PLANE),
    "acosh": (mpmath.acosh, PLANE),
    "asinh": (mpmath.asinh, PLANE),
    "atanh": (mpmath.atanh, PLANE),
    "cbrt": (lambda z: mpmath.power(z, mpf(1) / 3), PLANE),
    "abs": (abs, PLANE),
    "sign": (lambda z: z / abs(z), PLANE),
}
MATES = PLANE[::-1]
COMPLEX_BINARY = {
    "multiply": (lambda a, b: a * b, list(zip(SMALL, SMALL[::-1]))),
    "divide": (lambda a, b: a / b, list(zip(PLANE, MATES))),
    "power": (lambda a, b: mpmath.power(a, b), list(zip(SMALL, [(b / 4, a / 4) for a, b in SMALL]))),
}


ENDS = [0.0, -0.0, 0.5, -1.0, 2.0, -3.0, math.inf, -math.inf, math.nan]
ENDLESS = [z for z in itertools.product(ENDS, ENDS) if not all(map(math.isfinite, z))]
BY_C99 = {
    "exponential": numpy.exp,
    "log": numpy.log,
    "sqrt": numpy.sqrt,
    "sine": numpy.sin,
    "cosine": numpy.cos,
    "tan": numpy.tan,
    "sinh": numpy.sinh,
    "cosh": numpy.cosh,
    "tanh": numpy.tanh,
}
NOTHING = complex(math.nan, math.nan)


def at_the_end(op, z):
    """A function where an argument is infinite or no number."""
    value = complex(BY_C99[op](numpy.complex128(complex(*z))))
    periodic = op not in ("log", "sqrt")
    if periodic and (math.isnan(value.real) != math.isnan(value.imag)) and not numpy.isfinite(value):
        ends = math.isinf(value.real) or math.isinf(value.imag)
        if ends:
            # C99 leaves the sign of the infinity open.
            return NOTHING
    if op in ("sine", "cosine", "sinh", "cosh") and math.isnan(value.real) and value.imag == 0:
        # And that of this zero: it is that of the factor which is zero.
        re, im = z
        sign = {"sine": im, "cosine": -im if im == 0 else -re, "sinh": im, "cosh": re if re == 0 else im}
        return complex(value.real, math.copysign(0, sign[op]))
    return value


def power_at_the_end(a, b):
    """Powers of one, zero and infinity, and of what is not finite."""
    if b == (0, 0) or a == (1, 0):
        return complex(1, 0)
    if a == (0, 0) and b[1] == 0 and b[0] > 0:
        return complex(0, 0)
    if a == (math.inf, 0) and b[1] == 0 and b[0] != 0 and not math.isnan(b[0]):
        return complex(math.inf if b[0] > 0 else 0, 0)
    return NOTHING


def ends(name, out):
    for op in BY_C99:
        for z in ENDLESS:
            value = at_the_end(op, z)
            print(op, name, *map(bits, z), bits(value.real), bits(value.imag), file=out)
    parts = [0.0, 1.0, -2.0, math.inf, -math.inf, math.nan]
    exponents = [(x, 0.0) for x in parts] + [(1.0, 1.0), (0.0, math.inf), (2.0, math.nan)]
    for a, b in itertools.product(itertools.product(parts, parts), exponents):
        if all(map(math.isfinite, a + b)) and a != (0, 0):
            continue
        value = power_at_the_end(a, b)
        print("power", name, *map(bits, a + b), bits(value.real), bits(value.imag), file=out)


def main(out):
    for op, (function, points) in REAL.items():
        for x in points:
            value = rounded(function(mpf(x)))
            print(op, "f64", bits(x), bits(value), file=out)
    for op, (function, pairs) in BINARY.items():
        for a, b in pairs:
            print(op, "f64", bits(a), bits(b), bits(rounded(function(mpf(a), mpf(b)))), file=out)

    for name, part in [("c64", single), ("c128", float)]:
        for op, (function, points) in (COMPLEX | COMPLEX_BINARY).items():
            for point in points:
                arguments = point if isinstance(point[0], tuple) else (point,)
                arguments = [tuple(map(part, z)) for z in arguments]
                if name == "c64" and not all(map(is_moderate, arguments)):
                    continue
                value = mpc(function(*(mpc(*map(mpf, z)) for z in arguments)))
                words = [bits(x) for z in arguments for x in z]
                words += [bits(rounded(value.real)), bits(rounded(value.imag))]
                print(op, name, *words, file=out)
        ends(name, out)


def single(x):
    if abs(x) > 1e30:
        return float("inf")
    return struct.unpack("<f", struct.pack("<f", x))[0]


def is_moderate(z):
    return all(1e-15 < abs(x) < 1e15 for x in z)


if __name__ == "__main__":
    main(sys.stdout)

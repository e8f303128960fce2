"""Holds the Python package to what it says: python_test.py FOLDER, which has bundles of the programs
here. JAX's part runs where JAX is installed."""

import copy
import ctypes
import importlib.util
import os
import pathlib
import pickle
import re
import sys
import tempfile
import threading
import unittest

import numpy as np

import xla_aot

FOLDER = pathlib.Path(sys.argv.pop(1))
HAS_JAX = importlib.util.find_spec("jax") is not None
HAS_NARROW = importlib.util.find_spec("ml_dtypes") is not None


def load(name, **options):
    return xla_aot.load(FOLDER / f"{name}.xla", **options)


class Bundles(unittest.TestCase):
    def test_what_is_in_one(self):
        bundle = xla_aot.read(FOLDER / "tuple.xla")
        self.assertEqual((bundle.name, bundle.platform, bundle.devices), ("tuple", "cpu", 1))
        self.assertEqual([a.name for a in bundle.arguments], ["state.0", "state.1", "rows"])
        small, wide, rows = bundle.arguments
        self.assertEqual((small.type, small.element_bits, small.path), ("s4", 4, (0,)))
        self.assertEqual((wide.shape, wide.layout), ((2, 3), (0, 1)))
        self.assertEqual((rows.shape, rows.dynamic, str(rows)), ((4,), (True,), "rows: float32(<=4,)"))
        self.assertEqual([r.path for r in bundle.results], [(0,), (1, 0), (1, 1)])
        self.assertEqual(bundle.describe()["platform"], "cpu")
        self.assertEqual(xla_aot.read(FOLDER / "call.xla").imports, {"scale": False})
        self.assertIn("axpy for", str(xla_aot.read(str(FOLDER / "axpy.xla"))))

    def test_one_for_another_machine(self):
        bundle = xla_aot.read(FOLDER / "axpy.h100.xla")
        self.assertEqual((bundle.platform, bundle.target[:5]), ("cuda", "sm_90"))
        with self.assertRaises(xla_aot.BundleError) as caught:
            bundle.load(device="cpu")
        self.assertEqual(caught.exception.code, "XA8006")
        if "simulator" in xla_aot.devices():
            program = bundle.load(device="sim:h100_sxm")
            x = np.arange(4, dtype=np.float32)
            np.testing.assert_array_equal(program(2.0, x, x), 3 * x)

    def test_damaged_ones(self):
        data = bytearray((FOLDER / "axpy.xla").read_bytes())
        data[len(data) // 2] ^= 1
        with self.assertRaises(xla_aot.BundleError) as caught:
            xla_aot.read(data)
        self.assertIn(caught.exception.code, ("XA7002", "XA7003"))
        with self.assertRaises(xla_aot.BundleError) as caught:
            xla_aot.read(b"")
        self.assertEqual(caught.exception.code, "XA7001")
        with self.assertRaises(FileNotFoundError):
            xla_aot.read("/nonexistent.xla")


class Programs(unittest.TestCase):
    def test_arrays_numbers_and_names(self):
        program = load("axpy", threads=1)
        self.assertEqual(program.threads, 1)
        x, y = np.float32([1, 2, 3, 4]), np.float32([10, 20, 30, 40])
        wanted = np.float32([12, 24, 36, 48])
        np.testing.assert_array_equal(program(np.float32(2), x, y), wanted)
        np.testing.assert_array_equal(program(2, [1, 2, 3, 4], y=y), wanted)
        np.testing.assert_array_equal(program(a=2.0, x=x, y=y), wanted)
        np.testing.assert_array_equal(program.flat(2.0, x, y)[0], wanted)
        strided = np.float32([1, 0, 2, 0, 3, 0, 4, 0])[::2]
        np.testing.assert_array_equal(program(2.0, strided, y), wanted)
        np.testing.assert_array_equal(program(2.0, xla_aot.aligned(x), memoryview(y)), wanted)

    def test_results_stay_when_all_else_is_gone(self):
        program = load("axpy")
        x = np.ones(4, np.float32)
        results = [program(i, x, x) for i in range(50)]
        del program
        for i, result in enumerate(results):
            np.testing.assert_array_equal(result, np.full(4, i + 1, np.float32))
            result += 1

    def test_what_does_not_fit(self):
        program = load("axpy")
        x = np.ones(4, np.float32)
        for arguments, words in [
            ((2.0, x.astype(np.float64), x), "`x` has elements of type float64, wanted float32"),
            ((2.0, x[:3], x), r"`x` has the shape \(3,\), wanted \(4,\)"),
        ]:
            with self.assertRaisesRegex(xla_aot.InputError, words) as caught:
                program(*arguments)
            self.assertEqual(caught.exception.code, "XA8001")
            self.assertIsInstance(caught.exception, ValueError)
        for arguments, named, words in [
            ((2.0, x), {}, "`y` is missing"),
            ((2.0, x, x, x), {}, "4 arguments, wanted 3: a, x, y"),
            ((2.0, x, x), {"y": x}, "`y` is given twice"),
            ((2.0, x), {"z": x}, "no argument `z`"),
        ]:
            with self.assertRaisesRegex(xla_aot.UsageError, words):
                program(*arguments, **named)
        with self.assertRaisesRegex(xla_aot.UsageError, "no such device"):
            load("axpy", device="tpu")

    def test_tuples_layouts_packed_and_dynamic_arrays(self):
        program = load("tuple")
        small, wide, rows = (array.dtype for array in program.arguments)
        s4 = np.array([-1, 2, 7]).astype(small)
        bits = np.uint16([[1, 2, 3], [4, 5, 0x3F80]])
        bf16 = bits.view(wide)
        first, (second, third) = program(s4, bf16, np.float32([1.5, 2]))
        self.assertEqual(first.dtype, small)
        np.testing.assert_array_equal(first.astype(np.int32), [-1, 2, 7])
        self.assertEqual(second.dtype, wide)
        np.testing.assert_array_equal(second.view(np.uint16), bits)
        np.testing.assert_array_equal(third, np.float32([3, 4]))
        self.assertEqual(third.dtype, rows)
        if HAS_NARROW:
            self.assertEqual((small.name, wide.name), ("int4", "bfloat16"))
        with self.assertRaisesRegex(xla_aot.InputError, r"wanted \(<=4,\)"):
            program(s4, bf16, np.zeros(5, np.float32))
        self.assertEqual(program(s4, bf16, np.zeros(0, np.float32))[1][1].shape, (0,))

    def test_numbers_that_a_type_does_not_have(self):
        program = load("types")
        good = {
            "p": [True, False], "s": [1, -2], "u": [2**64 - 1, 0], "n": [0.5, 1], "d": [0.1, 2**70]
        }
        if not HAS_NARROW:
            good["n"] = np.uint8([0x38, 0x3C])
        results = program(**good)
        np.testing.assert_array_equal(results[1], [1, -2])
        np.testing.assert_array_equal(results[2], np.uint64([2**64 - 1, 0]))
        np.testing.assert_array_equal(results[3].view(np.uint8), [0x38, 0x3C])
        np.testing.assert_array_equal(results[4], [0.1, 2.0**70])
        np.testing.assert_array_equal(program(**{**good, "p": [1, 0]})[0], [True, False])
        for name, wrong in [
            ("p", [2, 0]), ("p", [0.5, 0]), ("s", [1.5, 2]), ("s", [2**31, 0]), ("s", [np.nan, 0]),
            ("s", ["1", "2"]), ("u", [-1, 0]), ("u", [2**64, 0]), ("d", [1j, 0]), ("d", ["1", "2"]),
            ("d", [10**400, 0]), ("d", [[1], 2]),
        ]:
            with self.assertRaisesRegex(xla_aot.InputError, f"`{name}` has numbers that do not fit"):
                program(**{**good, name: wrong})

    def test_bits_of_types_that_numpy_lacks(self):
        types = load("types")
        bits = np.uint8([0x38, 0x3C])
        others = [True, True], [0, 0], [0, 0]
        result = types(*others, bits, [0.0, 0.0])[3]
        np.testing.assert_array_equal(result.view(np.uint8), bits)
        program, rows = load("tuple"), np.zeros(0, np.float32)
        s4, bf16 = np.int8([-8, 2, 7]), np.full((2, 3), 0x3F80, np.uint16)
        first, (second, _) = program(s4, bf16, rows)
        np.testing.assert_array_equal(first.astype(np.int32), s4)
        np.testing.assert_array_equal(second.view(np.uint16), bf16)
        # Bytes in the other order are not the bits.
        with self.assertRaisesRegex(xla_aot.InputError, "elements of type [<>]u2, wanted"):
            program(s4, bf16.astype(bf16.dtype.newbyteorder()), rows)
        for wrong in np.int8([8, 0, 0]), np.int8([0, -9, 0]), np.uint8([255, 0, 0]):
            with self.assertRaisesRegex(xla_aot.InputError, "numbers that s4 does not have"):
                program(wrong, bf16, rows)

    def test_arrays_that_lie_strangely(self):
        program = load("types")
        plain = np.float64([1.5, -2])
        odd = np.frombuffer(b"x" + plain.tobytes(), np.uint8)[1:].view(np.float64)
        turned = np.float64([-2, 1.5])[::-1]
        fixed = plain.copy()
        fixed.flags.writeable = False
        for d in odd, turned, fixed, np.stack([plain, plain], 1)[:, 0]:
            result = program([True, True], [0, 0], [0, 0], [0.0, 0.0] if HAS_NARROW else np.zeros(2, np.uint8), d)
            np.testing.assert_array_equal(result[4], plain)
        with self.assertRaisesRegex(xla_aot.InputError, ">f4"):
            load("axpy")(2.0, np.zeros(4, ">f4"), np.zeros(4, np.float32))

    def test_there_is_one_of_each(self):
        program = load("axpy")
        x = np.ones(4, np.float32)
        for one in (program, program.bundle, xla_aot.aligned(x).base):
            while isinstance(one, np.ndarray):
                one = one.base
            self.assertIs(copy.copy(one), one)
            self.assertIs(copy.deepcopy(one), one)
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(one)
        result = pickle.loads(pickle.dumps(program(1.0, x, x)))
        np.testing.assert_array_equal(result, 2 * x)
        with self.assertRaises(xla_aot.InputError) as caught:
            program(1.0, x[:3], x)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.code, str(again)), ("XA8001", str(caught.exception)))

    def test_odd_options(self):
        for options in {"device": "cpu\0"}, {"threads": 0}, {"threads": 2**64 + 1}, {"calls": {"a\0": 1}}:
            with self.assertRaises(xla_aot.UsageError):
                load("axpy", **options)
        with self.assertRaises(TypeError):
            load("axpy", threads=1.5)

    def test_trees_of_an_export(self):
        program = load("affine")
        w = np.arange(6, dtype=np.float32).reshape(3, 2)
        b, x = np.float32([1, 2]), np.ones((4, 3), np.float32)
        result = program({"w": w, "b": b}, x, scale=2.0)
        np.testing.assert_array_equal(result, (x @ w + b) * 2)
        np.testing.assert_array_equal(program.flat(b, w, x, 2.0)[0], result)
        with self.assertRaisesRegex(xla_aot.InputError, r"`args\[0\]\['b'\]` is missing"):
            program({"w": w}, x, scale=2.0)
        with self.assertRaisesRegex(xla_aot.UsageError, "no argument `scales`"):
            program({"w": w, "b": b}, x, scales=2.0)
        with self.assertRaisesRegex(xla_aot.UsageError, "1 arguments, wanted 2"):
            program({"w": w, "b": b}, scale=2.0)

    def test_several_devices(self):
        program = load("two")
        one, two = np.float32([1, 2]), np.float32([10, 20])
        results = program.each([[one], [two]])
        for result in results:
            np.testing.assert_array_equal(result[0], one + two)
        with self.assertRaisesRegex(xla_aot.UsageError, "runs on 2 devices"):
            program(one)

    def test_threads_share_a_program(self):
        program = load("axpy")
        wrong = []

        def work(number):
            x = np.full(4, number, np.float32)
            for i in range(50):
                if (program(i, x, x) != x * (i + 1)).any():
                    wrong.append((number, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_calls_of_the_caller(self):
        with self.assertRaises(xla_aot.BundleError) as caught:
            load("call")
        self.assertEqual(caught.exception.code, "XA8003")
        scale = ctypes.CDLL(FOLDER / "libscale.so").scale
        for function in (scale, ctypes.cast(scale, ctypes.c_void_p).value):
            self.scales(load("call", calls={"scale": function}))
        with self.assertRaisesRegex(xla_aot.UsageError, "a call is a object"):
            load("call", calls={"scale": object()})

    def scales(self, program):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(program(x), x * 2.5 + [1, 2, 3])
        words = r"`scale` failed: a number below zero \(out of range\)"
        with self.assertRaisesRegex(xla_aot.InputError, words) as caught:
            program(-x)
        self.assertEqual(caught.exception.code, "XA8004")

    def test_calls_made_with_the_headers_of_xla(self):
        library = FOLDER / "libscale_stock.so"
        if not (HAS_JAX and library.exists()):
            self.skipTest("JAX or a C++ compiler is not installed")
        scale = ctypes.CDLL(library).scale
        self.scales(load("call", calls={"scale": scale}))
        import jax

        self.scales(load("call", calls={"scale": jax.ffi.pycapsule(scale)}))

    def test_the_readme(self):
        text = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertTrue(blocks)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                pathlib.Path("axpy.xla").write_bytes((FOLDER / "axpy.xla").read_bytes())
                for block in blocks:
                    if HAS_JAX or "jax" not in block:
                        exec(compile(block, "README.md", "exec"), {})
            finally:
                os.chdir(before)


@unittest.skipUnless(HAS_JAX, "JAX is not installed")
class Jax(unittest.TestCase):
    def test_arrays_of_jax(self):
        import jax
        import jax.numpy as jnp

        program = load("axpy")
        x = jnp.arange(4, dtype=jnp.float32)
        result = program(2.0, x, np.ones(4, np.float32))
        self.assertIsInstance(result, jax.Array)
        np.testing.assert_array_equal(result, [1, 3, 5, 7])
        first, (second, _) = load("tuple")(
            jnp.array([1, -2, 3], jnp.int4), jnp.ones((2, 3), jnp.bfloat16), jnp.zeros(2)
        )
        self.assertEqual((first.dtype, second.dtype), (jnp.int4, jnp.bfloat16))
        np.testing.assert_array_equal(second.astype(jnp.float32), np.ones((2, 3)))

    def test_types_of_64_bits(self):
        import jax
        import jax.numpy as jnp

        self.assertFalse(jax.config.jax_enable_x64)
        n = jnp.array([0.5, 1], jnp.float8_e5m2)
        p, s, u = jnp.array([True, False]), jnp.array([1, -2]), np.uint64([2**64 - 1, 7])
        d = np.float64([0.1, 1e300])
        for call in load("types"), xla_aot.as_jax(FOLDER / "types.xla"):
            results = call(p, s, u, n, d)
            for result, wanted in zip(results, (p, s, u, n, d)):
                self.assertIsInstance(result, jax.Array)
                self.assertEqual(result.dtype, wanted.dtype)
                self.assertEqual(np.asarray(result).tobytes(), np.asarray(wanted).tobytes())

    def test_the_stock_runtime(self):
        import jax
        import jax.numpy as jnp

        call = xla_aot.as_jax(FOLDER / "axpy.xla")
        result = call(2.0, jnp.arange(4, dtype=jnp.float32), np.ones(4, np.float32))
        self.assertIsInstance(result, jax.Array)
        np.testing.assert_array_equal(result, [1, 3, 5, 7])
        affine = xla_aot.as_jax(FOLDER / "affine.xla")
        w, b, x = jnp.ones((3, 2)), jnp.ones(2), jnp.ones((4, 3))
        np.testing.assert_array_equal(affine({"w": w, "b": b}, x, scale=2.0), np.full((4, 2), 8))
        for wrong in jnp.arange(3.0), np.arange(4.0), None, ["1"] * 4:
            with self.assertRaises(xla_aot.InputError):
                call(2.0, wrong, jnp.arange(4.0))
        with self.assertRaisesRegex(xla_aot.UsageError, "traced"):
            jax.jit(lambda x: call(2.0, x, x))(jnp.arange(4.0))
        with self.assertRaises(xla_aot.BundleError):
            xla_aot.as_jax(FOLDER / "call.xla")
        # A function made for this loader is one for XLA.
        scale = ctypes.CDLL(FOLDER / "libscale.so").scale
        jax.ffi.register_ffi_target("scale", jax.ffi.pycapsule(scale), platform="cpu")
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(xla_aot.as_jax(FOLDER / "call.xla")(x), x * 2.5 + [1, 2, 3])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

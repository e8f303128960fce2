#!/usr/bin/env bash
# Builds the C library, installs it into a folder of its own, and runs the programs of tests/library
# against it, as someone else's build would: through pkg-config, as an archive, through CMake.
#
# Then the Python package with the same library, in place and from its wheel.
#
#   XLA_AOT   the compiler that makes the bundles: target/debug/xla-aot by default
#   PYTHON    an interpreter with NumPy: that of target/tools/venv by default. With JAX it also runs what
#             needs that: arrays of JAX's, and the stock runtime.
set -euo pipefail
cd "$(dirname "$0")/.."
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
xla_aot=${XLA_AOT:-$built/debug/xla-aot}
work=$built/library
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work/bundles"

scripts/install.sh --prefix "$prefix" --profile dev --features cpu,simulator

for program in axpy call large tuple two types; do
  "$xla_aot" -q compile "tests/library/$program.hlo" -o "$work/bundles/$program.xla"
done
"$xla_aot" -q compile tests/exports/affine.jax -o "$work/bundles/affine.xla"
"$xla_aot" -q compile tests/library/axpy.hlo --target h100_sxm --no-ptxas -o "$work/bundles/axpy.h100.xla"

# The libraries have the names of the header and no others.
sed -n 's/.*\b\(xla_aot_[a-z_]*\)(.*/\1/p' src/capi/xla_aot.h | grep -v '_handler$' | sort -u >"$work/declared"
nm -D --defined-only "$prefix/lib/libxla_aot.so" | awk '{print $3}' | sort >"$work/shared"
nm --defined-only --extern-only "$prefix/lib/libxla_aot.a" | awk 'NF == 3 {print $3}' | sort >"$work/archive"
diff "$work/declared" "$work/shared"
diff "$work/declared" "$work/archive"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
strict=(-std=c11 -Wall -Wextra -Wpedantic -Werror)
# What pkg-config says is several words.
# shellcheck disable=SC2046
cc "${strict[@]}" tests/library/example.c -o "$work/example" $(pkg-config --cflags --libs xla_aot)
# shellcheck disable=SC2046
cc "${strict[@]}" tests/library/checks.c tests/library/scale.c -o "$work/checks" \
  $(pkg-config --cflags xla_aot) "$prefix/lib/libxla_aot.a" -lgcc_s -lpthread -ldl -lm
printf '#include <xla_aot.h>\n#include <xla_aot_ffi.h>\n' >"$work/plain.c"
cc -std=c99 -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only "$work/plain.c"
! command -v c++ >/dev/null || c++ -Wall -Werror -I"$prefix/include" -fsyntax-only -x c++ "$work/plain.c"

says_so() {
  "$@" "$work/bundles/axpy.xla" | tee "$work/said"
  grep -qx '12 24 36 48' "$work/said"
}
LD_LIBRARY_PATH=$prefix/lib says_so "$work/example"
"$work/checks" "$work/bundles"

cmake -S tests/library/cmake -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log"
cmake --build "$work/cmake" >>"$work/cmake.log"
says_so "$work/cmake/example"
says_so "$work/cmake/example_static"

python=${PYTHON:-$PWD/target/tools/venv/bin/python}
cc "${strict[@]}" -shared -fPIC -I"$prefix/include" tests/library/scale.c -o "$work/bundles/libscale.so"
if headers=$("$python" -c "import jax; print(jax.ffi.include_dir())" 2>/dev/null) && command -v c++ >/dev/null; then
  c++ -w -std=c++17 -shared -fPIC -I"$headers" tests/library/scale_stock.cc -o "$work/bundles/libscale_stock.so"
else
  echo "JAX or a C++ compiler is not there: its runtime and its headers are not tried"
fi
XLA_AOT_LIBRARY=$prefix/lib/libxla_aot.so PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=src/python \
  "$python" tests/library/python_test.py "$work/bundles"

# The wheel, in a folder of its own, with nothing said of where the library is.
wheel=$(scripts/wheel.py --prefix "$prefix" --out "$work")
"$python" -m pip install -q --disable-pip-version-check --no-deps --no-index --target "$work/site" "$wheel"
(cd "$work" && PYTHONPATH=$work/site "$python" -c "
import numpy as np, xla_aot
x = np.ones(4, np.float32)
assert xla_aot.__file__.startswith('$work/site')
assert (xla_aot.load('bundles/axpy.xla')(2.0, x, x) == 3).all()
print('the wheel of xla_aot', xla_aot.version(), 'runs')")

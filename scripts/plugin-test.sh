#!/usr/bin/env bash
# Runs programs that ship with the compiler through the stock JAX CUDA plugin, on the simulated
# driver, and compares their numbers: scripts/plugin-test.sh [NAME ...]
#
#   JAX_VERSION   the plugin's version: 0.10.2 (Python 3.11 or later) or 0.11.1 (Python 3.12 or later)
#   PYTHON        the interpreter to make the virtual environment with
#   TARGET        the GPU: h100_sxm by default
#   PROGRAMS      a folder of programs, KIND/NAME: tests/programs by default
#   PER_KIND      how many programs of a kind, without names: 2 by default; models are taken all
#
# The plugin is a wheel of over 170 MB, so this is no part of the tests that every change runs.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${JAX_VERSION:-0.10.2}
target=${TARGET:-h100_sxm}
programs=${PROGRAMS:-tests/programs}
per_kind=${PER_KIND:-2}
scripts/toolchain.sh test
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")

venv=target/tools/plugin-$version
if [ ! -x "$venv/bin/python" ]; then
  python=${PYTHON:-}
  for candidate in python3.12 python3.13 /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c "" 2>/dev/null || python=$candidate
  done
  [ -n "$python" ] || { echo "plugin-test.sh: there is no Python 3; PYTHON names one" >&2; exit 1; }
  "$python" -m venv "$venv"
fi
"$venv/bin/pip" install -q --disable-pip-version-check \
  "jax==$version" "jaxlib==$version" "jax-cuda12-plugin==$version" "jax-cuda12-pjrt==$version"

cargo build --release --bin xla-aot
cargo rustc --release --lib --crate-type cdylib --no-default-features --features cpu,simulator
library=target/plugin/lib
mkdir -p "$library"
for name in libcuda.so.1 libcudart.so.12 libnvidia-ml.so.1; do
  ln -sf "$built/release/libxla_aot.so" "$library/$name"
done

bundles=target/plugin/bundles.$target
rm -rf "$bundles"
for folder in "$programs"/*/; do
  kind=$(basename "$folder")
  taken=0
  for case in "$folder"*/; do
    name=$(basename "$case")
    if [ "$#" -gt 0 ]; then
      wanted=no
      for part in "$@"; do [[ "$kind/$name" != *"$part"* ]] || wanted=yes; done
      [ "$wanted" = yes ] || continue
    elif [ "$kind" != model ] && [ "$taken" -ge "$per_kind" ]; then
      break
    fi
    program=$case/program.pb
    [ -f "$program" ] || program=$case/program.hlo
    mkdir -p "$bundles/$kind"
    # What cannot be compiled for a GPU says so; the others are run.
    if "$built/release/xla-aot" -q compile "$program" --no-ptxas --format jax --target "$target" \
      -o "$bundles/$kind/$name.xla"; then
      taken=$((taken + 1))
    fi
  done
done

exec "$venv/bin/python" tests/plugin/run.py --library "$library" --bundles "$bundles" \
  --programs "$programs" --target "$target"

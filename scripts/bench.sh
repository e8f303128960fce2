#!/usr/bin/env bash
# Times what the compiler makes against jaxlib 0.10.2, side by side: scripts/bench.sh CORPUS [NAME ...]
set -euo pipefail
corpus=$(realpath "${1:?the folder of conformance programs}")
shift
cd "$(dirname "$0")/.."
scripts/toolchain.sh test
cargo build --release --bin xla-aot
venv=target/tools/jax
[ -x "$venv/bin/python" ] || /usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2
exec "$venv/bin/python" scripts/bench.py target/release/xla-aot "$corpus" "$@"

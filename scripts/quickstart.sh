#!/usr/bin/env bash
# Sets up what is missing, builds the compiler, and does the main job on a model that ships with it:
# compile for this machine's architecture and for an NVIDIA H100, run the first here and the second on a
# simulated GPU, verify both.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/toolchain.sh build
cargo build --release --bin xla-aot

xla_aot=target/release/xla-aot
model=tests/programs/model/encoder_block
out=target/quickstart
mkdir -p "$out"

say() { printf '\n$ %s\n' "$*"; "$@"; }

say "$xla_aot" compile "$model/program.pb" -o "$out/encoder.xla"
say "$xla_aot" compile "$model/program.pb" --target-platform-version nvidia_h100 --no-ptxas -o "$out/encoder.h100.xla"
say "$xla_aot" inspect "$out/encoder.xla"
say "$xla_aot" run "$out/encoder.xla" --input "$model/inputs.npz" --output "$out/results.npz" \
  --expect "$model/expected.npz" --rtol 1.3e-4 --atol 3.5e-4
say "$xla_aot" verify "$out/encoder.xla"
say "$xla_aot" inspect "$out/encoder.h100.xla"
say "$xla_aot" run "$out/encoder.h100.xla" --device sim --stats --input "$model/inputs.npz" \
  --output "$out/results.h100.npz" --expect "$model/expected.npz" --rtol 1.3e-4 --atol 3.5e-4
say "$xla_aot" verify "$out/encoder.h100.xla" --device sim
printf '\nBundles and results are in %s.\n' "$out"

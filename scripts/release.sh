#!/usr/bin/env bash
# Builds what is shipped: the compiler with LLVM linked in, which needs only glibc (2.36 or later) to run;
# the loader alone; the C library; the wheel of the Python package.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/toolchain.sh release

# A folder that holds nothing but the static archives, so that the linker finds no shared ones.
archives=target/archives
mkdir -p "$archives"
libs=/usr/lib/x86_64-linux-gnu
ln -sf "$libs"/libz.a "$libs"/libzstd.a "$libs"/libffi.a "$archives/"
ln -sf "$(gcc -print-file-name=libstdc++.a)" "$archives/"

RUSTFLAGS="-L native=$PWD/$archives" cargo build --profile dist --bin xla-aot \
  --no-default-features --features cpu,cuda,compiler,llvm-static --target-dir target/static
strip -o target/xla-aot target/static/dist/xla-aot
ls -l target/xla-aot

# The loader alone, without LLVM.
cargo build --profile dist --bin xla-aot --no-default-features --features cpu --target-dir target/loader
strip -o target/xla-aot-loader target/loader/dist/xla-aot
ls -l target/xla-aot-loader

# The C library, and the Python package around it.
scripts/install.sh --prefix target/install
scripts/wheel.py --prefix target/install

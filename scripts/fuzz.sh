#!/bin/sh
# Fuzzes for a number of seconds: random programs on every engine, compared with the evaluator; or
# changed files, which must be read or refused in bounded time and memory.
# What is found lies in the output folder, made small: programs as HLO text and inputs, into which
# `xla-aot bisect N.hlo --input N.npz` looks, and files with what is wrong beside them.
#
#   scripts/fuzz.sh [--what programs] [--seconds N] [--seed S] [--oracle native,sim,qemu] [--output DIR]
#   scripts/fuzz.sh --what hlo|proto|mlir|bytecode|exports|snapshots|files|bundles [--with DIR] [--seconds N] [--seed S]
#                   [--output DIR]                         with more files to change, from a folder
#   scripts/fuzz.sh --again FILE                           checks a file that was found
#   scripts/fuzz.sh --dump DIR --programs N [--seed S]     for scripts/fuzz-jaxlib.py
set -eu
cd "$(dirname "$0")/.."
seconds=600
seed=$(date +%s)000
what=programs
oracles=native,sim,qemu
output=target/fuzz
while [ $# -gt 0 ]; do
  case "$1" in
    --what) what=$2 ;;
    --seconds) seconds=$2 ;;
    --seed) seed=$2 ;;
    --oracle) oracles=$2 ;;
    --output | --dump) output=$2 ;;
    --programs) export XLA_AOT_FUZZ_PROGRAMS=$2 ;;
    --with) export XLA_AOT_FUZZ_WITH=$2 ;;
    --again) export XLA_AOT_FUZZ_INPUT=$2 ;;
    *) sed -n '2,11p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
echo "seeds from $seed"
XLA_AOT_FUZZ_SECONDS=$seconds XLA_AOT_FUZZ_SEED=$seed XLA_AOT_FUZZ_WHAT=$what \
  XLA_AOT_FUZZ_ORACLES=$oracles XLA_AOT_FUZZ_OUT=$output exec cargo test --release --test suite

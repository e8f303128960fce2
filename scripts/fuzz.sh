#!/bin/sh
# Fuzzes: random programs on every engine, compared with the evaluator, for a number of seconds.
# What is found lies in the output folder as HLO text and inputs, made small:
# `xla-aot bisect N.hlo --input N.npz` looks into it.
#
#   scripts/fuzz.sh [--seconds N] [--seed S] [--oracle native,sim,qemu] [--output DIR]
#   scripts/fuzz.sh --dump DIR --programs N [--seed S]     for scripts/fuzz-jaxlib.py
set -eu
cd "$(dirname "$0")/.."
seconds=600
seed=$(date +%s)000
oracles=native,sim,qemu
output=target/fuzz
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds=$2 ;;
    --seed) seed=$2 ;;
    --oracle) oracles=$2 ;;
    --output | --dump) output=$2 ;;
    --programs) export XLA_AOT_FUZZ_PROGRAMS=$2 ;;
    *) sed -n '2,7p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
echo "seeds from $seed"
XLA_AOT_FUZZ_SECONDS=$seconds XLA_AOT_FUZZ_SEED=$seed XLA_AOT_FUZZ_ORACLES=$oracles \
  XLA_AOT_FUZZ_OUT=$output exec cargo test --release --test suite

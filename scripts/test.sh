#!/usr/bin/env bash
# Sets up everything and runs every test.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/toolchain.sh test
export XLA_AOT_PTXAS="$PWD/target/tools/ptxas"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}

step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

step "format"
cargo fmt --check
step "lints"
cargo clippy --all-targets -- -D warnings
step "the loader alone"
cargo clippy --no-default-features --features cpu -- -D warnings
cargo clippy --no-default-features --features cpu,cuda -- -D warnings
cargo clippy --no-default-features --features cpu,simulator -- -D warnings
cargo clippy --no-default-features --features cpu,reference -- -D warnings
step "documentation"
RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --no-deps --document-private-items
step "tests"
cargo test --no-fail-fast
step "the libraries"
scripts/library-test.sh
step "done"

#!/usr/bin/env bash
# Sets up what building and testing need, on Debian 12. Quick when all of it is there already.
#
#   scripts/toolchain.sh build   LLVM 22 and a C compiler
#   scripts/toolchain.sh test    the same, and a PTX assembler, AArch64 emulation, what builds C programs
#                                against the library, and NumPy
#   scripts/toolchain.sh release the same as build, and what a static link needs
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(gcc libc6-dev llvm-22-dev)
[ "${1:-build}" = release ] && packages+=(g++ libpolly-22-dev libzstd-dev zlib1g-dev libffi-dev)
[ "${1:-build}" = test ] && packages+=(qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross python3-venv pkg-config cmake make)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ]; then
  sudo=()
  [ "$(id -u)" = 0 ] || sudo=(sudo)
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi

# NVIDIA's assembler comes as a Python wheel; it is proprietary, so it is fetched, never shipped.
if [ "${1:-build}" = test ]; then
  tools=target/tools
  mkdir -p "$tools"
  [ -x "$tools/venv/bin/python" ] || /usr/bin/python3 -m venv "$tools/venv"
  if [ ! -x "$tools/ptxas" ]; then
    "$tools/venv/bin/pip" install -q --disable-pip-version-check nvidia-cuda-nvcc-cu12==12.9.86
    ln -sf "$(echo "$PWD/$tools"/venv/lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas)" "$tools/ptxas"
  fi
  if ! "$tools/venv/bin/python" -c "import numpy, ml_dtypes" 2>/dev/null; then
    "$tools/venv/bin/pip" install -q --disable-pip-version-check numpy==2.2.6 ml_dtypes==0.5.4
  fi
fi

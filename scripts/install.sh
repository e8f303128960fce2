#!/usr/bin/env bash
# Builds the C library and installs it, its headers, and the files by which pkg-config and CMake find it.
#
#   scripts/install.sh [--prefix DIR] [--features LIST] [--profile NAME]
#
#   --prefix    where it goes: /usr/local by default; DESTDIR, when set, goes before it, and the
#               folder may be moved
#   --features  what it can run: cpu,cuda,simulator by default
#   --profile   how cargo builds it: dist by default
#
# The archive and the shared library have the names of the headers and no others, whatever else is
# linked beside them. Needs Rust, cc, and binutils; no LLVM.
set -euo pipefail
prefix=/usr/local
features=cpu,cuda,simulator
profile=dist
while [ "$#" -gt 0 ]; do
  case "$1" in
    --prefix) prefix=$2 ;;
    --features) features=$2 ;;
    --profile) profile=$2 ;;
    *) echo "install.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
prefix=$(realpath -m "$prefix")
cd "$(dirname "$0")/.."
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")
folder=$profile
[ "$profile" != dev ] || folder=debug

cargo rustc --lib --crate-type staticlib --profile "$profile" --no-default-features --features "$features"

# All that the library is in one object, of which only the names of the header are seen.
header=src/capi/xla_aot.h
abi=$(sed -n 's/^#define XLA_AOT_ABI \([0-9]*\)$/\1/p' "$header")
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n 's/.*\b\(xla_aot_[a-z_]*\)(.*/\1/p' "$header" | grep -v '_handler$' | sort -u >"$work/names"
mapfile -t roots < <(sed 's/^/--undefined=/' "$work/names")
ld -r --gc-sections "${roots[@]}" -o "$work/all.o" "$built/$folder/libxla_aot.a"
# The bitcode of Rust's own library is of no use, and tools with an LLVM plugin stumble over it.
objcopy --remove-section=.llvmbc --remove-section=.llvmcmd \
  --keep-global-symbols="$work/names" "$work/all.o" "$work/xla_aot.o"
[ "$profile" = dev ] || strip --strip-debug "$work/xla_aot.o"
ar rcs "$work/libxla_aot.a" "$work/xla_aot.o"
cc -shared -Wl,-soname,"libxla_aot.so.$abi" -Wl,--gc-sections -Wl,-z,defs \
  -o "$work/libxla_aot.so.$abi" "$work/xla_aot.o" -lgcc_s -lpthread -ldl -lm
[ "$profile" = dev ] || strip "$work/libxla_aot.so.$abi"

to=${DESTDIR:-}$prefix
mkdir -p "$to/include" "$to/lib/pkgconfig" "$to/lib/cmake/xla_aot"
install -m 644 src/capi/xla_aot.h src/capi/xla_aot_ffi.h "$to/include/"
install -m 644 "$work/libxla_aot.a" "$to/lib/"
install -m 755 "$work/libxla_aot.so.$abi" "$to/lib/"
ln -sf "libxla_aot.so.$abi" "$to/lib/libxla_aot.so"

cat >"$to/lib/pkgconfig/xla_aot.pc" <<END
prefix=\${pcfiledir}/../..
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: xla_aot
Description: Runs programs that xla-aot compiled
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lxla_aot
Libs.private: -lgcc_s -lpthread -ldl -lm
END

cat >"$to/lib/cmake/xla_aot/xla_aot-config.cmake" <<END
# Gives xla_aot::xla_aot, the shared library, and xla_aot::static.
get_filename_component(_xla_aot_prefix "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET xla_aot::xla_aot)
  add_library(xla_aot::xla_aot SHARED IMPORTED)
  set_target_properties(xla_aot::xla_aot PROPERTIES
    IMPORTED_LOCATION "\${_xla_aot_prefix}/lib/libxla_aot.so.$abi"
    IMPORTED_SONAME "libxla_aot.so.$abi"
    INTERFACE_INCLUDE_DIRECTORIES "\${_xla_aot_prefix}/include")
  add_library(xla_aot::static STATIC IMPORTED)
  set_target_properties(xla_aot::static PROPERTIES
    IMPORTED_LOCATION "\${_xla_aot_prefix}/lib/libxla_aot.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_INCLUDE_DIRECTORIES "\${_xla_aot_prefix}/include"
    INTERFACE_LINK_LIBRARIES "gcc_s;pthread;dl;m")
endif()
unset(_xla_aot_prefix)
END

cat >"$to/lib/cmake/xla_aot/xla_aot-config-version.cmake" <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
END
ls -l "$to/lib/libxla_aot.a" "$to/lib/libxla_aot.so.$abi"

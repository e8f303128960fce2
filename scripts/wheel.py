#!/usr/bin/env python3
"""Builds the wheel of the Python package, with the C library in it: scripts/wheel.py [--help]

One wheel serves every Python 3.10 or later on an architecture: the package is Python that calls the
library. Needs what scripts/install.sh needs and nothing of Python's but its own library. The same
sources and library give the same bytes.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/python/xla_aot"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/wheels", help="where it goes")
    parser.add_argument("--features", default="cpu,cuda,simulator", help="what it can run")
    parser.add_argument("--profile", default="dist", help="how cargo builds it")
    parser.add_argument("--prefix", type=pathlib.Path, help="where scripts/install.sh has put the library")
    return parser.parse_args()


def platform_tag(library):
    """The tag for the C library that the shared library asks for."""
    symbols = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", symbols.stdout)}
    major, minor = max(versions)[:2]
    return f"manylinux_{major}_{minor}_{platform.machine()}"


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: xla-aot
Version: {version}
Summary: Runs programs that xla-aot compiled, on NumPy and JAX arrays
License: MIT OR Apache-2.0
Requires-Python: >=3.10
Requires-Dist: numpy>=1.24
Requires-Dist: ml_dtypes>=0.4; extra == "narrow"
Requires-Dist: jax>=0.9.1; extra == "jax"
Provides-Extra: narrow
Provides-Extra: jax
"""


def main():
    asked = arguments()
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    with tempfile.TemporaryDirectory() as scratch:
        prefix = asked.prefix or pathlib.Path(scratch)
        if not asked.prefix:
            install = [ROOT / "scripts/install.sh", "--prefix", prefix]
            chosen = ["--features", asked.features, "--profile", asked.profile]
            subprocess.run(install + chosen, check=True, stdout=sys.stderr)
        library = next((prefix / "lib").glob("libxla_aot.so.*"))
        tag = f"py3-none-{platform_tag(library)}"
        files = {f"xla_aot/{p.name}": p.read_bytes() for p in PACKAGE.iterdir() if p.is_file()}
        files[f"xla_aot/{library.name}"] = library.read_bytes()
    info = f"xla_aot-{version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: xla-aot\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = wheel.encode()
    rows = []
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    record = f"{info}/RECORD"
    files[record] = ("".join(rows) + f"{record},,\n").encode()
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / f"xla_aot-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # A wheel ends with its record.
        for name in sorted(files, key=lambda name: (name.startswith(info), name == record, name)):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            archive.writestr(entry, files[name])
    print(path)


if __name__ == "__main__":
    main()

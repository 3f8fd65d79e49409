# SPDX-License-Identifier: Apache-2.0
"""Makes a PyTorch that was built for CUDA load without CUDA's libraries.

PyTorch's package for Linux refers to some four gigabytes of libraries of which a processor needs not
a function. This program, run once by the interpreter that has the package, reads which names torch's
libraries expect of those that are absent, and puts one small library in their place: every function
of it returns 100, the number of "no device". The runtime library itself (nvidia-cuda-runtime, a few
megabytes) stays the real one: it answers "no driver", and torch goes on with the processor.
"""

import collections
import importlib.util
import pathlib
import re
import subprocess
import sys

_ABSENT = re.compile(r"lib(cublas|cudnn|cufft|cufile|cupti|cusolver|cusparse|nccl|nvrtc|nvshmem|nvtx)")
_NAMES = re.compile(r"(cu(?!da)|nccl|nvrtc|nvshmem|nvtx)")
_STUB = "libabsent_cuda.so"


def _read(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _list_needs(libraries):
    """The file names and the versioned symbols that torch's libraries lack."""
    files, undefined, defined = set(), set(), set()
    for library in libraries:
        files |= set(re.findall(r"NEEDED.*\[(.*)\]", _read("readelf", "-d", library)))
        for line in _read("nm", "-D", library).splitlines():
            *_, kind, name = line.split()
            (undefined if kind in "Uw" else defined).add(name)
    here = {library.name for library in libraries}
    known = {name.partition("@")[0] for name in defined}
    by_version = collections.defaultdict(set)
    for symbol in undefined:
        name, _, version = symbol.partition("@")
        if _NAMES.match(name) and name not in known:
            by_version[version].add(name)
    return sorted(name for name in files - here if _ABSENT.match(name)), by_version


def main():
    torch = importlib.util.find_spec("torch")
    folder = pathlib.Path(torch.origin).parent / "lib"
    files, by_version = _list_needs(sorted(folder.glob("*.so")))
    source = ["int no_device(void) { return 100; }"]
    versions = []
    for version, names in sorted(by_version.items()):
        source += [f'int {name}(void) __attribute__((alias("no_device")));' for name in sorted(names)]
        if version:
            versions.append(f"{version} {{ global: {'; '.join(sorted(names))}; }};")
    # The compiler reads files of a folder of its own.
    code, script = folder / "absent_cuda.c", folder / "absent_cuda.map"
    code.write_text("\n".join(source))
    script.write_text("\n".join(versions))
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-fno-builtin", "-w", code,
         f"-Wl,--version-script={script}", "-o", folder / _STUB], check=True)  # fmt: skip
    for name in files:
        link = folder / name
        if not link.exists():
            link.symlink_to(_STUB)
    subprocess.run([sys.executable, "-c", "import torch; torch.zeros(2).add_(1)"], check=True)
    print(f"{len(files)} libraries replaced: {' '.join(files)}")


if __name__ == "__main__":
    main()

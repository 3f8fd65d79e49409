# SPDX-License-Identifier: Apache-2.0
"""Copies of ONNX Runtime and OpenVINO that find no better instructions than those of --cpu-isa.

No setting reaches all that they compute with: ONNX Runtime has none, and OpenVINO's is for oneDNN, while its products
of matrices and its normalisations ask the processor themselves. They use AVX-512, or AVX, where the system keeps its
registers, which the instruction XGETBV tells. In the copies another one of the same length gives the answer that a
processor without these registers has. AVX-VNNI has no registers of its own; the test of its bit never succeeds there.
"""

import hashlib
import importlib.util
import os
import pathlib
import shutil
import tempfile

# Bits of XGETBV's answer: x87 and SSE registers, and those of AVX.
_REGISTERS = {"sse4": 3, "avx2": 7}
_XGETBV = b"\x0f\x01\xd0"
# The register that it asks for is number 0: "xor ecx, ecx" before it, or where CPUID's leaf 13 told rbp.
_BEFORE_XGETBV = (b"\x31\xc9", b"\x48\x89\xd5")
# and eax, 15 and ror eax, 15, each with add eax, edx behind it.
_BEFORE_WHAT_LOOKS_SO = (b"\x83\xe0", b"\xc1\xc8")
# mov eax, 7; mov ecx, 1; cpuid
_VNNI_LEAF = b"\xb8\x07\x00\x00\x00\xb9\x01\x00\x00\x00\x0f\xa2"
# test al, 16, and test al, 0
_VNNI_TEST, _NO_TEST = b"\xa8\x10", b"\xa8\x00"

ISAS = tuple(_REGISTERS)
PACKAGES = ("onnxruntime", "openvino")


class LimitError(Exception):
    """A package cannot be limited; a sentence says why."""


def limit(code, isa):
    """A library's bytes with the answers of a processor that has no more than `isa`, and how many answers those are.

    An answer that would stay as it is makes a LimitError: what it decides would use more than `isa`.
    """
    # lea eax, [rcx + bits]: rcx is 0.
    answer = b"\x8d\x41" + bytes([_REGISTERS[isa]])
    count = 0
    for before in _BEFORE_XGETBV:
        count += code.count(before + _XGETBV)
        code = code.replace(before + _XGETBV, before + answer)
    at = code.find(_XGETBV)
    while at >= 0:
        if code[max(0, at - 2) : at] not in _BEFORE_WHAT_LOOKS_SO:
            raise LimitError(f"asks for the processor's registers at byte {at} in a way that is not known")
        at = code.find(_XGETBV, at + 1)
    return code.replace(_VNNI_LEAF + _VNNI_TEST, _VNNI_LEAF + _NO_TEST), count


def copy(package, isa, cache):
    """A folder to import `package` from, limited to `isa`, made in `cache` if it is not there yet."""
    found = importlib.util.find_spec(package)
    if found is None:
        raise ImportError(f"No module named '{package}'")
    source = pathlib.Path(found.origin).parent
    libraries = sorted(path for path in source.rglob("*.so*") if path.is_file())
    facts = [str(source), isa, pathlib.Path(__file__).read_text()]
    facts += [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in libraries]
    stamp = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    folder = cache / "limited_peers" / f"{package}-{isa}-{stamp}"
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        if not _copy_files(source, made / package, isa):
            raise LimitError(f"Package '{package}' does not ask for the processor's registers.")
        made.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _copy_files(source, target, isa):
    """Copies limited libraries and links the others; how many answers changed."""
    count = 0
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir() or "__pycache__" in path.parts:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            code, answers = limit(path.read_bytes(), isa) if ".so" in path.name else (b"", 0)
        except LimitError as error:
            raise LimitError(f"Library '{path.name}' of the package '{source.name}' {error}.") from None
        count += answers
        if answers:
            place.write_bytes(code)
            shutil.copymode(path, place)
        else:
            os.symlink(path.resolve(), place)
    return count

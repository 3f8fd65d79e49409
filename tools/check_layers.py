#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include points the way the layers allow.

Reads the quoted includes, and the angled ones that name a file of this tree, of every source file under
the tree's top folder and prints one line per offence: an include that its folder's rule does not allow,
one not written from the top of the tree, a folder without a rule, and two folders that include each
other. Everybody may include the public headers, and tests the folders called testing. The rules are
docs/architecture.md's, as a table. Exit status 1 if anything was printed.
"""

import argparse
import pathlib
import re
import sys

_CORE = "backends/core/"

# What a folder of backends/core may include directly; what those may include follows.
_CORE_LAYERS = {
    "base": [],
    "tensor": ["base"],
    "graph": ["tensor"],
    "model": ["graph"],
    "program": ["tensor"],
    "host": ["program"],
    "ops": ["graph", "host"],
    "device": ["program"],
    "codegen": ["device"],
    "reference": ["device"],
    "plan": ["device"],
    "execution": ["plan", "reference", "host"],
    "abi": ["tensor"],
}

# The parts of the kit that libonnxifi links: it never lowers.
_LIBRARY_CORE = [_CORE + layer for layer in ("base", "tensor", "graph", "model", "abi")]

# Folder -> folders it may include directly, beside itself, its own subfolders and include/.
_RULES = {
    **{_CORE + name: [_CORE + layer for layer in below] for name, below in _CORE_LAYERS.items()},
    _CORE + "ops/testing": [_CORE + "ops", _CORE + "execution"],
    _CORE + "plugin": [_CORE + name for name in _CORE_LAYERS],
    "backends/null": [_CORE + "plugin"],
    "backends/cpu": [_CORE + "plugin"],
    "backends/cuda": [_CORE + "plugin"],
    "backends/mock": [_CORE + "plugin"],
    "backends/opencl": [_CORE + "plugin"],
    "backends/vulkan": [_CORE + "plugin"],
    "discovery/search": [_CORE + "base"],
    "discovery/manifest": [_CORE + "base"],
    "discovery/library": [_CORE + "base"],
    "discovery/registry": ["discovery/search", "discovery/manifest", "discovery/library"],
    # The tools are callers of the interface like any other; what callers share lies with the suite.
    "discovery/info": ["conformance"],
    "onnxifi/run": ["conformance", "benchmarks/machine"],
    "onnxifi/partition": [],
    "onnxifi/split": ["onnxifi/partition", _CORE + "model"],
    "onnxifi/cost": ["onnxifi/partition", "onnxifi/split"],
    "onnxifi/boundary": [_CORE + "abi"],
    "onnxifi/dispatch": [
        "onnxifi/partition",
        "onnxifi/split",
        "onnxifi/cost",
        "onnxifi/boundary",
        "discovery/registry",
        *_LIBRARY_CORE,
    ],
    "onnxifi/loader": [],
    "conformance": [_CORE + "base"],
    "samples": [],
    "include": [],
    "benchmarks": [_CORE + "plugin", "backends/cpu", "backends/opencl", "benchmarks/machine"],
    "benchmarks/machine": [_CORE + "base"],
}

_SUFFIXES = (".h", ".hpp", ".c", ".cc", ".inc")
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def find_rule(folder, rules):
    """Returns the longest key of `rules` that is `folder` or above it, or None."""
    while folder not in rules:
        folder, slash, _ = folder.rpartition("/")
        if not slash:
            return folder if folder in rules else None
    return folder


def close_over(rules):
    """Returns for every key of `rules` all that it may include, however indirectly."""

    def collect(folder, found):
        for below in rules[folder]:
            if below not in found:
                found.add(below)
                collect(below, found)
        return found

    return {folder: collect(folder, set()) for folder in rules}


def list_sources(root):
    """Yields every source file, as a path relative to `root`, in a stable order."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if relative.parts[0] in ("build", ".git") or path.suffix not in _SUFFIXES:
            continue
        if path.is_file():
            yield relative


def list_includes(path):
    """Yields (line number, opening mark, name) of every include of a file."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def find_offences(root, rules):
    """Returns one sentence per offence in the tree at `root`."""
    allowed = close_over(rules)
    offences = []
    edges = {}
    for source in list_sources(root):
        folder = source.parent.as_posix()
        rule = find_rule(folder, rules)
        if rule is None:
            offences.append(f"{source}: the folder '{folder}' has no rule in check_layers.py.")
            continue
        for number, mark, name in list_includes(root / source):
            place = f"{source}:{number}"
            if (root / "include" / name).is_file():
                continue
            if not (root / name).is_file():
                if mark == '"':
                    offences.append(
                        f'{place}: "{name}" is no file below the top folder; includes of our own are'
                        " written from there."
                    )
                continue
            target = pathlib.PurePosixPath(name).parent.as_posix()
            target_rule = find_rule(target, rules)
            if target == folder:
                continue
            if source.stem.endswith("_test") and target.endswith("/testing"):
                continue
            edges.setdefault((folder, target), place)
            if target_rule != rule and target_rule not in allowed[rule]:
                offences.append(f"{place}: '{rule}' may not include '{target_rule or target}'.")
    for (folder, target), place in sorted(edges.items()):
        back = edges.get((target, folder))
        if back and folder < target:
            offences.append(f"{place}: '{folder}' and '{target}' include each other (also {back}).")
    return offences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    top = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=top, help="top of the tree")
    root = parser.parse_args().root
    offences = find_offences(root, _RULES)
    for offence in offences:
        print(offence)
    if offences:
        return 1
    print(f"{sum(1 for _ in list_sources(root))} files include only what their layer allows.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

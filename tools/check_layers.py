#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include points the way the layers allow.

Reads the quoted includes, and the angled ones that name a file of this tree, of every source file under
the tree's top folder and prints one line per offence:

- an include that its folder's rule does not allow, or that is not written from the top of the tree;
- a folder without a rule, and a rule that names a folder that does not exist;
- a folder of onnxifi/ with more lines of product code than a reader keeps in mind;
- files, modules or folders that include each other in a circle. A module is x.h, x.cc and x-inl.h of one
  folder: its header may be free of a circle that its source closes.

Everybody may include the public headers, and tests the folders called testing. A test of one kernel in its
whole plugin stands beside the kernel: in a folder of a plugin's, tests may include what the plugin may. The
rules are docs/architecture.md's, as a table. Exit status 1 if anything was printed.
"""

import argparse
import collections
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
    "domains": ["model"],
    "program": ["tensor"],
    "image": ["tensor"],
    "host": ["program", "image"],
    "ops": ["graph", "host"],
    "device": ["program"],
    "codegen": ["device"],
    "reference": ["device"],
    "plan": ["device"],
    "execution": ["plan", "reference", "host"],
    "abi": ["tensor"],
}

# What a folder of backends/cpu may include directly, beside the kit. Kernels know neither the plugin nor one
# another's families, so that each family reads by itself.
_CPU = "backends/cpu/"
_CPU_LAYERS = {
    "processor": [],
    "threads": [],
    "vector_math": [],
    "transpose": [],
    "epilogue": [],
    "runtime": ["threads"],
    "engine": ["runtime", "processor", "transpose", "vector_math"],
    "gemm": ["epilogue", "processor", "threads", "transpose", "vector_math"],
    "onednn": ["epilogue", "runtime"],
    "matmul": ["gemm", "processor", "runtime"],
    "convolution": ["gemm", "processor", "runtime"],
    "integer": ["engine", "processor", "runtime", "transpose"],
    "pooling": ["engine", "processor"],
    "recurrent": ["gemm", "processor", "runtime", "vector_math"],
    "attention": ["engine", "gemm", "processor", "runtime", "vector_math"],
}
# Kernels take steps and views; the reference has the arithmetic that they have to match.
_CPU_CORE = [_CORE + "device", _CORE + "reference"]

# The parts of the kit that libonnxifi links: it never lowers.
_LIBRARY_CORE = [_CORE + layer for layer in ("base", "tensor", "graph", "model", "domains", "abi")]

# Folder -> folders it may include directly, beside itself, its own subfolders and include/.
_RULES = {
    **{_CORE + name: [_CORE + layer for layer in below] for name, below in _CORE_LAYERS.items()},
    _CORE + "codegen/testing": [_CORE + "codegen", _CORE + "execution"],
    _CORE + "ops/testing": [_CORE + "ops", _CORE + "execution"],
    _CORE + "plugin": [_CORE + name for name in _CORE_LAYERS],
    "backends/null": [_CORE + "plugin"],
    **{_CPU + name: [*_CPU_CORE, *(_CPU + part for part in below)] for name, below in _CPU_LAYERS.items()},
    _CPU + "engine/testing": [_CPU + "engine", _CORE + "ops"],
    "backends/cpu": [_CORE + "plugin", *(_CPU + name for name in _CPU_LAYERS)],
    "backends/cuda": [_CORE + "plugin", "backends/cuda/libraries", "backends/cuda/testing/emulated"],
    "backends/cuda/libraries": [_CORE + "codegen"],
    "backends/cuda/testing/emulated": [_CORE + "codegen", "backends/cuda/libraries"],
    "backends/mock": [_CORE + "plugin"],
    "backends/opencl": [_CORE + "plugin"],
    "backends/vulkan": [_CORE + "plugin"],
    "discovery/search": [_CORE + "base"],
    "discovery/manifest": [_CORE + "base"],
    "discovery/library": [_CORE + "base"],
    "discovery/registry": ["discovery/search", "discovery/manifest", "discovery/library"],
    "discovery/probe": ["discovery/search"],
    # Programs and suite are callers of the interface like any other; client is what callers share.
    "client": [_CORE + "base", "client/onnx_file"],
    "client/onnx_file": [_CORE + "base"],
    "client/comparison": ["client/onnx_file"],
    "apps/onnxifi_info": ["client", "discovery/probe"],
    "apps/onnxifi_run": ["client", "client/comparison", "discovery/probe", "benchmarks/machine"],
    "onnxifi/partition": [],
    "onnxifi/split": ["onnxifi/partition", _CORE + "domains", _CORE + "model"],
    "onnxifi/cost": ["onnxifi/partition", "onnxifi/split"],
    # What libonnxifi is made of, each room upon the one before; see onnxifi/README.md.
    "onnxifi/plugins": ["onnxifi/split", "discovery/library", *_LIBRARY_CORE],
    "onnxifi/planner": ["onnxifi/plugins", "onnxifi/cost"],
    "onnxifi/partitioned": ["onnxifi/planner"],
    "onnxifi/measurement": ["onnxifi/partitioned"],
    "onnxifi/dispatch": ["onnxifi/measurement", "discovery/registry"],
    "onnxifi/testing": ["onnxifi/plugins"],
    "onnxifi/loader": [],
    "conformance": ["client", "client/comparison", "discovery/probe"],
    "samples": [],
    # A vendor's: the kit, as backends/null has it.
    "samples/vendor_plugin": [_CORE + "plugin"],
    "include": [],
    "benchmarks": [
        _CORE + "plugin",
        "backends/cpu",
        "backends/cuda",
        "backends/opencl",
        "backends/vulkan",
        "benchmarks/machine",
    ],
    "benchmarks/machine": [_CORE + "base"],
}

# Projects of their own: their files include each other from the top of the project.
_PROJECTS = ("samples/vendor_plugin",)

# Folders below these have at most so many lines of headers and sources, without tests and what only they use.
_SIZED = {"onnxifi": 2500}
_TEST_FOLDERS = ("testing", "fakes")

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


def name_module(source):
    """Returns the module of a file: its path without suffix, x for x.h, x.cc and x-inl.h."""
    return source.with_suffix("").as_posix().removesuffix("-inl")


def _find_shortest_circle(edges, start):
    """Returns the nodes of a shortest circle through `start`, in order, or None."""
    before = {}
    queue = collections.deque([start])
    while queue:
        node = queue.popleft()
        for target in edges.get(node, ()):
            if target == start:
                circle = [node]
                while circle[-1] != start:
                    circle.append(before[circle[-1]])
                return circle[::-1]
            if target not in before:
                before[target] = node
                queue.append(target)
    return None


def find_circles(edges):
    """Returns circles of a graph {node: {node: where}}, no two of which share an edge.

    Each is a list of nodes that begins with the first of them by name. The shortest come first. A graph
    without the edges of all returned circles has none.
    """
    left = {node: dict(sorted(targets.items())) for node, targets in sorted(edges.items())}
    circles = []
    candidates = list(left)
    while True:
        found = [(node, _find_shortest_circle(left, node)) for node in candidates]
        found = [(node, circle) for node, circle in found if circle]
        if not found:
            return circles
        candidates = [node for node, _ in found]
        _, circle = min(found, key=lambda pair: (len(pair[1]), pair[0]))
        circles.append(circle)
        for node, target in zip(circle, circle[1:] + circle[:1]):
            del left[node][target]


def _describe_circle(kind, circle, edges):
    """Returns one sentence: the circle as a path, each step with the line that takes it."""
    steps = [
        f"{target} ({edges[node][target]})" for node, target in zip(circle, circle[1:] + circle[:1])
    ]
    return f"{kind} include each other in a circle: {circle[0]} -> " + " -> ".join(steps) + "."


def find_plugin(folder, rules):
    """Returns the folder of the plugin that `folder` lies below, such as backends/cpu, or None."""
    parts = folder.split("/")
    plugin = "/".join(parts[:2])
    return plugin if parts[0] == "backends" and len(parts) > 2 and plugin in rules else None


def find_missing_folders(root, rules):
    """Returns one sentence per folder that `rules` names and that the tree at `root` lacks."""
    named = sorted({*rules, *(below for allowed in rules.values() for below in allowed)})
    return [
        f"check_layers.py has a rule that names the folder '{folder}', which does not exist."
        for folder in named
        if not (root / folder).is_dir()
    ]


def find_large_folders(root, limits):
    """Returns one sentence per folder that lies below one of `limits` and has more product lines."""
    lines = collections.Counter()
    for source in list_sources(root):
        is_test = source.stem.endswith("_test") or any(part in _TEST_FOLDERS for part in source.parts)
        if source.parts[0] in limits and not is_test:
            text = (root / source).read_text(errors="replace")
            lines[source.parent.as_posix()] += len(text.splitlines())
    return [
        f"The folder '{folder}' has {count} lines of product code; the limit is"
        f" {limits[folder.partition('/')[0]]}."
        for folder, count in sorted(lines.items())
        if count > limits[folder.partition("/")[0]]
    ]


def name_from_top(root, source, name, projects):
    """Returns the name of an include as it is from the top folder, though a project has its own top."""
    for project in projects:
        if source.is_relative_to(project) and (root / project / name).is_file():
            return f"{project}/{name}"
    return name


def find_offences(root, rules, projects=_PROJECTS):
    """Returns one sentence per offence in the tree at `root`."""
    allowed = close_over(rules)
    offences = []
    # Kind of node -> node -> node that it includes -> the first line that does.
    circle_edges = {kind: collections.defaultdict(dict) for kind in ("Files", "Modules", "Folders")}
    for source in list_sources(root):
        folder = source.parent.as_posix()
        rule = find_rule(folder, rules)
        if rule is None:
            offences.append(f"{source}: the folder '{folder}' has no rule in check_layers.py.")
            continue
        for number, mark, name in list_includes(root / source):
            place = f"{source}:{number}"
            name = name_from_top(root, source, name, projects)
            if (root / "include" / name).is_file():
                continue
            if not (root / name).is_file():
                if mark == '"':
                    offences.append(
                        f'{place}: "{name}" is no file below the top folder; includes of our own are'
                        " written from there."
                    )
                continue
            file = pathlib.PurePosixPath(name)
            target = file.parent.as_posix()
            circle_edges["Files"][source.as_posix()].setdefault(name, place)
            if name_module(source) != name_module(file):
                circle_edges["Modules"][name_module(source)].setdefault(name_module(file), place)
            target_rule = find_rule(target, rules)
            if target == folder:
                continue
            # Test support of one folder may use that of another.
            if source.parent.name in _TEST_FOLDERS and target.endswith("/testing"):
                continue
            if source.stem.endswith("_test"):
                plugin = find_plugin(folder, rules)
                if target.endswith("/testing") or target_rule in (plugin, *allowed.get(plugin, ())):
                    continue
            circle_edges["Folders"][folder].setdefault(target, place)
            if target_rule != rule and target_rule not in allowed[rule]:
                offences.append(f"{place}: '{rule}' may not include '{target_rule or target}'.")
    for kind, edges in circle_edges.items():
        offences += [_describe_circle(kind, circle, edges) for circle in find_circles(edges)]
    return offences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    top = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=top, help="top of the tree")
    root = parser.parse_args().root
    offences = find_missing_folders(root, _RULES) + find_offences(root, _RULES)
    offences += find_large_folders(root, _SIZED)
    for offence in offences:
        print(offence)
    if offences:
        return 1
    count = sum(1 for _ in list_sources(root))
    print(f"{count} files include only what their layer allows, and none in a circle.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

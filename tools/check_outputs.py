#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands that documents show, and compares what they print with what the documents say.

A command stands in a fenced block called `console`, after `$ `; the lines up to the next command or the end
of the block are its output, standard error included. Commands run by bash in the root of the tree, with the
programs of a build and this Python on the PATH, the package of python/, PoCL and lavapipe as the only drivers of OpenCL and Vulkan, an empty cache and no
ONNXIFI_ variable.
Names of devices, fractions, and numbers with a unit (ms, us, s, %, GiB ...) may differ, and so may spaces;
everything else has to be equal. With --write, blocks that differ are written anew.
Exit status: 0 all equal (or written), 1 some differ, 2 the programs cannot be run.
"""

import argparse
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DOCUMENTS = ("README.md", "docs/user_guide.md")

DEVICE_NAME = "<device name>"
# Drivers for processors, and the variables that name them to their loaders.
_DRIVERS = {
    "OCL_ICD_VENDORS": "/etc/OpenCL/vendors/pocl.icd",
    "VK_ICD_FILENAMES": "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
}
_FENCE = "```"
_UNITS = r"(?:ms|us|s|%|GiB|MiB|KiB|GB/s|GFLOP/s)"
_QUANTITY = re.compile(rf"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?= {_UNITS}(?!\w))")
_FRACTION = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")


def normalise(output):
    """Returns the lines of an output without what differs from run to run and machine to machine."""
    output = _FRACTION.sub("#", _QUANTITY.sub("#", output))
    return [re.sub(r"\s+", " ", line).strip() for line in output.strip().splitlines()]


def hide_names(output, names):
    """Returns the output with names of devices and of the tree replaced by what every machine has."""
    for name in sorted(names, key=len, reverse=True):
        output = output.replace(name, DEVICE_NAME)
    return output


class Example:
    """A command of a document, with the lines that hold its output."""

    def __init__(self, command, first, last):
        self.command, self.first, self.last = command, first, last


def find_examples(lines):
    """Returns the examples in a document's lines; an output is lines[first:last]."""
    examples = []
    is_console = False
    for number, line in enumerate(lines):
        if line.startswith(_FENCE):
            is_console = not is_console and line.strip() == f"{_FENCE}console"
        elif is_console and line.startswith("$ "):
            examples.append(Example(line[2:], number + 1, number + 1))
        elif is_console and examples:
            examples[-1].last = number + 1
    return examples


def differ(said, printed):
    """Returns the difference of two outputs as lines of a diff, [] where there is none that counts."""
    return list(difflib.unified_diff(normalise(said), normalise(printed), "said", "printed", lineterm="", n=1))


class Runner:
    """Runs commands as a reader would who has nothing but the build."""

    def __init__(self, root, build, folder):
        self._root = root
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ONNXIFI_")}
        self._environment = {
            **kept,
            "PATH": f"{build / 'bin'}:{pathlib.Path(sys.executable).parent}:{kept.get('PATH', os.defpath)}",
            "PYTHONPATH": str(root / "python"),
            "ONNXIFI_LIBRARY": str(build / "lib" / "libonnxifi.so"),
            "ONNXIFI_CACHE_DIR": f"{folder}/cache",
            "ONNXIFI_CACHE_HOME": f"{folder}/cache",
        }
        for variable, driver in _DRIVERS.items():
            if pathlib.Path(driver).exists():
                self._environment[variable] = driver
        report = json.loads(self._run("onnxifi_info --json"))
        # The other two are no hardware.
        devices = [device for device in report["devices"] if device["plugin"] not in ("auto", "null")]
        self._names = {device["queries"]["device"] for device in devices}

    def _run(self, command):
        finished = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=self._root, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
        )
        return finished.stdout

    def run(self, command):
        output = hide_names(self._run(command), self._names).replace(str(self._root), ".")
        return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


def check(path, runner, writes):
    """Compares one document; returns the differences, with the command before each. Writes it if asked."""
    lines = path.read_text().splitlines()
    differences = []
    for example in reversed(find_examples(lines)):
        printed = runner.run(example.command)
        if difference := differ("\n".join(lines[example.first : example.last]), printed):
            differences[:0] = [f"{path.name}:{example.first}: $ {example.command}", *difference]
            lines[example.first : example.last] = printed.splitlines()
    if writes and differences:
        path.write_text("\n".join(lines) + "\n")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("documents", nargs="*", default=DOCUMENTS, help=f"(default: {' '.join(DOCUMENTS)})")
    parser.add_argument("--build", type=pathlib.Path, default=root / "build" / "release", help="folder of the build")
    parser.add_argument("--write", action="store_true", help="write outputs that differ into the documents")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            runner = Runner(root, options.build.resolve(), folder)
        except (OSError, ValueError, KeyError) as error:
            print(f"The programs of '{options.build}' cannot be run: {error}", file=sys.stderr)
            return 2
        differences = []
        for document in options.documents:
            differences += check(root / document, runner, options.write)
    print("\n".join([*differences, "The outputs differ." if differences else "The outputs are those of the programs."]))
    return 1 if differences and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every folder of more than five files has a README of at most 20 lines.

Counts the files of a folder that git tracks, without those of its subfolders, and only what people read:
sources, scripts, build files and documents, not data. The README of the whole tree may be longer. Prints
one line per offence. Exit status: 0 none, 1 some, 2 the command line is wrong.
"""

import argparse
import pathlib
import subprocess
import sys

MAX_FILES_WITHOUT = 5
MAX_LINES = 20

_SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cl", ".inc", ".def", ".in", ".py", ".sh", ".md", ".txt", ".cmake", ""}


def find_offences(texts):
    """Returns one sentence per offence among `texts`, contents of files by path; others than READMEs may be None."""
    counts = {}
    for name in texts:
        path = pathlib.PurePosixPath(name)
        if path.suffix in _SUFFIXES and path.name != "README.md":
            counts[str(path.parent)] = counts.get(str(path.parent), 0) + 1
    offences = []
    for folder, count in sorted(counts.items()):
        if folder != "." and count > MAX_FILES_WITHOUT and f"{folder}/README.md" not in texts:
            offences.append(f"{folder} has {count} files and no README.md.")
    for name, text in sorted(texts.items()):
        if name.endswith("/README.md") and (lines := len(text.splitlines())) > MAX_LINES:
            offences.append(f"{name} has {lines} lines, more than {MAX_LINES}.")
    return offences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tree = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=tree, help="top of the tree (default: this one)")
    root = parser.parse_args().root
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.splitlines() if (root / name).is_file()]
    texts = {name: (root / name).read_text() if name.endswith("README.md") else None for name in names}
    offences = find_offences(texts)
    print("\n".join([*offences, f"{len(offences)} folders lack a short README."]))
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

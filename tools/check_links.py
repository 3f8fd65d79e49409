#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every relative link of every document leads somewhere.

Reads all Markdown files that git tracks. A link must name a file or folder of the tree, and its anchor, if
any, a heading of that document as GitHub spells it. Links with a scheme (https:) are not followed. Prints
one line per offence. Exit status: 0 none, 1 some, 2 the command line is wrong.
"""

import argparse
import pathlib
import re
import subprocess
import sys

_FENCE = re.compile(r"^\s*(```|~~~)")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_IMAGE = re.compile(r"(?:src|href)=\"([^\"]+)\"")
_DEFINITION = re.compile(r"^\s*\[[^\]]+\]:\s*<?(\S+?)>?\s*$")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")


def read_lines(text):
    """Yields (number, line) of everything outside fenced code."""
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield number, line


def list_anchors(text):
    """Returns the anchors that GitHub gives the headings of a document."""
    anchors = set()
    for _, line in read_lines(text):
        heading = _HEADING.match(line)
        if not heading:
            continue
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).lower()
        anchor = "".join(letter for letter in title if letter.isalnum() or letter in " -_").replace(" ", "-")
        base, count = anchor, 0
        while anchor in anchors:
            count += 1
            anchor = f"{base}-{count}"
        anchors.add(anchor)
    return anchors


def list_links(text):
    """Yields (line number, target) of every link outside code."""
    for number, line in read_lines(text):
        line = _CODE.sub("", line)
        for pattern in (_LINK, _IMAGE, _DEFINITION):
            for match in pattern.finditer(line):
                yield number, match.group(1)


def find_offences(root, documents):
    """Returns one sentence per link of `documents`, paths relative to `root`, that leads nowhere."""
    offences = []
    for name in documents:
        path = root / name
        for number, target in list_links(path.read_text()):
            if re.match(r"[a-zA-Z][a-zA-Z+.-]*:", target):
                continue
            file, _, anchor = target.partition("#")
            linked = (path.parent / file if not file.startswith("/") else root / file[1:]) if file else path
            if not linked.exists():
                offences.append(f"{name}:{number}: '{target}' does not exist.")
            elif anchor and linked.suffix == ".md" and anchor not in list_anchors(linked.read_text()):
                offences.append(f"{name}:{number}: '{file or name}' has no heading '#{anchor}'.")
    return offences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tree = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=tree, help="top of the tree (default: this one)")
    root = parser.parse_args().root
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, check=True, capture_output=True, text=True)
    offences = find_offences(root, listed.stdout.splitlines())
    print("\n".join([*offences, f"{len(offences)} links lead nowhere."]))
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

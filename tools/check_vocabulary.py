#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses identifiers and phrases that docs/glossary.md has replaced.

tools/refused_identifiers.txt lists identifiers, each a regular expression for a whole identifier, that no
file of the tree may contain; with `type` before it, it refuses only a type of that name. A file's name is
checked like its text. tools/refused_phrases.txt lists phrases that no document (*.md) may contain, whatever
their case and wherever their lines break. In both, the term to use follows after two spaces or more. Checks
every text file that git tracks, but for the two lists. Prints one line per offence. Exit status: 0 none,
1 some, 2 a list or the command line is wrong.
"""

import argparse
import bisect
import pathlib
import re
import subprocess
import sys

IDENTIFIERS = "tools/refused_identifiers.txt"
PHRASES = "tools/refused_phrases.txt"

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"\b(?:struct|class|using)\s+([A-Za-z_]\w*)(?=\s*(?:final\b|[{:=]))")


def read_list(text):
    """Returns [(refused, replacement)] of a list: one per line, '#' begins a comment."""
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = re.split(r" {2,}", line.strip(), maxsplit=1)
        if len(parts) != 2:
            raise ValueError(f"line {number}: '{line}' names no term to use, after two spaces.")
        entries.append((parts[0], parts[1]))
    return entries


class Vocabulary:
    """What is refused, ready to be looked for."""

    def __init__(self, identifiers, phrases):
        self._types = {name[len("type ") :]: term for name, term in identifiers if name.startswith("type ")}
        self._patterns = [(re.compile(name), term) for name, term in identifiers if not name.startswith("type ")]
        self._verdicts = {}
        self._phrases = [
            (phrase, re.compile(r"(?<!\w)" + r"[\s>*/]+".join(map(re.escape, phrase.split())) + r"(?!\w)", re.I), term)
            for phrase, term in phrases
        ]

    def _term_for(self, identifier):
        if identifier not in self._verdicts:
            terms = (term for pattern, term in self._patterns if pattern.fullmatch(identifier))
            self._verdicts[identifier] = next(terms, None)
        return self._verdicts[identifier]

    def find_in(self, name, text):
        """Returns one sentence per offence of the file called `name`."""
        offences = []
        for word in _IDENTIFIER.findall(name):
            if term := self._term_for(word):
                offences.append(f"{name}: the file is named '{word}'; the term is: {term}.")
        starts = [0] + [match.end() for match in re.finditer("\n", text)]

        def report(position, refused, term):
            offences.append(f"{name}:{bisect.bisect_right(starts, position)}: '{refused}'; the term is: {term}.")

        for match in _IDENTIFIER.finditer(text):
            if term := self._term_for(match.group()):
                report(match.start(), match.group(), term)
        for match in _TYPE.finditer(text):
            if term := self._types.get(match.group(1)):
                report(match.start(1), f"type {match.group(1)}", term)
        if name.endswith(".md"):
            for phrase, pattern, term in self._phrases:
                for match in pattern.finditer(text):
                    report(match.start(), phrase, term)
        return offences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tree = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=tree, help="top of the tree (default: this one)")
    root = parser.parse_args().root
    try:
        vocabulary = Vocabulary(*(read_list((root / name).read_text()) for name in (IDENTIFIERS, PHRASES)))
    except (OSError, ValueError, re.error) as error:
        print(f"The lists of refused words cannot be used: {error}", file=sys.stderr)
        return 2
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True)
    offences = []
    for name in listed.stdout.splitlines():
        path = root / name
        if name in (IDENTIFIERS, PHRASES) or not path.is_file():
            continue
        content = path.read_bytes()
        offences += vocabulary.find_in(name, "" if b"\0" in content else content.decode(errors="replace"))
    print("\n".join([*offences, f"{len(offences)} words or phrases are refused."]))
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

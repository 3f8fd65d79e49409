#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the subjects of commits: `area: what becomes true`, at most 72 characters, no full stop.

Takes all commits since the rule was made, that is, since this file was added, but for merges; or those of
a range. In a shallow clone the commits that are there are checked, except the one at its edge. Prints one
line per offence. Exit status: 0 none, 1 some, 2 the command line is wrong.
"""

import argparse
import pathlib
import re
import subprocess
import sys

MAX_LENGTH = 72

_SUBJECT = re.compile(r"[a-z0-9_.*{},+-]+(/[a-z0-9_.*{},+-]+)*(, ?[a-z0-9_./*{}+-]+)*: \S")


def check_subject(subject):
    """Returns what is wrong with a subject as a sentence, or None."""
    if not _SUBJECT.match(subject):
        return f"'{subject}' does not begin with an area, such as 'core/ops: '."
    if len(subject) > MAX_LENGTH:
        return f"'{subject}' has {len(subject)} characters, more than {MAX_LENGTH}."
    if subject.endswith("."):
        return f"'{subject}' ends with a full stop."
    return None


def _git(root, *arguments):
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def list_commits(root, span):
    """Returns [(abbreviated hash, subject)] of the span, or of all commits since this file was added."""
    if span is None:
        own = f"tools/{pathlib.Path(__file__).name}"
        added = _git(root, "log", "--diff-filter=A", "--format=%H", "--", own).split()
        if not added:
            return []
        span = f"{added[-1]}..HEAD"
    lines = _git(root, "log", "--no-merges", "--format=%h %s", span).splitlines()
    return [tuple(line.split(" ", 1)) for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tree = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=tree, help="top of the tree (default: this one)")
    parser.add_argument("range", nargs="?", help="such as main..HEAD (default: since the rule was made)")
    options = parser.parse_args()
    try:
        commits = list_commits(options.root, options.range)
    except subprocess.CalledProcessError as error:
        print(f"git cannot list the commits: {error.stderr.strip()}", file=sys.stderr)
        return 2
    offences = [f"{name}: {offence}" for name, subject in commits if (offence := check_subject(subject))]
    print("\n".join([*offences, f"{len(commits)} subjects, {len(offences)} of them wrong."]))
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

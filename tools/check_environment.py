#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the environment variables that the tree reads with those that docs/environment.md explains.

Reads every file that git tracks: C and C++ (string literals that are a first argument, in files that call
getenv; and literals that begin with ONNXIFI_, but in tests), Python (os.environ and os.getenv, names as
literals or constants of the module), shell scripts (upper-case variables that the script does not set
itself) and CMake ($ENV{NAME}). The document explains a variable by a table row whose first cell is its
name. Prints one line per variable that is on one side only.
Exit status: 0 none, 1 some, 2 the command line is wrong.
"""

import argparse
import ast
import pathlib
import re
import subprocess
import sys

DOCUMENT = "docs/environment.md"

_C_SUFFIXES = (".c", ".cc", ".h", ".hpp", ".inc")
_C_ARGUMENT = re.compile(r"\(\s*\"([A-Z][A-Z0-9_]{3,})\"")
_C_OWN_NAME = re.compile(r"\"(ONNXIFI_[A-Z0-9_]+)\"")
_SHELL_READ = re.compile(r"(?<!\\)\$(?:\{([A-Z][A-Z0-9_]{2,})|([A-Z][A-Z0-9_]{2,}))")
_SHELL_SET = re.compile(
    r"(?:^|[;&|({]|\b(?:then|do|else|export|local|readonly|declare|env))\s*([A-Z][A-Z0-9_]*)="
    r"|\bread\s+(?:-\w+\s+)*([A-Z]\w*)",
    re.MULTILINE,
)
_CMAKE_READ = re.compile(r"\$?ENV\{([A-Za-z_]\w*)\}")
_ROW = re.compile(r"^\|\s*`([A-Z][A-Z0-9_]*)`\s*\|")
# What bash sets, and what sourcing /etc/os-release does.
_NOT_OF_THE_CALLER = set(
    "BASH_SOURCE BASH_REMATCH PIPESTATUS SECONDS IFS PWD RANDOM EPOCHREALTIME EPOCHSECONDS LINENO FUNCNAME"
    " OPTARG OPTIND REPLY UID EUID COLUMNS VERSION_CODENAME VERSION_ID".split()
)


def names_in_c(name, text):
    """Returns the variables that a C or C++ source reads, itself or by a function to which it gives the name."""
    names = set(_C_ARGUMENT.findall(text)) if "getenv" in text else set()
    return names if name.endswith("_test.cc") else names | set(_C_OWN_NAME.findall(text))


def names_in_shell(text):
    """Returns the variables that a shell script takes from its caller."""
    text = re.sub(r"(?m)(^|\s)#.*$", r"\1", text)
    own = {name for pair in _SHELL_SET.findall(text) for name in pair if name}
    read = {name for pair in _SHELL_READ.findall(text) for name in pair if name}
    return read - own - _NOT_OF_THE_CALLER


def _is_environ(node):
    return isinstance(node, ast.Attribute) and node.attr == "environ"


def names_in_python(text):
    """Returns the variables that a Python source reads."""
    module = ast.parse(text)
    constants = {
        target.id: statement.value.value
        for statement in module.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }

    def text_of(node):
        if isinstance(node, ast.Constant):
            return node.value
        return constants.get(node.id) if isinstance(node, ast.Name) else None

    names = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Subscript) and _is_environ(node.value) and isinstance(node.ctx, ast.Load):
            names.add(text_of(node.slice))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            of_environ = _is_environ(node.func.value) and node.func.attr in ("get", "pop")
            if of_environ or node.func.attr == "getenv":
                names.add(text_of(node.args[0]))
        elif isinstance(node, ast.Compare) and any(_is_environ(side) for side in node.comparators):
            names.add(text_of(node.left))
    return {name for name in names if isinstance(name, str)}


def names_in(name, text):
    """Returns the variables that the file called `name` reads."""
    suffix = pathlib.PurePath(name).suffix
    first_line = text.partition("\n")[0]
    if suffix in _C_SUFFIXES:
        return names_in_c(name, text)
    if suffix == ".py" or first_line.startswith("#!") and "python" in first_line:
        return names_in_python(text)
    if suffix == ".sh" or first_line.startswith("#!") and first_line.endswith("sh"):
        return names_in_shell(text)
    if suffix == ".cmake" or pathlib.PurePath(name).name == "CMakeLists.txt":
        return set(_CMAKE_READ.findall(text))
    return set()


def names_explained(document):
    """Returns the variables that have a row in a table of the document."""
    return {match.group(1) for line in document.splitlines() if (match := _ROW.match(line))}


def find_offences(files, document):
    """Returns one sentence per variable that `files`, texts by name, and the document do not share."""
    readers = {}
    for name, text in sorted(files.items()):
        for variable in names_in(name, text):
            readers.setdefault(variable, name)
    explained = names_explained(document)
    return [
        f"{readers[variable]} reads {variable}, which {DOCUMENT} does not explain."
        for variable in sorted(readers.keys() - explained)
    ] + [f"{DOCUMENT} explains {variable}, which nothing reads." for variable in sorted(explained - readers.keys())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tree = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--root", type=pathlib.Path, default=tree, help="top of the tree (default: this one)")
    parser.add_argument("--list", action="store_true", help="print every variable that is read, and by what, and end")
    options = parser.parse_args()
    listed = subprocess.run(["git", "ls-files"], cwd=options.root, check=True, capture_output=True, text=True)
    files = {}
    for name in listed.stdout.splitlines():
        path = options.root / name
        # This check and its test name variables to tell them apart, and read none.
        if path.is_file() and not name.startswith("tools/check_environment"):
            files[name] = path.read_bytes().decode(errors="replace")
    if options.list:
        for name, text in sorted(files.items()):
            for variable in sorted(names_in(name, text)):
                print(f"{variable:30} {name}")
        return 0
    offences = find_offences(files, files.get(DOCUMENT, ""))
    print("\n".join([*offences, f"{len(offences)} variables are on one side only."]))
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

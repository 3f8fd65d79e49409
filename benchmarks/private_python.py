# SPDX-License-Identifier: Apache-2.0
"""The environments of tools/setup, for scripts that need more than the Python they were started with has."""

import importlib.util
import os
import pathlib
import subprocess
import sys

_TREE = pathlib.Path(__file__).resolve().parent.parent
# Set by the first of two processes, so that it is not tried again.
_ENTERED = "ONNXIFI_COMPARE_PYTHON"


def enter(script, peers):
    """Continues `script` in an environment that has numpy, onnx and the modules `peers`, where this one lacks any.

    Ends with status 2 and a sentence where there is none yet.
    """
    missing = [name for name in ("numpy", "onnx", *peers) if importlib.util.find_spec(name) is None]
    if not missing:
        return
    name = pathlib.Path(script).name
    if not (_TREE / "tools" / "setup").exists():
        print(f"{name}: Python has no {', '.join(missing)}.", file=sys.stderr)
        sys.exit(2)
    finder = [str(_TREE / "tools" / "setup"), *(["--compare"] if peers else []), "--print-python"]
    private = subprocess.run(finder, capture_output=True, text=True, check=True).stdout.strip()
    if not pathlib.Path(private).exists() or os.environ.get(_ENTERED) == private:
        option = " --compare" if peers else ""
        sentence = f"Python has no {', '.join(missing)}; run 'tools/setup{option}' first."
        print(f"{name}: {sentence}", file=sys.stderr)
        sys.exit(2)
    os.environ[_ENTERED] = private
    os.execv(private, [private, script, *sys.argv[1:]])

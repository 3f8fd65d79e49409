# SPDX-License-Identifier: Apache-2.0
"""ONNX models as PyTorch reads them: torch_translation.py writes them, once, before anything is timed."""

import importlib.util
import pathlib
import subprocess
import sys

import numpy

_TIMEOUT_S = 600
_HERE = pathlib.Path(__file__).resolve().parent


class TranslationError(Exception):
    """A model that cannot be compared with PyTorch, in a sentence."""


def convert(path, inputs, folder):
    """The file of a model for inputs of these extents, in `folder`."""
    if importlib.util.find_spec("torch") is None:
        raise TranslationError(f"{sys.executable} has no module 'torch'")
    arrays, file = pathlib.Path(folder, "torch_inputs.npz"), pathlib.Path(folder, "model.torch")
    numpy.savez(arrays, **inputs)
    command = [sys.executable, str(_HERE / "torch_translation.py"), str(path), str(arrays), str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as fault:
        raise TranslationError(f"its translation takes longer than {_TIMEOUT_S} s") from fault
    if done.returncode != 0:
        words = done.stderr.strip().splitlines() or [f"it ends with status {done.returncode}"]
        raise TranslationError(f"it is not translated: {words[-1].rstrip('.')}")
    return file

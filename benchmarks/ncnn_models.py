# SPDX-License-Identifier: Apache-2.0
"""ONNX models as ncnn reads them: pnnx converts them, once, before anything is timed.

The program of PyPI's package does it; the package's Python functions need PyTorch, the program does
not.
"""

import dataclasses
import importlib.util
import pathlib
import re
import shutil
import subprocess
import tempfile

import onnx

_TIMEOUT_S = 600
# Types of inputs in pnnx's words.
_TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64"}
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_NETWORK, _WEIGHTS = "model.ncnn.param", "model.ncnn.bin"
# Names of the model's outputs, a line each: to read the model is not the engine's work.
_OUTPUTS = "outputs.txt"


class ConversionError(Exception):
    """A model that pnnx does not convert, in a sentence."""


@dataclasses.dataclass
class Converted:
    network: pathlib.Path
    weights: pathlib.Path
    outputs: list  # names of the ONNX model's, in the order of the network's


def _find_pnnx():
    package = importlib.util.find_spec("pnnx")
    if package is None:
        raise ConversionError("there is no pnnx; run 'tools/setup --compare'")
    return pathlib.Path(package.origin).parent / "pnnx"


def describe_inputs(inputs):
    """pnnx's option for inputs, given as {name: array}."""
    texts = []
    for name, array in inputs.items():
        if str(array.dtype) not in _TYPES:
            raise ConversionError(f"pnnx has no inputs of type {array.dtype}, as '{name}' is")
        if 0 in array.shape:
            raise ConversionError(f"input '{name}' is empty")
        extents = ",".join(str(extent) for extent in array.shape)
        texts.append(f"[{extents}]{_TYPES[str(array.dtype)]}")
    return "inputshape=" + ",".join(texts)


def find_fault(status, log, network):
    """Why a conversion is none, or None. `log` is what pnnx printed, `network` its file or ''.

    pnnx ends with status 0 where it gives up an operator: it says "ignore", and drops attributes.
    """
    lines = [line.strip() for line in _COLOURS.sub("", log).splitlines() if line.strip()]
    if status != 0 or not network:
        last = lines[-1][:160] if lines else "it prints nothing"
        return f"pnnx ends with status {status}: {last}"
    ignored = sorted({line.split()[1] for line in lines if re.match(r"ignore \S+ \S+ param ", line)})
    if ignored:
        return f"pnnx has no layers of ncnn for {', '.join(ignored)}"
    return None


def convert(path, inputs, place):
    """Converts a model for inputs of these extents; returns the model's file, for `find`.

    What is made lies in a new folder of `place`, with a copy of the file, because pnnx writes beside
    what it reads. ConversionError where ncnn cannot have it.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ncnn-", dir=place))
    copy = folder / "model.onnx"
    shutil.copy(path, copy)
    command = [str(_find_pnnx()), str(copy), describe_inputs(inputs), "fp16=0"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as fault:
        raise ConversionError(f"pnnx takes longer than {_TIMEOUT_S} s") from fault
    network = folder / _NETWORK
    text = network.read_text() if network.exists() else ""
    sentence = find_fault(done.returncode, done.stdout + done.stderr, text)
    for file in folder.iterdir():
        if file.is_file() and file.name not in (copy.name, _NETWORK, _WEIGHTS):
            file.unlink()  # Other forms of the same weights.
    if sentence:
        raise ConversionError(sentence)
    outputs = [output.name for output in onnx.load(path, load_external_data=False).graph.output]
    (folder / _OUTPUTS).write_text("\n".join(outputs))
    return copy


def find(path):
    """What `convert` made of the file that it returned."""
    folder = pathlib.Path(path).parent
    outputs = (folder / _OUTPUTS).read_text().splitlines()
    return Converted(folder / _NETWORK, folder / _WEIGHTS, outputs)

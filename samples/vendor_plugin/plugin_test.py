#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model of com.example's operators on the sample's plugin and compares with numpy.

    plugin_test.py <onnxifi_run> <libonnxifi-example.so>

Also a model that uses an operator wrongly, which has to be refused with the definition's own sentence.
Needs onnx and numpy.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
from onnx import TensorProto, helper, numpy_helper, save


def make_model(path, extents, shift):
    """X -> ScaleShift (factor 3) -> SquaredRelu -> Y."""
    nodes = [
        helper.make_node("ScaleShift", ["X", "shift"], ["scaled"], domain="com.example", factor=3.0),
        helper.make_node("SquaredRelu", ["scaled"], ["Y"], domain="com.example"),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, extents) for name in "XY"]
    weights = [numpy_helper.from_array(shift, "shift")]
    graph = helper.make_graph(nodes, "example", ports[:1], ports[1:], weights)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.example", 1)]
    save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)


def run(program, plugin, *arguments):
    environment = {**os.environ, "ONNXIFI_ADD_BACKENDS": plugin}
    command = [program, *arguments, "--device", "example"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def main():
    program, plugin = sys.argv[1:]
    random = numpy.random.default_rng(1)
    x = random.standard_normal((5, 4)).astype(numpy.float32)
    shift = random.standard_normal(4).astype(numpy.float32)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        numpy.save(folder / "x.npy", x)
        make_model(folder / "model.onnx", ["rows", 4], shift)
        ran = run(program, plugin, str(folder / "model.onnx"), "--input", f"X={folder}/x.npy",
                  "--output", str(folder / "out"))  # fmt: skip
        print(ran.stdout, ran.stderr)
        assert ran.returncode == 0, ran.returncode
        (written,) = (folder / "out").iterdir()
        y = numpy_helper.to_array(TensorProto.FromString(written.read_bytes()))
        expected = numpy.maximum(x.astype(numpy.float64) * 3 + shift, 0) ** 2
        numpy.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)

        make_model(folder / "wrong.onnx", ["rows", 5, 4], shift)
        refused = run(program, plugin, str(folder / "wrong.onnx"))
        print(refused.stderr)
        assert refused.returncode != 0 and "ScaleShift" in refused.stderr, refused.stderr


if __name__ == "__main__":
    main()

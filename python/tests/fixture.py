# SPDX-License-Identifier: Apache-2.0
"""What the tests share: the library of the release build, small models, and a way to count what is left."""

import os
import pathlib

from onnx import TensorProto, helper

import onnxifi

TREE = pathlib.Path(__file__).resolve().parents[2]
LIBRARY_PATH = TREE / "build" / "release" / "lib" / "libonnxifi.so"
DIGITS = TREE / "samples" / "digits" / "digits.onnx"
LIBRARY = onnxifi.Library(LIBRARY_PATH)

BOOL, FLOAT, INT64, STRING = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def tensor(name, shape, element_type=FLOAT):
    return helper.make_tensor_value_info(name, element_type, shape)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs, outputs, **attributes)


def model(nodes, inputs, outputs, initializers=(), opset=23, domains=(), value_info=()):
    graph = helper.make_graph(nodes, "test", inputs, outputs, list(initializers), value_info=list(value_info))
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, version) for domain, version in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def identity(element_type=FLOAT, shape=("n",)):
    return model([node("Identity", ["x"], ["y"])], [tensor("x", shape, element_type)], [tensor("y", shape, element_type)])


def session(made, device="cpu", **options):
    return onnxifi.Session(made, device, library=LIBRARY, **options)


def resident_mib():
    pages = int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20

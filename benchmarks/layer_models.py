#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the layers that a GPU is held to as ONNX models of one operator each, for compare.py --files.

    layer_models.py FOLDER

Matrix products of 4096 x 4096 x 4096, attention of 16 heads over 4,096 tokens, and the distinct convolutions of
ResNet-50 with the Relu behind them, in float32 and float16. Weights of convolutions are seeded constants. Prints the
files that it wrote, then their folder.
"""

import argparse
import pathlib
import sys

import numpy
import onnx
from onnx import helper, numpy_helper

_TYPES = (numpy.float32, numpy.float16)
_OPSET = helper.make_opsetid("", 23)


def _make_model(nodes, inputs, dtype, constants=None):
    """A model whose last node's result is the output; `inputs`: {name: extents}."""
    element_type = helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
    declared = [helper.make_tensor_value_info(name, element_type, extents) for name, extents in inputs.items()]
    output = helper.make_empty_tensor_value_info(nodes[-1].output[0])
    initializers = [numpy_helper.from_array(array.astype(dtype), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "layer", declared, [output], initializers)
    model = helper.make_model(graph, opset_imports=[_OPSET], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def make_product(dtype, rows=4096, columns=4096, depth=4096):
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    return _make_model([node], {"a": [rows, depth], "b": [depth, columns]}, dtype)


def make_attention(dtype, heads=16, tokens=4096, width=64):
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    return _make_model([node], {name: [1, heads, tokens, width] for name in "qkv"}, dtype)


def make_convolution(dtype, channels, size, outputs, kernel, stride):
    weights = numpy.random.default_rng(channels * outputs).standard_normal((outputs, channels, kernel, kernel))
    weights /= numpy.sqrt(channels * kernel * kernel)
    pads = [kernel // 2] * 4
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["sum"], strides=[stride, stride], pads=pads),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    return _make_model(nodes, {"x": [1, channels, size, size]}, dtype, {"w": weights})


def list_convolutions():
    """(input channels, size, output channels, kernel, stride) of ResNet-50's, each once."""
    layers = [(3, 224, 64, 7, 2)]
    channels, size = 64, 56
    for stage, width in enumerate((64, 128, 256, 512)):
        stride = 1 if stage == 0 else 2
        layers += [(channels, size, width, 1, 1), (width, size, width, 3, stride)]
        layers.append((channels, size, 4 * width, 1, stride))
        size //= stride
        layers += [(width, size, 4 * width, 1, 1), (4 * width, size, width, 1, 1), (width, size, width, 3, 1)]
        channels = 4 * width
    return list(dict.fromkeys(layers))


def list_layers():
    """{name: a function that makes the model}."""
    layers = {}
    for dtype in _TYPES:
        name = numpy.dtype(dtype).name
        layers[f"product_4096_{name}"] = lambda dtype=dtype: make_product(dtype)
        layers[f"attention_4096_{name}"] = lambda dtype=dtype: make_attention(dtype)
        for layer in list_convolutions():
            channels, size, outputs, kernel, stride = layer
            told = f"conv_{channels}x{size}_{kernel}x{kernel}_{stride}_to_{outputs}_{name}"
            layers[told] = lambda dtype=dtype, layer=layer: make_convolution(dtype, *layer)
    return layers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in list_layers().items():
        path = folder / f"{name}.onnx"
        # What is there under the name is whole.
        if not path.exists():
            draft = path.with_suffix(".draft")
            onnx.save(make(), draft)
            draft.rename(path)
        print(path)
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

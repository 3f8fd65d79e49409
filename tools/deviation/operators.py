# SPDX-License-Identifier: Apache-2.0
"""The operators whose errors are measured: seeded inputs in live ranges, several shapes each.

An entry makes models of one node. Inputs are drawn in float64 and rounded to the element type; what
is expected is computed in float64 from the rounded inputs.
"""

import collections
import zlib

import numpy
from onnx import helper, numpy_helper

OPSET = 23
_IR_VERSION = 10

# `floats`: low and high bound by input name, in the node's order; `others`: arrays by name that keep
# their type and are initializers.
Sample = collections.namedtuple("Sample", "op_type label attributes floats shapes others outputs")


def _sample(op_type, floats, shapes, label="", others=None, outputs=1, **attributes):
    return Sample(op_type, label or op_type, attributes, floats, shapes, others or {}, outputs)


# An odd extent that is no multiple of a vector, and a square one that is.
_SHAPES = ([3, 1031], [7, 16, 32])

_UNARY = {
    "Exp": (-10, 10), "Log": (1e-3, 100), "Sqrt": (0, 100), "Reciprocal": (0.1, 10),
    "Sin": (-10, 10), "Cos": (-10, 10), "Tan": (-1.4, 1.4), "Asin": (-1, 1), "Acos": (-1, 1),
    "Atan": (-10, 10), "Sinh": (-5, 5), "Cosh": (-5, 5), "Asinh": (-10, 10), "Acosh": (1.01, 20),
    "Atanh": (-0.99, 0.99), "Tanh": (-5, 5), "Sigmoid": (-8, 8), "Erf": (-3, 3),
    "Softplus": (-10, 10), "Softsign": (-10, 10), "Elu": (-5, 5), "Selu": (-5, 5),
    "Celu": (-5, 5), "Mish": (-5, 5), "HardSwish": (-5, 5), "HardSigmoid": (-5, 5),
    "LeakyRelu": (-5, 5), "ThresholdedRelu": (-5, 5), "Shrink": (-5, 5),
}
_BINARY = {
    "Add": ((-10, 10), (-10, 10)), "Sub": ((-10, 10), (-10, 10)), "Mul": ((-10, 10), (-10, 10)),
    "Div": ((-10, 10), (0.1, 10)), "Pow": ((0.1, 5), (-3, 3)), "PRelu": ((-5, 5), (-1, 1)),
    "Mean": ((-10, 10), (-10, 10)), "Sum": ((-10, 10), (-10, 10)),
}
_REDUCTIONS = {
    "ReduceSum": (-1, 1), "ReduceMean": (-1, 1), "ReduceL1": (-1, 1), "ReduceL2": (-1, 1),
    "ReduceSumSquare": (-1, 1), "ReduceLogSum": (0.1, 2), "ReduceLogSumExp": (-3, 3),
    "ReduceProd": (0.95, 1.05),
}


def _elementwise():
    for op_type, bounds in _UNARY.items():
        yield _sample(op_type, {"x": bounds}, [{"x": shape} for shape in _SHAPES])
    for mode in ("none", "tanh"):
        shapes = [{"x": shape} for shape in _SHAPES]
        yield _sample("Gelu", {"x": (-5, 5)}, shapes, f"Gelu ({mode})", approximate=mode)
    for op_type, (first, second) in _BINARY.items():
        shapes = [{"a": shape, "b": shape[-1:]} for shape in _SHAPES]
        yield _sample(op_type, {"a": first, "b": second}, shapes)


def _reductions():
    rows = [{"x": [5, 1031]}, {"x": [3, 7, 64]}]
    for op_type, bounds in _REDUCTIONS.items():
        axes = {"axes": numpy.array([-1], numpy.int64)}
        yield _sample(op_type, {"x": bounds}, rows, others=axes)
    yield _sample("CumSum", {"x": (-1, 1)}, rows, others={"axis": numpy.array(1, numpy.int64)})
    for op_type in ("Softmax", "LogSoftmax"):
        yield _sample(op_type, {"x": (-8, 8)}, rows, axis=-1)


def _products():
    product = {"a": (-1, 1), "b": (-1, 1)}
    matrices = [{"a": [33, 257], "b": [257, 65]}, {"a": [4, 16, 64], "b": [4, 64, 48]}]
    yield _sample("MatMul", product, matrices)
    gemm = [{"a": [257, 33], "b": [65, 257], "c": [65]}]
    yield _sample("Gemm", product | {"c": (-1, 1)}, gemm, transA=1, transB=1, alpha=0.5, beta=1.5)
    einsum = [{"a": [3, 17, 65], "b": [3, 65, 9]}]
    yield _sample("Einsum", product, einsum, equation="bij,bjk->bik")
    convolution = {"x": (-1, 1), "w": (-1, 1), "b": (-1, 1)}
    image = [2, 16, 29, 31]
    kinds = (
        ("3 x 3", [24, 16, 3, 3], {"pads": [1] * 4}),
        ("5 x 5, stride 2", [8, 16, 5, 5], {"strides": [2, 2]}),
        ("1 x 1", [40, 16, 1, 1], {}),
        ("depthwise", [16, 1, 3, 3], {"group": 16, "pads": [1] * 4}),
    )
    for label, weight, attributes in kinds:
        shapes = [{"x": image, "w": weight, "b": weight[:1]}]
        yield _sample("Conv", convolution, shapes, f"Conv ({label})", **attributes)
    shapes = [{"x": [1, 12, 11, 13], "w": [12, 10, 3, 3]}]
    bounds = {"x": (-1, 1), "w": (-1, 1)}
    yield _sample("ConvTranspose", bounds, shapes, strides=[2, 2])
    shapes = [{"x": [1, 3, 7, 9], "w": [4, 3, 3, 3], "offset": [1, 18, 7, 9]}]
    bounds = {"x": (-1, 1), "w": (-1, 1), "offset": (-1.5, 1.5)}
    yield _sample("DeformConv", bounds, shapes, kernel_shape=[3, 3], pads=[1] * 4)
    yield _sample("Det", {"x": (-1, 1)}, [{"x": [5, 7, 7]}])


def _windows():
    image = [{"x": [2, 5, 29, 31]}]
    pads = {"kernel_shape": [3, 5], "strides": [2, 1], "pads": [1, 2, 1, 2]}
    yield _sample("AveragePool", {"x": (-1, 1)}, image, count_include_pad=1, **pads)
    yield _sample("LpPool", {"x": (-1, 1)}, image, kernel_shape=[3, 3], p=2)
    yield _sample("GlobalAveragePool", {"x": (-1, 1)}, image)
    yield _sample("GlobalLpPool", {"x": (-1, 1)}, image, p=3)
    columns = {"image_shape": numpy.array([11, 13]), "block_shape": numpy.array([3, 3])}
    yield _sample("Col2Im", {"x": (-1, 1)}, [{"x": [2, 27, 99]}], others=columns)
    yield _sample("LRN", {"x": (-3, 3)}, image, size=3, alpha=0.01, beta=0.7, bias=1.5)


def _normalizations():
    scale, bias = (0.5, 1.5), (-1, 1)
    bounds = {"x": (-3, 3), "scale": scale, "bias": bias}
    rows = [{"x": [9, 771], "scale": [771], "bias": [771]}]
    yield _sample("LayerNormalization", bounds, rows, axis=-1)
    rms = [{"x": [9, 771], "scale": [771]}]
    yield _sample("RMSNormalization", {"x": (-3, 3), "scale": scale}, rms, axis=-1)
    image = {"x": [2, 6, 19, 23], "scale": [6], "bias": [6]}
    yield _sample("InstanceNormalization", bounds, [image])
    yield _sample("GroupNormalization", bounds, [image], num_groups=3)
    yield _sample(
        "BatchNormalization",
        bounds | {"mean": (-1, 1), "variance": (0.5, 2)},
        [image | {"mean": [6], "variance": [6]}],
    )
    yield _sample("MeanVarianceNormalization", {"x": (-3, 3)}, [{"x": [2, 6, 19, 23]}])
    yield _sample("LpNormalization", {"x": (-3, 3)}, [{"x": [9, 771]}], axis=-1, p=2)


def _networks():
    steps, batch, size, hidden = 9, 3, 17, 21
    for op_type, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        shapes = {
            "x": [steps, batch, size],
            "w": [1, gates * hidden, size],
            "r": [1, gates * hidden, hidden],
            "b": [1, 2 * gates * hidden],
        }
        bounds = dict.fromkeys(shapes, (-0.5, 0.5))
        yield _sample(op_type, bounds, [shapes], hidden_size=hidden)
    heads = {name: [2, 4, 33, 40] for name in ("q", "k", "v")}
    yield _sample("Attention", dict.fromkeys(heads, (-2, 2)), [heads])
    scales = {
        "roi": numpy.zeros(0, numpy.float32),
        "scales": numpy.array([1, 1, 1.7, 2.3], numpy.float32),
    }
    image = [{"x": [1, 3, 13, 17]}]
    for mode in ("linear", "cubic"):
        yield _sample("Resize", {"x": (-1, 1)}, image, f"Resize ({mode})", others=scales, mode=mode)
    for mode in ("linear", "cubic"):
        shapes = {"x": [2, 3, 13, 17], "grid": [2, 9, 11, 2]}
        bounds = {"x": (-1, 1), "grid": (-1.1, 1.1)}
        yield _sample("GridSample", bounds, [shapes], f"GridSample ({mode})", mode=mode)
    rotated = {"x": [2, 4, 9, 32], "cos": [2, 9, 16], "sin": [2, 9, 16]}
    yield _sample("RotaryEmbedding", dict.fromkeys(rotated, (-1, 1)), [rotated])
    labels = {"labels": numpy.arange(24).reshape(3, 8) % 11}
    shapes = [{"x": [3, 11, 8]}]
    yield _sample("SoftmaxCrossEntropyLoss", {"x": (-5, 5)}, shapes, others=labels)


def _signals():
    for label, signal in (("real", [2, 60, 1]), ("complex, 127", [2, 127, 2])):
        axis = {"length": numpy.array(signal[1]), "axis": numpy.array(1)}
        yield _sample("DFT", {"x": (-1, 1)}, [{"x": signal}], f"DFT ({label})", others=axis)


def list_samples():
    """All samples, in the order of the report."""
    groups = (_elementwise, _reductions, _products, _windows, _normalizations, _networks, _signals)
    return [sample for group in groups for sample in group()]


def draw(sample, shapes):
    """Inputs in float64, the same in every process."""
    seed = zlib.crc32(f"{sample.label} {sorted(shapes.items())}".encode())
    random = numpy.random.default_rng(seed)
    return {
        name: random.uniform(*sample.floats[name], shapes[name]) for name in sample.floats
    }


def make_model(sample, shapes, element):
    """The model of one node, with inputs of the ONNX element type `element`."""
    inputs = [helper.make_tensor_value_info(name, element, shapes[name]) for name in sample.floats]
    initializers = [numpy_helper.from_array(value, name) for name, value in sample.others.items()]
    outputs = ["y"][: sample.outputs]
    names = [*sample.floats, *sample.others]
    node = helper.make_node(sample.op_type, names, outputs, **sample.attributes)
    graph = helper.make_graph(
        [node],
        "one",
        inputs,
        [helper.make_tensor_value_info("y", element, None)],
        initializer=initializers,
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION
    )

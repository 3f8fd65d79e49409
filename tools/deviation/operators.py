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

_TYPES = ("float", "float16", "bfloat16", "double")
_SHORT = ("float", "float16", "bfloat16")
_LONG = ("float", "double")

# The value of an attribute that is the number of the element type.
ELEMENT = "the element type"

# `floats`: low and high bound by input name, in the node's order; `others`: arrays by name that keep
# their type and are initializers, behind them unless `has_others_first`. `opset`: of ONNX's domain; that of the
# operator is of version 1 where it is another. `types`: those of its schema.
Sample = collections.namedtuple(
    "Sample", "op_type label attributes floats shapes others outputs domain opset has_others_first types"
)


def _sample(op_type, floats, shapes, label="", others=None, outputs=1, domain="", opset=OPSET,
            has_others_first=False, types=_TYPES, **attributes):  # fmt: skip
    return Sample(op_type, label or op_type, attributes, floats, shapes, others or {}, outputs, domain, opset,
                  has_others_first, types)  # fmt: skip


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


    frames = {"step": numpy.array(16)}, {"window": [64]}
    shapes = [{"signal": [2, 300, 1]} | frames[1]]
    yield _sample("STFT", {"signal": (-1, 1), "window": (0, 1)}, shapes, others=frames[0], onesided=1)
    for op_type in ("BlackmanWindow", "HammingWindow", "HannWindow"):
        for periodic in (0, 1):
            label = f"{op_type} ({'periodic' if periodic else 'symmetric'})"
            size = {"size": numpy.array(1031)}
            yield _sample(op_type, {}, [{}], label, size, periodic=periodic, output_datatype=ELEMENT)
    sizes = {"bins": numpy.array(40), "length": numpy.array(512), "rate": numpy.array(16000)}
    shapes = [{"low": [], "high": []}]
    yield _sample("MelWeightMatrix", {"low": (10, 40), "high": (7000, 8000)}, shapes, others=sizes,
                  has_others_first=True, output_datatype=ELEMENT)  # fmt: skip


def _rare():
    yield _sample("CumProd", {"x": (0.95, 1.05)}, [{"x": [5, 1031]}, {"x": [3, 64]}], opset=26,
                  others={"axis": numpy.array(1)})  # fmt: skip
    size = {"size": numpy.array([2, 3, 19, 23])}
    for corners in (0, 1):
        label = f"AffineGrid (align_corners {corners})"
        yield _sample("AffineGrid", {"theta": (-1, 1)}, [{"theta": [2, 2, 3]}], label, size, align_corners=corners)
    batches = {"batches": numpy.array([0, 1, 0], numpy.int64)}
    for mode in ("avg", "max"):
        yield _sample("RoiAlign", {"x": (-1, 1), "rois": (0, 12)}, [{"x": [2, 3, 13, 17], "rois": [3, 4]}],
                      f"RoiAlign ({mode})", batches, mode=mode, output_height=3, output_width=4,
                      sampling_ratio=2, opset=21, types=("float", "float16", "double"))  # fmt: skip
    labels = {"labels": numpy.arange(24).reshape(3, 8) % 11}
    yield _sample("NegativeLogLikelihoodLoss", {"x": (-5, 0)}, [{"x": [3, 11, 8]}], others=labels)
    rows = [{"x": shape} for shape in _SHAPES]
    yield _sample("Swish", {"x": (-8, 8)}, rows, opset=24, alpha=1.5)
    pairs = [{"a": shape, "b": shape} for shape in _SHAPES]
    yield _sample("SwiGLU", {"a": (-8, 8), "b": (-2, 2)}, pairs, opset=28)


def _other_domains():
    random = numpy.random.default_rng(23)
    rows = [{"x": [37, 19]}]
    numbers = lambda count: [float(each) for each in random.uniform(-1, 1, count).astype("float32")]
    learned = {"domain": "ai.onnx.ml", "types": _LONG}
    yield _sample("LinearRegressor", {"x": (-2, 2)}, rows, **learned, targets=3, coefficients=numbers(57),
                  intercepts=numbers(3))  # fmt: skip
    for kernel in ("LINEAR", "RBF", "POLY", "SIGMOID"):
        yield _sample("SVMRegressor", {"x": (-1, 1)}, rows, f"SVMRegressor ({kernel})", **learned,
                      kernel_type=kernel, n_supports=5, coefficients=numbers(5), rho=[0.25],
                      support_vectors=numbers(95), kernel_params=[0.125, 0.5, 3.0])  # fmt: skip
    runtime = {"domain": "com.microsoft"}
    wide = [{"x": shape, "bias": shape[-1:]} for shape in _SHAPES]
    yield _sample("BiasGelu", {"x": (-5, 5), "bias": (-1, 1)}, wide, **runtime)
    rows = [{"x": shape} for shape in _SHAPES]
    yield _sample("FastGelu", {"x": (-5, 5)}, rows, **runtime)
    yield _sample("QuickGelu", {"x": (-5, 5)}, rows, **runtime, alpha=1.702)
    skip = {"x": (-3, 3), "skip": (-3, 3), "scale": (0.5, 1.5), "bias": (-1, 1)}
    shapes = {"x": [2, 9, 771], "skip": [2, 9, 771], "scale": [771], "bias": [771]}
    yield _sample("SkipLayerNormalization", skip, [shapes], **runtime, types=_SHORT, epsilon=1e-5)
    without = lambda table: {name: value for name, value in table.items() if name != "bias"}
    yield _sample("SkipSimplifiedLayerNormalization", without(skip), [without(shapes)], **runtime,
                  types=_SHORT, epsilon=1e-5)  # fmt: skip
    product = {"a": (-1, 1), "b": (-1, 1)}
    yield _sample("FusedMatMul", product, [{"a": [4, 16, 64], "b": [4, 48, 64]}], **runtime, transB=1, alpha=0.125)
    for activation, more in (("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.25}), ("Softplus", {})):
        yield _sample("FusedGemm", product | {"c": (-1, 1)}, [{"a": [33, 257], "b": [257, 65], "c": [65]}],
                      f"FusedGemm ({activation})", **runtime, types=("float", "float16", "double"),
                      activation=activation, **more)  # fmt: skip


def list_samples():
    """All samples, in the order of the report."""
    groups = (
        _elementwise, _reductions, _products, _windows, _normalizations, _networks, _signals, _rare, _other_domains,
    )  # fmt: skip
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
    if sample.has_others_first:
        names = [*sample.others, *sample.floats]
    if sample.op_type == "STFT":  # others in between
        names = ["signal", "step", "window"]
    attributes = {name: element if value is ELEMENT else value for name, value in sample.attributes.items()}
    node = helper.make_node(sample.op_type, names, outputs, domain=sample.domain, **attributes)
    # Those of learned models are float32, whatever type their inputs have.
    result = 1 if sample.domain == "ai.onnx.ml" else element
    graph = helper.make_graph(
        [node],
        "one",
        inputs,
        [helper.make_tensor_value_info("y", result, None)],
        initializer=initializers,
    )
    opsets = [helper.make_opsetid("", sample.opset)]
    if sample.domain:
        opsets.append(helper.make_opsetid(sample.domain, 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)

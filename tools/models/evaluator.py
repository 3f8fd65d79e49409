# SPDX-License-Identifier: Apache-2.0
"""Evaluates an ONNX model in float64 with numpy: where the expected values of the models come from.

Independent of the SDK and of the reference evaluator of the `onnx` package, against which
evaluator_test.py compares it. It knows the operators that the networks in this folder use, at the
opsets they use, and refuses anything else. Every floating-point value is float64 from the inputs
to the outputs; only the models' stored weights are float32. Asked for float32 instead, it shows
how far plain float32 arithmetic strays from the expected values.
"""

import math

import numpy
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

_OPERATORS = {}


def _implements(*op_types):
    def register(function):
        for op_type in op_types:
            _OPERATORS[op_type] = function
        return function

    return register


class _Node:
    """A node's attributes beside the two facts that decide what they mean."""

    def __init__(self, proto, opset, float_type):
        self.proto = proto
        self.opset = opset
        self.float_type = float_type
        self._attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def get(self, name, default=None):
        return self._attributes.get(name, default)


class Evaluator:
    """Runs a model; one object can run any number of times."""

    def __init__(self, model, float_type=numpy.float64):
        self._graph = model.graph
        self._float_type = float_type
        self._opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        self._constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        self._last_use = {
            name: position
            for position, node in enumerate(model.graph.node)
            for name in node.input
        }

    def run(self, inputs):
        """Returns the graph outputs, in order, for inputs given by name."""
        outputs = [value.name for value in self._graph.output]
        values = {name: _promote(value, self._float_type) for name, value in inputs.items()}
        for position, node in enumerate(self._graph.node):
            operands = [self._read(values, name) for name in node.input]
            results = evaluate_node(node, operands, self._opset, self._float_type)
            values.update(zip(node.output, results))
            for name in node.input:
                if self._last_use[name] == position and name not in outputs:
                    values.pop(name, None)
        return [values[name] for name in outputs]

    def _read(self, values, name):
        if not name:
            return None
        if name in values:
            return values[name]
        return _promote(self._constants[name], self._float_type)


def evaluate_node(proto, operands, opset, float_type=numpy.float64):
    """Returns the list of a node's outputs; an absent optional operand is None."""
    if proto.op_type not in _OPERATORS:
        raise NotImplementedError(f"Operator '{proto.op_type}' has no float64 evaluation.")
    operands = list(operands)
    while operands and operands[-1] is None:
        operands.pop()
    results = _OPERATORS[proto.op_type](_Node(proto, opset, float_type), *operands)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _promote(value, float_type):
    value = numpy.asarray(value)
    return value.astype(float_type) if value.dtype.kind == "f" else value


# Element-wise


@_implements("Relu")
def _relu(_, x):
    return numpy.maximum(x, 0)


@_implements("Sigmoid")
def _sigmoid(_, x):
    return 0.5 * (1 + numpy.tanh(0.5 * x))


@_implements("Tanh")
def _tanh(_, x):
    return numpy.tanh(x)


@_implements("Erf")
def _erf(_, x):
    return numpy.frompyfunc(math.erf, 1, 1)(x).astype(x.dtype)


@_implements("Gelu")
def _gelu(node, x):
    if node.get("approximate", b"none") != b"tanh":
        return 0.5 * x * (1 + _erf(node, x / math.sqrt(2)))
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@_implements("Add")
def _add(_, a, b):
    return a + b


@_implements("Sub")
def _subtract(_, a, b):
    return a - b


@_implements("Mul")
def _multiply(_, a, b):
    return a * b


@_implements("Div")
def _divide(_, a, b):
    if a.dtype.kind != "f":
        raise NotImplementedError("Div is evaluated only for floating point.")
    return a / b


@_implements("LessOrEqual")
def _less_or_equal(_, a, b):
    return a <= b


@_implements("Where")
def _where(_, condition, a, b):
    return numpy.where(condition, a, b)


@_implements("Clip")
def _clip(node, x):
    if node.opset >= 11:
        raise NotImplementedError("Clip is evaluated only with attributes, before opset 11.")
    return numpy.clip(x, node.get("min", -numpy.inf), node.get("max", numpy.inf))


@_implements("Dropout")
def _drop_nothing(_, x):
    return x


@_implements("Cast")
def _cast(node, x):
    if node.get("to") == TensorProto.FLOAT:
        return x.astype(node.float_type)
    return x.astype(helper.tensor_dtype_to_np_dtype(node.get("to")))


# Shapes and indexing


@_implements("Constant")
def _constant(node):
    return _promote(numpy_helper.to_array(node.get("value")), node.float_type)


@_implements("Shape")
def _shape(_, x):
    return numpy.array(x.shape, numpy.int64)


@_implements("Gather")
def _gather(node, x, indices):
    return numpy.take(x, indices, axis=node.get("axis", 0))


@_implements("Slice")
def _slice(_, x, starts, ends, axes, steps=None):
    steps = numpy.ones_like(starts) if steps is None else steps
    window = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        window[axis] = slice(start, end, step)
    return x[tuple(window)]


@_implements("Unsqueeze")
def _unsqueeze(node, x, axes=None):
    axes = node.get("axes") if node.opset < 13 else axes
    return numpy.expand_dims(x, tuple(axes))


@_implements("Range")
def _range(_, start, limit, delta):
    return numpy.arange(start, limit, delta, dtype=start.dtype)


@_implements("Concat")
def _concatenate(node, *parts):
    return numpy.concatenate(parts, axis=node.get("axis"))


@_implements("Split")
def _split(node, x):
    return numpy.split(x, node.get("num_outputs"), axis=node.get("axis", 0))


@_implements("Reshape")
def _reshape(_, x, shape):
    return x.reshape([x.shape[axis] if d == 0 else d for axis, d in enumerate(shape)])


@_implements("Flatten")
def _flatten(node, x):
    axis = node.get("axis", 1)
    return x.reshape(math.prod(x.shape[:axis]), -1)


@_implements("Transpose")
def _transpose(node, x):
    return x.transpose(node.get("perm"))


# Contractions


@_implements("MatMul")
def _matmul(_, a, b):
    return a @ b


@_implements("Gemm")
def _gemm(node, a, b, c):
    a = a.T if node.get("transA", 0) else a
    b = b.T if node.get("transB", 0) else b
    return node.get("alpha", 1.0) * (a @ b) + node.get("beta", 1.0) * c


@_implements("Conv")
def _convolve(node, x, w, b=None):
    strides = node.get("strides", [1, 1])
    dilations = node.get("dilations", [1, 1])
    groups = node.get("group", 1)
    kernel = w.shape[2:]
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    windows = sliding_window_view(_pad(x, node.get("pads", [0] * 4), 0), extent, (2, 3))
    windows = windows[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    n, _, height, width = windows.shape[:4]
    if w.shape[1] == 1 and w.shape[0] == x.shape[1]:  # Depthwise: no contraction over channels.
        y = sum(
            windows[..., ky, kx] * w[:, 0, ky, kx, None, None]
            for ky in range(kernel[0])
            for kx in range(kernel[1])
        )
    else:
        columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, groups, -1, height * width)
        y = w.reshape(groups, w.shape[0] // groups, -1) @ columns
        y = y.reshape(n, -1, height, width)
    return y if b is None else y + b[:, None, None]


# Windows


def _pad(x, pads, fill):
    top, left, bottom, right = pads
    return numpy.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)


def _list_taps(node, x, fill):
    """Returns, per kernel position, the padded input seen through it by all windows."""
    kernel = node.get("kernel_shape")
    strides = node.get("strides", [1, 1])
    pads = list(node.get("pads", [0] * 4))
    counts = []
    for axis in (0, 1):
        size = x.shape[2 + axis]
        span = size + pads[axis] + pads[2 + axis] - kernel[axis]
        count = span // strides[axis] + 1
        if node.get("ceil_mode", 0) and span % strides[axis]:
            # One window more, which reaches over the end but has to begin before it.
            if count * strides[axis] < size + pads[axis]:
                count += 1
                pads[2 + axis] += strides[axis] - span % strides[axis]
        counts.append(count)
    padded = _pad(x, pads, fill)
    return [
        padded[:, :, ky :: strides[0], kx :: strides[1]][:, :, : counts[0], : counts[1]]
        for ky in range(kernel[0])
        for kx in range(kernel[1])
    ]


@_implements("MaxPool")
def _max_pool(node, x):
    taps = _list_taps(node, x, -numpy.inf)
    y = taps[0]
    for tap in taps[1:]:
        y = numpy.maximum(y, tap)
    return y


@_implements("AveragePool")
def _average_pool(node, x):
    if node.get("ceil_mode", 0):
        raise NotImplementedError("AveragePool is evaluated only with ceil_mode=0.")
    fill = 1 if node.get("count_include_pad", 0) else 0
    counted = sum(_list_taps(node, numpy.ones_like(x[:1, :1]), fill))
    return sum(_list_taps(node, x, 0)) / counted


@_implements("Resize")
def _resize(node, x, roi, scales):
    modes = [node.get(name) for name in ("mode", "nearest_mode", "coordinate_transformation_mode")]
    factors = scales.astype(int)
    if modes != [b"nearest", b"floor", b"asymmetric"] or roi is not None or (factors != scales).any():
        raise NotImplementedError("Resize is evaluated only for whole factors, to nearest below.")
    for axis, factor in enumerate(factors):
        x = x.repeat(factor, axis=axis)
    return x


@_implements("LRN")
def _normalize_across_channels(node, x):
    # ONNX LRN: channel c sums squares over [c - floor((size-1)/2), c + ceil((size-1)/2)].
    size = node.get("size")
    before = (size - 1) // 2
    squares = numpy.pad(x**2, ((0, 0), (before, size - 1 - before), (0, 0), (0, 0)))
    total = sliding_window_view(squares, size, axis=1).sum(axis=-1)
    scale = node.get("bias", 1.0) + node.get("alpha", 1e-4) / size * total
    return x / scale ** node.get("beta", 0.75)


# Reductions and normalisations


@_implements("GlobalAveragePool")
def _global_average_pool(_, x):
    return x.mean(axis=(2, 3), keepdims=True)


@_implements("ReduceMean")
def _reduce_mean(node, x):
    if node.opset >= 18:
        raise NotImplementedError("ReduceMean is evaluated only with attributes, before opset 18.")
    return x.mean(axis=tuple(node.get("axes")), keepdims=bool(node.get("keepdims", 1)))


@_implements("Softmax")
def _softmax(node, x):
    shape = x.shape
    if node.opset < 13:  # Normalised over all axes from `axis` on.
        axis = node.get("axis", 1)
        x = x.reshape(math.prod(shape[:axis]), -1)
        axis = 1
    else:
        axis = node.get("axis", -1)
    y = numpy.exp(x - x.max(axis=axis, keepdims=True))
    return (y / y.sum(axis=axis, keepdims=True)).reshape(shape)


@_implements("BatchNormalization")
def _normalize_batch(node, x, scale, bias, mean, variance):
    if not node.get("spatial", 1) or node.get("training_mode", 0):
        raise NotImplementedError("BatchNormalization is evaluated per channel, for inference.")
    factor = scale / numpy.sqrt(variance + node.get("epsilon", 1e-5))
    return x * factor[:, None, None] + (bias - mean * factor)[:, None, None]


@_implements("LayerNormalization")
def _normalize_layer(node, x, scale, bias):
    if node.get("axis", -1) != -1:
        raise NotImplementedError("LayerNormalization is evaluated only over the last axis.")
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    return centered / numpy.sqrt(variance + node.get("epsilon", 1e-5)) * scale + bias


def load(content):
    """Returns the evaluator of a serialized model."""
    return Evaluator(onnx.load_from_string(content))

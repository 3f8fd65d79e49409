# SPDX-License-Identifier: Apache-2.0
"""Evaluates an ONNX model in float64 with numpy: where the expected values of the models come from.

Independent of the SDK and of the reference evaluator of the `onnx` package, against which
evaluator_test.py compares it. It knows the operators that most of the networks in this folder use,
at the opsets they use; those of _BY_ONNX are left to the package's evaluator, which follows the type
of its operands, and anything else is refused. Every floating-point value is float64 from the inputs
to the outputs; only the models' stored weights are float32. Asked for float32 instead, it shows
how far plain float32 arithmetic strays from the expected values.
"""

import math

import ml_dtypes
import numpy
import onnx
import onnx.reference
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

_OPERATORS = {}

# Operators of detectors, trees and generators, which the package's evaluator computes.
_BY_ONNX = {
    "Exp", "GatherND", "InstanceNormalization", "NonMaxSuppression", "RoiAlign", "TopK",
    "TreeEnsembleRegressor",
}  # fmt: skip


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

    def __init__(self, model, float_type=numpy.float64, rounds=lambda value: value):
        """`rounds` is applied to the results of each node."""
        self._rounds = rounds
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
            values.update(zip(node.output, map(self._rounds, results)))
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
    if proto.op_type in _BY_ONNX:
        return _evaluate_by_onnx(proto, operands, opset)
    if proto.op_type not in _OPERATORS:
        raise NotImplementedError(f"Operator '{proto.op_type}' has no float64 evaluation.")
    operands = list(operands)
    while operands and operands[-1] is None:
        operands.pop()
    results = _OPERATORS[proto.op_type](_Node(proto, opset, float_type), *operands)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _evaluate_by_onnx(proto, operands, opset):
    """A model of this node alone, whose operands keep their types."""
    feeds = {name: value for name, value in zip(proto.input, operands) if name}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in proto.output]
    graph = helper.make_graph([proto], proto.op_type, inputs, outputs)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets)
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def _promote(value, float_type):
    value = numpy.asarray(value)
    is_float = value.dtype.kind == "f" or value.dtype == ml_dtypes.bfloat16
    return value.astype(float_type) if is_float else value


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


@_implements("Dropout", "Identity")
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


# Recurrence


def _run_direction(step, state_count, x, lengths, hidden, is_reverse):
    """(Y of length, batch, hidden; the last states), where a sequence ends at its own length."""
    length, batch = x.shape[:2]
    y = numpy.zeros((length, batch, hidden), x.dtype)
    last = [numpy.zeros((batch, hidden), x.dtype) for _ in range(state_count)]
    for b in range(batch):
        states = [numpy.zeros(hidden, x.dtype) for _ in range(state_count)]
        times = range(lengths[b])
        for t in reversed(times) if is_reverse else times:
            states = step(x[t, b], *states)
            y[t, b] = states[0]
        for whole, part in zip(last, states):
            whole[b] = part
    return y, last


def _step_lstm(w, r, bias):
    def step(x, h, c):
        i, o, f, g = numpy.split(w @ x + r @ h + bias[: len(w)] + bias[len(w) :], 4)
        c = _sigmoid(None, f) * c + _sigmoid(None, i) * numpy.tanh(g)
        return _sigmoid(None, o) * numpy.tanh(c), c

    return step


def _step_gru(w, r, bias):
    # linear_before_reset: the reset gate scales the product, its bias included.
    def step(x, h):
        z, n, g = numpy.split(w @ x + bias[: len(w)], 3)
        of_z, of_n, of_g = numpy.split(r @ h + bias[len(w) :], 3)
        z, n = _sigmoid(None, z + of_z), _sigmoid(None, n + of_n)
        return ((1 - z) * numpy.tanh(g + n * of_g) + z * h,)

    return step


@_implements("LSTM", "GRU")
def _recur(node, x, w, r, bias, lengths=None):
    is_lstm = node.proto.op_type == "LSTM"
    if not is_lstm and not node.get("linear_before_reset", 0):
        raise NotImplementedError("GRU is evaluated only with linear_before_reset=1.")
    unknown = {a.name for a in node.proto.attribute} - {"hidden_size", "direction", "linear_before_reset"}
    if unknown:
        raise NotImplementedError(f"{node.proto.op_type} is not evaluated with {sorted(unknown)}.")
    lengths = [x.shape[0]] * x.shape[1] if lengths is None else lengths
    directions = {b"forward": [False], b"reverse": [True], b"bidirectional": [False, True]}
    outputs = []
    for d, is_reverse in enumerate(directions[node.get("direction", b"forward")]):
        step = (_step_lstm if is_lstm else _step_gru)(w[d], r[d], bias[d])
        y, last = _run_direction(step, 2 if is_lstm else 1, x, lengths, node.get("hidden_size"), is_reverse)
        outputs.append([y, *last])
    ys, *lasts = zip(*outputs)
    return [numpy.stack(ys, axis=1), *(numpy.stack(last) for last in lasts)]


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


@_implements("LogSoftmax")
def _log_softmax(node, x):
    if node.opset < 13:
        raise NotImplementedError("LogSoftmax is evaluated only from opset 13.")
    axis = node.get("axis", -1)
    x = x - x.max(axis=axis, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(axis=axis, keepdims=True))


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

# SPDX-License-Identifier: Apache-2.0
"""Writes an ONNX model as a module of PyTorch, so that it is compared on the same network and weights.

    torch_translation.py MODEL INPUTS.npz FILE

A node becomes the function of PyTorch that its exporter maps to that operator, in a graph of torch.fx,
which runs eagerly and which torch.compile takes. What is known without the inputs' values (weights, and
shapes, as the inputs' extents are fixed) is computed here and becomes a constant.
"""

import dataclasses
import math
import operator
import sys

import numpy
import onnx
import torch
import torch.fx
import torch.nn.functional as functional
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


class TranslationError(Exception):
    """A model that has no translation, in a sentence."""


@dataclasses.dataclass
class _Traced:
    """A value that depends on the inputs: its node, and what it is for the inputs that are given."""

    node: object
    sample: object


class _Translator:
    def __init__(self):
        self._root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self._constants = {}

    def add_input(self, name, sample):
        return _Traced(self.graph.placeholder(f"input_{name}".replace(".", "_")), sample)

    def call(self, function, *arguments, **options):
        """The result of a function of PyTorch on traced values, arrays, and plain arguments."""

        def both(value):
            if isinstance(value, _Traced):
                return value.node, value.sample
            if isinstance(value, numpy.ndarray):
                return self._add_constant(value)
            if isinstance(value, (list, tuple)) and any(isinstance(part, (_Traced, numpy.ndarray)) for part in value):
                nodes, samples = zip(*map(both, value))
                return list(nodes), list(samples)
            return value, value

        nodes, samples = zip(*map(both, arguments))
        # A file of a graph finds functions by their modules, which methods of tensors are not in.
        name = getattr(function, "__name__", "")
        if getattr(torch.Tensor, name, None) is function:
            node = self.graph.call_method(name, nodes, options)
        else:
            node = self.graph.call_function(function, nodes, options)
        return _Traced(node, function(*samples, **options))

    def _add_constant(self, array):
        key = id(array)
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            tensor = torch.from_numpy(numpy.array(array))
            self._root.register_buffer(name, tensor)
            # The array is kept, so that no other gets its number.
            self._constants[key] = (self.graph.get_attr(name), tensor, array)
        return self._constants[key][:2]

    def finish(self, outputs):
        nodes = []
        for value in outputs:
            value = value if isinstance(value, _Traced) else _Traced(*self._add_constant(value))
            nodes.append(value.node)
        self.graph.output(tuple(nodes))
        self.graph.lint()
        return torch.fx.GraphModule(self._root, self.graph)


def _rank(value):
    return value.sample.dim() if isinstance(value, _Traced) else value.ndim


def _known(value, what):
    if not isinstance(value, numpy.ndarray):
        raise TranslationError(f"{what} depends on the values of inputs")
    return value.tolist()


def _pads(attributes, spatial):
    """(amounts before and after by axis, whether all are the same before and after)."""
    if attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise TranslationError(f"auto_pad is {attributes['auto_pad'].decode()}")
    pads = list(attributes.get("pads", [0] * 2 * spatial))
    return pads[:spatial], pads[spatial:]


def _pad(t, x, before, after, value):
    """x with padding of its own where PyTorch's operators take the same on both sides alone."""
    if before == after:
        return x, before
    amounts = [amount for pair in reversed(list(zip(before, after))) for amount in pair]
    return t.call(functional.pad, x, amounts, "constant", value), [0] * len(before)


def _conv(t, attributes, x, w, b=None):
    spatial = _rank(x) - 2
    x, padding = _pad(t, x, *_pads(attributes, spatial), 0.0)
    function = (functional.conv1d, functional.conv2d, functional.conv3d)[spatial - 1]
    return t.call(
        function, x, w, b,
        stride=tuple(attributes.get("strides", [1] * spatial)),
        padding=tuple(padding),
        dilation=tuple(attributes.get("dilations", [1] * spatial)),
        groups=attributes.get("group", 1),
    )  # fmt: skip


def _attention(t, attributes, q, k, v, *more):
    """Without a mask, past, limits or a type of its own for the softmax; heads are an axis."""
    known = {"is_causal", "scale"}
    if any(value is not None for value in more) or _rank(q) != 4 or set(attributes) - known:
        raise TranslationError("Attention has more than queries, keys and values of 4 axes")
    options = {"is_causal": bool(attributes.get("is_causal", 0)), "scale": attributes.get("scale")}
    if q.sample.shape[1] != k.sample.shape[1]:
        options["enable_gqa"] = True
    return t.call(functional.scaled_dot_product_attention, q, k, v, **options)


def _max_pool(t, attributes, x):
    spatial = _rank(x) - 2
    x, padding = _pad(t, x, *_pads(attributes, spatial), -math.inf)
    function = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)[spatial - 1]
    return t.call(
        function, x, tuple(attributes["kernel_shape"]),
        stride=tuple(attributes.get("strides", [1] * spatial)),
        padding=tuple(padding),
        dilation=tuple(attributes.get("dilations", [1] * spatial)),
        ceil_mode=bool(attributes.get("ceil_mode", 0)),
    )  # fmt: skip


def _batch_normalization(t, attributes, x, scale, bias, mean, variance):
    epsilon = attributes.get("epsilon", 1e-5)
    return t.call(functional.batch_norm, x, mean, variance, scale, bias, False, 0.0, epsilon)


def _layer_normalization(t, attributes, x, scale, bias=None):
    axis = attributes.get("axis", -1) % _rank(x)
    extents = list(x.sample.shape[axis:])
    return t.call(functional.layer_norm, x, extents, scale, bias, attributes.get("epsilon", 1e-5))


def _gemm(t, attributes, a, b, c=None):
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    if attributes.get("transA", 0):
        a = t.call(torch.transpose, a, 0, 1)
    if alpha == 1 and beta == 1 and attributes.get("transB", 0) and (c is None or _rank(c) == 1):
        return t.call(functional.linear, a, b, c)
    if attributes.get("transB", 0):
        b = t.call(torch.transpose, b, 0, 1)
    if c is None:
        return t.call(torch.mul, t.call(torch.matmul, a, b), alpha)
    return t.call(torch.addmm, c, a, b, beta=beta, alpha=alpha)


def _reduce_mean(t, attributes, x, axes=None):
    axes = attributes.get("axes") if axes is None else _known(axes, "axes")
    axes = list(range(_rank(x))) if not axes else axes
    return t.call(torch.mean, x, axes, bool(attributes.get("keepdims", 1)))


def _global_average_pool(t, attributes, x):
    return t.call(torch.mean, x, list(range(2, _rank(x))), True)


def _clip(t, attributes, x, least=None, most=None):
    least = attributes.get("min") if least is None else _known(least, "min")
    most = attributes.get("max") if most is None else _known(most, "max")
    return t.call(torch.clamp, x, least, most)


def _reshape(t, attributes, x, shape):
    extents = _known(shape, "the target shape of Reshape")
    if not attributes.get("allowzero", 0):
        extents = [x.sample.shape[k] if extent == 0 else extent for k, extent in enumerate(extents)]
    return t.call(torch.reshape, x, extents)


def _flatten(t, attributes, x):
    axis = attributes.get("axis", 1)
    return t.call(torch.reshape, x, [math.prod(x.sample.shape[:axis]), -1])


def _unsqueeze(t, attributes, x, axes=None):
    axes = attributes.get("axes") if axes is None else _known(axes, "axes")
    rank = _rank(x) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = t.call(torch.unsqueeze, x, axis)
    return x


def _squeeze(t, attributes, x, axes=None):
    axes = attributes.get("axes") if axes is None else _known(axes, "axes")
    if axes is None:
        axes = [axis for axis, extent in enumerate(x.sample.shape) if extent == 1]
    for axis in sorted((axis % _rank(x) for axis in axes), reverse=True):
        x = t.call(torch.squeeze, x, axis)
    return x


def _split(t, attributes, x, sizes=None):
    axis = attributes.get("axis", 0)
    extent = x.sample.shape[axis]
    if sizes is not None:
        sizes = _known(sizes, "split")
    else:
        sizes = attributes.get("split")
    if sizes is None:
        count = attributes.get("num_outputs", attributes["outputs"])
        length = -(-extent // count)
        sizes = [min(length, extent - k * length) for k in range(count)]
    parts = t.call(torch.split, x, list(sizes), axis)
    return [
        _Traced(t.graph.call_function(operator.getitem, (parts.node, k)), sample)
        for k, sample in enumerate(parts.sample)
    ]


def _slice(t, attributes, x, starts, ends, axes=None, steps=None):
    starts, ends = _known(starts, "starts"), _known(ends, "ends")
    axes = list(range(len(starts))) if axes is None else _known(axes, "axes")
    steps = [1] * len(starts) if steps is None else _known(steps, "steps")
    if any(step < 1 for step in steps):
        raise TranslationError(f"a step of Slice is {min(steps)}")
    index = [slice(None)] * _rank(x)
    for axis, start, end, step in zip(axes, starts, ends, steps):
        extent = x.sample.shape[axis]
        first, last, _ = slice(start, end).indices(extent)
        index[axis] = slice(first, last, step)
    return t.call(operator.getitem, x, tuple(index))


def _gather(t, attributes, x, indices):
    axis = attributes.get("axis", 0)
    if isinstance(indices, numpy.ndarray) and indices.ndim == 0:
        return t.call(torch.select, x, axis, int(indices))
    if axis == 0 and _rank(x) == 2 and isinstance(indices, _Traced):
        return t.call(functional.embedding, indices, x)
    rank = _rank(indices)
    extents = list(indices.sample.shape if isinstance(indices, _Traced) else indices.shape)
    flat = t.call(torch.reshape, indices, [-1])
    taken = t.call(torch.index_select, x, axis, flat)
    if rank == 1:
        return taken
    shape = list(taken.sample.shape)
    axis %= len(shape)
    return t.call(torch.reshape, taken, shape[:axis] + extents + shape[axis + 1 :])


def _expand(t, attributes, x, shape):
    extents = torch.broadcast_shapes(x.sample.shape, tuple(_known(shape, "the target shape of Expand")))
    return t.call(torch.broadcast_to, x, list(extents))


def _resize(t, attributes, x, roi=None, scales=None, sizes=None):
    if sizes is not None:
        extents = _known(sizes, "sizes")[2:]
    else:
        extents = [
            int(math.floor(extent * scale))
            for extent, scale in zip(x.sample.shape[2:], _known(scales, "scales")[2:])
        ]
    mode = attributes.get("mode", b"nearest").decode()
    ways = {
        ("nearest", "asymmetric", "floor"): {"mode": "nearest"},
        ("linear", "half_pixel"): {"mode": "bilinear", "align_corners": False},
        ("linear", "align_corners"): {"mode": "bilinear", "align_corners": True},
    }
    key = [mode, attributes.get("coordinate_transformation_mode", b"half_pixel").decode()]
    if mode == "nearest":
        key.append(attributes.get("nearest_mode", b"round_prefer_floor").decode())
    if tuple(key) not in ways or _rank(x) != 4:
        raise TranslationError(f"there is no Resize of {', '.join(key)}")
    return t.call(functional.interpolate, x, size=tuple(extents), **ways[tuple(key)])


def _cast(t, attributes, x):
    dtype = helper.tensor_dtype_to_np_dtype(attributes["to"])
    return t.call(torch.Tensor.to, x, torch.from_numpy(numpy.zeros(1, dtype)).dtype)


def _softmax(t, attributes, x):
    return t.call(torch.softmax, x, attributes.get("axis", -1))


def _gelu(t, attributes, x):
    return t.call(functional.gelu, x, approximate=attributes.get("approximate", b"none").decode())


def _div(t, attributes, a, b):
    is_whole = not (a.sample if isinstance(a, _Traced) else torch.from_numpy(a)).is_floating_point()
    return t.call(torch.div, a, b, rounding_mode="trunc" if is_whole else None)


def _plain(function):
    return lambda t, attributes, *values: t.call(function, *values)


_OPERATORS = {
    "Add": _plain(torch.add),
    "Attention": _attention,
    "BatchNormalization": _batch_normalization,
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda t, attributes, *values: t.call(torch.cat, list(values), attributes["axis"]),
    "Conv": _conv,
    "Div": _div,
    "Erf": _plain(torch.erf),
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gelu": _gelu,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "Identity": lambda t, attributes, x: t.call(torch.clone, x),
    "LayerNormalization": _layer_normalization,
    "LessOrEqual": _plain(torch.le),
    "MatMul": _plain(torch.matmul),
    "MaxPool": _max_pool,
    "Mul": _plain(torch.mul),
    "Neg": _plain(torch.neg),
    "Pow": _plain(torch.pow),
    "ReduceMean": _reduce_mean,
    "Relu": _plain(torch.relu),
    "Reshape": _reshape,
    "Resize": _resize,
    "Sigmoid": _plain(torch.sigmoid),
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Sqrt": _plain(torch.sqrt),
    "Squeeze": _squeeze,
    "Sub": _plain(torch.sub),
    "Tanh": _plain(torch.tanh),
    "Transpose": lambda t, attributes, x: t.call(
        torch.permute, x, list(attributes.get("perm", reversed(range(_rank(x)))))
    ),
    "Unsqueeze": _unsqueeze,
    "Where": _plain(torch.where),
}


def _evaluate(node, arrays, opsets):
    """The results of a node whose operands are all known."""
    graph = helper.make_graph(
        [node],
        "known",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
    )
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return [numpy.asarray(result) for result in ReferenceEvaluator(model).run(None, arrays)]


def _in_order(nodes, known):
    """The nodes, each behind those whose results it takes: converters to float16 put casts at the end."""
    known, waiting = set(known) | {""}, list(nodes)
    while waiting:
        ready = [node for node in waiting if known.issuperset(node.input)]
        if not ready:
            raise TranslationError(f"{waiting[0].op_type} takes what no node makes")
        # A node that only waits for one of these comes in the next round.
        for node in ready:
            known.update(node.output)
            yield node
        waiting = [node for node in waiting if not any(node is other for other in ready)]


def translate(model, inputs):
    """A torch.fx.GraphModule of the model's outputs for {name: array} of the inputs' extents.

    It has the inputs in the order of the model's graph, and a tuple of the outputs in theirs.
    TranslationError where a node has no translation.
    """
    translator = _Translator()
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in values:
            values[value.name] = translator.add_input(value.name, torch.from_numpy(inputs[value.name].copy()))
    for node in _in_order(model.graph.node, values):
        operands = [values[name] if name else None for name in node.input]
        given = {name: value for name, value in zip(node.input, operands) if name}
        if node.op_type == "Shape" and isinstance(operands[0], _Traced):
            shape = numpy.array(operands[0].sample.shape, numpy.int64)
            limits = {attribute.name: attribute.i for attribute in node.attribute}
            results = [shape[limits.get("start", 0) : limits.get("end", len(shape))]]
        elif all(isinstance(value, numpy.ndarray) for value in given.values()):
            results = _evaluate(node, given, model.opset_import)
        elif node.domain not in ("", "ai.onnx") or node.op_type not in _OPERATORS:
            raise TranslationError(f"{node.op_type} has no translation")
        else:
            attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
            if node.op_type == "Split":
                attributes["outputs"] = len(node.output)
            while operands and operands[-1] is None:
                operands.pop()
            results = _OPERATORS[node.op_type](translator, attributes, *operands)
            results = results if isinstance(results, list) else [results]
        for name, result in zip(node.output, results):
            values[name] = result
    return translator.finish([values[value.name] for value in model.graph.output])


def main():
    model_path, inputs_path, file = sys.argv[1:]
    model = onnx.load(model_path)
    with numpy.load(inputs_path) as archive:
        inputs = dict(archive)
    constants = {tensor.name for tensor in model.graph.initializer}
    translated = {
        "module": translate(model, inputs),
        "inputs": [value.name for value in model.graph.input if value.name not in constants],
        "outputs": [value.name for value in model.graph.output],
    }
    torch.save(translated, file)


if __name__ == "__main__":
    try:
        main()
    except TranslationError as fault:
        sys.exit(f"{fault}.")

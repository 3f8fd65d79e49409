# SPDX-License-Identifier: Apache-2.0
"""Gradients, against differences of the function in float64."""

import numpy
from onnx import helper

from opsets.case import covers, narrow, widen

_STEP = 1e-5


def _differences(function, inputs):
    """The derivatives of the sum of `function` by each element of each input."""
    results = []
    for number, value in enumerate(inputs):
        slopes = numpy.zeros(value.shape)
        for place in numpy.ndindex(value.shape):
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in inputs]
                moved[number][place] += sign * _STEP
                ends.append(function(*moved).sum())
            slopes[place] = (ends[0] - ends[1]) / (2 * _STEP)
        results.append(slopes)
    return results


def _node(op_type, inputs, output, **attributes):
    return helper.make_node(op_type, inputs, [output], **attributes)


# Suffix, nodes from a, b to y, the function, shapes of a and b.
_FUNCTIONS = (
    (
        "broadcast",
        [
            _node("Mul", ["a", "b"], "m"),
            _node("Sub", ["m", "b"], "n"),
            _node("Div", ["n", "d"], "y"),
        ],
        lambda a, b: (a * b - b) / 1.5,
        ((3, 5, 7), (5, 1)),
    ),
    (
        "quotient",
        [_node("Div", ["a", "b"], "m"), _node("Add", ["m", "a"], "y")],
        lambda a, b: a / b + a,
        ((1, 7), (5, 1)),
    ),
    (
        "layers",
        [
            _node("MatMul", ["a", "b"], "m"),
            _node("Tanh", ["m"], "n"),
            _node("Sigmoid", ["n"], "o"),
            _node("Sum", ["o", "n", "m"], "p"),
            _node("Relu", ["p"], "y"),
        ],
        lambda a, b: _layers(a @ b),
        ((2, 5, 7), (7, 3)),
    ),
    (
        "functions",
        [
            _node("Exp", ["a"], "e"),
            _node("Log", ["b"], "l"),
            _node("Sqrt", ["b"], "s"),
            _node("Sin", ["a"], "i"),
            _node("Cos", ["l"], "c"),
            _node("Neg", ["c"], "n"),
            _node("Identity", ["e"], "j"),
            _node("Sum", ["j", "l", "s", "i", "n"], "y"),
        ],
        lambda a, b: numpy.exp(a)
        + numpy.log(b)
        + numpy.sqrt(b)
        + numpy.sin(a)
        - numpy.cos(numpy.log(b)),
        ((3, 11), (11,)),
    ),
    (
        "classifier",
        [
            _node("Gemm", ["a", "b"], "m", alpha=0.5),
            _node("LogSoftmax", ["m"], "l"),
            _node("Transpose", ["l"], "t"),
            _node("Flatten", ["t"], "f", axis=0),
            _node("LeakyRelu", ["f"], "r", alpha=0.25),
            _node("Reciprocal", ["r"], "y"),
        ],
        lambda a, b: _classifier(a @ b / 2),
        ((2, 7), (7, 5)),
    ),
    (
        "rows",
        [
            _node("Softmax", ["a"], "s"),
            _node("Pow", ["s", "b"], "p"),
            _node("ReduceMean", ["p"], "r", keepdims=0),
            _node("ReduceSum", ["a"], "t"),
            _node("Mul", ["r", "t"], "y"),
        ],
        lambda a, b: (_softmax(a) ** b).mean() * a.sum(keepdims=True),
        ((3, 11), (11,)),
    ),
)


def _softmax(m):
    exps = numpy.exp(m)
    return exps / exps.sum(-1, keepdims=True)


def _classifier(m):
    # Logarithms of shares are negative.
    return 1 / (0.25 * numpy.log(_softmax(m)).T.reshape(1, -1))


def _layers(m):
    n = numpy.tanh(m)
    return numpy.maximum(1 / (1 + numpy.exp(-n)) + n + m, 0)


@covers("Gradient")
def make_gradient(request):
    for suffix, nodes, function, shapes in _FUNCTIONS:
        for name in ("float", "double"):
            a = request.values(name, shapes[0], -1, 1)
            b = request.values(name, shapes[1], 0.5, 2)
            d = numpy.array(1.5, a.dtype)
            gradient = helper.make_node(
                "Gradient",
                ["a", "b"],
                ["da", "db"],
                domain=request.pair.domain,
                xs=["a", "b"],
                y="y",
            )
            outputs = [function(widen(a), widen(b)), *_differences(function, [widen(a), widen(b)])]
            outputs = dict(zip(("y", "da", "db"), (narrow(each, name) for each in outputs)))
            inputs = {"a": a, "b": b} | ({"d": d} if suffix == "broadcast" else {})
            yield request.graph_case(
                f"{name}_{suffix}",
                [*nodes, gradient],
                inputs,
                outputs,
                opset=22,
                rtol=1e-4,
                atol=1e-5,
            )

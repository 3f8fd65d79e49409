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


def _node(op_type, inputs, output):
    return helper.make_node(op_type, inputs, [output])


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
)


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

# SPDX-License-Identifier: Apache-2.0
"""Random generators. The models themselves check what is drawn: their outputs are truths."""

import math

import numpy
from onnx import helper

from opsets.case import covers, dtype_of, number_of

_SHAPE = [101, 103]
_COUNT = _SHAPE[0] * _SHAPE[1]
# Standard deviations within which a mean of so many draws lies.
_LIMIT = 6


def _constant(name, value, kind=numpy.float32):
    tensor = helper.make_tensor(
        name, helper.np_dtype_to_tensor_dtype(numpy.dtype(kind)), [], [value]
    )
    return helper.make_node("Constant", [], [name], value=tensor)


def _near(output, value, target, allowed):
    """Nodes that tell whether a scalar lies near a number."""
    names = [f"{output}_{part}" for part in ("target", "allowed", "difference", "distance")]
    return [
        _constant(names[0], target),
        _constant(names[1], allowed),
        helper.make_node("Sub", [value, names[0]], [names[2]]),
        helper.make_node("Abs", [names[2]], [names[3]]),
        helper.make_node("Less", [names[3], names[1]], [output]),
    ]


def _moments(mean, variance, fourth):
    """Whether mean and variance of `drawn` are near; `fourth` is the fourth central moment."""
    return [
        helper.make_node("Cast", ["drawn"], ["numbers"], to=1),
        helper.make_node("ReduceMean", ["numbers"], ["mean"], keepdims=0),
        *_near("is_mean", "mean", mean, _LIMIT * math.sqrt(variance / _COUNT)),
        _constant("center", mean),
        helper.make_node("Sub", ["numbers", "center"], ["centered"]),
        helper.make_node("Mul", ["centered", "centered"], ["squares"]),
        helper.make_node("ReduceMean", ["squares"], ["variance"], keepdims=0),
        *_near(
            "is_variance",
            "variance",
            variance,
            # float16 and bfloat16 round what is drawn.
            _LIMIT * math.sqrt((fourth - variance**2) / _COUNT) + variance / 256,
        ),
    ]


def _generators(request, attributes):
    """Suffix, node of the generator, its inputs; by output type."""
    is_like = request.op_type.endswith("Like")
    for name in request.types("T2" if is_like else "T"):
        options = attributes | {"dtype": number_of(name), "seed": 5.0}
        if not is_like:
            options["shape"] = _SHAPE
            yield name, helper.make_node(request.op_type, [], ["drawn"], **options), {}
            continue
        node = helper.make_node(request.op_type, ["like"], ["drawn"], **options)
        yield name, node, {"like": numpy.zeros(_SHAPE, dtype_of("int32"))}


# Version 1 is in force up to opset 21, whose operators are simpler to check with.
def _opset(request):
    return 21 if request.version < 22 else request.version


@covers("RandomNormal", "RandomNormalLike")
def make_random_normal(request):
    mean, scale = 1.5, 0.75
    for name, node, inputs in _generators(request, {"mean": mean, "scale": scale}):
        nodes = [node, *_moments(mean, scale**2, 3 * scale**4)]
        # 1 - erf(1 / sqrt(2)) of all lie beyond one standard deviation.
        share = math.erfc(math.sqrt(0.5))
        nodes += [
            _constant("one", scale**2),
            helper.make_node("Less", ["one", "squares"], ["beyond"]),
            helper.make_node("Cast", ["beyond"], ["ones"], to=1),
            helper.make_node("ReduceMean", ["ones"], ["share"], keepdims=0),
            *_near("is_share", "share", share, _LIMIT * math.sqrt(share / _COUNT) + 0.01),
        ]
        outputs = dict.fromkeys(("is_mean", "is_variance", "is_share"), numpy.array(True))
        yield request.graph_case(name, nodes, inputs, outputs, opset=_opset(request))


@covers("RandomUniform", "RandomUniformLike")
def make_random_uniform(request):
    low, high = -0.5, 1.5
    variance = (high - low) ** 2 / 12
    for name, node, inputs in _generators(request, {"low": low, "high": high}):
        nodes = [node, *_moments((low + high) / 2, variance, (high - low) ** 4 / 80)]
        nodes += [
            helper.make_node("ReduceMin", ["numbers"], ["least"], keepdims=0),
            helper.make_node("ReduceMax", ["numbers"], ["most"], keepdims=0),
            # Within the bounds, and near them.
            *_near("is_least", "least", low + 0.01, 0.0101),
            *_near("is_most", "most", high - 0.01, 0.0101),
        ]
        names = ("is_mean", "is_variance", "is_least", "is_most")
        outputs = dict.fromkeys(names, numpy.array(True))
        yield request.graph_case(name, nodes, inputs, outputs, opset=_opset(request))


@covers("Multinomial")
def make_multinomial(request):
    shares = numpy.array([0.125, 0.5, 0.25, 0.125])
    for name in request.types("T1"):
        for target in ("int32", "int64"):
            attributes = {"sample_size": _COUNT, "dtype": number_of(target), "seed": 5.0}
            nodes = [helper.make_node("Multinomial", ["logs"], ["drawn"], **attributes)]
            for kind, share in enumerate(shares):
                nodes += [
                    _constant(f"kind{kind}", kind, dtype_of(target)),
                    helper.make_node("Equal", ["drawn", f"kind{kind}"], [f"is{kind}"]),
                    helper.make_node("Cast", [f"is{kind}"], [f"ones{kind}"], to=1),
                    helper.make_node("ReduceMean", [f"ones{kind}"], [f"share{kind}"], keepdims=0),
                    *_near(
                        f"is_share{kind}",
                        f"share{kind}",
                        share,
                        _LIMIT * math.sqrt(share * (1 - share) / _COUNT) + 2e-3,
                    ),
                ]
            # Not normalised: any constant may be added to logarithms.
            inputs = {"logs": (numpy.log(shares)[None] + 1).astype(dtype_of(name))}
            outputs = {f"is_share{kind}": numpy.array(True) for kind in range(4)}
            suffix = f"{name}_{target}"
            yield request.graph_case(suffix, nodes, inputs, outputs, opset=_opset(request))

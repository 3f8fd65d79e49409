# SPDX-License-Identifier: Apache-2.0
"""Activations, their biases, and products that an activation follows."""

import math

import numpy

from domains.case import covers, floats, node_case, random_of


def _gelu(x):
    wide = x.astype("float64")
    return wide * 0.5 * (1 + numpy.vectorize(math.erf)(wide / math.sqrt(2)))


def _narrow(function):
    return lambda x, *more, **attributes: [function(x, *more, **attributes).astype(x.dtype)]


@covers("Gelu", "FastGelu", "BiasGelu", "QuickGelu", "GemmFastGelu")
def gelu():
    def fast(x, bias=None):
        wide = x.astype("float64") + (0 if bias is None else bias.astype("float64"))
        return wide * 0.5 * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))

    def quick(x, alpha=1.702):
        wide = x.astype("float64")
        return wide / (1 + numpy.exp(-float(numpy.float32(alpha)) * wide))

    for dtype in ("float32", "float16", "float64"):
        random = random_of("gelu" + dtype)
        x, bias = floats(random, (3, 5, 37), dtype, 2), floats(random, (37,), dtype)
        own = dtype == "float32"  # the type of ONNX Runtime's kernels
        for op_type, inputs, oracle in (
            ("Gelu", [x], _gelu),
            ("FastGelu", [x], fast),
            ("FastGelu", [x, bias], fast),
            ("BiasGelu", [x, bias], lambda x, b: _gelu(x.astype("float64") + b.astype("float64"))),
            ("QuickGelu", [x], quick),
        ):
            name = f"{op_type.lower()}_{dtype}_{len(inputs)}"
            oracle = None if own else _narrow(oracle)
            yield node_case(name, op_type, inputs, constant=(1,), oracle=oracle)
            yield node_case(name + "_symbolic", op_type, inputs, symbolic=True, oracle=oracle)
        attributes = {"alpha": 0.7}
        yield node_case(
            f"quickgelu_{dtype}_alpha",
            "QuickGelu",
            [x],
            attributes=attributes,
            oracle=None if own else _narrow(quick),
        )
    random = random_of("gemmfastgelu")
    x, w, bias = floats(random, (2, 3, 8)), floats(random, (8, 5), scale=0.3), floats(random, (5,))
    oracle = lambda x, w, bias=None: [fast(x.astype("float64") @ w, bias).astype("float32")]
    yield node_case("gemmfastgelu", "GemmFastGelu", [x, w, bias], oracle=oracle, constant=True)
    yield node_case("gemmfastgelu_no_bias", "GemmFastGelu", [x, w], oracle=oracle)


@covers("BiasSplitGelu", "BiasAdd", "BiasDropout", "BiasSoftmax")
def biases():
    def split(x, bias):
        wide = x.astype("float64") + bias.astype("float64")
        left, right = numpy.split(wide, 2, axis=-1)
        return left * _gelu(right)

    for dtype in ("float32", "float16"):
        random = random_of("biases" + dtype)
        x, bias = floats(random, (2, 7, 20), dtype), floats(random, (20,), dtype)
        yield node_case(
            f"biassplitgelu_{dtype}", "BiasSplitGelu", [x, bias], oracle=_narrow(split), constant=(1,)
        )
        skip = floats(random, (2, 7, 20), dtype)
        add = _narrow(lambda x, b, s: x.astype("float64") + b + s)
        yield node_case(f"biasadd_{dtype}", "BiasAdd", [x, bias, skip], oracle=add, constant=(1,))
    drop = lambda x, bias, residual=None, ratio=None: [
        x + bias + (0 if residual is None else residual),
        numpy.ones(x.shape, bool),
    ]
    random = random_of("biasdropout")
    x, bias, residual = floats(random, (3, 5, 8)), floats(random, (8,)), floats(random, (3, 5, 8))
    yield node_case(
        "biasdropout", "BiasDropout", [x, bias, residual, numpy.array(0.3, "float32")], outputs=2, oracle=drop
    )
    yield node_case(
        "biasdropout_no_residual", "BiasDropout", [x, bias], oracle=lambda *given: drop(*given)[:1]
    )

    def softmax(x, bias, axis, is_inner_broadcast):
        total = (x.astype("float64") + bias).reshape(int(numpy.prod(x.shape[:axis])), -1)
        exps = numpy.exp(total - total.max(1, keepdims=True))
        return (exps / exps.sum(1, keepdims=True)).reshape(x.shape)

    for kind, axis, shape, inner in (
        ("inner", 3, (2, 1, 1, 9), 1),
        ("outer", 2, (1, 1, 5, 9), 0),
        ("last", 1, (1, 3, 5, 9), 0),
    ):
        x, bias = floats(random, (2, 3, 5, 9)), floats(random, shape)
        attributes = {"axis": axis, "is_inner_broadcast": inner}
        yield node_case(
            f"biassoftmax_{kind}", "BiasSoftmax", [x, bias], attributes=attributes, oracle=_narrow(softmax)
        )


@covers("FusedGemm", "FusedMatMulActivation")
def fused_products():
    # Those that ONNX Runtime's kernel knows; its optimizer writes their attributes with a prefix.
    for activation, parameters in (
        ("Celu", {"activation_alpha": 0.7}),
        ("Elu", {"activation_alpha": 0.6}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("ParametricSoftplus", {"activation_alpha": 0.8, "activation_beta": 1.5}),
        ("Relu", {}),
        ("ScaledTanh", {"activation_alpha": 0.9, "activation_beta": 0.4}),
        ("Selu", {"activation_alpha": 1.3, "activation_gamma": 0.8}),
        ("Sigmoid", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Tanh", {}),
        ("ThresholdedRelu", {"activation_alpha": 0.5}),
    ):
        name = f"fusedgemm_{activation.lower()}"
        random = random_of(name)
        inputs = [floats(random, (7, 5)), floats(random, (9, 7)), floats(random, (9,))]
        attributes = {
            "activation": activation,
            "transA": 1,
            "transB": 1,
            "alpha": 0.5,
            "beta": 2.0,
            **parameters,
        }
        yield node_case(name, "FusedGemm", inputs, attributes=attributes, constant=(1, 2))
    # Without their attributes ONNX Runtime refuses them. A function of ONNX's has the defaults.
    for activation, given, defaults in (
        ("Celu", {}, lambda x: numpy.where(x > 0, x, numpy.expm1(x))),
        ("Elu", {}, lambda x: numpy.where(x > 0, x, numpy.expm1(x))),
        ("HardSigmoid", {}, lambda x: numpy.clip(0.2 * x + 0.5, 0, 1)),
        ("HardSigmoid", {"activation_beta": 0.25}, lambda x: numpy.clip(0.2 * x + 0.25, 0, 1)),
        ("LeakyRelu", {}, lambda x: numpy.where(x > 0, x, 0.01 * x)),
        ("Selu", {"activation_gamma": 0.5}, lambda x: 0.5 * numpy.where(x > 0, x, 1.67326324 * numpy.expm1(x))),
        ("ThresholdedRelu", {}, lambda x: numpy.where(x > 1, x, 0)),
    ):
        yield node_case(
            f"fusedgemm_{activation.lower()}_{len(given)}_defaults",
            "FusedGemm",
            [floats(random, (7, 5)), floats(random, (5, 9))],
            attributes={"activation": activation, **given},
            oracle=lambda a, b, run=defaults, **_: [run(a.astype("float64") @ b).astype("float32")],
        )
    product = lambda a, b: [(a.astype("float64") @ b).astype("float32")]
    yield node_case(
        "fusedgemm_none",
        "FusedGemm",
        [floats(random, (3, 5)), floats(random, (5, 4))],
        symbolic=True,
        oracle=product,
    )

    def turned(x, is_turned, has_batch_inside):
        x = x.swapaxes(0, 1) if has_batch_inside else x
        return x.swapaxes(-1, -2) if is_turned else x

    def oracle(a, b, activation, alpha=1.0, activation_axis=-1, activation_alpha=0.01, **given):
        a = turned(a.astype("float64"), given.get("transA"), given.get("transBatchA"))
        product = alpha * (a @ turned(b, given.get("transB"), given.get("transBatchB")))
        if activation == "Softmax":
            exps = numpy.exp(product - product.max(activation_axis, keepdims=True))
            return [(exps / exps.sum(activation_axis, keepdims=True)).astype("float32")]
        if activation == "HardSigmoid":
            return [numpy.clip(activation_alpha * product + given["activation_beta"], 0, 1).astype("float32")]
        if activation == "Selu":
            below = activation_alpha * numpy.expm1(product)
            return [(given["activation_gamma"] * numpy.where(product > 0, product, below)).astype("float32")]
        return [numpy.where(product < 0, activation_alpha * product, product).astype("float32")]

    a, b = (2, 3, 5), (2, 4, 5)
    for kind, shapes, activation, more in (
        ("softmax", (a, b), "Softmax", {"transB": 1, "activation_axis": 1}),
        ("leakyrelu", (a, b), "LeakyRelu", {"transB": 1, "activation_alpha": 0.3}),
        ("hardsigmoid", ((2, 3, 5), (2, 5, 4)), "HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.6}),
        ("selu", ((2, 3, 5), (2, 5, 4)), "Selu", {"activation_alpha": 1.2, "activation_gamma": 0.9}),
        ("trans_a", ((2, 5, 3), (2, 5, 4)), "LeakyRelu", {"transA": 1}),
        ("batch_a", ((3, 2, 5), (2, 5, 4)), "LeakyRelu", {"transBatchA": 1}),
        ("batch_b", (a, (5, 2, 4)), "LeakyRelu", {"transBatchB": 1}),
    ):
        inputs = [floats(random, shape) for shape in shapes]
        attributes = {"activation": activation, "alpha": 0.5, **more}
        yield node_case(
            f"fusedmatmulactivation_{kind}",
            "FusedMatMulActivation",
            inputs,
            attributes=attributes,
            oracle=oracle,
        )

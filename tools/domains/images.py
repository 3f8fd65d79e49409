# SPDX-License-Identifier: Apache-2.0
"""Convolution, pooling and normalization of images, quantized ones and those with channels as the last axis."""

import numpy
import onnx

from domains import case
from domains.case import covers, floats, integers, node_case, quantized, random_of, weights


def _to_last(x):
    return numpy.moveaxis(x, 1, -1)


def _to_first(x):
    return numpy.moveaxis(x, -1, 1)


def _conv(x, w, b, attributes):
    """ONNX's Conv, by ONNX Runtime."""
    names = [("x", x), ("w", w), ("b", b)]
    given = [name for name, array in names if array is not None]
    node = onnx.helper.make_node("Conv", given, ["y"], **attributes)
    infos = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in names
        if array is not None
    ]
    graph = onnx.helper.make_graph([node], "conv", infos, [onnx.ValueInfoProto(name="y")])
    model = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)])
    return case.run_reference(model, {name: array for name, array in names if array is not None})[0]


def _activate(y, name, parameters=()):
    functions = {
        None: lambda y: y,
        "Relu": lambda y: numpy.maximum(y, 0),
        "Clip": lambda y, low, high: numpy.clip(y, low, high),
    }
    return functions[name](y, *parameters)


# Beside pads: the rest that ONNX's Conv and pools have.
_SAME = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}
_DILATED = {"kernel_shape": [3, 2], "dilations": [2, 3], "pads": [1, 2, 0, 1]}

_WINDOWS = {
    "plain": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "strides": {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]},
}


@covers("FusedConv")
def fused_conv():
    activations = [
        (None, None),
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.2]),
        ("HardSigmoid", [0.3, 0.4]),
        ("HardSwish", None),
        ("Clip", [-0.5, 0.75]),
    ]
    for activation, parameters in activations:
        for kind, window in _WINDOWS.items():
            name = f"fusedconv_{(activation or 'none').lower()}_{kind}"
            random = random_of(name)
            attributes = dict(window)
            if activation:
                attributes["activation"] = activation
            if parameters:
                attributes["activation_params"] = parameters
            inputs = [
                floats(random, (2, 4, 9, 7)),
                floats(random, (6, 4, *window["kernel_shape"]), scale=0.2),
                floats(random, (6,)),
            ]
            yield node_case(name, "FusedConv", inputs, attributes=attributes, constant=True)
    random = random_of("fusedconv_sum")
    attributes = {**_WINDOWS["plain"], "activation": "Relu", "group": 2}
    inputs = [
        floats(random, (1, 4, 6, 5)),
        floats(random, (6, 2, 3, 3)),
        floats(random, (6,)),
        floats(random, (1, 6, 6, 5)),
    ]
    yield node_case("fusedconv_sum", "FusedConv", inputs, attributes=attributes, constant=(1, 2))
    yield node_case(
        "fusedconv_sum_symbolic", "FusedConv", inputs, attributes=attributes, symbolic=True, constant=(1, 2)
    )
    inputs = [floats(random, (1, 4, 6, 5)), floats(random, (6, 4, 3, 3))]
    yield node_case(
        "fusedconv_dilations",
        "FusedConv",
        inputs,
        attributes={"dilations": [2, 1], "pads": [2, 1, 2, 1], "activation": "Relu"},
        constant=(1,),
    )
    yield node_case(
        "fusedconv_same",
        "FusedConv",
        inputs,
        attributes={**_SAME, "activation": "Relu"},
        constant=(1,),
    )


@covers("NhwcConv", "NhwcFusedConv")
def nhwc_conv():
    def oracle(x, w, b=None, z=None, activation=None, activation_params=(), **attributes):
        y = _to_last(_conv(_to_first(x), w, b, attributes))
        y = y if z is None else y + z
        return [_activate(y, activation, activation_params)]

    # ONNX Runtime's kernel and its optimizer (fusion_nhwc_conv.py) have the channels of filters last, too.
    def oracle_of_last(x, w, b=None, **attributes):
        return oracle(x, _to_first(w), b, **attributes)

    for op_type in ("NhwcConv", "NhwcFusedConv"):
        for kind, window in {**_WINDOWS, "same": _SAME, "dilations": _DILATED}.items():
            name = f"{op_type.lower()}_{kind}"
            random = random_of(name)
            inputs = [
                floats(random, (2, 9, 7, 4)),
                floats(random, (6, 2, *window["kernel_shape"])),
                floats(random, (6,)),
            ]
            attributes = {**window, "group": 2}
            if op_type == "NhwcConv":
                inputs[1] = numpy.ascontiguousarray(_to_last(inputs[1]))
            elif kind == "plain":
                inputs.append(floats(random, (2, 9, 7, 6)))
                attributes.update(activation="Clip", activation_params=[-1.0, 2.0])
            answer = oracle_of_last if op_type == "NhwcConv" else oracle
            yield node_case(name, op_type, inputs, attributes=attributes, constant=(1, 2), oracle=answer)


@covers("ConvTransposeWithDynamicPads")
def conv_transpose():
    zeros = numpy.zeros(4, "int64")
    for kind in ("pads", "run_time", "none", "groups", "dilations"):
        name = f"convtransposewithdynamicpads_{kind}"
        random = random_of(name)
        inputs = [
            floats(random, (2, 4, 5, 6)),
            floats(random, (4, 3, 3, 2)),
            numpy.array([1, 0, 2, 1]),
            floats(random, (6 if kind == "groups" else 3,)),
        ]
        attributes = {"strides": [2, 2], "output_padding": [1, 0], "kernel_shape": [3, 2]}
        if kind == "groups":
            attributes["group"] = 2
        if kind == "dilations":
            attributes["dilations"] = [2, 1]
        oracle = None
        if kind == "none":  # ONNX Runtime's kernel wants the input that its schema lets a node omit.
            inputs[2] = None
            oracle = lambda x, w, _, b, **attributes: node_case(
                "other", "ConvTransposeWithDynamicPads", [x, w, zeros, b], attributes=attributes
            ).outputs
        yield node_case(
            name,
            "ConvTransposeWithDynamicPads",
            inputs,
            attributes=attributes,
            oracle=oracle,
            constant=(1, 3) if kind == "run_time" else (1, 2, 3),
        )


@covers("QLinearConv")
def qlinear_conv():
    for dtype, last in (("uint8", 0), ("int8", 0), ("uint8", 1), ("int8", 1)):
        for by_channel in (False, True):
            name = f"qlinearconv_{dtype}_{'nhwc' if last else 'nchw'}_{'channels' if by_channel else 'whole'}"
            random = random_of(name)
            x = integers(random, (1, 4, 9, 7), dtype)
            extents = (6,) if by_channel else ()
            w_scale = (random.random(extents) * 0.01 + 0.01).astype("float32")
            inputs = [
                _to_last(x) if last else x,
                *quantized(dtype, 0.03067, 7),
                weights(random, (6, 4, 3, 3), "int8"),
                w_scale,
                numpy.zeros(extents, "int8"),
                *quantized(dtype, 0.70123, 3),
                integers(random, (6,), "int32", -500, 500),
            ]
            inputs[0] = numpy.ascontiguousarray(inputs[0])
            attributes = {**_WINDOWS["plain"], "channels_last": last, "strides": [2, 1]}
            yield node_case(name, "QLinearConv", inputs, attributes=attributes, constant=True)
            if by_channel:
                continue
            for kind, window, group in (("same", _SAME, 1), ("dilations", _DILATED, 1), ("groups", _SAME, 2)):
                inputs[3] = weights(random, (6, 4 // group, *window["kernel_shape"]), "int8")
                attributes = {**window, "channels_last": last, "group": group}
                yield node_case(
                    f"{name}_{kind}", "QLinearConv", inputs, attributes=attributes, constant=True
                )


@covers("QLinearAveragePool", "QLinearGlobalAveragePool")
def average_pool():
    for dtype, zero in (("uint8", 5), ("int8", -5)):
        for last in (0, 1):
            for kind, window in {
                **_WINDOWS,
                "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
                "ceil_same_upper": {"kernel_shape": [3, 2], "strides": [3, 3], "ceil_mode": 1, "auto_pad": "SAME_UPPER"},
                "ceil_same_lower": {**_SAME, "ceil_mode": 1},
                "ceil_valid": {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "auto_pad": "VALID"},
            }.items():
                for include in (0, 1):
                    name = f"qlinearaveragepool_{dtype}_{kind}_{'nhwc' if last else 'nchw'}_{include}"
                    random = random_of(name)
                    x = integers(random, (2, 3, 10, 8), dtype)
                    inputs = [
                        numpy.ascontiguousarray(_to_last(x)) if last else x,
                        *quantized(dtype, 0.04139, zero),
                        *quantized(dtype, 0.03067, 2),
                    ]
                    attributes = {**window, "channels_last": last, "count_include_pad": include}
                    yield node_case(name, "QLinearAveragePool", inputs, attributes=attributes, constant=True)
            name = f"qlinearglobalaveragepool_{dtype}_{'nhwc' if last else 'nchw'}"
            x = integers(random_of(name), (2, 5, 7, 9), dtype)
            inputs = [
                numpy.ascontiguousarray(_to_last(x)) if last else x,
                *quantized(dtype, 0.04139, zero),
                *quantized(dtype, 0.01097, 2),
            ]
            for symbolic in (False, True):
                yield node_case(
                    name + ("_symbolic" if symbolic else ""),
                    "QLinearGlobalAveragePool",
                    inputs,
                    attributes={"channels_last": last},
                    constant=True,
                    symbolic=symbolic,
                )


@covers("NhwcMaxPool")
def max_pool():
    for dtype in ("uint8", "int8"):
        for kind, window in {
            **_WINDOWS,
            "same": _SAME,
            "dilations": _DILATED | {"pads": [1, 1, 0, 0]},
            "ceil": {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
        }.items():
            name = f"nhwcmaxpool_{dtype}_{kind}"
            inputs = [integers(random_of(name), (2, 9, 7, 5), dtype)]
            yield node_case(name, "NhwcMaxPool", inputs, attributes=window)


@covers("GroupNorm", "SkipGroupNorm")
def group_norm():
    def normalize(x, gamma, beta, groups, activation, epsilon=1e-5, channels_last=1):
        x = _to_first(x) if channels_last else x
        parts = x.astype("float64").reshape(x.shape[0], groups, -1)
        parts = (parts - parts.mean(2, keepdims=True)) / numpy.sqrt(parts.var(2, keepdims=True) + epsilon)
        y = parts.reshape(x.shape) * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1)
        y = y / (1 + numpy.exp(-y)) if activation else y
        return _to_last(y) if channels_last else y

    def plain(x, gamma, beta, **attributes):
        return [normalize(x, gamma, beta, **attributes).astype(x.dtype)]

    def with_skip(x, gamma, beta, skip, bias=None, **attributes):
        last = attributes.get("channels_last", 1)
        wide = x.astype("float64")
        skip = skip.astype("float64")
        if skip.ndim == 2:
            skip = skip[:, None, None, :] if last else skip[:, :, None, None]
        total = wide + skip
        if bias is not None:
            total = total + (bias if last else bias.reshape(1, -1, 1, 1))
        return [normalize(total, gamma, beta, **attributes).astype(x.dtype), total.astype(x.dtype)]

    for dtype in ("float32", "float16"):
        for last in (1, 0):
            for activation in (0, 1):
                name = f"groupnorm_{dtype}_{'nhwc' if last else 'nchw'}_{activation}"
                random = random_of(name)
                shape = (2, 5, 3, 8) if last else (2, 8, 5, 3)
                inputs = [floats(random, shape, dtype), floats(random, (8,)), floats(random, (8,))]
                attributes = {"groups": 4, "activation": activation, "channels_last": last, "epsilon": 1e-2}
                yield node_case(
                    name, "GroupNorm", inputs, attributes=attributes, constant=(1, 2), oracle=plain
                )
                skips = {"whole": shape, "channels": (2, 8)}
                if last:
                    skips["channel_axes"] = (2, 1, 1, 8)
                for kind, skip in skips.items():
                    inputs = [*inputs[:3], floats(random, skip, dtype), floats(random, (8,), dtype)]
                    yield node_case(
                        f"skip{name}_{kind}",
                        "SkipGroupNorm",
                        inputs,
                        attributes=attributes,
                        outputs=2,
                        constant=(1, 2, 4),
                        oracle=with_skip,
                    )

# SPDX-License-Identifier: Apache-2.0
"""Normalisation over batches, channels and neighbours."""

import numpy

from opsets.case import SHAPE, covers, narrow, widen


def _by_channel(values, rank):
    return widen(values).reshape(-1, *[1] * (rank - 2))


@covers("BatchNormalization")
def make_batch_normalization(request):
    old = {"is_test": 1} if request.version < 7 else {}
    if request.version == 1:
        old["consumed_inputs"] = [0, 0, 0, 1, 1]
    for name in request.types("T"):
        x = request.values(name, (2, 5, 7, 3))
        shape = (5,)
        scale, bias, mean = (request.values(name, shape, -2, 2) for _ in range(3))
        variance = request.values(name, shape, 0.25, 2)
        attributes = {"epsilon": 0.0625, **old}

        def normalize(x, mean, variance, scale=scale, bias=bias):
            scale, bias = (_by_channel(each, 4) for each in (scale, bias))
            return (widen(x) - mean) / numpy.sqrt(variance + 0.0625) * scale + bias

        y = normalize(x, _by_channel(mean, 4), _by_channel(variance, 4))
        inputs = [x, scale, bias, mean, variance]
        yield request.case(name, inputs, [narrow(y, name)], **attributes)
        yield request.case(
            f"{name}_constant", inputs, [narrow(y, name)], [1, 2, 3, 4], **attributes
        )
        if request.version < 9:  # Each element of an image has its own numbers.
            shape = (5, 7, 3)
            own = [request.values(name, shape, -2, 2) for _ in range(3)]
            own.append(request.values(name, shape, 0.25, 2))
            wide = [widen(each) for each in own]
            y = (widen(x) - wide[2]) / numpy.sqrt(wide[3] + 0.0625) * wide[0] + wide[1]
            outputs = [narrow(y, name)]
            yield request.case(f"{name}_spatial", [x, *own], outputs, spatial=0, **attributes)
        if request.version >= 14:
            batch_mean = widen(x).mean((0, 2, 3))
            batch_variance = widen(x).var((0, 2, 3))
            y = normalize(x, batch_mean.reshape(5, 1, 1), batch_variance.reshape(5, 1, 1))
            running = [
                widen(old_value) * 0.75 + now * 0.25
                for old_value, now in ((mean, batch_mean), (variance, batch_variance))
            ]
            outputs = [narrow(each, name) for each in (y, *running)]
            attributes = {"epsilon": 0.0625, "momentum": 0.75, "training_mode": 1}
            loose = {"atol": 4e-3} if name == "float16" else {}
            yield request.case(f"{name}_training", inputs, outputs, **attributes, **loose)


@covers("InstanceNormalization")
def make_instance_normalization(request):
    for name in request.types():
        for extents in ((37,), (5, 7)):
            x = request.values(name, (2, 3, *extents))
            scale, bias = request.values(name, (3,)), request.values(name, (3,))
            axes = tuple(range(2, x.ndim))
            centered = widen(x) - widen(x).mean(axes, keepdims=True)
            y = centered / numpy.sqrt((centered**2).mean(axes, keepdims=True) + 0.0625)
            y = y * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)
            outputs = [narrow(y, name)]
            loose = {"atol": 4e-3} if name == "float16" else {}
            suffix = f"{name}_{len(extents)}"
            yield request.case(suffix, [x, scale, bias], outputs, epsilon=0.0625, **loose)


@covers("GroupNormalization")
def make_group_normalization(request):
    for name in request.types():
        x = request.values(name, (2, 6, 5, 7))
        scale, bias = request.values(name, (6,)), request.values(name, (6,))
        groups = widen(x).reshape(2, 3, -1)
        centered = groups - groups.mean(-1, keepdims=True)
        y = centered / numpy.sqrt((centered**2).mean(-1, keepdims=True) + 0.0625)
        y = y.reshape(x.shape) * _by_channel(scale, 4) + _by_channel(bias, 4)
        attributes = {"epsilon": 0.0625, "num_groups": 3}
        loose = {"atol": 6e-3} if name == "float16" else {}
        yield request.case(name, [x, scale, bias], [narrow(y, name)], **attributes, **loose)


@covers("LRN")
def make_lrn(request):
    for name in request.types():
        x = request.values(name, (2, 7, 5, 3))
        for size in (3, 4):
            squares = numpy.zeros(x.shape)
            for channel in range(7):
                first = max(0, channel - (size - 1) // 2)
                last = min(6, channel + size // 2)
                squares[:, channel] = (widen(x)[:, first : last + 1] ** 2).sum(1)
            y = widen(x) / (1.5 + 0.25 / size * squares) ** 0.625
            attributes = {"size": size, "alpha": 0.25, "beta": 0.625, "bias": 1.5}
            yield request.case(f"{name}_{size}", [x], [narrow(y, name)], **attributes)


@covers("MeanVarianceNormalization")
def make_mean_variance_normalization(request):
    # ONNX's checker takes other types only where the function's own constants have them.
    for name in ["float"]:
        for suffix, shape, axes in (("default", (2, 3, 5, 7), None), ("axes", SHAPE, [0, 1])):
            x = request.values(name, shape)
            over = tuple(axes or (0, 2, 3))
            wide = widen(x)
            deviation = numpy.sqrt(
                (wide**2).mean(over, keepdims=True) - wide.mean(over, keepdims=True) ** 2
            )
            y = (wide - wide.mean(over, keepdims=True)) / (deviation + 1e-9)
            # The default of version 13 does not pass ONNX's checker.
            attributes = {"axes": list(over)} if axes or request.version == 13 else {}
            yield request.case(f"{name}_{suffix}", [x], [narrow(y, name)], **attributes)

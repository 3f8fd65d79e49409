# SPDX-License-Identifier: Apache-2.0
"""Inception v1 (GoogLeNet, Szegedy et al. 2014) and v2 (Ioffe and Szegedy 2015), from Caffe.

v1 has local response normalisation. v2 has Caffe's pair of layers after each convolution: a
BatchNormalization without scale, then Mul and Add with per-channel constants that Unsqueeze makes
broadcastable.
"""

import numpy

from models.image_network import ImageNetwork

_PIXEL_DEVIATION = 60.0
_ROUND_UP = (0, 0, 1, 1)
_SAME = (1, 1, 1, 1)

# 1x1; 3x3 reduction, 3x3; 5x5 reduction, 5x5; projection of the pool. 0 = a pool comes first.
_V1_MODULES = (
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    0,
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    0,
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
)

# Stride; 1x1; 3x3 reduction, 3x3; double 3x3 reduction, double 3x3; pool, its projection.
_V2_MODULES = (
    (1, 64, 64, 64, 64, 96, "AveragePool", 32),
    (1, 64, 64, 96, 64, 96, "AveragePool", 64),
    (2, 0, 128, 160, 64, 96, "MaxPool", 0),
    (1, 224, 64, 96, 96, 128, "AveragePool", 128),
    (1, 192, 96, 128, 96, 128, "AveragePool", 128),
    (1, 160, 128, 160, 128, 160, "AveragePool", 128),
    (1, 96, 128, 192, 160, 192, "AveragePool", 128),
    (2, 0, 128, 192, 192, 256, "MaxPool", 0),
    (1, 352, 192, 320, 160, 224, "AveragePool", 128),
    (1, 352, 192, 320, 192, 224, "MaxPool", 128),
)


def _convolve_v1(net, x, channels, kernel, stride=1):
    return net.rectify(net.convolve(x, channels, kernel, stride, pad=kernel // 2))


def _normalize_locally(net, x):
    return net.add_node("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0)


def _add_module_v1(net, x, one, reduce3, three, reduce5, five, projection):
    return net.concatenate(
        _convolve_v1(net, x, one, kernel=1),
        _convolve_v1(net, _convolve_v1(net, x, reduce3, kernel=1), three, kernel=3),
        _convolve_v1(net, _convolve_v1(net, x, reduce5, kernel=1), five, kernel=5),
        _convolve_v1(net, net.pool("MaxPool", x, 3, 1, _SAME), projection, kernel=1),
    )


def make_inception_v1():
    net = ImageNetwork("inception_v1", opset=9, image_deviation=_PIXEL_DEVIATION)
    x = _convolve_v1(net, net.image, 64, kernel=7, stride=2)
    x = _normalize_locally(net, net.pool("MaxPool", x, 3, 2, _ROUND_UP))
    x = _convolve_v1(net, _convolve_v1(net, x, 64, kernel=1), 192, kernel=3)
    x = net.pool("MaxPool", _normalize_locally(net, x), 3, 2, _ROUND_UP)
    for module in _V1_MODULES:
        if module:
            x = _add_module_v1(net, x, *module)
        else:
            x = net.pool("MaxPool", x, 3, 2, _ROUND_UP)
    x = net.add_node("Dropout", net.pool("AveragePool", x, 7, 1), ratio=0.4)
    x = net.add_node("Reshape", x, net.add_constant([0, -1], "shape"))
    return [net.finish(net.add_node("Softmax", net.score(x), axis=1, output="prob"))]


def _convolve_v2(net, x, channels, kernel, stride=1):
    x = net.convolve(x, channels, kernel, stride, pad=kernel // 2)
    mean, variance = net.draw_statistics(x)
    statistics = (numpy.ones(channels), numpy.zeros(channels), mean, variance)
    operands = [net.add_constant(value, "statistic") for value in statistics]
    x = net.add_node("BatchNormalization", x, *operands, epsilon=1e-5, momentum=0.9, spatial=1)
    scale, shift = (
        net.add_node("Unsqueeze", net.add_constant(value, "scale"), axes=[1, 2])
        for value in net.draw_scale(channels, scale=1.0)
    )
    return net.rectify(net.add_node("Add", net.add_node("Mul", x, scale), shift))


def _add_module_v2(net, x, stride, one, reduce3, three, reduce_double, double, pool, projection):
    branches = [_convolve_v2(net, x, one, kernel=1)] if one else []
    y = _convolve_v2(net, x, reduce3, kernel=1)
    branches.append(_convolve_v2(net, y, three, 3, stride))
    y = _convolve_v2(net, x, reduce_double, kernel=1)
    y = _convolve_v2(net, y, double, kernel=3)
    branches.append(_convolve_v2(net, y, double, 3, stride))
    if stride == 2:
        branches.append(net.pool(pool, x, 3, 2, _ROUND_UP))
    else:
        # Caffe divides by the whole window, padding included.
        counting = {"count_include_pad": 1} if pool == "AveragePool" else {}
        y = net.pool(pool, x, 3, 1, _SAME, **counting)
        branches.append(_convolve_v2(net, y, projection, kernel=1))
    return net.concatenate(*branches)


def make_inception_v2():
    net = ImageNetwork("inception_v2", opset=7)
    x = _convolve_v2(net, net.image, 64, kernel=7, stride=2)
    x = net.pool("MaxPool", x, 3, 2, _ROUND_UP)
    x = _convolve_v2(net, _convolve_v2(net, x, 64, kernel=1), 192, kernel=3)
    x = net.pool("MaxPool", x, 3, 2, _ROUND_UP)
    for module in _V2_MODULES:
        x = _add_module_v2(net, x, *module)
    x = net.add_node("Flatten", net.pool("AveragePool", x, 7, 1), axis=1)
    return [net.finish(net.add_node("Softmax", net.score(x), output="prob"))]

# SPDX-License-Identifier: Apache-2.0
"""A network like YOLO's of 2023 (Ultralytics v8, nano): halves of the channels pass by, a pyramid goes up
to the nearest pixels and down again, and its three scales answer. They score classes here.
"""

import numpy

from models.image_network import ImageNetwork

def _convolve(net, x, channels, kernel=1, stride=1):
    x = net.convolve(x, channels, kernel, stride, kernel // 2, bias=False)
    x = net.normalize(x, scale=1.5, epsilon=1e-3)
    return net.add_node("Mul", x, net.add_node("Sigmoid", x))


def _pass_half(net, x, channels, repeats, is_residual):
    """A part of the channels passes by each of the convolutions; all parts are joined at the end."""
    x = _convolve(net, x, channels)
    parts = net.add_split_node("Split", x, outputs=[None, None], axis=1, num_outputs=2)
    for _ in range(repeats):
        y = _convolve(net, _convolve(net, parts[-1], channels // 2, 3), channels // 2, 3)
        parts.append(net.add_node("Add", parts[-1], y) if is_residual else y)
    return _convolve(net, net.concatenate(*parts), channels)


def _pool_in_turns(net, x, channels):
    parts = [_convolve(net, x, channels // 2)]
    for _ in range(3):
        parts.append(net.pool("MaxPool", parts[-1], kernel=5, stride=1, pads=(2, 2, 2, 2)))
    return _convolve(net, net.concatenate(*parts), channels)


def _enlarge(net, x):
    scales = net.add_constant(numpy.array([1, 1, 2, 2], numpy.float32), "scales")
    modes = {"mode": "nearest", "nearest_mode": "floor"}
    modes["coordinate_transformation_mode"] = "asymmetric"
    return net.add_node("Resize", x, "", scales, **modes)


def make_yolo():
    net = ImageNetwork("yolo", opset=21)
    x = _convolve(net, _convolve(net, net.image, 16, 3, 2), 32, 3, 2)
    x = _convolve(net, _pass_half(net, x, 32, 1, True), 64, 3, 2)
    fine = _pass_half(net, x, 64, 2, True)
    middle = _pass_half(net, _convolve(net, fine, 128, 3, 2), 128, 2, True)
    x = _pass_half(net, _convolve(net, middle, 256, 3, 2), 256, 1, True)
    coarse = _pool_in_turns(net, x, 256)

    up = _pass_half(net, net.concatenate(_enlarge(net, coarse), middle), 128, 1, False)
    top = _pass_half(net, net.concatenate(_enlarge(net, up), fine), 64, 1, False)
    x = net.concatenate(_convolve(net, top, 64, 3, 2), up)
    centre = _pass_half(net, x, 128, 1, False)
    x = net.concatenate(_convolve(net, centre, 128, 3, 2), coarse)
    bottom = _pass_half(net, x, 256, 1, False)

    scales = [_convolve(net, each, 80, 3) for each in (top, centre, bottom)]
    pooled = [net.add_node("GlobalAveragePool", each) for each in scales]
    x = net.add_node("Flatten", net.concatenate(*pooled))
    return [net.finish(net.score(x, output="scores"))]

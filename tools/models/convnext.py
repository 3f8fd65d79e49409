# SPDX-License-Identifier: Apache-2.0
"""A network like ConvNeXt (Liu et al. 2022), narrower: kernels of 7 x 7 per channel, layers normalised
and multiplied with their channels innermost, which the network transposes itself, and Gelu.
"""

import math

from models.image_network import ImageNetwork

# Channels, blocks.
_STAGES = ((64, 2), (128, 2), (256, 4), (512, 2))

# What training leaves of the branch of a block.
_BRANCH_SCALE = 0.5


def _to_pixels(net, x):
    return net.add_node("Transpose", x, perm=[0, 2, 3, 1])


def _to_planes(net, x):
    return net.add_node("Transpose", x, perm=[0, 3, 1, 2])


def _normalize_pixels(net, x):
    width = net.get_probe(x).shape[-1]
    roles = zip(net.draw_scale(width, 1.0), ("scale", "shift"))
    operands = [net.add_constant(value, role) for value, role in roles]
    return net.add_node("LayerNormalization", x, *operands, axis=-1, epsilon=1e-6)


def _project(net, x, width):
    fan_in = net.get_probe(x).shape[-1]
    weights = net.draw_constant((fan_in, width), math.sqrt(2 / fan_in), "weight")
    bias = net.draw_constant(width, 0.1, "bias")
    return net.add_node("Add", net.add_node("MatMul", x, weights), bias)


def _add_block(net, x):
    width = net.get_probe(x).shape[1]
    y = net.convolve(x, width, kernel=7, pad=3, group=width)
    y = _normalize_pixels(net, _to_pixels(net, y))
    y = net.add_node("Gelu", _project(net, y, 4 * width))
    y = _project(net, y, width)
    factors = net.generator.uniform(0.5, 1.5, width) * _BRANCH_SCALE / net.measure(y)
    y = net.add_node("Mul", y, net.add_constant(factors, "gamma"))
    return net.add_node("Add", x, _to_planes(net, y))


def make_convnext():
    net = ImageNetwork("convnext", opset=20)
    x = net.convolve(net.image, _STAGES[0][0], kernel=4, stride=4)
    x = _to_planes(net, _normalize_pixels(net, _to_pixels(net, x)))
    for stage, (width, blocks) in enumerate(_STAGES):
        if stage > 0:
            x = _to_planes(net, _normalize_pixels(net, _to_pixels(net, x)))
            x = net.convolve(x, width, kernel=2, stride=2)
        for _ in range(blocks):
            x = _add_block(net, x)
    x = net.add_node("Flatten", net.add_node("GlobalAveragePool", x))
    return [net.finish(net.score(_normalize_pixels(net, x), output="scores"))]

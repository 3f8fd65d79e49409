# SPDX-License-Identifier: Apache-2.0
"""SqueezeNet 1.0 (Iandola et al. 2016): no Gemm, pools that round their extent up."""

from models.image_network import ImageNetwork

# Squeeze, expand; 0 = a pool.
_MODULES = (
    (16, 64),
    (16, 64),
    (32, 128),
    0,
    (32, 128),
    (48, 192),
    (48, 192),
    (64, 256),
    0,
    (64, 256),
)


# The classes' scores are means of rectified maps, which differ little at the usual scale.
_SCORE_GAIN = 3.0


def _pool(net, x):
    return net.pool("MaxPool", x, kernel=3, stride=2, ceil_mode=1)


def _fire(net, x, squeeze, expand):
    x = net.rectify(net.convolve(x, squeeze, kernel=1))
    return net.concatenate(
        net.rectify(net.convolve(x, expand, kernel=1)),
        net.rectify(net.convolve(x, expand, kernel=3, pad=1)),
    )


def make_squeezenet():
    net = ImageNetwork("squeezenet", opset=13)
    x = _pool(net, net.rectify(net.convolve(net.image, 96, kernel=7, stride=2)))
    for module in _MODULES:
        x = _fire(net, x, *module) if module else _pool(net, x)
    x = net.rectify(net.convolve(x, 1000, kernel=1, gain=_SCORE_GAIN))
    x = net.add_node("Flatten", net.add_node("GlobalAveragePool", x), axis=1)
    return [net.finish(net.add_node("Softmax", x, axis=1, output="prob"))]

# SPDX-License-Identifier: Apache-2.0
"""A network like MobileNet v2 (Sandler et al. 2018): depthwise convolutions and Clip to 0..6."""

from models.image_network import ImageNetwork

# Expansion, channels, repeats, stride.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)

# Wide enough that the upper limit of Clip is met.
_CLIPPED_SCALE = 2.5

# What TensorFlow normalises with; large enough that ignoring it would show.
_EPSILON = 1e-3


def _convolve_clipped(net, x, channels, kernel, **attributes):
    x = net.convolve(x, channels, kernel, bias=False, **attributes)
    x = net.normalize(x, scale=_CLIPPED_SCALE, epsilon=_EPSILON)
    return net.add_node("Clip", x, min=0.0, max=6.0)


def _add_block(net, x, expansion, channels, stride):
    incoming = net.get_probe(x).shape[1]
    width = expansion * incoming
    y = _convolve_clipped(net, x, width, kernel=1) if expansion > 1 else x
    y = _convolve_clipped(net, y, width, kernel=3, stride=stride, pad=1, group=width)
    y = net.normalize(net.convolve(y, channels, kernel=1, bias=False), epsilon=_EPSILON)
    return net.add_node("Add", x, y) if stride == 1 and incoming == channels else y


def make_mobilenet():
    net = ImageNetwork("mobilenet", opset=10)
    x = _convolve_clipped(net, net.image, 32, kernel=3, stride=2, pad=1)
    for expansion, channels, repeats, stride in _STAGES:
        for block in range(repeats):
            x = _add_block(net, x, expansion, channels, 1 if block else stride)
    x = _convolve_clipped(net, x, 1280, kernel=1)
    x = net.add_node("ReduceMean", x, axes=[2, 3], keepdims=0)
    return [net.finish(net.score(x, output="scores"))]

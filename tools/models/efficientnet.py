# SPDX-License-Identifier: Apache-2.0
"""A network like EfficientNet B0 (Tan and Le 2019): x times its sigmoid behind every convolution, channels
weighed by what is in all of their pixels.
"""

from models.image_network import ImageNetwork

# Expansion, channels, repeats, stride, kernel.
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)

# Spreads the weights of channels, which are sigmoids of what the second convolution gives.
_GAIN = 1.5


def _activate(net, x):
    return net.add_node("Mul", x, net.add_node("Sigmoid", x))


def _convolve(net, x, channels, kernel, stride=1, group=1):
    x = net.convolve(x, channels, kernel, stride, kernel // 2, group, bias=False)
    return _activate(net, net.normalize(x, scale=1.5, epsilon=1e-3))


def _weigh_channels(net, x, squeezed):
    channels = net.get_probe(x).shape[1]
    y = net.add_node("GlobalAveragePool", x)
    y = _activate(net, net.convolve(y, squeezed, kernel=1, gain=_GAIN))
    y = net.convolve(y, channels, kernel=1, gain=_GAIN)
    return net.add_node("Mul", x, net.add_node("Sigmoid", y))


def _add_block(net, x, expansion, channels, stride, kernel):
    incoming = net.get_probe(x).shape[1]
    width = expansion * incoming
    y = _convolve(net, x, width, kernel=1) if expansion > 1 else x
    y = _convolve(net, y, width, kernel, stride, group=width)
    y = _weigh_channels(net, y, max(1, incoming // 4))
    y = net.normalize(net.convolve(y, channels, kernel=1, bias=False), epsilon=1e-3)
    return net.add_node("Add", x, y) if stride == 1 and incoming == channels else y


def make_efficientnet():
    net = ImageNetwork("efficientnet", opset=21)
    x = _convolve(net, net.image, 32, kernel=3, stride=2)
    for expansion, channels, repeats, stride, kernel in _STAGES:
        for block in range(repeats):
            x = _add_block(net, x, expansion, channels, 1 if block else stride, kernel)
    x = _convolve(net, x, 1280, kernel=1)
    x = net.add_node("Flatten", net.add_node("GlobalAveragePool", x))
    return [net.finish(net.score(x, output="scores"))]

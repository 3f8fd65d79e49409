# SPDX-License-Identifier: Apache-2.0
"""DenseNet-121 (Huang et al. 2016): normalisation before convolution, a Concat per layer."""

from models.image_network import ImageNetwork

_GROWTH = 32
_BLOCKS = (6, 12, 24, 16)


def _convolve_normalized(net, x, channels, kernel, pad=0):
    x = net.rectify(net.normalize(x, momentum=0.9))
    return net.convolve(x, channels, kernel=kernel, pad=pad, bias=False)


def make_densenet121():
    net = ImageNetwork("densenet121", opset=12)
    x = net.convolve(net.image, 64, kernel=7, stride=2, pad=3, bias=False)
    x = net.rectify(net.normalize(x))
    x = net.pool("MaxPool", x, kernel=3, stride=2, pads=(1, 1, 1, 1))
    for stage, layers in enumerate(_BLOCKS):
        if stage:
            x = _convolve_normalized(net, x, net.get_probe(x).shape[1] // 2, kernel=1)
            x = net.pool("AveragePool", x, kernel=2, stride=2)
        for _ in range(layers):
            y = _convolve_normalized(net, x, 4 * _GROWTH, kernel=1)
            y = _convolve_normalized(net, y, _GROWTH, kernel=3, pad=1)
            x = net.concatenate(x, y)
    x = net.add_node("GlobalAveragePool", net.rectify(net.normalize(x)))
    return [net.finish(net.score(net.add_node("Flatten", x, axis=1), output="scores"))]

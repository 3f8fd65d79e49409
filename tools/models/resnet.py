# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (He et al. 2015), stride in the 3x3 convolution, normalisation not fused."""

from models.image_network import ImageNetwork

_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))

# Residuals are added 16 times: half of the usual scale keeps their sum of order one.
_RESIDUAL_SCALE = 0.5


def _add_block(net, x, width, stride, widen):
    y = net.rectify(net.normalize(net.convolve(x, width, kernel=1, bias=False)))
    y = net.convolve(y, width, kernel=3, stride=stride, pad=1, bias=False)
    y = net.rectify(net.normalize(y))
    y = net.normalize(net.convolve(y, 4 * width, kernel=1, bias=False), scale=_RESIDUAL_SCALE)
    if widen:
        x = net.normalize(net.convolve(x, 4 * width, kernel=1, stride=stride, bias=False))
    return net.rectify(net.add_node("Add", y, x))


def make_resnet50():
    net = ImageNetwork("resnet50", opset=11)
    x = net.convolve(net.image, 64, kernel=7, stride=2, pad=3, bias=False)
    x = net.rectify(net.normalize(x, momentum=0.9))
    x = net.pool("MaxPool", x, kernel=3, stride=2, pads=(1, 1, 1, 1))
    for stage, (width, repeats) in enumerate(_STAGES):
        for block in range(repeats):
            first = block == 0
            x = _add_block(net, x, width, stride=2 if first and stage else 1, widen=first)
    x = net.add_node("Flatten", net.add_node("GlobalAveragePool", x), axis=1)
    return [net.finish(net.score(x, output="scores"))]

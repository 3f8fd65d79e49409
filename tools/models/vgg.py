# SPDX-License-Identifier: Apache-2.0
"""VGG-19 (Simonyan and Zisserman 2014): sixteen 3x3 convolutions and three large Gemm."""

from models.image_network import ImageNetwork

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


def make_vgg19():
    net = ImageNetwork("vgg19", opset=8)
    x = net.image
    for channels, repeats in _STAGES:
        for _ in range(repeats):
            x = net.rectify(net.convolve(x, channels, kernel=3, pad=1))
        x = net.pool("MaxPool", x, kernel=2, stride=2)
    x = net.add_node("Flatten", x, axis=1)
    for _ in range(2):
        x = net.rectify(net.connect(x, 4096))
        x = net.add_node("Dropout", x, ratio=0.5)
    return [net.finish(net.add_node("Softmax", net.score(x), axis=1, output="prob"))]

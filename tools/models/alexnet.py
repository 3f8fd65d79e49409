# SPDX-License-Identifier: Apache-2.0
"""AlexNet (Krizhevsky et al. 2012) and ZFNet-512 (Zeiler and Fergus 2013), as Caffe had them.

Both were exported with initializers among the graph inputs, pools whose end padding stands for
Caffe's rounding up, and Dropout left in.
"""

from models.image_network import ImageNetwork

_PIXEL_DEVIATION = 60.0
_ROUND_UP = (0, 0, 1, 1)


def _normalize_locally(net, x):
    return net.add_node("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0)


def _pool(net, x):
    return net.pool("MaxPool", x, kernel=3, stride=2, pads=_ROUND_UP)


def _classify(net, x):
    for _ in range(2):
        x = net.rectify(net.connect(x, 4096))
        x = net.add_node("Dropout", x, ratio=0.5)
    return net.finish(net.add_node("Softmax", net.score(x), axis=1, output="prob"))


def make_alexnet():
    net = ImageNetwork("alexnet", opset=7, image_deviation=_PIXEL_DEVIATION)
    x = net.rectify(net.convolve(net.image, 96, kernel=11, stride=4))
    x = _pool(net, _normalize_locally(net, x))
    x = net.rectify(net.convolve(x, 256, kernel=5, pad=2, group=2))
    x = _pool(net, _normalize_locally(net, x))
    x = net.rectify(net.convolve(x, 384, kernel=3, pad=1))
    x = net.rectify(net.convolve(x, 384, kernel=3, pad=1, group=2))
    x = net.rectify(net.convolve(x, 256, kernel=3, pad=1, group=2))
    return [_classify(net, net.add_node("Flatten", _pool(net, x), axis=1))]


def make_zfnet():
    net = ImageNetwork("zfnet", opset=8, image_deviation=_PIXEL_DEVIATION)
    x = net.rectify(net.convolve(net.image, 96, kernel=7, stride=2, pad=1))
    x = _normalize_locally(net, _pool(net, x))
    x = net.rectify(net.convolve(x, 256, kernel=5, stride=2))
    x = _normalize_locally(net, _pool(net, x))
    for channels in (512, 1024, 512):
        x = net.rectify(net.convolve(x, channels, kernel=3, pad=1))
    shape = net.add_constant([1, 512 * 6 * 6], "shape")
    return [_classify(net, net.add_node("Reshape", _pool(net, x), shape))]

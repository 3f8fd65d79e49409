# SPDX-License-Identifier: Apache-2.0
"""ShuffleNet v1 (Zhang et al. 2017), three groups: grouped convolutions and channel shuffles."""

from models.image_network import ImageNetwork

_GROUPS = 3
_STAGES = ((240, 4), (480, 8), (960, 4))
_SAME = (1, 1, 1, 1)


def _shuffle(net, x):
    """Channel g * (C / groups) + c becomes channel c * groups + g."""
    n, channels, height, width = net.get_probe(x).shape
    split = [n, _GROUPS, channels // _GROUPS, height, width]
    x = net.add_node("Reshape", x, net.add_constant(split, "shape"))
    x = net.add_node("Transpose", x, perm=[0, 2, 1, 3, 4])
    return net.add_node("Reshape", x, net.add_constant([n, channels, height, width], "shape"))


def _convolve(net, x, channels, kernel, **attributes):
    return net.normalize(net.convolve(x, channels, kernel, bias=False, **attributes), momentum=0.9)


def _add_unit(net, x, channels, stride, group):
    incoming = net.get_probe(x).shape[1]
    width = channels // 4
    y = _shuffle(net, net.rectify(_convolve(net, x, width, kernel=1, group=group)))
    y = _convolve(net, y, width, kernel=3, stride=stride, pad=1, group=width)
    if stride == 1:
        y = _convolve(net, y, channels, kernel=1, group=_GROUPS)
        return net.rectify(net.add_node("Add", x, y))
    y = _convolve(net, y, channels - incoming, kernel=1, group=_GROUPS)
    x = net.pool("AveragePool", x, 3, 2, _SAME)  # The average leaves the padding out.
    return net.rectify(net.concatenate(x, y))


def make_shufflenet():
    net = ImageNetwork("shufflenet", opset=9)
    x = net.rectify(_convolve(net, net.image, 24, kernel=3, stride=2, pad=1))
    x = net.pool("MaxPool", x, 3, 2, _SAME)
    for stage, (channels, repeats) in enumerate(_STAGES):
        for unit in range(repeats):
            first = unit == 0
            group = 1 if first and stage == 0 else _GROUPS
            x = _add_unit(net, x, channels, stride=2 if first else 1, group=group)
    x = net.add_node("Flatten", net.pool("AveragePool", x, 7, 1), axis=1)
    return [net.finish(net.add_node("Softmax", net.score(x), axis=1, output="prob"))]

# SPDX-License-Identifier: Apache-2.0
"""Classifiers of images and videos: plain, grouped, depthwise, transformer, hybrid, 3-D."""

from networks.drawing import Drawing

_CLASSES = 1000


def _score(net, x, channels):
    x = net.reshape(net.pool_all(x), 0, -1)
    net.add_output(net.connect(x, channels, _CLASSES), "scores")
    return net


def make_residual(name, size=224, width=64, repeats=(2, 2, 2, 2), batch=1):
    """Pairs of 3 x 3 convolutions with a way around them."""
    net = Drawing(name)
    x = net.convolve_block(net.add_image("image", (batch, 3, size, size)), 3, width, 7, stride=2)
    x = net.add_node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    fan_in = width
    for stage, count in enumerate(repeats):
        channels = width << stage
        for number in range(count):
            stride = 2 if stage > 0 and number == 0 else 1
            y = net.convolve_block(x, fan_in, channels, stride=stride)
            y = net.convolve_block(y, channels, channels, activation="")
            if fan_in != channels:
                x = net.convolve_block(x, fan_in, channels, 1, stride=stride, activation="")
            x, fan_in = net.add_node("Relu", net.add_node("Add", x, y)), channels
    return _score(net, x, fan_in)


def make_grouped(name, width=48, group_width=24, batch=1):
    """Bottlenecks whose 3 x 3 convolutions are grouped, with gates of channels."""
    net = Drawing(name)
    x = net.convolve_block(net.add_image("image", (batch, 3, 224, 224)), 3, 32, stride=2)
    fan_in = 32
    for stage, count in enumerate((1, 2, 4, 2)):
        channels = width << stage
        for number in range(count):
            stride = 2 if number == 0 else 1
            y = net.convolve_block(x, fan_in, channels, 1)
            y = net.convolve_block(y, channels, channels, stride=stride, group=channels // group_width)
            gate = net.convolve(net.pool_all(y), channels, channels // 4, 1)
            gate = net.convolve(net.add_node("Relu", gate), channels // 4, channels, 1)
            y = net.add_node("Mul", y, net.add_node("Sigmoid", gate))
            y = net.convolve_block(y, channels, channels, 1, activation="")
            if number == 0:
                x = net.convolve_block(x, fan_in, channels, 1, stride=stride, activation="")
            x, fan_in = net.add_node("Relu", net.add_node("Add", x, y)), channels
    return _score(net, x, fan_in)


def make_depthwise(name, activation="HardSwish", kernel=5, batch=1):
    net = Drawing(name)
    x = net.convolve_block(net.add_image("image", (batch, 3, 224, 224)), 3, 16, stride=2)
    fan_in = 16
    for channels, count in ((24, 2), (40, 3), (80, 3), (112, 2), (160, 2)):
        for number in range(count):
            stride, inner = (2 if number == 0 and channels != 112 else 1), 4 * fan_in
            y = net.convolve_block(x, fan_in, inner, 1, activation)
            y = net.convolve_block(y, inner, inner, kernel, activation, stride=stride, group=inner)
            y = net.convolve_block(y, inner, channels, 1, "")
            x = net.add_node("Add", x, y) if stride == 1 and fan_in == channels else y
            fan_in = channels
    return _score(net, net.convolve_block(x, fan_in, 640, 1, activation), 640)


def _encode(net, x, width, heads, layers):
    for _ in range(layers):
        y = net.normalize_row(x, width)
        x = net.add_node("Add", x, net.attend(y, y, width, heads))
        x = net.add_node("Add", x, net.feed_forward(net.normalize_row(x, width), width, 4 * width))
    return net.normalize_row(x, width)


def make_vision_transformer(name, width=192, heads=3, layers=6, patch=16, batch=1):
    net = Drawing(name)
    image = net.add_image("image", (batch, 3, 224, 224))
    weights = net.draw_weight((width, 3, patch, patch), 1 / patch)
    x = net.add_node("Conv", image, weights, kernel_shape=[patch] * 2, strides=[patch] * 2)
    x = net.transpose(net.reshape(x, 0, width, -1), 0, 2, 1)
    token = net.draw_weight((1, 1, width), 1)
    if batch > 1:
        token = net.add_node("Expand", token, net.add_constant([batch, 1, 1]))
    x = net.add_node("Concat", token, x, axis=1)
    x = net.add_node("Add", x, net.draw_weight((1, (224 // patch) ** 2 + 1, width), 0.5))
    x = _encode(net, x, width, heads, layers)
    first = net.reshape(net.slice(x, 1, 0, 1), -1, width)
    net.add_output(net.connect(first, width, _CLASSES), "scores")
    return net


def make_hybrid(name, width=128, batch=1):
    """Depthwise convolutions, then attention over 14 x 14 patches, then convolutions again."""
    net = Drawing(name)
    x = net.convolve_block(net.add_image("image", (batch, 3, 224, 224)), 3, 32, activation="silu", stride=2)
    fan_in = 32
    for channels in (64, 96, width):
        y = net.convolve_block(x, fan_in, 4 * fan_in, 1, "silu")
        y = net.convolve_block(y, 4 * fan_in, 4 * fan_in, 3, "silu", stride=2, group=4 * fan_in)
        x, fan_in = net.convolve_block(y, 4 * fan_in, channels, 1, ""), channels
    y = net.transpose(net.reshape(x, 0, width, -1), 0, 2, 1)
    y = net.transpose(_encode(net, y, width, 4, 3), 0, 2, 1)
    x = net.add_node("Concat", x, net.reshape(y, 0, width, 14, 14), axis=1)
    return _score(net, net.convolve_block(x, 2 * width, 2 * width, 3, "silu"), 2 * width)


def make_video(name, width=24, frames=16, size=112, is_factored=False):
    """3-D convolutions over frames; factored: over the image, then over time."""
    net = Drawing(name)
    clip = net.add_normal_input("clip", (1, 3, frames, size, size))
    x = net.convolve_block(clip, 3, width, (3, 7, 7), axes=3, stride=(1, 2, 2))
    fan_in = width
    for stage in range(4):
        channels = width << stage
        stride = 2 if stage > 0 else 1
        if is_factored:
            y = net.convolve_block(x, fan_in, channels, (1, 3, 3), axes=3, stride=(1, stride, stride))
            y = net.convolve_block(y, channels, channels, (3, 1, 1), axes=3, stride=(stride, 1, 1))
        else:
            y = net.convolve_block(x, fan_in, channels, 3, axes=3, stride=stride)
        y = net.convolve_block(y, channels, channels, 3, axes=3, activation="")
        if fan_in != channels:
            x = net.convolve_block(x, fan_in, channels, 1, axes=3, stride=stride, activation="")
        x, fan_in = net.add_node("Relu", net.add_node("Add", x, y)), channels
    x = net.reshape(net.pool_all(x, (2, 3, 4)), 0, -1)
    net.add_output(net.connect(x, fan_in, 400), "scores")
    return net

# SPDX-License-Identifier: Apache-2.0
"""Networks that answer per pixel: segmentation, U-Nets, super-resolution, pose, registration, diffusion."""

import numpy

from networks.drawing import Drawing


def _shrink(net, x, fan_in, widths, activation="Relu"):
    """Two convolutions per stage, the first with stride 2 but for the first stage."""
    stages = []
    for stage, channels in enumerate(widths):
        x = net.convolve_block(x, fan_in, channels, 3, activation, stride=1 if stage == 0 else 2)
        x = net.convolve_block(x, channels, channels, 3, activation)
        stages.append(x)
        fan_in = channels
    return stages


def make_unet(
    name, size=256, widths=(16, 32, 64, 128), is_symbolic=False, mode="linear", batch=1
):
    """`mode`: how it goes up again: a mode of Resize, or "transposed"."""
    net = Drawing(name)
    dims = [batch, 3, "height", "width"] if is_symbolic else None
    stages = _shrink(net, net.add_image("image", (batch, 3, size, size), dims), 3, widths)
    x, fan_in = stages[-1], widths[-1]
    for skip, channels in zip(stages[-2::-1], widths[-2::-1]):
        if mode == "transposed":
            weights = net.draw_weight((fan_in, channels, 2, 2), (1 / fan_in) ** 0.5)
            bias = net.draw_weight(channels, 0.1)
            x = net.add_node("ConvTranspose", x, weights, bias, kernel_shape=[2, 2], strides=[2, 2])
            fan_in = channels
        else:
            options = {"nearest_mode": "floor"} if mode == "nearest" else {}
            coordinates = "asymmetric" if mode == "nearest" else "half_pixel"
            x = net.resize(x, mode, [1, 1, 2, 2], coordinates=coordinates, **options)
        x = net.add_node("Concat", x, skip, axis=1)
        x = net.convolve_block(x, fan_in + channels, channels)
        x, fan_in = net.convolve_block(x, channels, channels), channels
    net.add_output(net.convolve(x, fan_in, 2, 1), "masks")
    return net


def make_dilated_segmentation(name, size=320, classes=21, batch=1):
    """A backbone of stride 8 and 16, dilated convolutions side by side, and a bilinear way back."""
    net = Drawing(name)
    low, middle, x = _shrink(net, net.add_image("image", (batch, 3, size, size)), 3, (24, 48, 96))
    x = net.convolve_block(x, 96, 160, stride=2)
    cells = size // 8
    parts = [net.convolve_block(x, 160, 64, 1)]
    parts += [net.convolve_block(x, 160, 64, 3, dilation=rate) for rate in (6, 12, 18)]
    pooled = net.convolve_block(net.pool_all(x), 160, 64, 1)
    parts.append(net.resize(pooled, "linear", sizes=[batch, 64, cells, cells]))
    x = net.convolve_block(net.add_node("Concat", *parts, axis=1), 320, 64, 1)
    x = net.resize(x, "linear", sizes=[batch, 64, size // 2, size // 2])
    x = net.add_node("Concat", x, net.convolve_block(middle, 48, 16, 1), axis=1)
    x = net.convolve(net.convolve_block(x, 80, 64), 64, classes, 1)
    x = net.resize(x, "linear", sizes=[batch, classes, size, size], coordinates="pytorch_half_pixel")
    net.add_output(net.add_node("ArgMax", x, axis=1), "labels", 7)
    net.add_output(x, "scores")
    return net


def make_pyramid_segmentation(name, size=384, classes=19, batch=1):
    """Four scales, each brought to the finest one by a bilinear Resize, joined and scored."""
    net = Drawing(name)
    image = net.add_image("image", (batch, 3, size, size))
    stages = _shrink(net, net.convolve_block(image, 3, 16, stride=2), 16, (24, 48, 96, 160))
    parts = []
    for x, channels in zip(stages, (24, 48, 96, 160)):
        x = net.convolve(x, channels, 64, 1)
        parts.append(net.resize(x, "linear", sizes=[batch, 64, size // 2, size // 2]))
    x = net.convolve_block(net.add_node("Concat", *parts, axis=1), 256, 64, 1)
    x = net.convolve(x, 64, classes, 1)
    x = net.resize(x, "linear", sizes=[batch, classes, size, size], coordinates="align_corners")
    net.add_output(x, "scores")
    return net


def make_super_resolution(name, size=128, width=32, way="shuffle", batch=1):
    """`way`: pixels out of channels, or a convolution after a Resize of that mode; the image is
    enlarged by a cubic Resize beside it."""
    net = Drawing(name)
    image = net.add_image("image", (batch, 3, size, size))
    first = x = net.convolve(image, 3, width)
    for _ in range(4):
        y = net.convolve(net.add_node("Relu", net.convolve(x, width, width)), width, width)
        x = net.add_node("Add", x, y)
    x = net.add_node("Add", first, x)
    if way == "shuffle":
        x = net.add_node("DepthToSpace", net.convolve(x, width, 12), blocksize=2, mode="CRD")
    else:
        x = net.convolve(net.resize(x, way, [1, 1, 2, 2]), width, 3)
    cubic = net.resize(image, "cubic", [1, 1, 2, 2], cubic_coeff_a=-0.75)
    net.add_output(net.add_node("Add", x, cubic), "image_out")
    return net


def make_pose(name, size=192, points=17, batch=1):
    """An hourglass with the nearest pixels on its way up; heat maps and where each is highest."""
    net = Drawing(name)
    x = net.convolve_block(net.add_image("image", (batch, 3, size, size)), 3, 32, stride=2)
    widths = (32, 64, 96, 128)
    stages = _shrink(net, x, 32, widths)
    x, fan_in = stages[-1], widths[-1]
    for skip, channels in zip(stages[-2::-1], widths[-2::-1]):
        options = {"nearest_mode": "floor", "coordinates": "asymmetric"}
        x = net.resize(net.convolve(x, fan_in, channels, 1), "nearest", [1, 1, 2, 2], **options)
        x, fan_in = net.convolve_block(net.add_node("Add", x, skip), channels, channels), channels
    maps = net.convolve(x, fan_in, points, 1)
    flat = net.reshape(maps, 0, points, -1)
    net.add_output(net.add_node("ArgMax", flat, axis=2, keepdims=0), "places", 7)
    net.add_output(maps, "maps")
    return net


def make_registration(name, size=160, channels=16, padding="zeros"):
    """Two images; where to look in the second is answered per pixel, and sampled there."""
    net = Drawing(name)
    fixed, moving = (net.add_image(f"image_{k}", (1, 1, size, size)) for k in range(2))
    x = net.convolve_block(net.add_node("Concat", fixed, moving, axis=1), 2, channels)
    x = net.convolve_block(x, channels, channels)
    flow = net.add_scalar("Mul", net.add_node("Tanh", net.convolve(x, channels, 2)), 0.1)
    line = numpy.linspace(-1, 1, size, dtype=numpy.float32)
    grid = numpy.stack(numpy.meshgrid(line, line), axis=-1)[None]
    grid = net.add_node("Add", net.transpose(flow, 0, 2, 3, 1), net.add_constant(grid))
    options = {"align_corners": 1, "padding_mode": padding, "mode": "bilinear"}
    net.add_output(net.add_node("GridSample", moving, grid, **options), "moved")
    features = net.add_node("GridSample", x, grid, **options)
    net.add_output(net.convolve(features, channels, 1), "match")
    return net


def _residual(net, x, fan_in, channels, extent, time=None):
    spatial = (extent, extent)
    y = net.activate(net.normalize_groups(x, 8, fan_in, spatial), "silu")
    y = net.convolve(y, fan_in, channels)
    if time is not None:
        shift = net.reshape(net.connect(net.activate(time, "silu"), 256, channels), 1, channels, 1, 1)
        y = net.add_node("Add", y, shift)
    y = net.activate(net.normalize_groups(y, 8, channels, spatial), "silu")
    y = net.convolve(y, channels, channels)
    return net.add_node("Add", net.convolve(x, fan_in, channels, 1) if fan_in != channels else x, y)


def make_diffusion(name, extent=32, width=64):
    """Blocks of a noise predictor: convolutions with time added, attention over pixels and a text."""
    net = Drawing(name)
    latent = net.add_normal_input("latent", (1, 4, extent, extent))
    time = net.connect(net.add_normal_input("time", (1, 128)), 128, 256)
    text = net.add_normal_input("text", (1, 77, 128))
    text = net.project(text, 128, 2 * width)
    x = _residual(net, net.convolve(latent, 4, width), width, width, extent, time)
    skip, half = x, extent // 2
    x = net.convolve(x, width, 2 * width, stride=2)
    x = _residual(net, x, 2 * width, 2 * width, half, time)
    y = net.normalize_groups(x, 8, 2 * width, (half, half))
    y = net.transpose(net.reshape(y, 1, 2 * width, -1), 0, 2, 1)
    y = net.add_node("Add", y, net.attend(y, y, 2 * width, 4))
    y = net.add_node("Add", y, net.attend(net.normalize_row(y, 2 * width), text, 2 * width, 4))
    y = net.add_node("Add", y, net.feed_forward(net.normalize_row(y, 2 * width), 2 * width, 8 * width))
    y = net.reshape(net.transpose(y, 0, 2, 1), 1, 2 * width, half, half)
    x = net.add_node("Add", x, y)
    x = net.resize(x, "nearest", [1, 1, 2, 2], coordinates="asymmetric", nearest_mode="floor")
    x = net.add_node("Concat", x, skip, axis=1)
    x = _residual(net, x, 3 * width, width, extent, time)
    net.add_output(net.convolve(x, width, 4), "noise")
    return net


def make_image_decoder(name, extent=32, width=128):
    """From a latent to an image: residual blocks and the nearest pixels, three times."""
    net = Drawing(name)
    x = net.convolve(net.add_normal_input("latent", (1, 4, extent, extent)), 4, width)
    channels = width
    for _ in range(3):
        x = _residual(net, x, channels, channels, extent)
        x = net.resize(x, "nearest", [1, 1, 2, 2], coordinates="asymmetric", nearest_mode="floor")
        extent *= 2
        x, channels = net.convolve(x, channels, channels // 2), channels // 2
    x = net.activate(net.normalize_groups(x, 8, channels, (extent, extent)), "silu")
    net.add_output(net.convolve(x, channels, 3), "image")
    return net

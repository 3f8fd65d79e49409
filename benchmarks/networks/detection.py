# SPDX-License-Identifier: Apache-2.0
"""Detectors: of one stage with suppression of overlapping boxes, of two with regions of a pyramid."""

import numpy

from networks.drawing import Drawing

_ANSWERS = 100


def _backbone(net, size, widths):
    x = net.convolve_block(net.add_image("image", (1, 3, size, size)), 3, 16, 3, "silu", stride=2)
    fan_in, scales = 16, []
    for channels in widths:
        x = net.convolve_block(x, fan_in, channels, 3, "silu", stride=2)
        y = net.convolve_block(x, channels, channels // 2, 1, "silu")
        y = net.convolve_block(y, channels // 2, channels, 3, "silu")
        x, fan_in = net.add_node("Add", x, y), channels
        scales.append(x)
    return scales


def _pad_answers(net, rows, columns):
    """The first rows, followed by zeros up to the number of answers."""
    zeros = net.add_constant(numpy.zeros((_ANSWERS, columns), numpy.float32))
    x = net.slice(net.add_node("Concat", rows, zeros, axis=0), 0, 0, _ANSWERS)
    return net.reshape(x, _ANSWERS, columns)


def _decode(net, deltas, anchors):
    """Corners y1, x1, y2, x2 of anchors [count, 4] (centre and extents) moved by deltas [count, 4]."""
    centre, extents = (net.add_constant(anchors[:, at : at + 2]) for at in (0, 2))
    moved = net.slice(deltas, 1, 0, 2)
    centre = net.add_node("Add", net.add_node("Mul", moved, extents), centre)
    grown = net.add_node("Exp", net.add_scalar("Min", net.slice(deltas, 1, 2, 4), 2))
    half = net.add_scalar("Mul", net.add_node("Mul", grown, extents), 0.5)
    corners = [net.add_node(op, centre, half) for op in ("Sub", "Add")]
    return net.add_node("Concat", *corners, axis=1)


def _make_anchors(size, strides, per_cell):
    anchors = []
    for stride in strides:
        places = (numpy.arange(size // stride) + 0.5) * stride
        y, x, k = numpy.meshgrid(places, places, numpy.arange(per_cell), indexing="ij")
        extent = stride * (2.0 + k)
        anchors.append(numpy.stack([y, x, extent, extent * 1.2], -1).reshape(-1, 4))
    return numpy.concatenate(anchors).astype(numpy.float32)


def _suppress(net, boxes, scores, limit, threshold=0.5, lowest=0.3):
    """Chosen (class, box) pairs; boxes [count, 4], scores [classes, count]."""
    operands = [net.reshape(boxes, 1, -1, 4), net.add_node("Unsqueeze", scores, net.add_constant([0]))]
    operands += [net.add_constant([limit]), net.add_constant([threshold]), net.add_constant([lowest])]
    return net.add_node("NonMaxSuppression", *operands)


def make_one_stage(name, size=320, classes=20, suppresses=True):
    net = Drawing(name)
    scales = _backbone(net, size, (32, 64, 128, 192))[1:]
    strides, per_cell = (8, 16, 32), 2
    up = net.resize(net.convolve(scales[2], 192, 128, 1), "nearest", [1, 1, 2, 2],
                    coordinates="asymmetric", nearest_mode="floor")
    scales[1] = net.convolve_block(net.add_node("Add", up, scales[1]), 128, 128, 3, "silu")
    parts = []
    for x, channels in zip(scales, (64, 128, 192)):
        x = net.convolve_block(x, channels, 64, 3, "silu")
        # Most places show nothing.
        bias = numpy.tile(numpy.repeat([0.0, -4.0], [4, classes]), per_cell)
        x = net.convolve(x, 64, per_cell * (4 + classes), 1, bias=bias)
        x = net.transpose(x, 0, 2, 3, 1)
        parts.append(net.reshape(x, -1, 4 + classes))
    rows = net.add_node("Concat", *parts, axis=0)
    boxes = _decode(net, net.slice(rows, 1, 0, 4), _make_anchors(size, strides, per_cell))
    scores = net.add_node("Sigmoid", net.slice(rows, 1, 4, 4 + classes))
    if not suppresses:
        net.add_output(net.add_node("Concat", boxes, scores, axis=1), "rows")
        return net
    scores = net.transpose(scores, 1, 0)
    chosen = _suppress(net, boxes, scores, 20)
    label, box = (net.slice(chosen, 1, at, at + 1) for at in (1, 2))
    found = net.add_node("GatherND", scores, net.add_node("Concat", label, box, axis=1))
    found = net.add_node("Unsqueeze", found, net.add_constant([1]))
    places = net.add_node("GatherND", boxes, box)
    answers = net.add_node("Concat", places, found, net.add_node("Cast", label, to=1), axis=1)
    net.add_output(_pad_answers(net, answers, 6), "answers")
    return net


def make_two_stage(name, size=320, channels=128, regions=200, sampling_ratio=2):
    """Regions proposed on a pyramid, aligned on the two finest scales, classified and suppressed."""
    net = Drawing(name)
    widths = (32, 64, 128)
    scales = _backbone(net, size, widths)
    pyramid = [net.convolve(x, width, channels, 1) for x, width in zip(scales, widths)]
    for at in (1, 0):
        up = net.resize(pyramid[at + 1], "nearest", [1, 1, 2, 2],
                        coordinates="asymmetric", nearest_mode="floor")
        pyramid[at] = net.add_node("Add", pyramid[at], up)
    pyramid = [net.convolve(x, channels, channels) for x in pyramid]
    strides, per_cell = (4, 8, 16), 3
    parts = []
    for x in pyramid:
        x = net.add_node("Relu", net.convolve(x, channels, channels))
        x = net.transpose(net.convolve(x, channels, per_cell * 5, 1), 0, 2, 3, 1)
        parts.append(net.reshape(x, -1, 5))
    rows = net.add_node("Concat", *parts, axis=0)
    boxes = _decode(net, net.slice(rows, 1, 0, 4), _make_anchors(size, strides, per_cell))
    bounds = [net.add_constant(float(number)) for number in (0, size)]
    boxes = net.add_node("Clip", boxes, *bounds)
    scores = net.reshape(net.slice(rows, 1, 4, 5), -1)
    best, at = net.add_split_node("TopK", scores, net.add_constant([1000]), outputs=2)
    boxes = net.add_node("Gather", boxes, at, axis=0)
    chosen = _suppress(net, boxes, net.reshape(best, 1, -1), regions, 0.7, -1e9)
    chosen = net.add_node("Concat", net.reshape(net.slice(chosen, 1, 2, 3), -1),
                          net.add_constant(numpy.zeros(regions, numpy.int64)), axis=0)
    chosen = net.reshape(net.slice(chosen, 0, 0, regions), regions)
    boxes = net.add_node("Gather", boxes, chosen, axis=0)
    x_first = net.add_node("Gather", boxes, net.add_constant([1, 0, 3, 2]), axis=1)
    images = net.add_constant(numpy.zeros(regions, numpy.int64))
    aligned = []
    for x, stride in zip(pyramid[:2], strides):
        aligned.append(net.add_node("RoiAlign", x, x_first, images, output_height=7, output_width=7,
                                    sampling_ratio=sampling_ratio, spatial_scale=1 / stride))
    area = net.add_node("ReduceProd", net.add_node("Sub", net.slice(boxes, 1, 2, 4),
                                                   net.slice(boxes, 1, 0, 2)),
                        net.add_constant([1]), keepdims=1)
    is_small = net.add_node("Less", net.reshape(area, regions, 1, 1, 1), net.add_constant(64.0**2))
    x = net.reshape(net.add_node("Where", is_small, *aligned), regions, -1)
    x = net.add_node("Relu", net.connect(x, 49 * channels, 256))
    net.add_output(net.add_node("Softmax", net.connect(x, 256, 21), axis=1), "scores")
    net.add_output(net.connect(x, 256, 80), "deltas")
    return net

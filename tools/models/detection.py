# SPDX-License-Identifier: Apache-2.0
"""Detectors: of one stage like SSD (Liu et al. 2016), whose overlapping boxes are suppressed, and of two
like Mask R-CNN (He et al. 2017), which looks at proposed regions again. How many boxes they find
follows from the image."""

import math

import numpy

from models import builder
from models.image_network import ImageNetwork, make_image

_CLASSES = 5
_PER_CELL = 2
_STRIDES = (16, 32)
_REGIONS = 10


class _Detector(ImageNetwork):
    def constant(self, value):
        return self.add_constant(numpy.asarray(value), "constant")

    def slice(self, x, axis, start, end):
        return self.add_node("Slice", x, *(self.constant([each]) for each in (start, end, axis)))

    def reshape(self, x, *extents):
        return self.add_node("Reshape", x, self.constant(extents))

    def convolve_block(self, x, channels, stride=1):
        return self.rectify(self.normalize(self.convolve(x, channels, 3, stride, 1, bias=False)))

    def see(self):
        """Features at strides 16 and 32."""
        x = self.image
        for channels in (8, 16, 24, 32):
            x = self.convolve_block(x, channels, 2)
        return [x, self.convolve_block(x, 40, 2)]

    def list_rows(self, x, columns, gain=1.0):
        """(boxes, columns): a convolution's answers, those of a cell beside one another."""
        x = self.convolve(x, _PER_CELL * columns, 3, 1, 1, gain=gain)
        return self.reshape(self.add_node("Transpose", x, perm=[0, 2, 3, 1]), -1, columns)

    def place(self, deltas, strides):
        """Corners y1, x1, y2, x2 of the anchors of all cells, moved and grown by deltas."""
        anchors = _make_anchors(strides)
        centre, extents = self.constant(anchors[:, :2]), self.constant(anchors[:, 2:])
        tenth = self.constant(0.2)
        moved = self.add_node("Mul", self.slice(deltas, 1, 0, 2), extents)
        centre = self.add_node("Add", self.add_node("Mul", moved, tenth), centre)
        grown = self.add_node("Exp", self.add_node("Mul", self.slice(deltas, 1, 2, 4), tenth))
        half = self.add_node("Mul", self.add_node("Mul", grown, extents), self.constant(0.5))
        corners = [self.add_node(op_type, centre, half) for op_type in ("Sub", "Add")]
        return self.add_node("Concat", *corners, axis=1)

    def suppress(self, boxes, scores, most, overlap, lowest):
        """(found, 3): image, class and box; of boxes (count, 4) and scores (classes, count)."""
        limits = [self.constant([most]), self.constant([overlap]), self.constant([lowest])]
        operands = [self.add_node("Unsqueeze", each, self.constant([0])) for each in (boxes, scores)]
        return self.add_node("NonMaxSuppression", *operands, *limits)

    def finish(self, *outputs):
        for name, dims in outputs:
            self.add_output(name, dims)
        images = [make_image(self.generator, 1.0) for _ in range(2)]
        return builder.Case(self._name, self.serialize(), [{self.image: image} for image in images])


def _make_anchors(strides):
    anchors = []
    for stride in strides:
        places = (numpy.arange(224 // stride) + 0.5) * stride
        y, x, k = numpy.meshgrid(places, places, numpy.arange(_PER_CELL), indexing="ij")
        extent = stride * (2.0 + k)
        anchors.append(numpy.stack([y, x, extent, extent * 1.3], -1).reshape(-1, 4))
    return numpy.concatenate(anchors)


def _make_one_stage():
    net = _Detector("ssd", opset=17)
    scales = net.see()
    deltas = net.add_node("Concat", *(net.list_rows(x, 4) for x in scales), axis=0)
    rows = net.add_node("Concat", *(net.list_rows(x, _CLASSES) for x in scales), axis=0)
    boxes = net.place(deltas, _STRIDES)
    scores = net.add_node("Transpose", net.add_node("Softmax", rows, axis=1), perm=[1, 0])
    chosen = net.suppress(boxes, scores, 20, 0.5, 0.35)
    pairs = net.slice(chosen, 1, 1, 3)
    found = net.add_node("GatherND", scores, pairs, output="scores")
    box = net.reshape(net.slice(chosen, 1, 2, 3), -1)
    places = net.add_node("Gather", boxes, box, axis=0, output="boxes")
    classes = net.reshape(net.slice(chosen, 1, 1, 2), -1)
    classes = net.add_node("Identity", classes, output="classes")
    return net.finish((places, ["found", 4]), (found, ["found"]), (classes, ["found"]))


def _make_two_stage():
    net = _Detector("two_stage", opset=17)
    x, _ = net.see()
    y = net.rectify(net.convolve(x, 32, 3, 1, 1))
    boxes = net.place(net.list_rows(y, 4), _STRIDES[:1])
    scores = net.reshape(net.list_rows(y, 1), -1)
    best, at = net.add_split_node("TopK", scores, net.constant([60]), outputs=[None, None])
    boxes = net.add_node("Gather", boxes, at, axis=0)
    chosen = net.suppress(boxes, net.reshape(best, 1, -1), _REGIONS, 0.6, -1e9)
    boxes = net.add_node("Gather", boxes, net.reshape(net.slice(chosen, 1, 2, 3), -1), axis=0)
    regions = net.add_node("Gather", boxes, net.constant([1, 0, 3, 2]), axis=1)
    images = net.reshape(net.slice(chosen, 1, 0, 1), -1)
    aligned = net.add_node(
        "RoiAlign", x, regions, images,
        output_height=5, output_width=5, sampling_ratio=2, spatial_scale=1 / _STRIDES[0],
    )  # fmt: skip
    features = net.rectify(net.connect(net.add_node("Flatten", aligned), 48))
    classes = net.add_node("Softmax", net.connect(features, _CLASSES), axis=1, output="classes")
    deltas = net.connect(features, 4 * _CLASSES)
    masks = net.rectify(net.convolve(aligned, 16, 3, 1, 1))
    masks = net.add_node("Sigmoid", net.convolve(masks, 1, 1, gain=math.sqrt(2)), output="masks")
    deltas = net.add_node("Identity", deltas, output="deltas")
    return net.finish(
        (classes, ["found", _CLASSES]), (deltas, ["found", 4 * _CLASSES]), (masks, ["found", 1, 5, 5])
    )


def make_detectors():
    return [_make_one_stage(), _make_two_stage()]

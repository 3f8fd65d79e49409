# SPDX-License-Identifier: Apache-2.0
"""The layers that image classifiers are drawn from, on top of builder.py, and their test images.

Weights are He-scaled. Normalisation statistics are random around those of the probe image, so that
every channel is normalised by something of its own and activations stay of order one at any depth.
"""

import math

import numpy

from models import builder

_SIZE = 224
_CLASSES = 1000
_DATA_SETS = 2

# Spread of the class scores: softmax then has neither one winner nor 1,000 equals.
_SCORE_DEVIATION = 2.0


def make_image(generator, deviation):
    """Returns 1,3,224,224: noise at all scales, as photographs have, around 0."""
    image = numpy.zeros((1, 3, _SIZE, _SIZE))
    for cell in (1, 4, 16, 56):
        cells = -(-_SIZE // cell)
        noise = generator.standard_normal((1, 3, cells, cells))
        image += noise.repeat(cell, axis=2).repeat(cell, axis=3)
    return (image * (deviation / image.std())).astype(numpy.float32)


class ImageNetwork(builder.Builder):
    """A classifier of 1,3,224,224 images into 1,000 classes.

    image_deviation is 1 for networks fed with normalised images and about 60 for those of Caffe,
    fed with pixels: with less, their local response normalisation would do nothing.
    """

    def __init__(self, name, opset, image_deviation=1.0):
        super().__init__(name, opset)
        self._name = name
        self._image_deviation = image_deviation
        probe = make_image(self.generator, image_deviation)
        self.image = self.add_input("data", probe.shape, probe)

    def convolve(self, x, channels, kernel, stride=1, pad=0, group=1, bias=True, gain=1.0):
        """Conv of a square kernel; `pad` is on all four sides, `gain` on top of He's scale."""
        fan_in = self.get_probe(x).shape[1] // group
        deviation = gain * math.sqrt(2 / (fan_in * kernel * kernel))
        weights = self.draw_constant((channels, fan_in, kernel, kernel), deviation, "weight")
        operands = [x, weights]
        if bias:
            operands.append(self.draw_constant(channels, 0.1 * self.measure(x), "bias"))
        return self.add_node(
            "Conv",
            *operands,
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=group,
        )

    def draw_statistics(self, x):
        """Returns (mean, variance) per channel: the probe's, shaken.

        A channel varies over many images more than over one, hence the addend. Without it,
        normalisation would amplify rounding errors by the ratio of a channel's mean to its spread.
        """
        value = self.get_probe(x)
        channels = value.shape[1]
        deviation = value.std(axis=(0, 2, 3)) + 0.5 * value.std()
        mean = value.mean(axis=(0, 2, 3))
        mean += 0.5 * deviation * self.generator.standard_normal(channels)
        return mean, deviation**2 * self.generator.uniform(0.6, 1.6, channels)

    def draw_scale(self, channels, scale):
        """Returns (scale, shift) per channel, as training leaves them."""
        return (
            scale * self.generator.uniform(0.6, 1.4, channels),
            0.4 * scale * self.generator.standard_normal(channels),
        )

    def normalize(self, x, scale=1.0, epsilon=1e-5, **attributes):
        """BatchNormalization that leaves activations of magnitude `scale`."""
        channels = self.get_probe(x).shape[1]
        values = [*self.draw_scale(channels, scale), *self.draw_statistics(x)]
        roles = ("scale", "shift", "mean", "variance")
        operands = [self.add_constant(value, role) for value, role in zip(values, roles)]
        return self.add_node("BatchNormalization", x, *operands, epsilon=epsilon, **attributes)

    def rectify(self, x):
        return self.add_node("Relu", x)

    def pool(self, op_type, x, kernel, stride, pads=(0, 0, 0, 0), **attributes):
        return self.add_node(
            op_type,
            x,
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=list(pads),
            **attributes,
        )

    def concatenate(self, *parts):
        return self.add_node("Concat", *parts, axis=1)

    def connect(self, x, channels):
        """Gemm with He-scaled weights, stored transposed as exporters do."""
        fan_in = self.get_probe(x).shape[1]
        weights = self.draw_constant((channels, fan_in), math.sqrt(2 / fan_in), "weight")
        bias = self.draw_constant(channels, 0.1 * self.measure(x), "bias")
        return self.add_node("Gemm", x, weights, bias, transB=1)

    def score(self, x, output=None):
        """The last Gemm: 1,000 scores with the spread that suits a softmax."""
        features = self.get_probe(x)
        weights = self.generator.standard_normal((_CLASSES, features.shape[1]))
        weights *= _SCORE_DEVIATION / (features @ weights.T).std()
        operands = [
            self.add_constant(weights, "weight"),
            self.draw_constant(_CLASSES, 0.3, "bias"),
        ]
        return self.add_node("Gemm", x, *operands, transB=1, output=output)

    def measure(self, x):
        """Returns the root mean square of a value for the probe."""
        return math.sqrt(numpy.square(self.get_probe(x)).mean())

    def finish(self, output):
        """Returns the case: this graph with `output` as answer, and images to run it on."""
        self.add_output(output, [1, _CLASSES])
        images = [make_image(self.generator, self._image_deviation) for _ in range(_DATA_SETS)]
        return builder.Case(
            self._name, self.serialize(), [{self.image: image} for image in images]
        )

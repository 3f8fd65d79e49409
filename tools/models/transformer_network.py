# SPDX-License-Identifier: Apache-2.0
"""What transformers are drawn from, on top of builder.py: sizes, projections, exported shape code.

Extents that the caller chooses are never constants of the graph: as in exported models, the graph
reads them with Shape and Gather and puts them together again with Unsqueeze and Concat.
"""

import math

import numpy
from onnx import numpy_helper

from models import builder

LAYERS = 4
WIDTH = 256
HEADS = 8
HEAD_WIDTH = WIDTH // HEADS
INNER_WIDTH = 1024
VOCABULARY = 1000

# What exporters add to, or put in place of, a score that is masked out.
LOWEST = float(numpy.finfo(numpy.float32).min)


class TransformerNetwork(builder.Builder):
    def constant(self, value):
        """A Constant node, as exporters write literals."""
        value = numpy.asarray(value)
        value = value.astype(numpy.float32 if value.dtype.kind == "f" else numpy.int64)
        return self.add_node("Constant", value=numpy_helper.from_array(value))

    def unsqueeze(self, x, *axes):
        return self.add_node("Unsqueeze", x, self.constant(axes))

    def read_extent(self, x, axis):
        """A scalar: the extent of x along an axis."""
        return self.add_node("Gather", self.add_node("Shape", x), self.constant(axis), axis=0)

    def reshape(self, x, *extents):
        """Reshape to extents that are literals (integers) or scalars of the graph (names)."""
        parts = [
            self.constant([extent])
            if isinstance(extent, int)
            else self.unsqueeze(extent, 0)
            for extent in extents
        ]
        return self.add_node("Reshape", x, self.add_node("Concat", *parts, axis=0))

    def transpose(self, x, *perm):
        return self.add_node("Transpose", x, perm=perm)

    def project(self, x, width, gain=1.0, output=None):
        """x * weights + bias, with variance kept at gain squared."""
        fan_in = self.get_probe(x).shape[-1]
        weights = self.draw_constant((fan_in, width), gain / math.sqrt(fan_in), "weight")
        bias = self.draw_constant(width, 0.1, "bias")
        return self.add_node("Add", self.add_node("MatMul", x, weights), bias, output=output)

    def normalize(self, x, output=None):
        scale = self.add_constant(self.generator.uniform(0.6, 1.4, WIDTH), "scale")
        shift = self.draw_constant(WIDTH, 0.2, "shift")
        return self.add_node(
            "LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5, output=output
        )

# SPDX-License-Identifier: Apache-2.0
"""A block of a latent diffusion network (Rombach et al. 2022): residual convolutions that the time step
shifts, attention of the pixels to one another and to the words of a text, and a way up."""

import math

import numpy

from models import builder
from models.transformer_network import TransformerNetwork

_CHANNELS = 32
_SIDE = 12
_HEADS = 2
_TEXT = 24
_TOKENS = (7, 3)


class _DiffusionNetwork(TransformerNetwork):
    def activate(self, x):
        return self.add_node("Mul", x, self.add_node("Sigmoid", x))

    def scale(self, x, *shape):
        factor = self.add_constant(self.generator.uniform(0.6, 1.4, shape), "scale")
        return self.add_node("Add", self.add_node("Mul", x, factor), self.draw_constant(shape, 0.2, "shift"))

    def normalize_groups(self, x, groups=4):
        """Group normalisation, as exporters write it."""
        y = self.reshape(x, 0, groups, -1)
        ones, zeros = (
            self.add_constant(values, "constant") for values in (numpy.ones(groups), numpy.zeros(groups))
        )
        y = self.add_node("InstanceNormalization", y, ones, zeros, epsilon=1e-5)
        y = self.reshape(y, 1, _CHANNELS, _SIDE, _SIDE)
        return self.scale(y, _CHANNELS, 1, 1)

    def normalize_rows(self, x):
        scale = self.add_constant(self.generator.uniform(0.6, 1.4, _CHANNELS), "scale")
        shift = self.draw_constant(_CHANNELS, 0.2, "shift")
        return self.add_node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def convolve(self, x, channels=_CHANNELS):
        fan_in = 9 * self.get_probe(x).shape[1]
        weights = self.draw_constant((channels, fan_in // 9, 3, 3), 1 / math.sqrt(fan_in), "weight")
        bias = self.draw_constant(channels, 0.1, "bias")
        return self.add_node("Conv", x, weights, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def attend(self, x, other, gain):
        width = _CHANNELS // _HEADS
        query, key, value = (
            self.transpose(self.reshape(self.project(each, _CHANNELS, how), 1, -1, _HEADS, width), 0, 2, 1, 3)
            for each, how in ((x, gain), (other, gain), (other, 1.0))
        )
        scores = self.add_node("MatMul", query, self.transpose(key, 0, 1, 3, 2))
        scores = self.add_node("Mul", scores, self.constant(1 / math.sqrt(width)))
        y = self.add_node("MatMul", self.add_node("Softmax", scores, axis=-1), value)
        return self.project(self.reshape(self.transpose(y, 0, 2, 1, 3), 1, -1, _CHANNELS), _CHANNELS)


def _shift_by_time(net, x, step):
    y = net.convolve(net.activate(net.normalize_groups(x)))
    shift = net.project(net.activate(step), _CHANNELS)
    y = net.add_node("Add", y, net.unsqueeze(shift, 2, 3))
    return net.add_node("Add", x, net.convolve(net.activate(net.normalize_groups(y))))


def _look_around(net, x, text):
    rows = net.transpose(net.reshape(net.normalize_groups(x), 1, _CHANNELS, -1), 0, 2, 1)
    rows = net.project(rows, _CHANNELS)
    y = net.normalize_rows(rows)
    rows = net.add_node("Add", rows, net.attend(y, y, 1.5))
    rows = net.add_node("Add", rows, net.attend(net.normalize_rows(rows), text, 1.5))
    y = net.project(net.normalize_rows(rows), 8 * _CHANNELS)
    y, gate = net.add_split_node("Split", y, outputs=[None, None], axis=2, num_outputs=2)
    y = net.add_node("Mul", y, net.add_node("Gelu", gate))
    rows = net.project(net.add_node("Add", rows, net.project(y, _CHANNELS)), _CHANNELS)
    y = net.reshape(net.transpose(rows, 0, 2, 1), 1, _CHANNELS, _SIDE, _SIDE)
    return net.add_node("Add", x, y)


def make_diffusion():
    net = _DiffusionNetwork("diffusion_block", opset=21)
    sets = [
        {
            name: net.generator.standard_normal(shape).astype(numpy.float32)
            for name, shape in (
                ("latents", (1, 4, _SIDE, _SIDE)), ("step", (1, 16)), ("text", (1, tokens, _TEXT)))
        }
        for tokens in _TOKENS
    ]  # fmt: skip
    dims = {"latents": (1, 4, _SIDE, _SIDE), "step": (1, 16), "text": (1, "tokens", _TEXT)}
    latents, step, text = (net.add_input(name, dims[name], sets[0][name]) for name in dims)
    x = _shift_by_time(net, net.convolve(latents), step)
    x = _look_around(net, x, text)
    scales = net.add_constant(numpy.array([1.0, 1, 2, 2]), "scales")
    x = net.add_node(
        "Resize", x, "", scales,
        mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    noise = net.add_node("Tanh", net.convolve(x, 4), output="noise")
    net.add_output(noise, [1, 4, 2 * _SIDE, 2 * _SIDE])
    return [builder.Case("diffusion_block", net.serialize(), sets)]

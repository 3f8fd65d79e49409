# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks over batches of sequences that have lengths of their own: a tagger of LSTMs, a
classifier of GRUs, and speech recognition for CTC (Graves et al. 2006), which scores letters per
frame behind convolutions."""

import math

import numpy

from models import builder

_LENGTHS = ([9, 4], [5, 7, 2])
_GATES = {"LSTM": 4, "GRU": 3}


class RecurrentNetwork(builder.Builder):
    def recur(self, op_type, x, hidden, direction, lengths):
        """(length, batch, directions * hidden; the states after each sequence's end)."""
        fan_in = self.get_probe(x).shape[-1]
        directions = 2 if direction == "bidirectional" else 1
        rows = _GATES[op_type] * hidden
        operands = [
            self.draw_constant((directions, rows, count), 1.5 / math.sqrt(count), "weight")
            for count in (fan_in, hidden)
        ]
        operands.append(self.draw_constant((directions, 2 * rows), 0.2, "bias"))
        more = {"linear_before_reset": 1} if op_type == "GRU" else {}
        outputs = [None] * (3 if op_type == "LSTM" else 2)
        y, last, *_ = self.add_split_node(
            op_type, x, *operands, lengths, outputs=outputs, hidden_size=hidden, direction=direction, **more
        )
        shape = self.add_constant(numpy.array([0, 0, -1]), "shape")
        return self.add_node("Reshape", self.add_node("Transpose", y, perm=[0, 2, 1, 3]), shape), last

    def project(self, x, width, gain=2, output=None):
        fan_in = self.get_probe(x).shape[-1]
        weights = self.draw_constant((fan_in, width), gain / math.sqrt(fan_in), "weight")
        product = self.add_node("MatMul", x, weights)
        return self.add_node("Add", product, self.draw_constant(width, 0.1, "bias"), output=output)

    def add_lengths(self, lengths):
        return self.add_input("lengths", ["batch"], numpy.array(lengths, numpy.int32))


def _draw_sequences(generator, lengths, width):
    shape = (max(lengths), len(lengths), width)
    return {
        "frames": generator.standard_normal(shape).astype(numpy.float32),
        "lengths": numpy.array(lengths, numpy.int32),
    }


def _begin(name, width):
    net = RecurrentNetwork(name, opset=17)
    sets = [_draw_sequences(net.generator, lengths, width) for lengths in _LENGTHS]
    frames = net.add_input("frames", ["length", "batch", width], sets[0]["frames"])
    return net, sets, frames, net.add_lengths(_LENGTHS[0])


def _make_tagger():
    net, sets, x, lengths = _begin("lstm_tagger", 20)
    x, _ = net.recur("LSTM", x, 24, "bidirectional", lengths)
    x, _ = net.recur("LSTM", x, 19, "reverse", lengths)
    net.add_output(net.project(x, 11, output="tags"), ["length", "batch", 11])
    return builder.Case("lstm_tagger", net.serialize(), sets)


def _make_classifier():
    net, sets, x, lengths = _begin("gru_classifier", 17)
    x, _ = net.recur("GRU", x, 21, "forward", lengths)
    _, last = net.recur("GRU", x, 16, "bidirectional", lengths)
    net.add_output(net.project(last, 9, output="scores"), [2, "batch", 9])
    return builder.Case("gru_classifier", net.serialize(), sets)


def _make_speech():
    """Frames at half their rate; lengths are those after the convolution."""
    net = RecurrentNetwork("ctc_speech", opset=17)
    sets = []
    for lengths in _LENGTHS:
        shape = (len(lengths), 1, 16, 2 * max(lengths))
        spectrogram = net.generator.standard_normal(shape).astype(numpy.float32)
        sets.append({"spectrogram": spectrogram, "lengths": numpy.array(lengths, numpy.int32)})
    dims = ["batch", 1, 16, "frames"]
    x = net.add_input("spectrogram", dims, sets[0]["spectrogram"])
    lengths = net.add_lengths(_LENGTHS[0])
    weights = net.draw_constant((12, 1, 3, 3), math.sqrt(2 / 9), "weight")
    bias = net.draw_constant(12, 0.1, "bias")
    x = net.add_node("Conv", x, weights, bias, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = net.add_node("Transpose", net.add_node("Relu", x), perm=[3, 0, 1, 2])
    x = net.add_node("Reshape", x, net.add_constant(numpy.array([0, 0, -1]), "shape"))
    x, _ = net.recur("LSTM", x, 32, "bidirectional", lengths)
    x, _ = net.recur("GRU", x, 32, "bidirectional", lengths)
    letters = net.add_node("LogSoftmax", net.project(x, 29, gain=5), axis=-1, output="letters")
    net.add_output(letters, ["length", "batch", 29])
    return builder.Case("ctc_speech", net.serialize(), sets)


def make_recurrent():
    return [_make_tagger(), _make_classifier(), _make_speech()]

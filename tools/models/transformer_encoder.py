# SPDX-License-Identifier: Apache-2.0
"""An encoder like BERT (Devlin et al. 2018) with symbolic batch and length, attention written out.

Two cases share the model: a few data sets of different batch and length with padding masked out,
and one data set at each of 50 lengths.
"""

import math

import numpy

from models import builder
from models.transformer_network import (
    HEAD_WIDTH,
    HEADS,
    INNER_WIDTH,
    LAYERS,
    LOWEST,
    VOCABULARY,
    WIDTH,
    TransformerNetwork,
)

_LONGEST = 128
_CLASSES = 10
_LENGTHS = 50

# Batch, length, tokens of padding at the end of the last sequence.
_SETS = ((1, 7, 0), (2, 16, 5), (3, 40, 11))

# Sharpens the attention: with less, every token would attend to all others alike.
_SCORE_GAIN = 1.4


def _make_inputs(generator, batch, length, padding):
    mask = numpy.ones((batch, length), numpy.int64)
    mask[-1, length - padding :] = 0
    tokens = generator.integers(1, VOCABULARY, (batch, length))
    return {"input_ids": tokens * mask, "attention_mask": mask}


def _embed(net, tokens):
    """Sum of token and position embeddings, normalised."""
    table = net.draw_constant((VOCABULARY, WIDTH), 1.0, "embedding")
    x = net.add_node("Gather", table, tokens, axis=0)
    every_position = net.add_constant(numpy.arange(_LONGEST)[None], "position")
    length = net.unsqueeze(net.read_extent(tokens, 1), 0)
    positions = net.add_node(
        "Slice", every_position, net.constant([0]), length, net.constant([1])
    )
    table = net.draw_constant((_LONGEST, WIDTH), 0.5, "embedding")
    return net.normalize(net.add_node("Add", x, net.add_node("Gather", table, positions, axis=0)))


def _make_mask(net, attention_mask):
    """batch,1,1,length: 0 where a token counts, the lowest float where it is padding."""
    mask = net.add_node("Cast", net.unsqueeze(attention_mask, 1, 2), to=1)
    mask = net.add_node("Sub", net.constant(1.0), mask)
    return net.add_node("Mul", mask, net.constant(LOWEST))


def _split_heads(net, x, *perm):
    batch, length = net.read_extent(x, 0), net.read_extent(x, 1)
    return net.transpose(net.reshape(x, batch, length, HEADS, HEAD_WIDTH), *perm)


def _attend(net, x, mask):
    query = _split_heads(net, net.project(x, WIDTH, _SCORE_GAIN), 0, 2, 1, 3)
    key = _split_heads(net, net.project(x, WIDTH, _SCORE_GAIN), 0, 2, 3, 1)
    value = _split_heads(net, net.project(x, WIDTH), 0, 2, 1, 3)
    scores = net.add_node("MatMul", query, key)
    scores = net.add_node("Div", scores, net.constant(math.sqrt(HEAD_WIDTH)))
    weights = net.add_node("Softmax", net.add_node("Add", scores, mask), axis=-1)
    y = net.transpose(net.add_node("MatMul", weights, value), 0, 2, 1, 3)
    y = net.reshape(y, net.read_extent(y, 0), net.read_extent(y, 1), WIDTH)
    return net.project(y, WIDTH)


def _activate(net, x):
    """x * (1 + erf(x / sqrt(2))) / 2, as it is exported before opset 20."""
    y = net.add_node("Erf", net.add_node("Div", x, net.constant(math.sqrt(2))))
    y = net.add_node("Mul", x, net.add_node("Add", y, net.constant(1.0)))
    return net.add_node("Mul", y, net.constant(0.5))


def make_encoder():
    net = TransformerNetwork("transformer_encoder", opset=17)
    dims = ["batch", "sequence"]
    probe = _make_inputs(net.generator, 2, 12, 3)
    tokens = net.add_input("input_ids", dims, probe["input_ids"])
    mask = net.add_input("attention_mask", dims, probe["attention_mask"])
    x = _embed(net, tokens)
    mask = _make_mask(net, mask)
    for layer in range(LAYERS):
        x = net.normalize(net.add_node("Add", _attend(net, x, mask), x))
        y = net.project(_activate(net, net.project(x, INNER_WIDTH)), WIDTH)
        output = "last_hidden_state" if layer == LAYERS - 1 else None
        x = net.normalize(net.add_node("Add", y, x), output=output)
    first = net.add_node("Gather", x, net.constant(0), axis=1)
    pooled = net.add_node("Tanh", net.project(first, WIDTH))
    scores = net.project(pooled, _CLASSES, gain=2.0, output="scores")
    net.add_output(x, ["batch", "sequence", WIDTH])
    net.add_output(scores, ["batch", _CLASSES])

    content = net.serialize()
    lengths = net.generator.permutation(_LONGEST)[:_LENGTHS] + 1
    return [
        builder.Case(
            "transformer_encoder",
            content,
            [_make_inputs(net.generator, *sizes) for sizes in _SETS],
        ),
        builder.Case(
            "transformer_encoder_lengths",
            content,
            [_make_inputs(net.generator, 1, int(length), 0) for length in lengths],
            {"lengths": _LENGTHS},
        ),
    ]

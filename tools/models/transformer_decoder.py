# SPDX-License-Identifier: Apache-2.0
"""A decoder like GPT-2 (Radford et al. 2019) whose cache of keys and values grows with each call.

Inputs are new tokens and the cache so far, at first with extent 0; outputs are next-token scores
and the cache to pass to the next call. Two cases share the model: prompt, one token, three tokens;
and 50 single tokens, each data set's cache being the expected one of the data set before.
"""

import math

import numpy

from models import builder, evaluator
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
_LENGTHS = 50
_STEPS = (8, 1, 3)
_PROBE_PAST = 5
_PROBE_STEP = 4

# Sharpens the attention: with less, every token would attend to all others alike.
_SCORE_GAIN = 2.0

# The token table scores the answers too: this deviation gives scores one of about 2.
_EMBEDDING_DEVIATION = 0.125

# Two residuals are added per layer: half of the usual scale keeps their sum of order one.
_RESIDUAL_GAIN = 0.5


def _list_cache_names(prefix):
    return [f"{prefix}.{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]


def _split_heads(net, x):
    batch, step = net.read_extent(x, 0), net.read_extent(x, 1)
    return net.transpose(net.reshape(x, batch, step, HEADS, HEAD_WIDTH), 0, 2, 1, 3)


def _read_positions(net, tokens, past):
    """Returns (1,step positions of the new tokens; step,total: may a token see another?)."""
    length = net.read_extent(past, 2)
    total = net.add_node("Add", length, net.read_extent(tokens, 1))
    positions = net.add_node("Range", length, total, net.constant(1))
    everything = net.add_node("Range", net.constant(0), total, net.constant(1))
    visible = net.add_node(
        "LessOrEqual", net.unsqueeze(everything, 0), net.unsqueeze(positions, 1)
    )
    return net.unsqueeze(positions, 0), visible


def _attend(net, x, layer, past_key, past_value, visible):
    parts = net.add_split_node(
        "Split",
        net.project(x, 3 * WIDTH, _SCORE_GAIN),
        outputs=[None] * 3,
        axis=2,
        num_outputs=3,
    )
    query, key, value = (_split_heads(net, part) for part in parts)
    key = net.add_node("Concat", past_key, key, axis=2, output=f"present.{layer}.key")
    value = net.add_node("Concat", past_value, value, axis=2, output=f"present.{layer}.value")
    scores = net.add_node("MatMul", query, net.transpose(key, 0, 1, 3, 2))
    scores = net.add_node("Mul", scores, net.constant(1 / math.sqrt(HEAD_WIDTH)))
    scores = net.add_node("Where", visible, scores, net.constant(LOWEST))
    y = net.add_node("MatMul", net.add_node("Softmax", scores, axis=-1), value)
    y = net.transpose(y, 0, 2, 1, 3)
    y = net.reshape(y, net.read_extent(y, 0), net.read_extent(y, 1), WIDTH)
    return net.project(y, WIDTH, _RESIDUAL_GAIN / _SCORE_GAIN)


def _draw_network():
    net = TransformerNetwork("transformer_decoder", opset=21)
    probe = net.generator.integers(0, VOCABULARY, (1, _PROBE_STEP))
    tokens = net.add_input("input_ids", [1, "step"], probe)
    shape = (1, HEADS, _PROBE_PAST, HEAD_WIDTH)
    caches = [
        net.add_input(
            name, [1, HEADS, "past", HEAD_WIDTH], net.generator.standard_normal(shape)
        )
        for name in _list_cache_names("past")
    ]
    positions, visible = _read_positions(net, tokens, caches[0])
    table = net.draw_constant((VOCABULARY, WIDTH), _EMBEDDING_DEVIATION, "embedding")
    places = net.draw_constant((_LONGEST, WIDTH), 0.5 * _EMBEDDING_DEVIATION, "embedding")
    x = net.add_node(
        "Add",
        net.add_node("Gather", table, tokens, axis=0),
        net.add_node("Gather", places, positions, axis=0),
    )
    for layer in range(LAYERS):
        past_key, past_value = caches[2 * layer : 2 * layer + 2]
        y = _attend(net, net.normalize(x), layer, past_key, past_value, visible)
        x = net.add_node("Add", x, y)
        y = net.project(net.normalize(x), INNER_WIDTH, gain=1.5)
        y = net.project(net.add_node("Gelu", y, approximate="tanh"), WIDTH, _RESIDUAL_GAIN)
        x = net.add_node("Add", x, y)
    scores = net.add_node(
        "MatMul", net.normalize(x), net.transpose(table, 1, 0), output="scores"
    )
    net.add_output(scores, [1, "step", VOCABULARY])
    for name in _list_cache_names("present"):
        net.add_output(name, [1, HEADS, "total", HEAD_WIDTH])
    return net


def _make_input_sets(generator, model, steps):
    """Inputs of successive calls; a cache is the float32 the caller got from the call before."""
    shape = (1, HEADS, 0, HEAD_WIDTH)
    caches = [numpy.zeros(shape, numpy.float32) for _ in _list_cache_names("past")]
    input_sets = []
    for step in steps:
        tokens = generator.integers(0, VOCABULARY, (1, step))
        inputs = {"input_ids": tokens, **dict(zip(_list_cache_names("past"), caches))}
        input_sets.append(inputs)
        caches = [cache.astype(numpy.float32) for cache in model.run(inputs)[1:]]
    return input_sets


def make_decoder():
    net = _draw_network()
    content = net.serialize()
    model = evaluator.load(content)
    return [
        builder.Case(
            "transformer_decoder", content, _make_input_sets(net.generator, model, _STEPS)
        ),
        builder.Case(
            "transformer_decoder_lengths",
            content,
            _make_input_sets(net.generator, model, [1] * _LENGTHS),
            {"lengths": _LENGTHS},
        ),
    ]

# SPDX-License-Identifier: Apache-2.0
"""Networks over sequences: encoders, decoders with a cache, encoder-decoder, speech."""

import math

import numpy

from networks.drawing import Drawing

_VOCABULARY = 2000


def _embed(net, length, width, dims=None, batch=1):
    tokens = net.generator.integers(1, _VOCABULARY, (batch, length))
    tokens = net.add_input("tokens", tokens, dims)
    x = net.add_node("Gather", net.draw_weight((_VOCABULARY, width), 1), tokens, axis=0)
    return x


def make_encoder(name, length, width=256, heads=4, layers=4, is_symbolic=False, batch=1):
    net = Drawing(name)
    dims = [batch, "length"] if is_symbolic else None
    x = _embed(net, length, width, dims, batch)
    if not is_symbolic:
        x = net.add_node("Add", x, net.draw_weight((1, length, width), 0.5))
    x = net.normalize_row(x, width)
    present = numpy.ones((batch, length), numpy.int64)
    present[:, length - length // 8 :] = 0
    present = net.add_node("Cast", net.add_input("mask", present, dims), to=1)
    mask = net.add_node("Sub", net.add_constant(1.0), present)
    mask = net.add_scalar("Mul", mask, float(numpy.finfo(numpy.float32).min))
    mask = net.add_node("Unsqueeze", mask, net.add_constant([1, 2]))
    for _ in range(layers):
        x = net.normalize_row(net.add_node("Add", x, net.attend(x, x, width, heads, mask)), width)
        x = net.normalize_row(net.add_node("Add", x, net.feed_forward(x, width, 4 * width)), width)
    first = net.reshape(net.slice(x, 1, 0, 1), -1, width)
    net.add_output(net.add_node("Tanh", net.connect(first, width, width)), "pooled")
    net.add_output(x, "states")
    return net


def _turn(net, x, cosines, sines, size):
    """Rotary positions over the last axis."""
    low, high = (net.slice(x, 3, at, at + size // 2) for at in (0, size // 2))
    turned = net.add_node("Concat", net.add_node("Neg", high), low, axis=3)
    return net.add_node("Add", net.add_node("Mul", x, cosines), net.add_node("Mul", turned, sines))


def _see_no_later_tokens(net, frequencies):
    """A prompt of as many tokens as there are: cosines and sines of its positions, and the mask of attention."""
    length = net.add_node("Gather", net.add_node("Shape", "tokens"), net.add_constant(1), axis=0)
    places = net.add_node("Range", net.add_constant(0), length, net.add_constant(1))
    below = net.add_node("Unsqueeze", places, net.add_constant([1]))
    angles = net.add_node("Mul", net.add_node("Cast", below, to=1), net.add_constant(frequencies.reshape(1, -1)))
    angles = net.add_node("Unsqueeze", angles, net.add_constant([0, 1]))
    is_seen = net.add_node("LessOrEqual", net.add_node("Unsqueeze", places, net.add_constant([0])), below)
    lowest = net.add_constant(float(numpy.finfo(numpy.float32).min))
    mask = net.add_node("Where", is_seen, net.add_constant(0.0), lowest)
    return net.add_node("Cos", angles), net.add_node("Sin", angles), mask


def make_decoder(name, past=256, width=256, heads=4, shared=2, layers=4, is_symbolic=True, prompt=None):
    """One token after `past` others, or a prompt of so many tokens: RMS norms, rotary positions, `shared` heads
    per key, a gate."""
    net = Drawing(name)
    size = width // heads
    periods = 10000 ** (numpy.arange(size) % (size // 2) / (size // 2))
    key_heads = heads // shared
    if prompt:
        x = _embed(net, prompt, width, [1, "length"])
        cosines, sines, mask = _see_no_later_tokens(net, 1 / periods)
    else:
        x = _embed(net, 1, width)
        cosines, sines = (net.add_constant(f(past / periods).reshape(1, 1, 1, size)) for f in (numpy.cos, numpy.sin))
        mask = None
    dims = [1, key_heads, "past", size] if is_symbolic else None
    for layer in range(layers):
        y = net.normalize_rms(x, width)
        query = net.split_heads(net.project(y, width, width, bias=False), heads, size)
        query = _turn(net, query, cosines, sines, size)
        parts = []
        for role in ("key", "value"):
            new = net.project(y, width, key_heads * size, bias=False)
            new = net.split_heads(new, key_heads, size)
            new = _turn(net, new, cosines, sines, size) if role == "key" else new
            if not prompt:
                cache = net.add_normal_input(f"{role}_{layer}", (1, key_heads, past, size), dims)
                new = net.add_node("Concat", cache, new, axis=2)
            net.add_output(new, f"new_{role}_{layer}")
            new = net.add_node("Unsqueeze", new, net.add_constant([2]))
            new = net.add_node("Expand", new, net.add_constant([1, 1, shared, 1, 1]))
            parts.append(net.reshape(new, 1, heads, -1, size))
        y = net.mix(query, net.transpose(parts[0], 0, 1, 3, 2), parts[1], width, mask)
        x = net.add_node("Add", x, net.project(y, width, width, bias=False))
        y = net.normalize_rms(x, width)
        gate = net.activate(net.project(y, width, 3 * width, bias=False), "silu")
        y = net.add_node("Mul", gate, net.project(y, width, 3 * width, bias=False))
        x = net.add_node("Add", x, net.project(y, 3 * width, width, bias=False))
    net.add_output(net.project(net.normalize_rms(x, width), width, _VOCABULARY, bias=False), "scores")
    return net


def make_fused_decoder(name, past=256, width=1024, heads=16, shared=4, layers=8, length=1):
    """`length` tokens after `past` others, as make_decoder, in the operators of com.microsoft that builders of
    generative models write: caches that only grow, rotations inside of the attention, sums that are normalized
    at once."""
    net = Drawing(name)
    domain, size, key_heads = "com.microsoft", width // heads, heads // shared
    x = _embed(net, length, width, None if length == 1 else [1, "length"])
    mask = net.add_input("mask", numpy.ones((1, past + length), numpy.int64), [1, "total"])
    lengths = net.add_node("ReduceSum", mask, net.add_constant([1]), keepdims=0)
    lengths = net.add_node("Cast", net.add_node("Sub", lengths, net.add_constant([1])), to=6)
    total = net.add_node("Gather", net.add_node("Shape", mask), net.add_constant(1), axis=0)
    total = net.add_node("Cast", total, to=6)
    angles = numpy.arange(2 * max(past, length))[:, None] / 10000 ** (numpy.arange(size // 2) / (size // 2))
    tables = [net.add_constant(f(angles)) for f in (numpy.cos, numpy.sin)]
    scale = lambda: net.add_constant(net.generator.uniform(0.6, 1.4, width))
    y = net.normalize_rms(x, width)
    for layer in range(layers):
        parts = [net.project(y, width, fan_out, bias=False)
                 for fan_out in (width, key_heads * size, key_heads * size)]
        caches = [
            net.add_normal_input(f"{role}_{layer}", (1, key_heads, past, size), [1, key_heads, "past", size])
            for role in ("key", "value")
        ]
        y, *grown = net.add_split_node(
            "GroupQueryAttention", *parts, *caches, lengths, total, *tables, outputs=3, domain=domain,
            num_heads=heads, kv_num_heads=key_heads, do_rotary=1,
        )
        for role, cache in zip(("key", "value"), grown):
            net.add_output(cache, f"new_{role}_{layer}", dims=[1, key_heads, "total", size])
        y = net.project(y, width, width, bias=False)
        y, x = _add_and_normalize(net, x, y, scale())
        gate = net.activate(net.project(y, width, 3 * width, bias=False), "silu")
        y = net.add_node("Mul", gate, net.project(y, width, 3 * width, bias=False))
        y = net.project(y, 3 * width, width, bias=False)
        y, x = _add_and_normalize(net, x, y, scale())
    scores = net.project(y, width, _VOCABULARY, bias=False)
    net.add_output(scores, "scores", dims=[1, 1 if length == 1 else "length", _VOCABULARY])
    return net


def _add_and_normalize(net, x, y, scale):
    """The normalized sum, and the sum."""
    made = net.add_split_node("SkipSimplifiedLayerNormalization", x, y, scale, outputs=[None, "", "", None],
                              domain="com.microsoft", epsilon=1e-6)
    return made[0], made[3]


def make_encoder_decoder(name, length=64, width=256, heads=4, layers=3):
    """An encoder of `length` states and eight tokens that attend to one another and to it."""
    net = Drawing(name)
    states = net.add_normal_input("states", (1, length, width))
    for _ in range(layers):
        y = net.normalize_row(states, width)
        states = net.add_node("Add", states, net.attend(y, y, width, heads))
        y = net.feed_forward(net.normalize_row(states, width), width, 4 * width, "Relu")
        states = net.add_node("Add", states, y)
    x = _embed(net, 8, width)
    mask = net.add_constant(numpy.triu(numpy.full((1, 1, 8, 8), -1e9), 1))
    for _ in range(layers):
        y = net.normalize_row(x, width)
        x = net.add_node("Add", x, net.attend(y, y, width, heads, mask))
        x = net.add_node("Add", x, net.attend(net.normalize_row(x, width), states, width, heads))
        y = net.feed_forward(net.normalize_row(x, width), width, 4 * width, "Relu")
        x = net.add_node("Add", x, y)
    net.add_output(net.project(net.normalize_row(x, width), width, _VOCABULARY), "scores")
    return net


def _recur(net, op_type, x, fan_in, width, directions):
    """x[length, 1, fan_in] to [length, 1, directions * width]."""
    gates = {"LSTM": 4, "GRU": 3}[op_type]
    deviation = 1 / math.sqrt(width)
    operands = [net.draw_weight((directions, gates * width, n), deviation) for n in (fan_in, width)]
    operands.append(net.draw_weight((directions, 2 * gates * width), 0.1))
    options = {"direction": "bidirectional" if directions == 2 else "forward"}
    if op_type == "GRU":
        options["linear_before_reset"] = 1
    y = net.add_split_node(op_type, x, *operands, outputs=1, hidden_size=width, **options)[0]
    return net.reshape(net.transpose(y, 0, 2, 1, 3), 0, 1, directions * width)


def make_recurrent_speech(name, frames=200, width=128, op_type="LSTM", directions=2, layers=2):
    """Convolutions over a spectrogram, recurrent layers, scores of letters (CTC)."""
    net = Drawing(name)
    x = net.add_normal_input("spectrogram", (1, 1, 64, frames))
    x = net.convolve_block(net.convolve_block(x, 1, 16, stride=2), 16, 16, stride=(2, 1))
    x = net.reshape(net.transpose(x, 3, 0, 1, 2), -1, 1, 16 * 16)
    fan_in = 256
    for _ in range(layers):
        x, fan_in = _recur(net, op_type, x, fan_in, width, directions), directions * width
    net.add_output(net.add_node("LogSoftmax", net.project(x, fan_in, 32), axis=-1), "letters")
    return net


def make_convolved_speech(name, frames=400, width=144, heads=3, layers=4, batch=1):
    """Attention and depthwise 1-D convolutions in turns over a subsampled spectrogram."""
    net = Drawing(name)
    x = net.add_normal_input("spectrogram", (batch, 1, frames, 80))
    x = net.convolve_block(net.convolve_block(x, 1, 32, stride=2), 32, 32, stride=2)
    x = net.reshape(net.transpose(x, 0, 2, 1, 3), 0, -1, 32 * 20)
    x = net.project(x, 640, width)
    size = width // heads
    for _ in range(layers):
        y = net.feed_forward(net.normalize_row(x, width), width, 4 * width, "silu")
        x = net.add_node("Add", x, net.add_scalar("Mul", y, 0.5))
        y = net.normalize_row(x, width)
        query, key, value = (net.project(y, width, width) for _ in range(3))
        query, value = (net.split_heads(part, heads, size) for part in (query, value))
        key = net.split_heads(key, heads, size, (0, 2, 3, 1))
        x = net.add_node("Add", x, net.project(net.mix(query, key, value, width), width, width))
        y = net.transpose(net.normalize_row(x, width), 0, 2, 1)
        y = net.convolve(y, width, 2 * width, 1, axes=1)
        parts = [net.slice(y, 1, at * width, (at + 1) * width) for at in range(2)]
        y = net.add_node("Mul", parts[0], net.add_node("Sigmoid", parts[1]))
        y = net.convolve_block(y, width, width, 15, "silu", group=width, axes=1)
        y = net.transpose(net.convolve(y, width, width, 1, axes=1), 0, 2, 1)
        x = net.add_node("Add", x, y)
    net.add_output(net.project(net.normalize_row(x, width), width, 64), "letters")
    return net


def make_waves(name, samples=8192, width=64):
    """Dilated and transposed 1-D convolutions: from frames to a wave."""
    net = Drawing(name)
    x, fan_in = net.add_normal_input("frames", (1, 80, samples // 64)), 80
    x = net.convolve(x, fan_in, 2 * width, 7, axes=1)
    fan_in = 2 * width
    for factor in (8, 8):
        channels = fan_in // 2
        x = net.add_node("LeakyRelu", x, alpha=0.1)
        weights = net.draw_weight((fan_in, channels, 2 * factor), 1 / math.sqrt(2 * fan_in))
        x = net.add_node("ConvTranspose", x, weights, kernel_shape=[2 * factor], strides=[factor],
                         pads=[factor // 2] * 2)
        for dilation in (1, 3, 5):
            y = net.add_node("LeakyRelu", x, alpha=0.1)
            y = net.convolve(y, channels, channels, 3, dilation=dilation, axes=1)
            x = net.add_node("Add", x, y)
        fan_in = channels
    net.add_output(net.add_node("Tanh", net.convolve(x, fan_in, 1, 7, axes=1)), "wave")
    return net

# SPDX-License-Identifier: Apache-2.0
"""Mixtures of experts, with weights of floats and of quantized integers."""

import numpy

from domains.case import covers, floats, integers, node_case, random_of, trimmed

_TOKENS, _HIDDEN, _INNER, _EXPERTS = 7, 32, 48, 5


def _routed(answers, router, k, normalize):
    """The sum of the chosen experts' answers [experts, tokens, hidden]; a token takes the k most likely."""
    likely = numpy.exp(router.astype("float64"))
    likely /= likely.sum(1, keepdims=True)
    chosen = numpy.argsort(-likely, 1, kind="stable")[:, :k]
    factors = numpy.take_along_axis(likely, chosen, 1)
    if normalize:
        factors /= factors.sum(1, keepdims=True)
    return sum(
        factors[:, [n]] * answers[chosen[:, n], numpy.arange(len(router))] for n in range(chosen.shape[1])
    )


def _moe_with_fc3(x, router, w1, b1, w2, b2, w3, b3=None, *, k, **attributes):
    """The definition in float64: ONNX Runtime has no kernel with fc3 on a processor."""
    def layer(rows, weights, bias):
        product = rows.astype("float64") @ weights.astype("float64").transpose(0, 2, 1)
        return product if bias is None else product + bias[:, None]

    gate, linear = layer(x[None], w1, b1), layer(x[None], w3, b3)
    inner = gate / (1 + numpy.exp(-gate)) * linear
    result = _routed(layer(inner, w2, b2), router, k, attributes.get("normalize_routing_weights"))
    return [result.astype(x.dtype)]


def _moe_of_halves(x, router, w1, b1, w2, b2, **attributes):
    """Gate and linear part one behind the other: ONNX Runtime's kernel takes them in turns."""
    in_turns = [each.reshape(_EXPERTS, 2, _INNER, -1).swapaxes(1, 2).reshape(each.shape) for each in (w1, b1)]
    inputs = [x, router, in_turns[0], in_turns[1], w2, b2]
    return node_case("other", "MoE", inputs, attributes=attributes | {"swiglu_fusion": 1}).outputs


@covers("MoE")
def moe():
    swiglu = {"activation_type": "swiglu", "swiglu_fusion": 1}
    of_gpt = swiglu | {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.75}
    kinds = {
        "defaults": {},
        "gelu": {"activation_type": "gelu", "k": 2},
        "silu": {"activation_type": "silu", "k": 3, "normalize_routing_weights": 1},
        "identity": {"activation_type": "identity", "k": 5},
        "swiglu": swiglu | {"k": 2},
        "swiglu_limit": of_gpt | {"k": 2, "normalize_routing_weights": 1},
        "swiglu_halves": of_gpt | {"k": 2, "swiglu_fusion": 2},
        "one_token": swiglu | {"k": 2, "normalize_routing_weights": 1},
        "batch": {"activation_type": "silu", "k": 2},
        "no_bias": {"k": 2},
        "infinite": {"k": 1},
        "fc3": {"activation_type": "silu", "k": 2, "normalize_routing_weights": 1},
        "fc3_bias": {"activation_type": "silu", "k": 2, "normalize_routing_weights": 1},
        "fc3_one_token": {"activation_type": "silu", "k": 2, "normalize_routing_weights": 1},
    }
    for kind, attributes in kinds.items():
        for dtype in ("float32", "float16") if kind in ("silu", "swiglu_limit") else ("float32",):
            name = f"moe_{kind}_{dtype}"
            random = random_of(name)
            tokens = 1 if kind.endswith("one_token") else _TOKENS
            fused = 2 * _INNER if "swiglu_fusion" in attributes else _INNER
            shape = (2, 3, _HIDDEN) if kind == "batch" else (tokens, _HIDDEN)
            inputs = [
                floats(random, shape, dtype),
                floats(random, (int(numpy.prod(shape[:-1])), _EXPERTS), dtype),
                floats(random, (_EXPERTS, fused, _HIDDEN), dtype, scale=0.2),
                floats(random, (_EXPERTS, fused), dtype),
                floats(random, (_EXPERTS, _HIDDEN, _INNER), dtype, scale=0.2),
                floats(random, (_EXPERTS, _HIDDEN), dtype),
            ]
            if kind == "no_bias":
                inputs[3] = None
                inputs.pop()
            if kind == "infinite":  # an expert that no token chooses
                inputs[1][:, 2] = -50
                inputs[5][2, 1] = numpy.inf
            if kind.startswith("fc3"):
                inputs.append(floats(random, (_EXPERTS, _INNER, _HIDDEN), scale=0.2))
            if kind == "fc3_bias":
                inputs.append(floats(random, (_EXPERTS, _INNER)))
            oracle = _moe_with_fc3 if kind.startswith("fc3") else None
            if kind == "swiglu_halves":
                oracle = _moe_of_halves
            yield node_case(
                name,
                "MoE",
                inputs,
                attributes=attributes,
                constant=range(2, len(inputs)),
                symbolic=kind in ("swiglu", "batch"),
                oracle=oracle,
                rtol=2e-2 if dtype == "float16" else 1e-4,
                atol=2e-2 if dtype == "float16" else 1e-4,
            )


def _quantized(random, bits, shape, block, zero_points):
    """Bytes, scales, and zero points or None, of weights [experts, rows, width]."""
    experts, rows, width = shape
    bytes_of = integers(random, (experts, rows, width * bits // 8))
    groups = (experts, rows, width // block) if block else (experts, rows)
    scales = (random.random(groups) * 2.0**-bits * 0.5 + 0.01).astype("float32")
    zeros = integers(random, (*groups[:-1], -(-groups[-1] * bits // 8))) if zero_points else None
    return bytes_of, scales, zeros


def _widened(codes, scales, zeros, bits):
    """The weights that bytes stand for, in float32."""
    def unpacked(packed):
        parts = [(packed[..., None] >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
        return numpy.concatenate(parts, -1).reshape(*packed.shape[:-1], -1).astype("float32")

    numbers = unpacked(codes)
    groups = scales if scales.ndim == 3 else scales[..., None]
    middle = 2.0 ** (bits - 1)
    if zeros is not None:
        middle = unpacked(zeros)[..., : scales.shape[-1]].reshape(groups.shape)
    wide = numbers.reshape(*groups.shape, -1) - numpy.expand_dims(middle, -1)
    return (wide * groups[..., None]).reshape(numbers.shape).astype("float32")


def _of_wide_weights(x, router, w1, s1, b1, w2, s2, b2, *others, **attributes):
    """ONNX Runtime's answer for the weights as floats."""
    z1, z2 = (*others, *[None] * 5)[3:5]
    bits, kept = attributes.pop("expert_weight_bits"), attributes | {"normalize_routing_weights": 1}
    for name in ("block_size", "accuracy_level"):
        kept.pop(name, None)
    inputs = [x, router, _widened(w1, s1, z1, bits), b1, _widened(w2, s2, z2, bits), b2]
    return node_case("other", "MoE", inputs, attributes=kept).outputs


@covers("QMoE")
def qmoe():
    kinds = {
        "plain": {},
        "blocks": {"block": 16},
        "zero_points": {"zero": True},
        "blocks_zero_points": {"block": 16, "zero": True},
        "one_token": {"block": 16, "zero": True, "tokens": 1},
        "one_token_columns": {"zero": True, "tokens": 1},
        "router_weights": {"block": 16, "router": True},
        "not_normalized": {"block": 16, "normalize": 0},
        "gelu": {"block": 16, "activation": "gelu"},
        "beta": {"more": {"activation_beta": 0.5}},
        "level": {"block": 16, "more": {"accuracy_level": 4}},
    }
    for bits in (2, 4, 8):
        for kind, given in kinds.items():
            # ONNX Runtime rounds what it multiplies by blocks of eight bits to bytes.
            is_rounded = bits == 8 and "block" in given
            if is_rounded and given.get("router"):
                continue
            name = f"qmoe_{bits}_{kind}"
            random = random_of(name)
            block, tokens = given.get("block"), given.get("tokens", _TOKENS)
            activation = given.get("activation", "swiglu")
            fused = 2 * _INNER if activation == "swiglu" else _INNER
            w1, s1, z1 = _quantized(random, bits, (_EXPERTS, fused, _HIDDEN), block, given.get("zero"))
            w2, s2, z2 = _quantized(random, bits, (_EXPERTS, _HIDDEN, _INNER), block, given.get("zero"))
            router_weights = None
            if given.get("router"):
                router_weights = random.random((tokens, _EXPERTS)).astype("float32")
                router_weights[0, 1:4] = 0  # nothing, for a token that may choose it
            inputs = [floats(random, (tokens, _HIDDEN)), floats(random, (tokens, _EXPERTS))]
            inputs += [w1, s1, floats(random, (_EXPERTS, fused)), w2, s2, floats(random, (_EXPERTS, _HIDDEN))]
            inputs += [None, None, None, z1, z2, None, router_weights]
            inputs = trimmed(inputs)
            attributes = {
                "k": 2,
                "activation_type": activation,
                "normalize_routing_weights": given.get("normalize", 1),
                "expert_weight_bits": bits,
            }
            if activation == "swiglu":
                attributes |= {"swiglu_fusion": 1, "activation_alpha": 1.702, "swiglu_limit": 7.0}
            if block:
                attributes["block_size"] = block
            attributes |= given.get("more", {})
            yield node_case(
                name,
                "QMoE",
                inputs,
                attributes=attributes,
                constant=range(2, 14),
                oracle=_of_wide_weights if is_rounded or kind == "level" else None,
                rtol=1e-3,
                atol=1e-3,
            )

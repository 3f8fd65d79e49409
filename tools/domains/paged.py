# SPDX-License-Identifier: Apache-2.0
"""Tokens of several sequences in one row: attention to a cache of blocks, and layers of linear attention. ONNX
Runtime has them on GPUs alone: the oracles are float64, a sequence and a token at a time, after the documentation."""

import itertools

import ml_dtypes
import numpy

from domains.case import covers, floats, node_case, random_of, trimmed

_LENGTHS = (1, 4, 2)


def _sums(lengths):
    return numpy.cumsum([0, *lengths]).astype("int32")


def _tokens(sums):
    """Pairs of a sequence and the row of each of its tokens, in order."""
    for sequence, (start, end) in enumerate(itertools.pairwise(sums)):
        for row in range(start, end):
            yield sequence, row


def _type(name):
    return ml_dtypes.bfloat16 if name == "bfloat16" else name


def _silu(x):
    return x / (1 + numpy.exp(-x))


def _causal(x, weight, sums, bias=None, state=None, counts=None, **given):
    taps, dilation = weight.shape[2], given.get("dilation", 1)
    capacity = given.get("state_update_capacity", 0)
    rows = numpy.zeros(x.shape)
    left = state.copy()
    shown = numpy.zeros((len(sums) - 1, capacity, x.shape[1]), x.dtype)
    for sequence, row in _tokens(sums):
        line = numpy.concatenate([left[sequence], x[row][:, None]], 1)
        rows[row] = sum(
            weight[:, 0, tap].astype("float64") * line[:, tap * dilation].astype("float64") for tap in range(taps)
        )
        left[sequence] = line[:, 1:]
        place = row - sums[sequence]
        if capacity and place < min(counts[sequence], capacity):
            shown[sequence, place] = x[row]
    if bias is not None:
        rows = rows + bias.astype("float64")
    if given.get("activation", "none") != "none":
        rows = _silu(rows)
    return [rows.astype(x.dtype), left, *([shown] if capacity else [])]


@covers("VarlenCausalConvWithState")
def convolution():
    for kind, given in {
        "": {},
        "silu": {"activation": "silu"},
        "swish": {"activation": "swish"},
        "no_bias": {"bias": False},
        "dilated": {"dilation": 2},
        "one_tap": {"taps": 1},
        "one_sequence": {"lengths": (5,)},
        "tokens": {"lengths": (1, 1, 1, 1)},
        "float16": {"dtype": "float16", "activation": "silu"},
        "bfloat16": {"dtype": "bfloat16"},
        "shown": {"state_update_capacity": 3},
        "shown_symbolic": {"state_update_capacity": 2, "symbolic": True},
        "symbolic": {"symbolic": True, "activation": "silu"},
        "run_time": {"constant": ()},
    }.items():
        name = f"varlencausalconvwithstate_{kind}"
        random, dtype = random_of(name), _type(given.pop("dtype", "float32"))
        lengths, taps, channels = given.pop("lengths", _LENGTHS), given.pop("taps", 3), 5
        has_bias, symbolic = given.pop("bias", True), given.pop("symbolic", False)
        constant = given.pop("constant", (1, 3) if has_bias else (1,))
        kept = (taps - 1) * given.get("dilation", 1)
        capacity = given.get("state_update_capacity", 0)
        inputs = [
            floats(random, (sum(lengths), channels)).astype(dtype),
            floats(random, (channels, 1, taps)).astype(dtype),
            _sums(lengths),
            floats(random, (channels,)).astype(dtype) if has_bias else None,
            floats(random, (len(lengths), channels, kept)).astype(dtype),
        ]
        if capacity:
            inputs.append(numpy.array([5, 1, 0], "int32"))
        yield node_case(
            name,
            "VarlenCausalConvWithState",
            inputs,
            attributes=given,
            outputs=3 if capacity else 2,
            constant=constant,
            symbolic=(0, 2, 4) if symbolic else False,
            oracle=_causal,
        )


def _unit(x):
    return x / numpy.sqrt((x**2).sum(-1, keepdims=True) + 1e-12)


def _delta(q, k, v, sums, decay, beta, state, a_log=None, dt_bias=None, **given):
    dtype, rule = q.dtype, given.get("update_rule", "gated_delta")
    shape = v.shape if v is not None else (*q.shape[:-1], state.shape[1], state.shape[2])
    if k is None:
        heads, values, keys = state.shape[1:]
        parts = numpy.split(q, [(q.shape[-1] - heads * values) // 2, q.shape[-1] - heads * values], -1)
        q, k, v = (
            part.reshape(*part.shape[:-1], -1, size) for part, size in zip(parts, (keys, keys, values))
        )
    if sums is None:
        count = len(q) if q.ndim == 4 else len(state)
        q, k, v, decay, beta = (
            None if each is None else each.reshape(-1, *each.shape[1 + (len(shape) == 4) :])
            for each in (q, k, v, decay, beta)
        )
        sums = numpy.arange(count + 1) * (len(q) // count)
    q, k, v = (each.astype("float64") for each in (q, k, v))
    if given.get("qk_l2_norm"):
        q, k = _unit(q), _unit(k)
    repeats = v.shape[1] // k.shape[1]
    q, k = numpy.repeat(q, repeats, 1), numpy.repeat(k, repeats, 1)
    if given.get("gate_activation") == "qwen":
        apart = (..., None) if decay.ndim == 3 else ...
        bias = 0 if dt_bias is None else dt_bias[apart]
        scale = 1 if a_log is None else numpy.exp(a_log.astype("float64"))[apart]
        decay = -scale * numpy.logaddexp(0, decay.astype("float64") + bias)
    if given.get("beta_activation") == "sigmoid":
        beta = 1 / (1 + numpy.exp(-beta.astype("float64")))
    left = numpy.zeros((len(sums) - 1, v.shape[1], v.shape[2], k.shape[2]))
    if state is not None:
        left = state.astype("float64")
    rows = numpy.zeros(v.shape)
    scale = given.get("scale") or q.shape[-1] ** -0.5
    for sequence, row in _tokens(sums):
        kept = left[sequence]
        if "gated" in rule and decay is not None:
            factor = numpy.exp(decay[row].astype("float64"))
            kept = kept * (factor[:, None, None] if factor.ndim == 1 else factor[:, None, :])
        added = v[row]
        if "delta" in rule:
            added = added - numpy.einsum("hvk,hk->hv", kept, k[row])
        if beta is not None:
            added = added * beta[row].astype("float64")[:, None]
        left[sequence] = kept + added[:, :, None] * k[row][:, None, :]
        rows[row] = scale * numpy.einsum("hvk,hk->hv", left[sequence], q[row])
    return [rows.reshape(shape).astype(dtype), left.astype("float32")]


def _gated_delta(name, *, lengths=_LENGTHS, keys=4, values=4, size=6, width=5, dense=0, **given):
    random, dtype = random_of(name), _type(given.pop("dtype", "float32"))
    has_state, of_keys = given.pop("state", True), given.pop("decay_of_keys", False)
    has_decay, has_beta = given.pop("decay", True), given.pop("beta", True)
    symbolic, in_one = given.pop("symbolic", False), given.pop("in_one", False)
    qwen = given.get("gate_activation") == "qwen"
    tokens = (2, 3) if dense == 4 else (6,) if dense else (sum(lengths),)
    count = 2 if dense else len(lengths)
    q, k, v = (
        floats(random, (*tokens, heads, each), scale=0.4).astype(dtype)
        for heads, each in ((keys, size), (keys, size), (values, width))
    )
    state = floats(random, (count, values, width, size), scale=0.5) if has_state else None
    of_heads = (*tokens, values, *((size,) if of_keys else ()))
    decay = floats(random, of_heads) if qwen else -abs(floats(random, of_heads))
    beta = random.uniform(0.1, 0.9, (*tokens, values)).astype("float32")
    if in_one:
        q = numpy.concatenate([each.reshape(*tokens, -1) for each in (q, k, v)], -1)
        k = v = None
    inputs = [q, k, v, None if dense else _sums(lengths), decay if has_decay else None, beta if has_beta else None]
    inputs.append(state)
    if qwen:
        inputs += [floats(random, (values,)), floats(random, (values,))]
    inputs = trimmed(inputs)
    close = {} if dtype == "float32" else {"rtol": 2e-2, "atol": 2e-2}
    return node_case(
        name,
        "GatedDeltaNet",
        inputs,
        attributes=given,
        outputs=2,
        constant=(7, 8) if qwen else (),
        symbolic=symbolic,
        oracle=lambda q, k=None, v=None, sums=None, decay=None, beta=None, state=None, *more, **named: _delta(
            q, k, v, sums, decay, beta, state, *more, **named
        ),
        **close,
    )


@covers("GatedDeltaNet")
def gated_delta():
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for kind, given in {
            "": {},
            "first": {"state": False},
            "grouped": {"keys": 2},
            "tokens": {"lengths": (1, 1, 1)},
        }.items():
            yield _gated_delta(f"gateddeltanet_{rule}_{kind}", update_rule=rule, **given)
    for kind, given in {
        "samples": {"dense": 4},
        "uniform": {"dense": 3},
        "float16": {"dtype": "float16"},
        "bfloat16": {"dtype": "bfloat16"},
        "norm": {"qk_l2_norm": 1},
        "qwen": {"gate_activation": "qwen", "beta_activation": "sigmoid", "qk_l2_norm": 1, "keys": 2},
        "qwen_of_keys": {"gate_activation": "qwen", "decay_of_keys": True, "dense": 4},
        "decay_of_keys": {"decay_of_keys": True},
        "no_decay": {"decay": False},
        "no_beta": {"beta": False, "qk_l2_norm": 1},
        "scale": {"scale": 0.7, "chunk_size": 16},
        "in_one": {"in_one": True, "keys": 2},
        "in_one_samples": {"in_one": True, "dense": 4},
        "one_sequence": {"lengths": (5,)},
    }.items():
        yield _gated_delta(f"gateddeltanet_{kind}", **given)
    # Heads and their sizes are numbers.
    yield _gated_delta("gateddeltanet_symbolic", symbolic=(3,))


_BLOCK, _SPARE = 4, 2


def _turned(x, cosines, sines, interleaved):
    """[heads, size] at one position."""
    half = len(cosines)
    first, second = (x[:, 0 : 2 * half : 2], x[:, 1 : 2 * half : 2]) if interleaved else (
        x[:, :half], x[:, half : 2 * half])  # fmt: skip
    pair = [first * cosines - second * sines, second * cosines + first * sines]
    turned = numpy.stack(pair, -1).reshape(len(x), -1) if interleaved else numpy.concatenate(pair, 1)
    return numpy.concatenate([turned, x[:, 2 * half :]], 1)


def _paged(q, k, v, key_cache, value_cache, sums, past, table, *more, **given):
    more = [*more, *[None] * (9 - len(more))]
    cosines, sines, slots, sink, q_norm, k_norm, k_scale, v_scale, _ = more
    heads, kv_heads = given["num_heads"], given["kv_num_heads"]
    size, dtype = key_cache.shape[3], q.dtype
    if k is None:
        q, k, v = numpy.split(q, [heads * size, (heads + kv_heads) * size], 1)
    q, k, v = (each.astype("float64").reshape(len(each), -1, size) for each in (q, k, v))
    epsilon = given.get("qk_norm_epsilon", 1e-6)

    def prepared(rows, norm, place):
        if norm is not None:
            rows = rows / numpy.sqrt((rows**2).mean(-1, keepdims=True) + epsilon) * norm.astype("float64")
        if given.get("do_rotary"):
            at = (each[place].astype("float64") for each in (cosines, sines))
            rows = _turned(rows, *at, given.get("rotary_interleaved", 0))
        return rows

    def kept(rows, cache, scale):
        if scale is None:
            return rows.astype(cache.dtype)
        steps = rows / scale.reshape(-1, scale.shape[-1])
        if cache.dtype == numpy.int8:
            return numpy.clip(numpy.rint(steps), -128, 127).astype("int8")
        return numpy.clip(steps, -448, 448).astype("float32").astype(cache.dtype)

    def wide(rows, scale):
        rows = rows.astype("float64")
        return rows if scale is None else rows * scale.reshape(-1, scale.shape[-1])

    keys, values = (each.copy().reshape(-1, kv_heads, size) for each in (key_cache, value_cache))
    row_of = lambda sequence, place: table[sequence, place // _BLOCK] * _BLOCK + place % _BLOCK
    places = {row: past[sequence] + row - sums[sequence] for sequence, row in _tokens(sums)}
    for sequence, row in _tokens(sums):
        at = row_of(sequence, places[row]) if slots is None else slots[row]
        if at < 0:
            continue
        keys[at] = kept(prepared(k[row], k_norm, places[row]), keys, k_scale)
        values[at] = kept(v[row], values, v_scale)
    rows = numpy.zeros(q.shape)
    scale = given.get("scale") or size**-0.5
    for sequence, row in _tokens(sums):
        end = places[row] + 1 if given.get("is_causal", 1) else past[sequence] + numpy.diff(sums)[sequence]
        window = given.get("local_window_size", -1)
        first = max(0, places[row] + 1 - window) if window > 0 else 0
        at = [row_of(sequence, place) for place in range(first, end)]
        key, value = (
            numpy.repeat(wide(each[at], each_scale), heads // kv_heads, 1)
            for each, each_scale in ((keys, k_scale), (values, v_scale))
        )
        scores = numpy.einsum("hd,khd->hk", prepared(q[row], q_norm, places[row]), key) * scale
        if given.get("softcap"):
            scores = numpy.tanh(scores / given["softcap"]) * given["softcap"]
        if sink is not None:
            scores = numpy.concatenate([scores, sink.astype("float64")[:, None]], 1)
        shares = numpy.exp(scores - scores.max(-1, keepdims=True))
        shares = (shares / shares.sum(-1, keepdims=True))[:, : len(at)]
        rows[row] = numpy.einsum("hk,khd->hd", shares, value)
    caches = [each.reshape(key_cache.shape) for each in (keys, values)]
    return [rows.reshape(len(rows), -1).astype(dtype), *caches]


@covers("PagedAttention")
def paged_attention():
    for kind, given in {
        "": {},
        "first": {"past": (0, 0, 0)},
        "tokens": {"lengths": (1, 1, 1)},
        "bfloat16": {"dtype": "bfloat16"},
        "packed": {"packed": True},
        "rotary": {"do_rotary": 1},
        "rotary_packed": {"do_rotary": 1, "rotary_interleaved": 1, "packed": True},
        "rotary_part": {"do_rotary": 1, "turned": 2},
        "norm": {"norm": True, "do_rotary": 1, "qk_norm_epsilon": 0.01},
        "window": {"local_window_size": 3},
        "not_causal": {"is_causal": 0},
        "not_causal_window": {"is_causal": 0, "local_window_size": 3},
        "scale": {"scale": 0.3, "softcap": 2.0},
        "sink": {"sink": True},
        "slots": {"slots": True},
        "int8": {"cache": "int8", "k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"},
        "int8_channels": {"cache": "int8", "k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_CHANNEL"},
        "float8": {"cache": "float8", "k_quant_type": "PER_TENSOR", "v_quant_type": "PER_CHANNEL"},
        "named": {"k_cache_dtype": "float16", "v_cache_dtype": "float16"},
        "metadata": {"metadata": True},
        "symbolic": {"symbolic": True, "do_rotary": 1},
    }.items():
        name, symbolic = f"pagedattention_{kind}", given.pop("symbolic", False)
        random, dtype = random_of(name), _type(given.pop("dtype", "float16"))
        heads, kv_heads, size = 4, 2, 8
        lengths, past = given.pop("lengths", _LENGTHS), given.pop("past", (6, 0, 3))
        tokens, per_sequence = sum(lengths), 3
        blocks = len(lengths) * per_sequence + _SPARE
        table = random.permutation(blocks)[: len(lengths) * per_sequence].reshape(len(lengths), -1).astype("int32")
        # Blocks that a sequence does not have yet.
        for sequence, (length, before) in enumerate(zip(lengths, past)):
            table[sequence, -(-(length + before) // _BLOCK) :] = -1
        rows = lambda count: floats(random, (tokens, count * size)).astype(dtype)
        cache_type = given.pop("cache", None)
        shape = (blocks, _BLOCK, kv_heads, size)
        scales = [None, None]
        if cache_type is None:
            caches = [floats(random, shape).astype(dtype) for _ in range(2)]
        else:
            width = 1.5 / 127 if cache_type == "int8" else 0.01
            scales = [
                (random.uniform(0.5, 1.5, (kv_heads, 1, size) if given[which] == "PER_CHANNEL" else 1) * width)
                for which in ("k_quant_type", "v_quant_type")
            ]
            scales = [each.astype("float32") for each in scales]
            kept = "int8" if cache_type == "int8" else ml_dtypes.float8_e4m3fn
            caches = [random.integers(-99, 99, shape).astype(kept) for _ in range(2)]
        queries = [rows(heads + 2 * kv_heads), None, None] if given.pop("packed", False) else [
            rows(heads), rows(kv_heads), rows(kv_heads)]  # fmt: skip
        angles = random.uniform(-3, 3, (16, given.pop("turned", size // 2)))
        turned = [numpy.cos(angles), numpy.sin(angles)] if given.get("do_rotary") else [None, None]
        slots = None
        if given.pop("slots", False):
            slots = numpy.array(
                [
                    table[s, (past[s] + row - _sums(lengths)[s]) // _BLOCK] * _BLOCK
                    + (past[s] + row - _sums(lengths)[s]) % _BLOCK
                    for s, row in _tokens(_sums(lengths))
                ],
                "int32",
            )
            slots[2] = -1
        norms = [floats(random, (size,)).astype(dtype) for _ in range(2)] if given.pop("norm", False) else [None] * 2
        inputs = [
            *queries,
            *caches,
            _sums(lengths),
            numpy.array(past, "int32"),
            table,
            *(None if each is None else each.astype(dtype) for each in turned),
            slots,
            floats(random, (heads,)).astype(dtype) if given.pop("sink", False) else None,
            *norms,
            *scales,
            numpy.array([4, 12], "int32") if given.pop("metadata", False) else None,
        ]
        inputs = trimmed(inputs)
        yield node_case(
            name,
            "PagedAttention",
            inputs,
            attributes={"num_heads": heads, "kv_num_heads": kv_heads, **given},
            outputs=3,
            symbolic=(0, 1, 2, 5, 6, 7) if symbolic else False,
            oracle=lambda *arrays, **named: _paged(*arrays, **named),
        )

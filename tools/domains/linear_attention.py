# SPDX-License-Identifier: Apache-2.0
"""Layers of linear attention: the recurrence, its gates, the convolution before it and the norm behind it."""

import ml_dtypes
import numpy

from domains.case import covers, floats, node_case, random_of, trimmed

# What ONNX Runtime's kernels for the processor do not take has an oracle in float64.


def _heads(rows, count):
    return rows.astype("float64").reshape(*rows.shape[:2], count, -1)


def _recurrence(query, key, value, past=None, decay=None, beta=None, **attributes):
    heads, kv = attributes["q_num_heads"], attributes["kv_num_heads"]
    rule, window = attributes.get("update_rule", "gated_delta"), attributes.get("state_window", 0)
    q, v = _heads(query, heads), _heads(value, kv)
    size = q.shape[-1]
    k = _heads(key, key.shape[2] // size)
    q = numpy.repeat(q, max(kv // heads, 1), 2)
    k = numpy.repeat(k, kv // k.shape[2], 2)
    batch, length = query.shape[:2]
    state = numpy.zeros((batch, kv, size, v.shape[-1]))
    if past is not None:
        state = (past[-1] if window else past).astype("float64")
    scale = attributes.get("scale") or size**-0.5
    rows, states = [], [numpy.zeros_like(state)] * window
    for t in range(length):
        if "gated" in rule:
            state = state * numpy.exp(_heads(decay, kv)[:, t])[..., None]
        added = v[:, t]
        if "delta" in rule:
            rate = numpy.broadcast_to(beta.astype("float64")[:, t], (batch, kv))[..., None]
            added = rate * (added - numpy.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + k[:, t, :, :, None] * added[:, :, None, :]
        read = numpy.repeat(state, q.shape[2] // kv, 1)
        rows.append(scale * numpy.einsum("bhkv,bhk->bhv", read, q[:, t]))
        states.append(state)
    output = numpy.stack(rows, 1).reshape(batch, length, -1).astype(query.dtype)
    kept = numpy.stack(states[-window:]) if window else state
    return [output, kept.astype(query.dtype if past is None else past.dtype)]


def _linear_attention(name, *, batch=2, length=5, heads=4, kv=4, keys=None, size=6, values=5, **given):
    past, dtype = given.pop("past", False), given.pop("dtype", "float32")
    state_type, of_keys = given.pop("state_type", dtype), given.pop("decay_of_keys", False)
    shared_rate, symbolic = given.pop("shared_rate", False), given.pop("symbolic", False)
    random = random_of(name)
    query, key, value = (
        floats(random, (batch, length, count * width), dtype, 0.4)
        for count, width in ((heads, size), (keys or kv, size), (kv, values))
    )
    window = given.get("state_window", 0)
    shape = ((window,) if window else ()) + (batch, kv, size, values)
    state = floats(random, shape, state_type, 0.5) if past else None
    rule = given.get("update_rule", "gated_delta")
    decay = beta = None
    if "gated" in rule:
        decay = -abs(floats(random, (batch, length, kv * (size if of_keys else 1)), dtype))
    if "delta" in rule:
        beta = random.uniform(0.1, 0.9, (batch, length, 1 if shared_rate else kv)).astype(dtype)
    inputs = [query, key, value, state, decay, beta]
    inputs = trimmed(inputs)
    attributes = {"q_num_heads": heads, "kv_num_heads": kv, **given}
    own = dtype == "float32" and state_type == "float32" and not window
    close = {} if dtype == "float32" else {"rtol": 2e-2, "atol": 2e-2}
    return node_case(
        name,
        "LinearAttention",
        inputs,
        attributes=attributes,
        outputs=2,
        symbolic=symbolic,
        oracle=None if own else _recurrence,
        **close,
    )


@covers("LinearAttention")
def linear_attention():
    for rule in ("linear", "gated", "delta", "gated_delta"):
        for kind, given in {
            "": {"past": True},
            "first": {},
            "token": {"past": True, "length": 1},
            "grouped": {"past": True, "kv": 2},
            "symbolic": {"past": True, "symbolic": True},
            "float16": {"past": True, "dtype": "float16"},
            "window": {"past": True, "state_window": 3},
        }.items():
            yield _linear_attention(f"linearattention_{rule}_{kind}", update_rule=rule, **given)
    yield _linear_attention("linearattention_decay_of_keys", past=True, decay_of_keys=True)
    yield _linear_attention("linearattention_shared_rate", past=True, shared_rate=True)
    yield _linear_attention("linearattention_scale", past=True, scale=0.7, chunk_size=16)
    yield _linear_attention("linearattention_more_values", past=True, heads=2, kv=4, keys=2)
    yield _linear_attention("linearattention_fewer_keys", past=True, heads=4, kv=4, keys=2)
    yield _linear_attention("linearattention_wide_state", past=True, dtype="float16", state_type="float32")
    yield _linear_attention("linearattention_window_longer", past=True, length=2, state_window=4)
    yield _linear_attention("linearattention_window_first", length=6, state_window=2)
    yield _linear_attention("linearattention_window_symbolic", past=True, symbolic=True, state_window=4)


def _gates(a, bias, scale, b=None):
    decay = scale * numpy.logaddexp(0, a.astype("float64") + bias)
    return [each.astype(a.dtype) for each in (decay, *([] if b is None else [1 / (1 + numpy.exp(-b))]))]


@covers("LinearAttentionGate")
def gates():
    for dtype in ("float32", "float16"):
        for kind, with_rate in (("", True), ("_decay_alone", False)):
            name = f"linearattentiongate_{dtype}{kind}"
            random = random_of(name)
            inputs = [floats(random, (2, 3, 5), dtype), floats(random, (5,)), -abs(floats(random, (5,)))]
            if with_rate:
                inputs.append(floats(random, (2, 3, 5), dtype))
            # One of ONNX Runtime's kernels of float16 reads past what it is given.
            yield node_case(
                name,
                "LinearAttentionGate",
                inputs,
                outputs=2 if with_rate else 1,
                constant=(1, 2),
                symbolic=with_rate,
                oracle=_gates if dtype == "float16" else None,
            )


def _gated_norm(x, scale, gate, activation="silu", epsilon=1e-5):
    groups = x.astype("float64").reshape(*x.shape[:-1], -1, len(scale))
    root = numpy.sqrt((groups**2).mean(-1, keepdims=True) + epsilon)
    wide = gate.astype("float64")
    factor = 1 / (1 + numpy.exp(-wide)) * (1 if activation == "sigmoid" else wide)
    return [((groups / root * scale.astype("float64")).reshape(x.shape) * factor).astype(x.dtype)]


@covers("GatedRMSNorm")
def gated_norm():
    for dtype in ("float32", "float16", "bfloat16"):
        for activation in ("silu", "swish", "sigmoid"):
            for kind, shape, width in (("", (2, 3, 8), 8), ("_heads", (2, 3, 12), 4), ("_row", (9,), 9)):
                name = f"gatedrmsnorm_{dtype}_{activation}{kind}"
                random = random_of(name)
                kept = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
                inputs = [floats(random, each).astype(kept) for each in (shape, (width,), shape)]
                yield node_case(
                    name,
                    "GatedRMSNorm",
                    inputs,
                    attributes={"activation": activation, "epsilon": 0.01},
                    constant=(1,),
                    symbolic=kind == "_heads",
                    oracle=_gated_norm if dtype == "bfloat16" else None,
                )


def _causal(x, weight, bias=None, past=None, **attributes):
    window, dilation = attributes.get("state_window", 0), attributes.get("dilation", 1)
    if past is not None and window:
        past = past[-1]
    shape = x.shape
    if attributes.get("channels_last"):
        x, past = (
            None if each is None else numpy.moveaxis(each.reshape(*each.shape[:2], -1), 1, 2) for each in (x, past)
        )
    kept = (weight.shape[2] - 1) * dilation
    before = numpy.zeros((*x.shape[:2], kept), x.dtype) if past is None else past
    line = numpy.concatenate([before, x], 2).astype("float64")
    length = x.shape[2]
    y = sum(
        weight[:, 0, k, None].astype("float64") * line[:, :, k * dilation : k * dilation + length]
        for k in range(weight.shape[2])
    )
    if bias is not None:
        y = y + bias[:, None].astype("float64")
    if attributes.get("activation", "none") != "none":
        y = y / (1 + numpy.exp(-y))
    ends = range(length - window + 1, length + 1) if window else [length]
    states = [line[:, :, max(e, 0) : max(e, 0) + kept] * (e > 0) for e in ends]
    if attributes.get("channels_last"):
        y = numpy.moveaxis(y, 2, 1).reshape(shape)
        states = [numpy.moveaxis(each, 2, 1).reshape(shape[0], kept, *shape[2:]) for each in states]
    present = numpy.stack(states) if window else states[0]
    return [y.astype(x.dtype), present.astype(x.dtype)]


def _causal_conv(name, *, batch=2, length=7, axes=(6,), taps=4, bias=True, past=True, **given):
    dtype, symbolic = given.pop("dtype", "float32"), given.pop("symbolic", False)
    constant = given.pop("constant", (1, 2))
    random = random_of(name)
    channels, kept = int(numpy.prod(axes)), (taps - 1) * given.get("dilation", 1)
    is_last, window = given.get("channels_last"), given.get("state_window", 0)
    shape_of = lambda extent: (batch, extent, *axes) if is_last else (batch, channels, extent)
    inputs = [
        floats(random, shape_of(length), dtype),
        floats(random, (channels, 1, taps), dtype),
        floats(random, (channels,), dtype) if bias else None,
        floats(random, ((window,) if window else ()) + shape_of(kept), dtype) if past else None,
    ]
    inputs = trimmed(inputs)
    own = dtype == "float32" and not window
    return node_case(
        name,
        "CausalConvWithState",
        inputs,
        attributes=given,
        outputs=2,
        constant=[each for each in constant if each < len(inputs) and inputs[each] is not None],
        symbolic=symbolic,
        oracle=None if own else _causal,
    )


@covers("CausalConvWithState")
def causal_conv():
    for kind, given in {
        "": {},
        "silu": {"activation": "silu"},
        "swish_token": {"activation": "swish", "length": 1},
        "first": {"past": False},
        "plain": {"past": False, "bias": False},
        "no_bias": {"bias": False},
        "dilated": {"dilation": 3},
        "dilated_first": {"dilation": 2, "past": False},
        "dilated_run_time": {"dilation": 2, "constant": ()},
        "channels_last": {"channels_last": 1},
        "channels_last_axes": {"channels_last": 1, "axes": (2, 3), "dilation": 2, "activation": "silu"},
        "one_tap": {"taps": 1, "past": False},
        "symbolic": {"symbolic": True},
        "symbolic_last": {"symbolic": True, "channels_last": 1, "axes": (2, 3)},
        "run_time": {"constant": ()},
        "float16": {"dtype": "float16", "activation": "silu"},
        "window": {"state_window": 3},
        "window_longer": {"state_window": 5, "length": 2},
        "window_first": {"state_window": 2, "past": False},
        "window_last": {"state_window": 2, "channels_last": 1, "axes": (2, 3), "dilation": 2},
        "window_symbolic": {"state_window": 4, "symbolic": True},
    }.items():
        yield _causal_conv(f"ms_causalconvwithstate_{kind}", **given)

# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM by plain loops over batches and time."""

import numpy

from opsets.case import covers, narrow, widen

_FUNCTIONS = {
    "Sigmoid": lambda x: 1 / (1 + numpy.exp(-x)),
    "Tanh": numpy.tanh,
    "Relu": lambda x: numpy.maximum(x, 0),
}
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
INPUT, HIDDEN, BATCH, TIME = 5, 7, 3, 6


def _step(op_type, x, h, c, weights, options):
    w, r, wb, rb, p = weights
    f, g, k = ([_FUNCTIONS[each] for each in options["activations"]] + [None] * 3)[:3]
    limit = options["clip"]

    def clip(value):
        return value if limit is None else numpy.clip(value, -limit, limit)

    if op_type == "RNN":
        return f(clip(w @ x + r @ h + wb + rb)), c
    if op_type == "GRU":
        wz, wr, wh = (w @ x + wb).reshape(3, -1)
        rz, rr, _ = (r @ h + rb).reshape(3, -1)
        z, reset = f(clip(wz + rz)), f(clip(wr + rr))
        own = r[2 * HIDDEN :]
        if options["linear_before_reset"]:
            late = reset * (own @ h + rb[2 * HIDDEN :])
        else:
            late = own @ (reset * h) + rb[2 * HIDDEN :]
        return (1 - z) * g(clip(wh + late)) + z * h, c
    i, o, forget, cell = (w @ x + r @ h + wb + rb).reshape(4, -1)
    pi, po, pf = p.reshape(3, -1)
    i, forget = f(clip(i + pi * c)), f(clip(forget + pf * c))
    if options["input_forget"]:
        forget = 1 - i
    c = forget * c + i * g(clip(cell))
    return f(clip(o + po * c)) * k(clip(c)), c


def _run(op_type, x, weights, lengths, h, c, options):
    """Y [TIME, directions, BATCH, HIDDEN], Y_h and Y_c [directions, BATCH, HIDDEN]."""
    directions = options["directions"]
    y = numpy.zeros((TIME, len(directions), BATCH, HIDDEN))
    h, c = h.copy(), c.copy()
    for number, is_reverse in enumerate(directions):
        own = dict(options)
        count = len(_DEFAULTS[op_type])
        own["activations"] = options["activations"][number * count : (number + 1) * count]
        for batch in range(BATCH):
            times = range(lengths[batch])
            for time in reversed(times) if is_reverse else times:
                parts = [each[number] for each in weights]
                h[number, batch], c[number, batch] = _step(
                    op_type, x[time, batch], h[number, batch], c[number, batch], parts, own
                )
                y[time, number, batch] = h[number, batch]
    return y, h, c


# By suffix: the attributes, whether all optional inputs are given, and the first version.
_VARIANTS = (
    ("forward", {}, False, 1),
    ("reverse", {"direction": "reverse"}, True, 1),
    ("both", {"direction": "bidirectional", "clip": 0.75}, True, 1),
    (
        "activations",
        {
            "activations": {
                "RNN": ["Relu"],
                "GRU": ["Sigmoid", "Relu"],
                "LSTM": ["Sigmoid", "Relu", "Tanh"],
            }
        },
        True,
        1,
    ),
    ("linear", {"linear_before_reset": 1}, True, 3),
    ("coupled", {"input_forget": 1}, True, 1),
    ("layout", {"layout": 1, "direction": "bidirectional"}, False, 14),
)
_OWNERS = {"linear_before_reset": "GRU", "input_forget": "LSTM"}


@covers(*_GATES)
def make_recurrent(request):
    op_type = request.op_type
    gates = _GATES[op_type]
    for suffix, attributes, is_whole, since in _VARIANTS:
        if request.version < since or any(_OWNERS.get(k, op_type) != op_type for k in attributes):
            continue
        attributes = dict(attributes)
        if "activations" in attributes:
            attributes["activations"] = attributes["activations"][op_type]
        direction = attributes.get("direction", "forward")
        directions = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[direction]
        count = len(directions)
        options = {
            "directions": directions,
            "activations": attributes.get("activations", _DEFAULTS[op_type] * count),
            "clip": attributes.get("clip"),
            "linear_before_reset": attributes.get("linear_before_reset", 0),
            "input_forget": attributes.get("input_forget", 0),
        }
        if op_type == "GRU" and request.version == 1:
            # Its default is misspelled, so the direction is always told.
            attributes["direction"] = direction
        for name in request.types() if suffix == "both" else ("float",):
            rows = gates * HIDDEN
            x = request.values(name, (TIME, BATCH, INPUT), -1, 1)
            w = request.values(name, (count, rows, INPUT), -1, 1)
            r = request.values(name, (count, rows, HIDDEN), -0.5, 0.5)
            b = request.values(name, (count, 2 * rows), -0.5, 0.5)
            h, c = (request.values(name, (count, BATCH, HIDDEN), -1, 1) for _ in range(2))
            p = request.values(name, (count, 3 * HIDDEN), -0.5, 0.5)
            lengths = numpy.array([TIME, 2, 4], numpy.int32)
            if not is_whole:
                b, h, c, p = (numpy.zeros_like(each) for each in (b, h, c, p))
                lengths = numpy.full(BATCH, TIME, numpy.int32)
            weights = [widen(w), widen(r), widen(b)[:, :rows], widen(b)[:, rows:], widen(p)]
            y, y_h, y_c = _run(op_type, widen(x), weights, lengths, widen(h), widen(c), options)
            if attributes.get("layout"):
                x = x.transpose(1, 0, 2).copy()
                y, y_h, y_c = y.transpose(2, 0, 1, 3), *(e.transpose(1, 0, 2) for e in (y_h, y_c))
            inputs = [x, w, r]
            if is_whole:
                inputs += [b, lengths, h] + ([c, p] if op_type == "LSTM" else [])
            outputs = [y, y_h] + ([y_c] if op_type == "LSTM" else [])
            outputs = [numpy.ascontiguousarray(narrow(each, name)) for each in outputs]
            if request.version < 7:
                attributes["output_sequence"] = 1
            attributes["hidden_size"] = HIDDEN
            loose = {"atol": 2e-2, "rtol": 3e-2} if name == "bfloat16" else {}
            loose = {"atol": 4e-3, "rtol": 4e-3} if name == "float16" else loose
            constants = [1, 2] if suffix == "reverse" else []
            case = f"{name}_{suffix}"
            yield request.case(case, inputs, outputs, constants, **loose, **attributes)

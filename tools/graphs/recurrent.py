# SPDX-License-Identifier: Apache-2.0
"""Blocks of recurrent networks."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block


@block(2, "rows")
def recurrence(b):
    x = b.pick(lambda v: v.dtype == "float32" and v.rank == 3 and v.has_fixed(2) and not v.is_empty)
    is_turned = b.chance(0.6)
    if is_turned:
        x = b.transpose(x, [1, 0, 2])
    if any(shape[0] > 40 for shape in x.shapes):
        raise Discard("long")
    op_type = b.choice(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type]
    direction = b.choice(["forward", "reverse", "bidirectional"])
    ways, hidden = 1 + (direction == "bidirectional"), b.choice([1, 3, 4, 8, 16])
    operands = [x, b.weight([ways, gates * hidden, x.shape[2]], scale=0.4), b.weight([ways, gates * hidden, hidden], scale=0.4)]
    operands.append(b.weight([ways, 2 * gates * hidden], scale=0.3) if b.chance(0.6) else None)
    batch = [shape[1] for shape in x.shapes]
    if b.chance(0.25) and len(set(batch)) == 1:
        least = min(shape[0] for shape in x.shapes)
        operands.append(b.constant(numpy.array([b.rng.randint(1, least) for _ in range(batch[0])], "int32")))
    else:
        operands.append(None)
    if b.chance(0.3) and len(set(batch)) == 1:
        states = 2 if op_type == "LSTM" else 1
        operands += [b.weight([ways, batch[0], hidden], scale=0.5) for _ in range(states)]
    attributes = {"hidden_size": hidden, "direction": direction}
    if op_type == "GRU":
        attributes["linear_before_reset"] = b.rng.randrange(2)
    leaves_out = (b.rng.randrange(2),) if b.chance(0.3) else ()
    count = b.choice([2, 3 if op_type == "LSTM" else 2])
    y = b.op(op_type, operands, outputs=count, leaves_out=leaves_out, **attributes)[0]
    if y is None:
        return
    if b.chance(0.7):
        # [L, ways, N, H] to [L, N, ways * H].
        y = b.reshape(b.transpose(y, [0, 2, 1, 3]), [0, 0, -1])
        if is_turned and b.chance(0.7):
            b.transpose(y, [1, 0, 2])

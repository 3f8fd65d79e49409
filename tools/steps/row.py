# SPDX-License-Identifier: Apache-2.0
"""Row: passes that each reduce the row and leave results, then an expression over the row."""

import numpy as np

from steps.reduction import reduction
from steps.value import Value


def run_row(step):
    axes = step.body["axes"]
    outer = step.domain[: len(step.domain) - axes]
    inner = step.domain[len(step.domain) - axes :]
    at = step.coordinates(outer)
    rows = {}
    for number, (states, results) in enumerate(step.body["passes"]):
        reduced = reduction(step, states, outer, inner, rows)
        outside = {**rows, **{("state", k): value for k, value in enumerate(reduced)}}
        zeros = [np.zeros(outer, np.int64) for _ in inner]
        for k, value in enumerate(step.evaluate(results, at + zeros, outer, outside)):
            rows[("row", number * 256 + k)] = value
    out = []
    for k, root in enumerate(step.body["roots"]):
        strides = step.record["writes"][k]["strides"]
        of_row = depends_on_results_alone(step, root) and not any(strides[len(outer) :])
        if of_row:
            value = step.evaluate([root], at, outer, rows)[0]
            out.append((k, at + [np.zeros(outer, np.int64) for _ in inner], value))
            continue
        wide = {}
        for key, value in rows.items():
            spread = lambda x: np.broadcast_to(x.reshape(outer + (1,) * axes), step.domain)
            wide[key] = Value(spread(value.v), spread(value.e), spread(value.u))
        everywhere = step.coordinates(step.domain)
        out.append((k, everywhere, step.evaluate([root], everywhere, step.domain, wide)[0]))
    return out


def depends_on_results_alone(step, root):
    """Whether a root reads nothing but results of the row."""
    operands_of = {node[0]: node[5] for node in step.nodes}
    op_of = {node[0]: node[1] for node in step.nodes}
    pending, ops = [root], set()
    while pending:
        node = pending.pop()
        ops.add(op_of[node])
        pending.extend(operands_of[node])
    return not ops & {"load", "index"}

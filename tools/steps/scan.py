# SPDX-License-Identifier: Apache-2.0
"""Scan: state that runs along the last axis."""

import numpy as np


def run_scan(step):
    outer, length = step.domain[:-1], step.domain[-1]
    at = step.coordinates(outer)
    states = step.body["states"]
    values = step.evaluate([s[1] for s in states], at + [np.zeros(outer, np.int64)], outer)
    out = []
    for element in range(length):
        here = at + [np.full(outer, element)]
        outside = {("state", k): value for k, value in enumerate(values)}
        updated = step.evaluate([s[2] for s in states], here, outer, outside)
        if not step.body["exclusive"]:
            outside = {("state", k): value for k, value in enumerate(updated)}
        for k, value in enumerate(step.evaluate(step.body["roots"], here, outer, outside)):
            out.append((k, here, value))
        values = updated
    return out

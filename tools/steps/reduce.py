# SPDX-License-Identifier: Apache-2.0
"""Reduce: the last axes are reduced; writes are over the others."""

from steps.reduction import reduction


def run_reduce(step):
    axes = step.body["axes"]
    outer = step.domain[: len(step.domain) - axes]
    inner = step.domain[len(step.domain) - axes :]
    states = reduction(step, step.body["states"], outer, inner, {})
    outside = {("state", k): value for k, value in enumerate(states)}
    at = step.coordinates(outer)
    values = step.evaluate(step.body["roots"], at, outer, outside)
    return [(k, at, value) for k, value in enumerate(values)]

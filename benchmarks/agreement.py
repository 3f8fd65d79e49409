# SPDX-License-Identifier: Apache-2.0
"""How far results lie apart: the arithmetic of compare.py."""

import math

import numpy

# |a - b| <= _TOLERANCE * (|b| + rms(b)), as the conformance suite has it for whole models.
_TOLERANCE = 1e-4
# Labels of pixels are choices among scores, of which two may be as good as equal: so many may differ.
_TOLERATED_SHARE = 1e-4


def measure_difference(actual, expected):
    """The worst difference of two arrays as a multiple of the tolerance.

    Of integers, the share that differs as a multiple of one in ten thousand, or inf where there are
    fewer than that. NaN equals NaN, and infinities equal those of their sign. Another
    shape or type is inf.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return math.inf
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind not in "fc":
        share = float(numpy.mean(actual != expected))
        return share / _TOLERATED_SHARE if share == 0 or expected.size >= 1 / _TOLERATED_SHARE else math.inf
    actual, expected = actual.astype(numpy.float64), expected.astype(numpy.float64)
    same = (actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected))
    if same.all():
        return 0.0
    if not (numpy.isfinite(actual) & numpy.isfinite(expected))[~same].all():
        return math.inf
    finite = expected[numpy.isfinite(expected)]
    bound = _TOLERANCE * (numpy.abs(expected[~same]) + math.sqrt(numpy.mean(finite**2)))
    with numpy.errstate(divide="ignore"):
        return float((numpy.abs(actual - expected)[~same] / bound).max())


def are_finite(outputs):
    """Whether none of the outputs, given as {name: array}, has an infinity or NaN."""
    return all(numpy.isfinite(values).all() for values in outputs.values() if values.dtype.kind in "fc")


def measure_outputs(actual, expected):
    """The worst of all outputs, given as {name: array}; inf where one is missing."""
    if set(actual) != set(expected):
        return math.inf
    return max(measure_difference(actual[name], expected[name]) for name in expected)

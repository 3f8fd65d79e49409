# SPDX-License-Identifier: Apache-2.0
"""How far answers lie apart, for values of every kind, and whether expected ones could tell a
fault: the arithmetic of exported_models.py."""

import math

import numpy

# Standard deviation of an output, as a share of its root mean square, and distance between the
# answers of two runs, likewise.
_LEAST_DEVIATION = 0.02
_LEAST_CHANGE = 0.01

# How much further than its own float32 an answer may lie from a source's float64: what the SDK's
# interface promises of algorithms that round differently from an operator's definition.
_FAST_ALGORITHMS = 8
# A tolerance above this share of the values would let faults pass.
_MOST_TOLERANCE = 0.05


def _as_array(value):
    return value if isinstance(value, numpy.ndarray) else numpy.asarray(value)


def measure(actual, expected, tolerance):
    """The largest error in units of the tolerance; inf where kinds, extents or texts differ.

    Numbers may have another type than expected: a source's float64 is a model's float32. Sequences
    and maps are compared element by element.
    """
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        if len(actual) != len(expected):
            return math.inf
        return max(
            (measure(a, b, tolerance) for a, b in zip(actual, expected)),
            default=0.0,
        )
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or set(actual) != set(expected):
            return math.inf
        keys = list(expected)
        return measure(
            numpy.array([actual[key] for key in keys]),
            numpy.array([expected[key] for key in keys]),
            tolerance,
        )
    return _measure_arrays(_as_array(actual), _as_array(expected), tolerance)


def _measure_arrays(actual, expected, tolerance):
    if actual.shape != expected.shape:
        return math.inf
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind in "OUST" or actual.dtype.kind in "OUST":
        pairs = zip(actual.ravel(), expected.ravel())
        return 0.0 if all(str(a) == str(b) for a, b in pairs) else math.inf
    if actual.dtype.kind in "iub" and expected.dtype.kind in "iub":
        return 0.0 if numpy.array_equal(actual, expected) else math.inf
    actual, expected = actual.astype(numpy.float64), expected.astype(numpy.float64)
    same = (actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected))
    if same.all():
        return 0.0
    if not (numpy.isfinite(actual) & numpy.isfinite(expected))[~same].all():
        return math.inf
    finite = expected[numpy.isfinite(expected)]
    bound = tolerance * (numpy.abs(expected[~same]) + math.sqrt(numpy.mean(finite**2)))
    with numpy.errstate(divide="ignore"):
        return float((numpy.abs(actual - expected)[~same] / bound).max())


def measured_tolerance(roundings, tolerance):
    """The tolerance of a network against its float64 answers, and a sentence where it is too wide.

    `roundings` holds an exported_case.Rounding per run. A network that amplifies roundings answers
    differently in every order of float32's additions; the source's own float32 shows by how much.
    """
    most = 0.0
    for rounding in roundings:
        for answers in rounding.rounded:
            pairs = zip(answers, rounding.exact, strict=True)
            most = max([most, *(measure(given, exact, tolerance) for given, exact in pairs)])
    wanted = tolerance * max(1.0, _FAST_ALGORITHMS * most)
    if wanted <= _MOST_TOLERANCE:
        return wanted, ""
    return wanted, (
        f"The source's float32 lies {most * tolerance:.2g} of the values off its float64; "
        f"at most {_MOST_TOLERANCE / _FAST_ALGORITHMS:.2g} tells faults."
    )


def _numbers(value):
    """A value as one array of float64; None for text and what has none."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        parts = [_numbers(part) for part in value]
        parts = [part.ravel() for part in parts if part is not None]
        return numpy.concatenate(parts) if parts else None
    array = _as_array(value)
    return array.astype(numpy.float64) if array.dtype.kind in "fiubV" and array.size else None


def _rms(value):
    return float(numpy.sqrt(numpy.square(value).mean()))


def list_faults(runs):
    """Sentences about expected outputs that would let faults pass; `runs` holds the outputs of each
    run, in the model's order."""
    faults = []
    lively = 0
    for number, values in enumerate(zip(*runs)):
        arrays = [_numbers(value) for value in values]
        if any(array is None for array in arrays):
            lively += 1
            continue
        if any(not numpy.isfinite(array).all() for array in arrays):
            faults.append(f"Output {number} is not finite.")
            continue
        is_lively = any(array.std() > _LEAST_DEVIATION * _rms(array) for array in arrays)
        if len(arrays) > 1 and arrays[0].shape == arrays[1].shape:
            is_lively = is_lively and _rms(arrays[0] - arrays[1]) > _LEAST_CHANGE * _rms(arrays[1])
        lively += is_lively
        saturated = all(
            array.size > 8 and array.min() >= 0 and 1 - 1e-6 < array.max() <= 1
            and numpy.mean((array < 1e-6) | (array > 1 - 1e-6)) > 0.95
            and set(numpy.unique(array)) != {0.0, 1.0}
            for array in arrays
        )  # fmt: skip
        if saturated:
            faults.append(f"Output {number} is saturated.")
    if runs and runs[0] and not lively:
        faults.append("No output tells one input from another.")
    return faults

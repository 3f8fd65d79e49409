# SPDX-License-Identifier: Apache-2.0
"""Refuses cases whose expected outputs would pass wrong implementations, or fail right ones.

make_models.py calls it before it writes a case.
"""

import numpy

# Standard deviation of an output, as a share of its root mean square.
_SMALLEST_DEVIATION = 0.2

# Distance between the answers to two different inputs, as a share of their root mean square.
_SMALLEST_CHANGE = 0.05

# The largest class probability.
_LARGEST_PROBABILITY = 0.9

# The tolerance that the runner applies: |a - b| <= _TOLERANCE * (|b| + rms(b)).
_TOLERANCE = 1e-4

# The share of that tolerance which plain float32 arithmetic may use up. Winograd's transforms lose
# several times as much, and are still right.
_LARGEST_FLOAT32_SHARE = 0.1


def _measure(value):
    return float(numpy.sqrt(numpy.square(value).mean()))


def measure_error(actual, expected):
    """Returns the largest error in units of the runner's tolerance."""
    allowed = _TOLERANCE * (numpy.abs(expected) + _measure(expected))
    return float((numpy.abs(actual - expected) / allowed).max())


def _list_faults(name, value):
    if not numpy.isfinite(value).all():
        yield f"Output '{name}' is not finite."
        return
    deviation = value.std() / _measure(value)
    if deviation < _SMALLEST_DEVIATION:
        yield (
            f"Output '{name}' is nearly constant: its deviation ({deviation:.3g} of its root mean "
            f"square) is below {_SMALLEST_DEVIATION}."
        )
    is_probability = value.min() >= 0 and abs(value.sum() - 1) < 1e-6
    if is_probability and value.max() > _LARGEST_PROBABILITY:
        yield (
            f"Output '{name}' has one winner: its largest probability ({value.max():.3g}) "
            f"exceeds {_LARGEST_PROBABILITY}."
        )


def check_outputs(names, expected_sets, float32_sets):
    """Returns the float32 share of the tolerance; raises ValueError with all faults found.

    expected_sets and float32_sets hold, per data set, the outputs in the order of `names`.
    """
    faults = [
        fault
        for outputs in expected_sets
        for name, value in zip(names, outputs)
        for fault in _list_faults(name, value)
    ]
    for first, second in zip(expected_sets, expected_sets[1:]):
        for name, a, b in zip(names, first, second):
            if a.shape == b.shape and _measure(a - b) < _SMALLEST_CHANGE * _measure(b):
                faults.append(f"Output '{name}' hardly depends on the input.")
    share = max(
        measure_error(actual, expected)
        for expected_outputs, actual_outputs in zip(expected_sets, float32_sets)
        for expected, actual in zip(expected_outputs, actual_outputs)
    )
    if share > _LARGEST_FLOAT32_SHARE:
        faults.append(
            f"Plain float32 arithmetic uses {share:.3g} of the tolerance, "
            f"more than {_LARGEST_FLOAT32_SHARE}."
        )
    if faults:
        raise ValueError(" ".join(faults))
    return share

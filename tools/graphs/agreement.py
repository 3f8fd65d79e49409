# SPDX-License-Identifier: Apache-2.0
"""Whether an answer is one of those that roundings explain."""

import math

import numpy

# Of |expected| + rms(expected), beside what the tracks tell. Attributes are float32 where values are float64.
_BASE = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-8}
_NOISE = 16
# A graph that amplifies roundings to this share of its values tells no faults.
MOST_NOISE = 0.02


def noise_of(tracks):
    """Largest distance of any track from the first, by element; None where they have other shapes or non-numbers."""
    exact = tracks[0]
    if any(track.shape != exact.shape for track in tracks):
        return None
    noise = numpy.zeros(exact.shape)
    for track in tracks[1:]:
        if track is exact:
            continue
        if exact.dtype.kind == "f":
            finite = numpy.isfinite(exact)
            if not numpy.array_equal(finite, numpy.isfinite(track)):
                return None
            apart = numpy.zeros(exact.shape)
            apart[finite] = numpy.abs(track[finite].astype(numpy.float64) - exact[finite].astype(numpy.float64))
        else:
            apart = numpy.abs(track.astype(numpy.float64) - exact.astype(numpy.float64))
        noise = numpy.maximum(noise, apart)
    return noise


def rms(array):
    finite = array[numpy.isfinite(array)] if array.dtype.kind == "f" else array
    return math.sqrt(numpy.mean(finite.astype(numpy.float64) ** 2)) if finite.size else 0.0


def is_stable(tracks):
    """Whether the tracks of a value are near enough to one another that an answer can be judged."""
    noise = noise_of(tracks)
    if noise is None:
        return False
    if not noise.any():
        return True
    exact = tracks[0]
    if exact.dtype.kind == "f":
        return noise.max() <= MOST_NOISE * max(rms(exact), 1e-30)
    # A quantized value may be the next one; other integers decide shapes and positions.
    return exact.dtype.itemsize <= 2 and exact.dtype.kind in "iu" and noise.max() <= 1


def difference(actual, tracks):
    """A sentence that says how an answer differs from the expected one; empty where it does not."""
    expected = tracks[0]
    if not isinstance(actual, numpy.ndarray):
        return f"it is a {type(actual).__name__} instead of an array"
    if actual.dtype != expected.dtype:
        return f"its type is {actual.dtype} instead of {expected.dtype}"
    if actual.shape != expected.shape:
        return f"its shape is {list(actual.shape)} instead of {list(expected.shape)}"
    if expected.size == 0:
        return ""
    noise = noise_of(tracks)
    if noise is None:
        return ""  # roundings decide extents or what is finite
    if expected.dtype.kind == "f":
        wide, answer = expected.astype(numpy.float64), actual.astype(numpy.float64)
        allowed = _BASE[expected.dtype.name] * (numpy.abs(wide) + rms(expected))
        allowed = allowed + _NOISE * (noise + math.sqrt(numpy.mean(noise**2))) + 1e-37
        same = (answer == wide) | (numpy.isnan(answer) & numpy.isnan(wide))
        finite = numpy.isfinite(wide) & numpy.isfinite(answer)
        with numpy.errstate(all="ignore"):
            wrong = ~(same | (finite & (numpy.abs(answer - wide) <= allowed)))
    elif expected.dtype == bool:
        wide, answer, wrong = expected, actual, actual != expected
    else:
        wide, answer = expected.astype(object), actual.astype(object)
        wrong = numpy.abs(answer - wide).astype(numpy.float64) > (1 + noise.max() if noise.any() else 0)
    if not wrong.any():
        return ""
    at = tuple(int(k) for k in numpy.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements differ; element {list(at)} is {answer[at]} instead of {wide[at]}"
        f" (noise {float(noise[at]):.3g})"
    )

# SPDX-License-Identifier: Apache-2.0
"""Who is right where an answer differs: more disturbed tracks, and ONNX's reference evaluator."""

import numpy
from onnx.reference import ReferenceEvaluator

from graphs import agreement
from graphs.evaluation import Refused
from graphs.generator import Case
from graphs.minimizer import evaluate

_TRACKS, _UNITS = 12, 48


def disturb_more(case):
    """The case with tracks that lie further apart; None where a node then cannot be computed."""
    try:
        known = evaluate(case.model, case.runs, _TRACKS, _UNITS, seed=1)
    except Refused:
        return None
    return Case(case.model, case.runs, {name: known[name] for name in case.values}, case.extents, case.manner)


def answered_by_reference(case):
    """The case with the answers of ONNX's evaluator, as far apart as the tracks are; None where it has none or has
    those of ONNX Runtime."""
    values, differs = {value.name: [] for value in case.model.graph.output}, False
    try:
        evaluator = ReferenceEvaluator(case.model)
        for number, feeds in enumerate(case.runs):
            with numpy.errstate(all="ignore"):
                answers = evaluator.run(None, feeds)
            for name, answer in zip(values, map(numpy.asarray, answers)):
                tracks = case.values[name][number]
                differs = differs or bool(agreement.difference(answer, tracks))
                values[name].append(_move(tracks, answer))
    except Exception:  # it raises of every kind
        return None
    return Case(case.model, case.runs, values, case.extents, case.manner) if differs else None


def _move(tracks, answer):
    """Tracks that lie as far from the answer as the given ones from the first of them."""
    is_small_integer = answer.dtype.kind in "iu" and answer.dtype.itemsize <= 2
    if not (is_small_integer or answer.dtype.kind == "f") or any(track.shape != answer.shape for track in tracks):
        return [answer] * len(tracks)
    wide = "int64" if is_small_integer else "float64"
    with numpy.errstate(all="ignore"):
        moved = [answer.astype(wide) + (track.astype(wide) - tracks[0].astype(wide)) for track in tracks]
        if is_small_integer:
            limits = numpy.iinfo(answer.dtype)
            moved = [numpy.clip(one, limits.min, limits.max) for one in moved]
        return [answer, *(one.astype(answer.dtype) for one in moved[1:])]

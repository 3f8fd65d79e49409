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


def contradicts_reference(case):
    """Whether ONNX's evaluator answers otherwise than ONNX Runtime."""
    try:
        evaluator = ReferenceEvaluator(case.model)
        for number, feeds in enumerate(case.runs):
            with numpy.errstate(all="ignore"):
                answers = evaluator.run(None, feeds)
            for value, answer in zip(case.model.graph.output, answers):
                if agreement.difference(numpy.asarray(answer), case.values[value.name][number]):
                    return True
    except Exception:  # it raises of every kind
        return False
    return False

# SPDX-License-Identifier: Apache-2.0
"""The table of pairs: each operator of each version has cases, or a reason why none can exist."""

from opsets import (  # Importing a module registers what it covers.
    case,
    control,
    elementwise,
    generators,
    index,
    normalization,
    quantization,
    recurrent,
    reduction,
    sampling,
    shape,
    training,
    window,
)
from opsets.case import Pair

MODULES = (
    case,
    control,
    elementwise,
    generators,
    index,
    normalization,
    quantization,
    recurrent,
    reduction,
    sampling,
    shape,
    training,
    window,
)

_DEPRECATED = "The version is deprecated: a model that uses it is invalid."

REASONS = {
    Pair("", "GroupNormalization", 18): _DEPRECATED,
    Pair("", "Scatter", 11): _DEPRECATED,
    Pair("", "Upsample", 10): _DEPRECATED,
    Pair("ai.onnx.ml", "TreeEnsembleClassifier", 5): _DEPRECATED,
    Pair("ai.onnx.ml", "TreeEnsembleRegressor", 5): _DEPRECATED,
}


def find_faults(pairs, cases, reasons):
    """Sentences about pairs without case and reason, with both, and about reasons for no pair.

    `pairs`: those of the registry; `cases`: a list of names by pair.
    """
    faults = []
    for pair in sorted(pairs):
        name = f"{pair.domain or 'ai.onnx'} {pair.op_type} {pair.version}"
        if not cases.get(pair) and pair not in reasons:
            faults.append(f"{name} has neither a case nor a reason why none can exist.")
        if cases.get(pair) and pair in reasons:
            faults.append(f"{name} has a reason why no case can exist, and case {cases[pair][0]}.")
    for pair in sorted(set(reasons) - set(pairs)):
        faults.append(f"There is a reason for {pair}, which the registry lacks.")
    return faults


def describe(pairs, cases, reasons):
    """The table as index.json has it."""
    rows = []
    for pair in sorted(pairs):
        row = {"domain": pair.domain, "operator": pair.op_type, "version": pair.version}
        row |= {"reason": reasons[pair]} if pair in reasons else {"cases": cases[pair]}
        rows.append(row)
    return rows

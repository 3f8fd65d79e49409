# SPDX-License-Identifier: Apache-2.0
"""Compares a step's results with those computed here, element by element, also where the step writes nothing."""

import numpy as np

from steps.contract import run_contract
from steps.index import run_index
from steps.map import run_map
from steps.reduce import run_reduce
from steps.row import run_row
from steps.scan import run_scan
from steps.value import SLACK
from steps.window import run_window

# Each gives a list of (write, coordinates, value).
FAMILIES = {
    "Map": run_map, "Reduce": run_reduce, "Row": run_row, "Scan": run_scan, "Index": run_index,
    "Contract": run_contract, "Window": run_window,
}


def check(step):
    """What differs, or None; and how many elements could and could not be told."""
    expected = [buffer.copy() for buffer in step.before]
    bounds = [np.zeros(buffer.shape) for buffer in step.before]
    unknown = [np.zeros(buffer.shape, bool) for buffer in step.before]
    for write, coordinates, value in FAMILIES[step.record["family"]](step):
        view = step.record["writes"][write]
        places = step.linear(view["offset"], view["strides"], coordinates, value.v.shape)
        buffer = view["buffer"]
        expected[buffer][places] = value.v
        bounds[buffer][places] = value.e
        unknown[buffer][places] = value.u
    told, untold = 0, 0
    for number, (want, have) in enumerate(zip(expected, step.after)):
        if want.dtype.kind == "V":
            same = np.array([x.tobytes() == y.tobytes() for x, y in zip(want, have)], bool)
        else:
            with np.errstate(all="ignore"):
                same = want == have
                if want.dtype.kind == "f":
                    same |= np.isnan(want) & np.isnan(have)
                    same |= np.abs(want - have) <= SLACK * bounds[number]
        told += int((~unknown[number]).sum())
        untold += int(unknown[number].sum())
        wrong = np.flatnonzero(~(same | unknown[number]))
        if wrong.size:
            first = wrong[0]
            return (
                "buffer %d, element %d: %s instead of %s, bound %g (%d of %d elements differ)"
                % (number, first, have[first], want[first], bounds[number][first], wrong.size, want.size),
                told,
                untold,
            )
    return None, told, untold

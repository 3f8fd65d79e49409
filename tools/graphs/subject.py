# SPDX-License-Identifier: Apache-2.0
"""A device of the library under test: the runs of a graph in turn, on one session."""

import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import onnxifi  # noqa: E402

from graphs import agreement  # noqa: E402

# Of a session whose outputs have extents that only a run tells, and where the file declares an output's wrongly.
_TAKES_NO_ARRAY = ("takes no array of the caller", "gives the symbol")


class Subject:
    def __init__(self, library, device):
        self._device = onnxifi.Library(library).device(device)
        self._backend = self._device.backend()  # one for all graphs
        self.name = f"{device} ({self._device.name})"

    def answer(self, case):
        """(kind, sentence) of the first fault, or None. Kinds: refused, wrong."""
        try:
            session = onnxifi.Session(case.model, self._device)
        except onnxifi.Error as error:
            return "refused", f"{error.status}: {error.sentence}"
        with session:
            return self._run_in_turn(session, case)

    def _run_in_turn(self, session, case):
        names = [value.name for value in case.model.graph.output]
        numbers = list(range(len(case.runs)))
        for step, number in enumerate([*numbers, "poison", *numbers[:2]]):
            if number == "poison":
                # What is left in temporaries must not reach the next run.
                try:
                    session.run(None, {name: _poison(array) for name, array in case.runs[0].items()})
                except onnxifi.Error:
                    pass
                continue
            try:
                answers = self._run(session, case, number, names, step % 2)
            except onnxifi.Error as error:
                kind = "wrong" if error.status == "MISMATCHING_SHAPE" else "refused"
                return kind, f"{error.status} in run {number + 1}: {error.sentence}"
            for name, answer in zip(names, answers):
                said = agreement.difference(answer, case.values[name][number])
                if said:
                    again = "" if step < len(numbers) else " (repeated)"
                    return "wrong", f"output '{name}' of run {number + 1}{again}: {said}"
        return None


    def _run(self, session, case, number, names, is_lent):
        """The answers of a run, which fills arrays of ours with `is_lent`."""
        feeds = dict(case.runs[number])
        if is_lent:
            lent = {name: _filled(case.values[name][number][0]) for name in names}
            try:
                return session.run(None, feeds, outputs=lent)
            except onnxifi.Error as error:
                if not any(said in error.sentence for said in _TAKES_NO_ARRAY):
                    raise
        return session.run(None, feeds)


def _poison(array):
    return numpy.full_like(array, numpy.nan) if array.dtype.kind == "f" else array


def _filled(array):
    """An array of the caller's whose bytes are no answer."""
    filled = numpy.empty_like(array)
    filled.reshape(-1).view(numpy.uint8)[...] = 0x5A
    return filled

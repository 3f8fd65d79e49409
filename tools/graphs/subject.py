# SPDX-License-Identifier: Apache-2.0
"""A device of the library under test: the runs of a graph in turn, on one session."""

import concurrent.futures
import contextlib
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import onnxifi  # noqa: E402

from graphs import agreement  # noqa: E402

# Of a session whose outputs have extents that only a run tells, and where the file declares an output's wrongly.
_TAKES_NO_ARRAY = ("takes no array of the caller", "gives the symbol", "is known only after a run")


class Subject:
    def __init__(self, library, device):
        self._device = onnxifi.Library(library).device(device)
        self._backend = self._device.backend()  # one for all graphs
        self.name = f"{device} ({self._device.name})"

    def answer(self, case):
        """(kind, sentence) of the first fault, or None. Kinds: refused, wrong."""
        weights = {name: case.runs[0][name] for name in case.manner.weights if name in case.runs[0]}
        options = {} if case.manner.has_fast_algorithms else {"fast_algorithms": False}
        try:
            session = onnxifi.Session(case.model, self._device, weights=weights, **options)
        except onnxifi.Error as error:
            return "refused", f"{error.status}: {error.sentence}"
        feeds = [{name: array for name, array in run.items() if name not in weights} for run in case.runs]
        with session:
            try:
                return _Runs(session, case, feeds).find_fault()
            except onnxifi.Error as error:
                kind = "wrong" if error.status == "MISMATCHING_SHAPE" else "refused"
                return kind, f"{error.status} in a run: {error.sentence}"


class _Runs:
    """The runs of a case on a session; each method gives the sentence of the first wrong answer."""

    def __init__(self, session, case, feeds):
        self._session, self._case, self._feeds = session, case, feeds
        self._names = [value.name for value in case.model.graph.output]
        self._numbers = range(len(feeds))

    def find_fault(self):
        said = self._in_turn()
        if not said and self._case.manner.stays_bound:
            said = self._bound()
        if not said and self._case.manner.is_side_by_side:
            said = self._side_by_side()
        return ("wrong", said) if said else None

    def _compare(self, number, answers, manner=""):
        for name, answer in zip(self._names, answers):
            said = agreement.difference(answer, self._case.values[name][number])
            if said:
                return f"output '{name}' of run {number + 1}{manner}: {said}"
        return ""

    def _in_turn(self):
        for step, number in enumerate(self._numbers):
            said = self._compare(number, self._run(number, step % 2))
            if said:
                return said
        # What is left in temporaries must not reach the next run.
        with contextlib.suppress(onnxifi.Error):
            self._session.run(None, {name: _poison(array) for name, array in self._feeds[0].items()})
        for number in self._numbers[:2]:
            said = self._compare(number, self._run(number, number == 0), " (repeated)")
            if said:
                return said
        return ""

    def _run(self, number, is_lent):
        """The answers of a run, which fills arrays of ours with `is_lent`."""
        feeds = dict(self._feeds[number])
        if is_lent:
            lent = {name: _filled(self._case.values[name][number][0]) for name in self._names}
            try:
                return self._session.run(None, feeds, outputs=lent)
            except onnxifi.Error as error:
                if not any(said in error.sentence for said in _TAKES_NO_ARRAY):
                    raise
        return self._session.run(None, feeds)

    def _bound(self):
        """On the same memory, whose content changes from run to run of one shape."""
        shapes = [[array.shape for array in feeds.values()] for feeds in self._feeds]
        memory = {name: numpy.array(array) for name, array in self._feeds[0].items()}
        try:
            binding = self._session.bind(memory)
        except onnxifi.Error as error:
            if any(said in error.sentence for said in _TAKES_NO_ARRAY):
                return ""  # extents that only a run tells
            raise
        for number in [k for k in self._numbers if shapes[k] == shapes[0]] + [0]:
            for name, array in memory.items():
                array[...] = self._feeds[number][name]
            try:
                binding.run()
            except onnxifi.Error as error:
                if any(said in error.sentence for said in _TAKES_NO_ARRAY):
                    return ""
                raise
            said = self._compare(number, [binding.outputs[name] for name in self._names], " (bound)")
            if said:
                return said
        return ""

    def _side_by_side(self):
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            numbers = list(self._numbers) * 3
            for number, answers in zip(numbers, threads.map(lambda k: self._run(k, False), numbers)):
                said = self._compare(number, answers, " (beside another)")
                if said:
                    return said
        return ""


def _poison(array):
    return numpy.full_like(array, numpy.nan) if array.dtype.kind == "f" else array


def _filled(array):
    """An array of the caller's whose bytes are no answer."""
    filled = numpy.empty_like(array)
    filled.reshape(-1).view(numpy.uint8)[...] = 0x5A
    return filled

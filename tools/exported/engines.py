# SPDX-License-Identifier: Apache-2.0
"""The two engines that run exported models: this library, through its C interface, and ONNX Runtime
as a second opinion. Both answer with lists of values in the order of the model's outputs."""

import os
import statistics
import time

import numpy

_TURN_S = 0.1
_TURNS = 3
_MOST_RUNS = 2000


class Ours:
    """The library with one device."""

    def __init__(self, path, device):
        import onnxifi

        self._module = onnxifi
        self._device = onnxifi.Library(path).device(device)
        self._backend = self._device.backend()  # one for all cases
        self.key = self._device.key
        self._session = None

    def load(self, path):
        self._session = self._module.Session(path, self._device)

    def answer(self, inputs):
        return self._session.run(None, inputs)

    def bind(self, inputs):
        """A function that runs once on these inputs; with memory of ours for the outputs where
        their extents are known before a run."""
        session = self._session
        try:
            binding = session.bind(inputs)
            binding.run()
        except self._module.Error:
            # Text, sequences, maps, and outputs of which only a run tells the extents.
            # What Python makes of a map is no time of the library's.
            return lambda: session.run([], inputs)
        return binding.run

    def placement(self):
        """The devices that have parts of the model, in the order of the parts."""
        return ",".join(dict.fromkeys(island.device for island in self._session.placement()))

    def release(self):
        if self._session is not None:
            self._session.close()
        self._session = None


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime

        self._onnxruntime = onnxruntime
        onnxruntime.set_default_logger_severity(4)
        self._settings = onnxruntime.SessionOptions()
        self._settings.intra_op_num_threads = threads
        self._settings.inter_op_num_threads = 1
        # Unless it is told otherwise, its products of bytes saturate 16 bits on processors without VNNI,
        # and products with weights of 4 bits round the other factor to bytes.
        self._settings.add_session_config_entry("session.x64quantprecision", "1")
        self._settings.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")

    def load(self, path):
        self._session = self._onnxruntime.InferenceSession(
            str(path), self._settings, providers=["CPUExecutionProvider"]
        )

    def answer(self, inputs):
        return self._session.run(None, inputs)

    def bind(self, inputs):
        session = self._session
        try:
            binding = session.io_binding()
            for name, array in inputs.items():
                binding.bind_cpu_input(name, array)
            for output in session.get_outputs():
                binding.bind_output(output.name, "cpu")
            # Twice: what is declared wrongly shows when outputs are there already.
            session.run_with_iobinding(binding)
            session.run_with_iobinding(binding)
        except Exception:  # noqa: BLE001 (text, sequences and maps have no binding)
            return lambda: session.run(None, inputs)
        return lambda: session.run_with_iobinding(binding)


def _time_turn(run):
    times, end = [], time.perf_counter() + _TURN_S
    while time.perf_counter() < end and len(times) < _MOST_RUNS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def compare_times(runs):
    """Median seconds of each of the functions, which take turns."""
    times = [[] for _ in runs]
    for run in runs:
        run()
    for _ in range(_TURNS):
        for number, run in enumerate(runs):
            run()
            times[number] += _time_turn(run)
    return [statistics.median(turn) for turn in times]


def thread_count():
    return len(os.sched_getaffinity(0))


def as_inputs(inputs):
    """Dense arrays; text as objects."""
    dense = {}
    for name, array in inputs.items():
        array = numpy.asarray(array)
        if array.dtype.kind in "US":
            array = array.astype(object)
        dense[name] = numpy.ascontiguousarray(array) if array.ndim else array
    return dense

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run of a small model costs from Python: onnxifi.Session.run beside InferenceSession.run of ONNX Runtime.

  python_runs.py [--library LIB] [--threads N]     with the Python of tools/setup --print-python

Both get the same arrays and make their outputs anew; they take turns. Prints the median and the smallest microseconds
of a run of each, and ours as a share of the other's. `bound` is Session.bind, which makes no outputs.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

import numpy
import onnxruntime
from onnx import TensorProto, helper

_TREE = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_TREE / "python"))
import onnxifi  # noqa: E402

_TURNS, _RUNS, _WARM_UP = 25, 400, 40


def make_identity():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString(), {"x": numpy.arange(4, dtype=numpy.float32)}


def read_digits():
    image = numpy.random.default_rng(1).random((1, 1, 8, 8), numpy.float32)
    return (_TREE / "samples" / "digits" / "digits.onnx").read_bytes(), {"image": image}


def time_in_turns(runs):
    """By name: microseconds of a run in each turn."""
    times = {name: [] for name in runs}
    for _ in range(_TURNS):
        for name, run in runs.items():
            for _ in range(_WARM_UP):
                run()
            begin = time.perf_counter_ns()
            for _ in range(_RUNS):
                run()
            times[name].append((time.perf_counter_ns() - begin) / 1000 / _RUNS)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=_TREE / "build" / "release" / "lib" / "libonnxifi.so")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    os.environ["ONNXIFI_NUM_THREADS"] = str(arguments.threads)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = arguments.threads
    device = onnxifi.Library(arguments.library).device("cpu")
    for name, (content, feeds) in (("identity", make_identity()), ("digits", read_digits())):
        ours = onnxifi.Session(content, device)
        theirs = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
        times = time_in_turns({
            "onnxifi": lambda session=ours: session.run(None, feeds),
            "onnxruntime": lambda session=theirs: session.run(None, feeds),
            "bound": ours.bind(feeds).run,
        })
        medians = {engine: statistics.median(own) for engine, own in times.items()}
        shown = ", ".join(f"{engine} {medians[engine]:.2f} us (best {min(own):.2f})" for engine, own in times.items())
        print(f"{name}: {shown}; ratio {medians['onnxifi'] / medians['onnxruntime']:.2f}")


if __name__ == "__main__":
    main()

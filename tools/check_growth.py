#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# How loading and running grow with a model: each shape of graph is made with N and with 4N parts, and loaded and run twice in a
# process of its own. Time and memory that grow with the square take 16 times as much; more than 10 times fails, of what is more
# than noise.
#
#   tools/check_growth.py --library LIB [--device cpu] [NAME...]
#
# Ends with "N passed, N failed" and status 1 when any failed.

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import onnxifi  # noqa: E402

MOST = 10  # times as much for four times the parts
LEAST_SECONDS, LEAST_MIB = 0.25, 64  # less is noise
SECONDS = 120  # of a process

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
ROW = numpy.arange(8, dtype=numpy.float32) / 8


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs, outputs, **attributes)


def value(name, extents, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, extents)


def constant(name, numbers, kind=numpy.int64):
    return numpy_helper.from_array(numpy.array(numbers, kind), name)


def model(nodes, inputs, output, constants=(), opset=17):
    graph = helper.make_graph(nodes, "growth", inputs, [output], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def chain(count, kinds, extent):
    nodes = [node(kinds[k % len(kinds)], [f"v{k}"], [f"v{k + 1}"]) for k in range(count)]
    return model(nodes, [value("v0", [extent])], value(f"v{count}", [extent])), {"v0": ROW}


def functions(count):
    return chain(count, ["Sin", "Relu", "Abs"], 8)


def functions_of_a_symbol(count):
    return chain(count, ["Sin", "Softmax"], "n")


def joined(kind, count, **attributes):
    parts = [f"v{k}" for k in range(count)]
    nodes = [node("Sin", ["x"], [part]) for part in parts] + [node(kind, parts, ["y"], **attributes)]
    return model(nodes, [value("x", [8])], value("y", None)), {"x": ROW}


def sums(count):
    return joined("Sum", count)


def concatenations(count):
    return joined("Concat", count, axis=0)


def splits(count):
    parts = [f"v{k}" for k in range(count)]
    nodes = [node("Split", ["x", "lengths"], parts, axis=0), node("Concat", parts[::-1], ["y"], axis=0)]
    x = numpy.arange(8 * count, dtype=numpy.float32)
    return model(nodes, [value("x", [8 * count])], value("y", None), [constant("lengths", [8] * count)]), {"x": x}


def weights(count):
    nodes = [node("Add", [f"v{k}", f"w{k}"], [f"v{k + 1}"]) for k in range(count)]
    constants = [constant(f"w{k}", ROW + k, numpy.float32) for k in range(count)]
    return model(nodes, [value("v0", [8])], value(f"v{count}", [8]), constants), {"v0": ROW}


def paddings(count):
    nodes = [node("Pad", [f"v{k}", "one"], [f"v{k + 1}"]) for k in range(count)]
    return model(nodes, [value("v0", [8])], value(f"v{count}", None), [constant("one", [1, 0])]), {"v0": ROW}


def shapes(count):
    nodes = []
    for k in range(count):
        nodes += [
            node("Shape", [f"v{k}"], [f"s{k}"]),
            node("Gather", [f"s{k}", "first"], [f"g{k}"]),
            node("Concat", [f"g{k}", "rest"], [f"c{k}"], axis=0),
            node("Reshape", [f"v{k}", f"c{k}"], [f"r{k}"]),
            node("Sin", [f"r{k}"], [f"v{k + 1}"]),
        ]
    constants = [constant("first", [0]), constant("rest", [-1])]
    inputs = {"v0": numpy.stack([ROW, ROW])}
    return model(nodes, [value("v0", ["a", "b"])], value(f"v{count}", ["a", "b"]), constants), inputs


def mapped_sequence(count):
    body = helper.make_graph([node("Sin", ["a"], ["b"])], "body", [value("a", [1, 8])], [value("b", [1, 8])])
    nodes = [
        node("SplitToSequence", ["x"], ["parts"], axis=0),
        node("SequenceMap", ["parts"], ["mapped"], body=body),
        node("ConcatFromSequence", ["mapped"], ["y"], axis=0),
    ]
    x = numpy.ones((count, 8), numpy.float32)
    return model(nodes, [value("x", ["n", 8])], value("y", ["m", 8])), {"x": x}


def transform(count):
    made = model([node("DFT", ["x"], ["y"])], [value("x", [1, count, 1])], value("y", None))
    return made, {"x": numpy.ones((1, count, 1), numpy.float32)}


SHAPES = {  # by name: what makes the model, and N
    "functions": (functions, 2000),
    "functions of a symbol": (functions_of_a_symbol, 2000),
    "sums": (sums, 500),
    "concatenations": (concatenations, 2000),
    "splits": (splits, 2000),
    "weights": (weights, 2000),
    "paddings": (paddings, 1000),
    "shapes": (shapes, 500),
    "mapped sequence": (mapped_sequence, 200),
    "transform": (transform, 4096),
}


def status_mib(key):
    lines = pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def measure(library, device, name, count):
    """Prints the seconds and MiB that the model takes more than the library."""
    made, inputs = SHAPES[name][0](count)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        path.write_bytes(made.SerializeToString())
        opened = onnxifi.Library(library).device(device)
        backend = opened.backend()  # stays until the process ends
        before = status_mib("VmRSS")
        start = time.perf_counter()
        session = onnxifi.Session(path, backend.device)
        for _ in range(2):  # a shape that comes again is compiled for itself
            answers = session.run(None, inputs)
        seconds = time.perf_counter() - start
    finite = all(numpy.isfinite(answer).all() for answer in answers)
    print(json.dumps({"seconds": seconds, "mib": status_mib("VmHWM") - before, "finite": finite}))


def measure_apart(arguments, name, count):
    command = [sys.executable, __file__, "--library", arguments.library, "--device", arguments.device]
    command += ["--measure", str(count), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it ended")
    return json.loads(done.stdout.splitlines()[-1])


def check(arguments, name):
    """What is wrong, or None."""
    count = SHAPES[name][1]
    try:
        few, many = (measure_apart(arguments, name, parts) for parts in (count, 4 * count))
    except subprocess.TimeoutExpired:
        return f"it takes more than {SECONDS} s"
    except ValueError as fault:
        return str(fault)
    if not few["finite"] or not many["finite"]:
        return "its results are no numbers"
    seconds, mib = many["seconds"] / few["seconds"], many["mib"] / max(few["mib"], 1)
    print(f"{name}: {count} and {4 * count} parts, {few['seconds']:.3f} and {many['seconds']:.3f} s, "
          f"{few['mib']:.0f} and {many['mib']:.0f} MiB")
    if many["seconds"] > LEAST_SECONDS and seconds > MOST:
        return f"its time grows by {seconds:.0f}"
    if many["mib"] > LEAST_MIB and mib > MOST:
        return f"its memory grows by {mib:.0f}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.measure:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        measure(arguments.library, arguments.device, arguments.names[0], arguments.measure)
        return 0
    names = arguments.names or list(SHAPES)
    failed = 0
    for name in names:
        fault = check(arguments, name) if name in SHAPES else "there is no such shape"
        if fault:
            print(f"{name}: {fault}")
            failed += 1
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

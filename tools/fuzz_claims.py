#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Random claims: asks a device of an ONNXIFI library about one-node models and holds it to its answers. Yes must mean that the graph
# initialises and gives what a reference device gives; no must mean that initialisation refuses with the same status and both give a
# sentence. With --schema, what ONNX's schema does not allow must not be claimed, and what it and its inference allow and ONNX Runtime
# computes must not be called invalid (schema_oracle.py). Types of inputs beside the schema's may be claimed: they are counted, and what
# is claimed has to give what the reference gives.
# Models are the node cases of ONNX's backend test suite with element types, extents, attributes, opset and constness changed.
#
#   tools/fuzz_claims.py --library LIB --cases DIR [--device cpu] [--reference null] [--count N] [--seed S] [--jobs N]
#                        [--build-every N] [--runs N] [--sources N] [--library-path FOLDERS]
#
# A device that compiles kernels when graphs are initialised takes too long to initialise every model: with --build-every N it does so
# for each Nth that it claims, and runs that --runs times on other values; what it refuses, it must refuse each time. With --sources N
# the kernels that all processes compiled are counted, in a cache folder of their own, and more than N are a failure.
#
# Ends with "N passed, N failed" and status 1 when any failed. A crash of the library is a failure that names the model's file.

import argparse
import collections
import contextlib
import ctypes
import fcntl
import json
import math
import multiprocessing
import os
import pathlib
import queue
import random
import statistics
import sys
import tempfile
import time

import ml_dtypes
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from schema_oracle import INVALID, VALID, SchemaOracle, is_worded_rule

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import onnxifi  # noqa: E402
from onnxifi.errors import FALLBACK, STATUSES, SUCCESS  # noqa: E402
from onnxifi.graph import Graph, describe  # noqa: E402

# Largest difference allowed between the two devices, relative to |expected| + rms(expected).
TOLERANCE = {TensorProto.FLOAT: 2e-5, TensorProto.DOUBLE: 1e-12, TensorProto.FLOAT16: 2e-3,
             TensorProto.BFLOAT16: 2e-2, TensorProto.FLOAT8E4M3FN: 0.14, TensorProto.FLOAT8E5M2: 0.27}
# With attributes of these names operators compute in float32 whatever the type of their outputs.
FLOAT32_INSIDE = {"softmax_precision", "stash_type"}
ELEMENT_TYPES = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16,
                 TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16,
                 TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64,
                 TensorProto.BOOL, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2,
                 TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2,
                 TensorProto.STRING]
BITS = {TensorProto.DOUBLE: 64, TensorProto.INT64: 64, TensorProto.UINT64: 64, TensorProto.FLOAT: 32,
        TensorProto.INT32: 32, TensorProto.UINT32: 32, TensorProto.FLOAT16: 16, TensorProto.BFLOAT16: 16,
        TensorProto.INT16: 16, TensorProto.UINT16: 16, TensorProto.INT4: 4, TensorProto.UINT4: 4,
        TensorProto.FLOAT4E2M1: 4, TensorProto.UINT2: 2, TensorProto.INT2: 2,
        TensorProto.FLOAT6E2M3: 6, TensorProto.FLOAT6E3M2: 6,
        TensorProto.COMPLEX64: 64, TensorProto.COMPLEX128: 128}
MAX_ELEMENTS = 1 << 16
NODES_PER_ROUND = 200
# A kernel may be compiled meanwhile, with little of a processor that others use too.
RUN_TIMEOUT_MS = 120000
# The high byte of INVALID_... and MISMATCHING_...
CALLED_INVALID = (1, 3)


class Claimant:
    """A device that is asked about models of bytes."""

    def __init__(self, library, name):
        self._library = onnxifi.Library(library)
        self._device = self._library.device(name)
        self._backend = self._device.backend()  # one for all models
        # Timed, so that a call converts as little as possible.
        self._claim = self._library.find("onnxGetBackendCompatibility")
        self._nothing = ctypes.CDLL(None).labs  # the least that there is
        self._nothing.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
        self.sentence = self._library.sentence

    def claim(self, model):
        """The status with which the device answers whether it can run the model."""
        return self._claim(self._device.id, len(model), model)

    def claim_nothing(self, model):
        """The same call to a function that does nothing: what a call takes beside the answer."""
        return self._nothing(self._device.id, len(model), model)

    def init_graph(self, model):
        """The status, its sentence, and the graph or None."""
        try:
            graph = Graph(self._device, model, len(model))
        except onnxifi.Error as error:
            return STATUSES[error.status], error.sentence, None
        return graph.status, "", graph


def size_bytes(element_type, shape):
    return (math.prod(shape) * BITS.get(element_type, 8) + 7) // 8


def timed(claim, model):
    begin = time.perf_counter_ns()
    status = claim(model)
    return status, (time.perf_counter_ns() - begin) / 1000


def load_seeds(cases):
    """One-node models over tensors, each with its inputs."""
    seeds = []
    for path in sorted(pathlib.Path(cases, "node").glob("*/model.onnx")):
        model = onnx.load(path)
        inputs = model.graph.input
        if len(model.graph.node) != 1 or "_expanded" in path.parent.name or any(
                attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
                for attribute in model.graph.node[0].attribute):
            continue
        if not all(value.type.HasField("tensor_type") for value in inputs):
            continue
        data = [onnx.load_tensor(path.parent / "test_data_set_0" / f"input_{k}.pb") for k in range(len(inputs))]
        if sum(math.prod(tensor.dims) for tensor in data) <= 4096:
            seeds.append((path.parent.name, model, data))
    return seeds


_DRAWING = ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")


def seed_draws(node, rng):
    """Gives a node that draws random numbers a seed: without one no two graphs draw the same."""
    seeded = any(attribute.name == "seed" for attribute in node.attribute)
    if node.op_type in _DRAWING and not seeded:
        node.attribute.append(helper.make_attribute("seed", float(rng.randint(0, 99))))


def change_attribute(attribute, rng):
    kind = onnx.AttributeProto
    if attribute.type == kind.INT:
        attribute.i = rng.choice([attribute.i + rng.randint(-2, 2), 0, 1, -1, rng.randint(-5, 30)])
    elif attribute.type == kind.INTS and attribute.ints:
        position = rng.randrange(len(attribute.ints))
        attribute.ints[position] = max(-9, attribute.ints[position] + rng.randint(-2, 2))
        if rng.random() < 0.1:
            del attribute.ints[position]
    elif attribute.type == kind.FLOAT:
        attribute.f = rng.choice([attribute.f * 1.5 + 0.25, 0.0, -attribute.f])
    elif attribute.type == kind.STRING and rng.random() < 0.3:
        attribute.s = rng.choice([b"", b"constant", b"linear", b"SAME_UPPER", b"nothing", attribute.s])


def mutate(seed, rng):
    """A changed copy of a seed: its bytes, and (name, element type, shape) of each input that a caller gives."""
    _, original, data = seed
    model = onnx.ModelProto()
    model.CopyFrom(original)
    graph, node = model.graph, model.graph.node[0]
    types = {t.data_type: t.data_type for t in data}
    if types and rng.random() < 0.5:
        changed = rng.choice(list(types))
        types[changed] = rng.choice(ELEMENT_TYPES)
    extents = {}
    reshapes, consistent = rng.random() < 0.6, rng.random() < 0.7

    def extent(old):
        if not reshapes:
            return old
        if consistent:
            return extents.setdefault(old, rng.choice([old, old, rng.randint(1, 7), rng.randint(1, 7), 0]))
        return rng.choice([old, old, rng.randint(1, 7)])
    given, kept = [], []
    fixed_probability = rng.choice([0.0, 0.3, 1.0])
    for value, tensor in zip(graph.input, data):
        element = types[tensor.data_type]
        is_structural = tensor.data_type == TensorProto.INT64 and len(tensor.dims) <= 1
        if is_structural and rng.random() < fixed_probability:
            initializer = graph.initializer.add()
            initializer.CopyFrom(tensor)
            initializer.name = value.name
            continue
        shape = list(tensor.dims) if is_structural else [extent(d) for d in tensor.dims]
        if rng.random() < 0.03:
            shape = shape[:-1] if shape else [2]
        if math.prod(shape) > MAX_ELEMENTS:
            shape = list(tensor.dims)
        kept.append(helper.make_tensor_value_info(value.name, element, shape))
        source = tensor if element == tensor.data_type and shape == list(tensor.dims) else None
        given.append((value.name, element, shape, source))
    del graph.input[:]
    graph.input.extend(kept)
    for value in graph.output:
        value.ClearField("type")
    for attribute in node.attribute:
        if rng.random() < 0.35:
            change_attribute(attribute, rng)
    if rng.random() < 0.1 and node.attribute:
        del node.attribute[rng.randrange(len(node.attribute))]
    if rng.random() < 0.1:
        model.opset_import[0].version = rng.randint(1, 28)
    if rng.random() < 0.05 and len(node.input) > 1:
        del node.input[-1]
    seed_draws(node, rng)
    # What the node no longer reads is an input of the graph all the same, and a caller gives it.
    return model.SerializeToString(), given


def random_bytes(element, shape, source, rng):
    if source is not None:
        is_packed = BITS.get(element, 8) < 8
        return numpy.frombuffer(source.raw_data if is_packed else numpy_helper.to_array(source).tobytes(),
                                dtype=numpy.uint8).copy()
    generator = numpy.random.default_rng(rng.getrandbits(32))
    count = math.prod(shape)
    numpy_types = {TensorProto.FLOAT: numpy.float32, TensorProto.DOUBLE: numpy.float64,
                   TensorProto.FLOAT16: numpy.float16}
    if element in numpy_types:
        values = generator.uniform(-2, 2, count).astype(numpy_types[element])
    elif element == TensorProto.BFLOAT16:
        values = (generator.uniform(-2, 2, count).astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    elif element == TensorProto.BOOL:
        values = generator.integers(0, 2, count, dtype=numpy.uint8)
    elif BITS.get(element, 8) >= 8 and element not in (TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2):
        values = generator.integers(0, 5, count).astype(f"u{BITS.get(element, 8) // 8}")
    else:
        values = generator.integers(0, 120, size_bytes(element, shape), dtype=numpy.uint8)
    return values.view(numpy.uint8).copy()


def computes_in_float32(model):
    return any(attribute.name in FLOAT32_INSIDE for node in onnx.load_from_string(model).graph.node
               for attribute in node.attribute)


def differs(element, actual, expected, model):
    if element in TOLERANCE:
        tolerance = TOLERANCE[element]
        if element == TensorProto.DOUBLE and computes_in_float32(model):
            tolerance = TOLERANCE[TensorProto.FLOAT]
        if element == TensorProto.BFLOAT16:
            actual, expected = ((v.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
                                for v in (actual, expected))
        else:
            dtype = {TensorProto.FLOAT: numpy.float32, TensorProto.DOUBLE: numpy.float64,
                     TensorProto.FLOAT16: numpy.float16, TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
                     TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2}[element]
            actual, expected = actual.view(dtype), expected.view(dtype)
        actual, expected = actual.astype(numpy.float64), expected.astype(numpy.float64)
        finite = numpy.isfinite(expected)
        same = (actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected))
        rms = math.sqrt(numpy.mean(expected[finite] ** 2)) if finite.any() else 0
        with numpy.errstate(invalid="ignore"):
            near = numpy.abs(actual - expected) <= tolerance * (numpy.abs(expected) + rms)
        return not (same | (finite & near)).all()
    return not numpy.array_equal(actual, expected)


def make_feeds(given, rng):
    """Arrays of the inputs by name, as ONNX Runtime takes them; None where it has no such type."""
    feeds = {}
    for name, element, shape, tensor in given:
        if tensor is not None:
            feeds[name] = numpy_helper.to_array(tensor)
            continue
        dtype = helper.tensor_dtype_to_np_dtype(element)
        if dtype.kind not in "fiub":
            return None
        feeds[name] = random_bytes(element, shape, None, rng).view(dtype).reshape(shape)
    return feeds


def contradict(claim, verdict, why, sentence, computes):
    """What ONNX's schema says against the answer to a claim, or None; `computes` tells whether ONNX Runtime has results of the model."""
    if verdict == INVALID and claim in (SUCCESS, FALLBACK):
        return f"it is claimed, but ONNX's schema does not allow it: {why}"
    if verdict == VALID and claim >> 8 in CALLED_INVALID and computes():
        return f"ONNX's schema and inference allow it and ONNX Runtime computes it, but the claim answers 0x{claim:04x}: {sentence}"
    return None


def check(device, reference, model, given, claim, rng, report, is_built=True, runs=1):
    """Why the device's answer does not hold, or None; a model that is claimed is built only with `is_built`."""
    again = device.claim(model)
    is_claimed = claim in (SUCCESS, FALLBACK)
    sentence = "" if is_claimed else device.sentence()
    if again != claim:
        return f"the claim answers 0x{claim:04x} and then 0x{again:04x} ({sentence})"
    report["answers"][f"0x{claim & 0xffff:04x}"] += 1
    if is_claimed and not is_built:
        report["not run"]["not built"] += 1
        return None
    status, why, graph = device.init_graph(model)
    if status != claim:
        if graph is not None:
            graph.release()
        return f"the claim answers 0x{claim:04x} ({sentence}) and initialisation 0x{status:04x} ({why})"
    if not is_claimed:
        return None if sentence else f"0x{claim:04x} comes without a sentence"
    try:
        status, why, other = reference.init_graph(model)
        if status not in (SUCCESS, FALLBACK):
            return f"the reference refuses it with 0x{status:04x} ({why})"
        try:
            return next(filter(None, (compare(graph, other, model, given, rng, report, is_first=run == 0)
                                      for run in range(runs))), None)
        finally:
            other.release()
    finally:
        graph.release()


def compare(graph, other, model, given, rng, report, is_first=True):
    """Why the two graphs do not agree on the values of the case that the model is made of, or, after the first time, on others."""
    buffers = [numpy.ascontiguousarray(numpy.append(
        random_bytes(e, s, t if is_first or len(s) <= 1 and e == TensorProto.INT64 else None, rng), numpy.zeros(1, numpy.uint8)))
               for _, e, s, t in given]
    inputs = describe([(name, element, shape, buffer.ctypes.data)
                       for (name, element, shape, _), buffer in zip(given, buffers)])
    status, shapes = graph.infer_output_shapes(len(given), inputs)
    if status != SUCCESS:
        report["not run"]["the extents do not fit the node"] += 1
        return None
    if any(shape is None or min(shape, default=0) < 0 for _, _, shape in shapes):
        report["not run"]["output extents depend on data"] += 1
        return None
    if any(math.prod(shape) > 1 << 22 for _, _, shape in shapes):
        report["not run"]["an output is too large"] += 1
        return None
    results = []
    for target in (graph, other):
        outputs = [numpy.zeros(size_bytes(element, shape) + 8, numpy.uint8) for _, element, shape in shapes]
        described = describe([(*shape, buffer.ctypes.data) for shape, buffer in zip(shapes, outputs)])
        status = target.run_within((len(given), inputs), (len(shapes), described), RUN_TIMEOUT_MS)
        results.append((status, outputs))
    (status, actual), (expected_status, expected) = results
    if status != expected_status:
        return f"the run ends with 0x{status:04x}, on the reference with 0x{expected_status:04x}"
    if status != SUCCESS:
        report["not run"][f"both runs end with 0x{status:04x}"] += 1
        return None
    report["compared"] += 1
    for (name, element, shape), a, b in zip(shapes, actual, expected):
        size = size_bytes(element, shape)
        if a[size:].any():
            return f"output '{name}' is written beyond its end"
        if differs(element, a[:size], b[:size], model):
            return f"output '{name}' of type {element} and shape {shape} differs from the reference"
    return None


class Case:
    """The model of one number, the same in every process."""

    def __init__(self, arguments, seeds, number):
        self.number = number
        self.rng = random.Random((arguments.seed << 32) + number)
        self.seed = self.rng.choice(seeds)
        self.model, self.given = mutate(self.seed, self.rng)


def is_computed(oracle, case, sentence):
    """Whether ONNX Runtime has results of the case, and the sentence of the refusal cites no rule of the specification."""
    if is_worded_rule(onnx.load_from_string(case.model).graph.node[0].op_type, sentence):
        return False
    feeds = make_feeds(case.given, random.Random(case.number))
    return feeds is not None and oracle.computes(case.model, feeds)


class Turns:
    """Either one process takes times or any number do all else, as cores that share their units slow each other down by half.

    The locks are files', and so end with the process that holds them, however it ends."""

    def __init__(self, folder):
        self._gate, self._room = (open(pathlib.Path(folder, name), "w") for name in ("gate", "room"))

    def alone(self):
        return self._locked(fcntl.LOCK_EX)

    def together(self):
        return self._locked(fcntl.LOCK_SH)

    @contextlib.contextmanager
    def _locked(self, kind):
        # Who waits to be alone holds the gate, so that nobody else comes in meanwhile.
        fcntl.flock(self._gate, kind)
        fcntl.flock(self._room, kind)
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)


def work(arguments, first, count, current, results, folder):
    turns = Turns(folder)
    schema_oracle = SchemaOracle() if arguments.schema else None  # forked before the library starts threads
    try:
        device, reference = (Claimant(arguments.library, name) for name in (arguments.device, arguments.reference))
    except onnxifi.Error as fault:
        sys.exit(str(fault))
    with turns.together():
        seeds = load_seeds(arguments.cases)
    report = {"times": [], "repeat times": [], "call times": [], "answers": collections.Counter(), "not run": collections.Counter(), "schema": collections.Counter(),
              "compared": 0, "failures": []}
    # Asked as a framework asks: about one node after the other, and only then is anything built.
    for begin in range(first, first + count, NODES_PER_ROUND):
        with turns.together():
            cases = [Case(arguments, seeds, number)
                     for number in range(begin, min(begin + NODES_PER_ROUND, first + count))]
        claims = []
        with turns.alone():
            for times in ("times", "repeat times"):
                for case in cases:
                    current.value = case.number
                    claim, microseconds = timed(device.claim, case.model)
                    claims.append(claim)
                    report[times].append(microseconds)
            report["call times"] += [timed(device.claim_nothing, case.model)[1] for case in cases]
        for case, claim in zip(cases, claims):
            current.value = case.number
            with turns.together():
                # The sentence is that of the last call that failed.
                sentence = device.sentence() if device.claim(case.model) == claim else ""
                problem = None
                if schema_oracle is not None:
                    verdict, why = schema_oracle.answer(case.model)
                    report["schema"][verdict] += 1
                    problem = contradict(claim, verdict, why, sentence, lambda: is_computed(schema_oracle, case, sentence))
                problem = problem or check(
                    device, reference, case.model, case.given, claim, case.rng, report,
                    is_built=case.number % arguments.build_every == 0, runs=arguments.runs)
            if problem:
                report["failures"].append((case.number, case.seed[0], problem))
    results.put((first, report))


def main():
    parser = argparse.ArgumentParser(description="Holds a device to its support answers on random one-node models.")
    parser.add_argument("--library", required=True, help="libonnxifi or another ONNXIFI library with the SDK extensions")
    parser.add_argument("--cases", required=True, help="folder made by make_onnx_cases.py")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--reference", default="null")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--max-median-us", type=float, default=20, help="fail when the median claim takes longer")
    parser.add_argument("--max-repeat-us", type=float, default=2,
                        help="fail when the median claim about a model asked about before takes longer")
    parser.add_argument("--schema", action="store_true", help="hold answers against ONNX's schema and shape inference, too")
    parser.add_argument("--build-every", type=int, default=1, help="build and run only every so manieth model that is claimed")
    parser.add_argument("--runs", type=int, default=1, help="how often to run a model that is built")
    parser.add_argument("--sources", type=int, help="fail when more distinct kernels than this are compiled")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--library-path", help="LD_LIBRARY_PATH of the processes that open the library alone")
    arguments = parser.parse_args()
    if arguments.library_path:
        # The linker reads it when a process starts.
        multiprocessing.set_start_method("spawn")
        os.environ["LD_LIBRARY_PATH"] = arguments.library_path
    with tempfile.TemporaryDirectory() as folder:
        if arguments.sources is None:
            return fuzz(arguments, folder, lambda: 0)
        kernels = pathlib.Path(folder, "kernels")
        kernels.mkdir()
        os.environ["ONNXIFI_CACHE_DIR"] = str(kernels)
        return fuzz(arguments, folder, lambda: sum(1 for path in kernels.iterdir() if path.is_file()))


def fuzz(arguments, folder, count_sources):
    """`folder`: where the processes keep their locks."""
    results = multiprocessing.Queue()
    batch = max(1, min(10000, arguments.count // arguments.jobs))
    pending = [(first, min(batch, arguments.count - first)) for first in range(0, arguments.count, batch)]
    total = {"times": [], "repeat times": [], "call times": [], "answers": collections.Counter(), "not run": collections.Counter(), "schema": collections.Counter(),
             "compared": 0, "failures": []}
    running, done, lost = {}, 0, 0
    while pending or running:
        while pending and len(running) < arguments.jobs:
            first, count = pending.pop(0)
            current = multiprocessing.Value("q", first, lock=False)
            process = multiprocessing.Process(target=work, args=(arguments, first, count, current, results, folder))
            process.start()
            running[first] = (process, count, current)
        try:
            first, report = results.get(timeout=0.2)
        except queue.Empty:  # look for processes that died
            for first, (process, count, current) in list(running.items()):
                if process.exitcode not in (None, 0):
                    case = Case(arguments, load_seeds(arguments.cases), current.value)
                    saved = pathlib.Path(tempfile.gettempdir(), f"claim_crash_{arguments.seed}_{case.number}.onnx")
                    saved.write_bytes(case.model)
                    total["failures"].append((case.number, case.seed[0], f"the process ends with {process.exitcode}; "
                                                                         f"the model is kept as {saved}"))
                    del running[first]
                    lost += count
            continue
        process, count, _ = running.pop(first)
        process.join()
        done += count
        for key in ("times", "repeat times", "call times", "failures"):
            total[key] += report[key]
        for key in ("answers", "not run", "schema"):
            total[key].update(report[key])
        total["compared"] += report["compared"]
        print(f"claims: {done} of {arguments.count}, {len(total['failures'])} failed", flush=True)

    for number, case, problem in total["failures"][:40]:
        print(f"fail  {number} (from {case}): {problem}")
    # The interpreter's own part is no part of an answer.
    call_median = statistics.median(total["call times"]) if total["call times"] else 0
    median, repeat_median = (statistics.median(total[key]) - call_median if total[key] else math.inf
                             for key in ("times", "repeat times"))
    print("answers: " + ", ".join(f"{code} {n}" for code, n in sorted(total["answers"].items())))
    if arguments.schema:
        print("ONNX's schema and inference: " + ", ".join(f"{verdict} {n}" for verdict, n in sorted(total["schema"].items())))
    print("not run: " + (", ".join(f"{why} {n}" for why, n in total["not run"].items()) or "none"))
    print(f"compared with {arguments.reference}: {total['compared']}; median claim {median:.1f} us, asked again {repeat_median:.1f} us, "
          f"without {call_median:.1f} us that the interpreter takes for a call")
    failed = len(total["failures"]) + (median > arguments.max_median_us) + (repeat_median > arguments.max_repeat_us)
    if arguments.sources is not None:
        sources = count_sources()
        print(f"{sources} distinct kernels were compiled")
        if sources > arguments.sources or sources == 0:
            print(f"fail  {sources} distinct kernels; there may be {arguments.sources}, and some")
            failed += 1
    if repeat_median > arguments.max_repeat_us:
        print(f"fail  the median claim about a model asked about before takes {repeat_median:.1f} us, more than "
              f"{arguments.max_repeat_us} us")
    if median > arguments.max_median_us:
        print(f"fail  the median claim takes {median:.1f} us, more than {arguments.max_median_us} us")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({
            "count": arguments.count, "failed": failed, "median_us": median, "repeat_median_us": repeat_median,
            "call_us": call_median,
            "compared": total["compared"],
            "answers": total["answers"], "schema": total["schema"], "not_run": total["not run"]}))
    if lost:
        print(f"{lost} claims were not asked because a process died")
    print(f"{arguments.count - lost - len(total['failures'])} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares this library with ONNX Runtime and OpenVINO, operator by operator.

Whole models show what somebody thought of; a single operator that takes ten times as long as elsewhere
is found here. operator_cases.py lists them. Engines run in processes of their own, in turns; a line has
our median time, the better peer's, their ratio, and how far the results lie apart as a multiple of the
tolerance of whole models. With --between, what has channels stands between two convolutions of 1 x 1,
which count, too: tensors then lie as networks have them, not as callers do. The last lines are those
above --above, largest first, and geometric means by group.

Exit status: 0 compared; 1 a result lies beyond the tolerance, or we refuse what a peer runs; 2 the
command line is wrong or something needed is missing.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile
import time

_TREE = pathlib.Path(__file__).resolve().parent.parent
_TURNS = 3
# Pool threads of the engine before spin for a moment; they are asleep after this.
_PAUSE_S = 0.12


def build_model(onnx, case, is_between):
    """The model of a case and {name: array} of its inputs."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    declared, initializers, feeds, names, nodes = [], [], {}, [], []
    for number, array in enumerate(case.inputs):
        names.append("" if array is None else f"input_{number}")
        if array is None:
            continue
        if number in case.constants:
            initializers.append(numpy_helper.from_array(array, names[-1]))
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            declared.append(helper.make_tensor_value_info(names[-1], kind, array.shape))
            feeds[names[-1]] = array
    results = [f"output_{number}" for number in range(case.outputs)]
    nodes.append(helper.make_node(case.op_type, names, list(results), **case.attributes))
    if case.behind:
        op_type, attributes, constants = case.behind
        more = [f"constant_{number}" for number in range(len(constants))]
        initializers += [numpy_helper.from_array(each, name) for each, name in zip(constants, more)]
        nodes.append(helper.make_node(op_type, [results[0], *more], ["activated"], **attributes))
        results[0] = "activated"

    def make():
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph(nodes, "operator", declared, outputs, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)

    if is_between:
        _surround(onnx, case.inputs[0], make(), nodes, initializers, results)
    return make(), feeds


def _surround(onnx, x, model, nodes, initializers, results):
    """Puts a convolution of 1 x 1 in front of the first input and, if it has channels of float32, too, one
    behind the first output.
    """
    import numpy

    def convolve(source, target, ins, outs):
        shape = (outs, ins, *[1] * (x.ndim - 2))
        weights = numpy.random.default_rng(ins).standard_normal(shape) / math.sqrt(ins)
        initializers.append(onnx.numpy_helper.from_array(weights.astype("float32"), f"weights_of_{target}"))
        return onnx.helper.make_node("Conv", [source, f"weights_of_{target}"], [target])

    result = model.graph.output[0].type.tensor_type
    extents = [each.dim_value for each in result.shape.dim]
    first = nodes[0].input[0]
    nodes[0].input[0] = "before"
    nodes.insert(0, convolve(first, "before", x.shape[1], x.shape[1]))
    if len(extents) == x.ndim and result.elem_type == onnx.TensorProto.FLOAT:
        nodes.append(convolve(results[0], "behind", extents[1], extents[1]))
        results[0] = "behind"


def has_channels(case):
    x = case.inputs[0]
    return x is not None and x.dtype.name == "float32" and x.ndim >= 3 and case.outputs == 1


def compare(engines, path, feeds, turn_ms):
    """Median milliseconds by engine, or the sentence of its failure; and their outputs."""
    import engines as module

    times, outputs, counts = {}, {}, {}
    for name, engine in engines.items():
        try:
            outputs[name] = engine.load(path, feeds)["outputs"]
            once = statistics.median(engine.time(1, 3))
            counts[name] = max(3, min(2000, int(turn_ms / max(once, 1e-3))))
            times[name] = []
        except module.EngineError as fault:
            times[name] = str(fault)
    for _ in range(_TURNS):
        for name in counts:
            time.sleep(_PAUSE_S)
            times[name] += engines[name].time(1, counts[name])
    for name in counts:
        times[name] = statistics.median(times[name])
    return times, outputs


def describe(name, times, difference):
    """A line, and our time over the better peer's where there are both."""
    ours = times["onnxifi"]
    peers = [each for engine, each in times.items() if engine != "onnxifi" and not isinstance(each, str)]
    if isinstance(ours, str):
        return f"   refused  {name}: {ours}", None
    if not peers:
        return f"  no peer   {ours * 1e3:10.1f} us             {name}", None
    ratio = ours / min(peers)
    apart = "" if difference is None or difference <= 1 else f"  {difference:.2g} tolerances apart"
    return f"{ratio:8.2f}  {ours * 1e3:10.1f} us, {min(peers) * 1e3:10.1f}  {name}{apart}", ratio


def add_options(parser, peers):
    """Those that convolutions.py has, too."""
    add = parser.add_argument
    add("--only", metavar="RE", default="", help="cases in whose name this is found")
    add("--threads", type=int, default=2, help="default: %(default)s")
    add("--peers", default=peers, help="of onnxruntime,openvino; default: %(default)s")
    add("--device", default="cpu:0", help="default: %(default)s")
    add("--library", default=str(_TREE / "build" / "release" / "lib" / "libonnxifi.so"))
    add("--turn-ms", type=float, default=100, help="of an engine in each of three turns; default: %(default)s")
    add("--above", type=float, default=1.1, help="ratios that are listed at the end; default: %(default)s")
    add("--json", metavar="FILE", help="also write the results to this file")
    add("--list", action="store_true", help="only print the names of the cases")


def open_engines(parser, options):
    """The processes of ours and of the peers, by name."""
    import engines

    for peer in options.peers.split(","):
        if peer not in engines.NAMES:
            parser.error(f"Engine '{peer}' is unknown; there are {', '.join(engines.NAMES)}.")
    settings = {"device": options.device, "library": options.library}
    return {
        name: engines.Engine(name, options.threads, settings)
        for name in ("onnxifi", *options.peers.split(","))
    }


def measure_case(running, onnx, model, feeds, turn_ms):
    """Median milliseconds by engine, how far our result lies from a peer's, and whether that is a fault."""
    import agreement

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(model, path)
        times, outputs = compare(running, path, feeds, turn_ms)
    peer = next((name for name in outputs if name != "onnxifi"), None)
    both = peer is not None and "onnxifi" in outputs
    difference = agreement.measure_outputs(outputs["onnxifi"], outputs[peer]) if both else None
    return times, difference, peer is not None and (not both or difference > 1)


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, "onnxruntime")
    parser.add_argument("--between", action="store_true", help="between two convolutions of 1 x 1")
    return parser, parser.parse_args(argv)


def main(argv=None):
    parser, options = parse(argv)
    try:
        import onnx

        import operator_cases
    except ImportError as fault:
        parser.error(f"{fault}; `tools/setup --compare` makes an environment that has it.")
    groups = {
        group: [case for case in cases if re.search(options.only, case.name)]
        for group, cases in operator_cases.list_cases().items()
    }
    if options.list:
        print("\n".join(case.name for cases in groups.values() for case in cases))
        return 0
    if not any(groups.values()):
        parser.error(f"No case has '{options.only}' in its name.")
    running = open_engines(parser, options)
    results, is_wrong = [], False
    for group, cases in groups.items():
        for case in cases:
            if options.between and not has_channels(case):
                continue
            model, feeds = build_model(onnx, case, options.between)
            times, difference, is_fault = measure_case(running, onnx, model, feeds, options.turn_ms)
            line, ratio = describe(case.name, times, difference)
            print(line, flush=True)
            results.append(
                {"group": group, "name": case.name, "ratio": ratio, "difference": difference, "ms": times}
            )
            is_wrong |= is_fault
    for engine in running.values():
        engine.close()
    print_summary(results, options.above)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    return int(is_wrong)


def print_summary(results, limit):
    timed = [each for each in results if each["ratio"] is not None]
    print(f"\nAbove {limit}:")
    for each in sorted(timed, key=lambda each: -each["ratio"]):
        if each["ratio"] > limit:
            print(f"{each['ratio']:8.2f}  {each['name']}")
    print()
    for group in dict.fromkeys(each["group"] for each in timed):
        ratios = [each["ratio"] for each in timed if each["group"] == group]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"{group}: {len(ratios)} operators, geometric mean {mean:.2f}, worst {max(ratios):.2f}")
    above = sum(each["ratio"] > limit for each in timed)
    print(f"{len(timed)} operators, {above} above {limit}")


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares this library's convolutions with ONNX Runtime's and OpenVINO's, layer by layer of networks.

The layers are those of convolution_layers.json, which --take makes of a folder of models (NAME/model.onnx)
and of well-known networks. Each is a model of its own: a layer that reads the network's input does so here,
too; beside others stands a cheap convolution of 1 x 1, so that tensors lie as networks have them. Times,
operations and bytes are those of the whole model.

A line has our time, the better peer's, their ratio, our GFLOP/s, and how large a share that is of what the
machine's multiply-adds allow, as onnxifi_bench --machine measured it; above 100 % with fewer
multiplications than counted (Winograd) or padding left out. "memory": to read and write each tensor once
takes longer than the multiply-adds, and the share is that of the copy of as many bytes.

A layer is behind where a peer is faster by more than 15 %, or faster at all while we are below half of that
limit. On a machine that does other work, too, some are so by chance: those behind are measured again, up to
twice, and count as behind if they are so in three of three runs; else the best run counts.

Exit status: 0 compared; 1 a result lies beyond the tolerance, or we refuse what a peer runs; 2 the command
line is wrong or something needed is missing.
"""

import argparse
import datetime
import json
import math
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

import machine_limits
import operators

_TREE = pathlib.Path(__file__).resolve().parent.parent
# What the layers are held against.
_ENOUGH_OF_LIMIT, _FAR_BEHIND = 0.5, 1.15
# How often a layer that is behind is measured.
_RUNS = 3


def compare_layer(layer, times, difference, limits):
    """A result: a layer's times beside peers and limits."""
    ours = times["onnxifi"]
    peers = [each for name, each in times.items() if name != "onnxifi" and not isinstance(each, str)]
    result = {
        "group": layer.kind,
        "name": layer.name,
        "network": layer.network,
        "ms": times,
        "difference": difference,
        "ratio": None,
    }
    if isinstance(ours, str):
        return result
    arithmetic, memory = limits.milliseconds(layer.model_flops, layer.model_bytes)
    if peers:
        result["ratio"] = ours / min(peers)
    result["gflops"] = layer.model_flops / ours / 1e6
    result["is_memory"] = memory > arithmetic
    result["share"] = max(arithmetic, memory) / ours
    return result


def describe(result):
    line, _ = operators.describe(result["name"], result["ms"], result["difference"])
    if "share" not in result:
        return line
    bound = "memory" if result["is_memory"] else ""
    return f"{result['gflops']:7.1f} GFLOP/s {result['share']:5.0%} {bound:6} {line}"


def is_behind(result):
    """Whether a layer is what this list is there to find."""
    ratio = result["ratio"]
    if ratio is None:
        return True
    is_slow = result["share"] < _ENOUGH_OF_LIMIT and not result["is_memory"]
    return ratio > _FAR_BEHIND or (is_slow and ratio > 1)


def print_summary(results, above):
    operators.print_summary(results, above)
    shares = [each["share"] for each in results if "share" in each and not each["is_memory"]]
    slow = sum(share < _ENOUGH_OF_LIMIT for share in shares)
    print(f"{slow} of {len(shares)} that multiply-adds bound, below {_ENOUGH_OF_LIMIT:.0%} of the limit")
    print(f"{sum(map(is_behind, results))} behind: above {_FAR_BEHIND}, or that slow and behind a peer")


def write_report(results, path, title, facts):
    """The results as a page of docs/measurements."""
    timed = [each for each in results if each["ratio"] is not None]
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->", f"# {title}", "", *facts, ""]
    lines += ["| kind | layers | geometric mean | worst | above 1.15 | below 50 % of the limit |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for kind in (*dict.fromkeys(each["group"] for each in timed), None):
        own = [each for each in timed if kind in (None, each["group"])]
        ratios = [each["ratio"] for each in own]
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        far = sum(ratio > _FAR_BEHIND for ratio in ratios)
        slow = sum(each["share"] < _ENOUGH_OF_LIMIT and not each["is_memory"] for each in own)
        lines.append(f"| {kind or 'all'} | {len(own)} | {mean:.2f} | {max(ratios):.2f} | {far} | {slow} |")
    peers = list(dict.fromkeys(name for each in results for name in each["ms"] if name != "onnxifi"))
    header = ["layer", "network", "us", *(f"{peer}, us" for peer in peers), "ratio", "GFLOP/s", "of limit"]
    for kind in dict.fromkeys(each["group"] for each in results):
        lines += ["", f"## {kind[0].upper()}{kind[1:]}", "", "| " + " | ".join(header) + " |"]
        lines.append("|---|---" + "|---:" * (len(header) - 2) + "|")
        own = [each for each in results if each["group"] == kind]
        for each in sorted(own, key=lambda each: -(each["ratio"] or math.inf)):
            cells = [each["name"], each["network"]]
            for engine in ("onnxifi", *peers):
                time = each["ms"][engine]
                cells.append("refused" if isinstance(time, str) else f"{time * 1e3:.0f}")
            cells.append("-" if each["ratio"] is None else f"{each['ratio']:.2f}")
            if "share" in each:
                bound = " (memory)" if each["is_memory"] else ""
                cells += [f"{each['gflops']:.0f}", f"{each['share']:.0%}{bound}"]
            else:
                cells += ["-", "-"]
            lines.append("| " + " | ".join(cells) + " |")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def take(onnx, layers, folder):
    """The layers of the models of a folder, none where it has none."""
    taken = []
    for path in sorted(pathlib.Path(folder).glob("*/model.onnx")):
        model = onnx.load(path, load_external_data=False)
        taken += layers.take_layers(onnx, model, path.parent.name)
    return taken


def parse(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    operators.add_options(parser, "onnxruntime,openvino")
    add = parser.add_argument
    add("--shard", metavar="I/N", default="1/1", help="every Nth layer, from the Ith")
    add("--take", metavar="FOLDER", help="make the list of the models of a folder, and end")
    add("--from", metavar="JSON", dest="files", nargs="+", help="read results of --json, of all shards")
    add("--report", metavar="FILE", help="also write the results as a page of docs/measurements")
    add("--bench", default=str(_TREE / "build" / "release" / "bin" / "onnxifi_bench"))
    return parser, parser.parse_args(argv)


def read_limits(parser, options):
    try:
        return machine_limits.read(options.bench, options.threads)
    except machine_limits.LimitsError as fault:
        parser.error(f"{fault} Another one is given by --bench.")


def find_shard(parser, text):
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        parser.error(f"A shard is I/N with I from 1 to N, not '{text}'.")
    return int(match[1]) - 1, int(match[2])


def measure(parser, options, layers, onnx, limits):
    first, count = find_shard(parser, options.shard)
    # By kind, so that shards have some of each.
    chosen = [each for each in layers.read_list() if re.search(options.only, f"{each.kind} {each.name}")]
    if not chosen[first::count]:
        parser.error(f"No layer of shard {options.shard} has '{options.only}' in its kind and name.")
    if options.list:
        for layer in chosen[first::count]:
            print(f"{layer.kind}: {layer.name} ({layer.network})")
        return [], False
    running = operators.open_engines(parser, options)
    is_wrong = False

    def run(layer):
        nonlocal is_wrong
        model, feeds = layers.build_model(onnx, layer)
        times, difference, is_fault = operators.measure_case(running, onnx, model, feeds, options.turn_ms)
        is_wrong |= is_fault
        result = compare_layer(layer, times, difference, limits)
        print(describe(result), flush=True)
        return result

    results = measure_again(chosen[first::count], run)
    for engine in running.values():
        engine.close()
    return results, is_wrong


def measure_again(chosen, run):
    """The result of run(layer) for each; of those that are behind, the best of up to _RUNS."""
    results = [run(layer) for layer in chosen]
    for number in range(2, _RUNS + 1):
        for place, layer in enumerate(chosen):
            before = results[place]
            if before["ratio"] is None or not is_behind(before):
                continue
            again = run(layer)
            results[place] = min(before, again, key=lambda each: each["ratio"] or math.inf)
            results[place]["runs"] = number
    return results


def list_facts(options, results, limits):
    """What a page of measurements says before its tables."""
    command = "benchmarks/convolutions.py" + "".join(
        f" --{name} {shlex.quote(value if isinstance(value, str) else format(value, 'g'))}"
        for name, value, usual in (
            ("threads", options.threads, 2),
            ("only", options.only, ""),
            ("peers", options.peers, "onnxruntime,openvino"),
            ("turn-ms", options.turn_ms, 100),
        )
        if value != usual
    )
    day = datetime.date.today().isoformat()
    again = sum("runs" in each for each in results)
    return [
        f"{len(results)} layers of `benchmarks/convolution_layers.json` on {options.threads} threads of an "
        f"{limits.processor}, {day}. Times",
        "are medians; a ratio is our time over the better peer's, below 1 is faster. The limit of the multiply-adds",
        f"is {limits.gflops:.0f} GFLOP/s; above 100 % fewer are multiplied than counted (Winograd, padding left out).",
        "(memory): the bytes take longer than the multiply-adds, and the share is that of a copy of as many bytes.",
        *([f"{again} were behind and measured again, up to twice; of these the best run counts."] if again else []),
        "",
        "```",
        command,
        "```",
    ]


def main(argv=None):
    parser, options = parse(argv)
    try:
        import onnx

        import convolution_layers as layers
    except ImportError as fault:
        parser.error(f"{fault}; `tools/setup --compare` makes an environment that has it.")
    if options.take:
        taken = take(onnx, layers, options.take)
        if not taken:
            parser.error(f"'{options.take}' has no NAME/model.onnx with convolutions.")
        layers.write_list(layers.choose(taken))
        print(f"{len(taken)} convolutions; {len(layers.read_list())} layers in {layers.LIST}")
        return 0
    limits = None if options.list else read_limits(parser, options)
    if options.files:
        results = [each for path in options.files for each in json.loads(pathlib.Path(path).read_text())]
        # Shards in the list's order again.
        order = {layer.name: number for number, layer in enumerate(layers.read_list())}
        results.sort(key=lambda each: order.get(each["name"], len(order)))
        is_wrong = any((each["difference"] or 0) > 1 for each in results)
    else:
        results, is_wrong = measure(parser, options, layers, onnx, limits)
    if options.list:
        return 0
    print_summary(results, options.above)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    if options.report:
        title = f"Convolutions on a CPU, {datetime.date.today().isoformat()}"
        write_report(results, options.report, title, list_facts(options, results, limits))
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())

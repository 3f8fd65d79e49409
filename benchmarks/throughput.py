#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares requests per second of this library with ONNX Runtime's and OpenVINO's: many callers, one model.

Needs `tools/setup --compare` once and a release build. Each engine has a process of its own with one model,
which 1, 2, 4 and 16 threads run at once, each with tensors of its own, again and again for --seconds. The
engines take turns, and each figure is the median over the rounds. Ours runs as it does for one caller. Each
peer has two settings, as for one caller (all threads on a run) and for many (ONNX Runtime: one thread on a
run; OpenVINO: its hint THROUGHPUT), and counts with the better one.

"ratio" is our requests per second over those of the better peer, so above 1 means more than both; "p99" is
the time that 99 of 100 requests do not exceed.

Outputs are those of one of the threads after its last run, compared as compare.py does it.

Exit status: 0 compared; 1 a model does not run on our engine, or with a wrong result; 2 the command line is wrong or something
needed is missing; 3 a ratio is below --require-ratio.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import typing

import private_python

if __name__ == "__main__":
    private_python.enter(__file__, ("onnxruntime", "openvino"))

import compare  # noqa: E402 (they need what the private environment has)
import conclusions  # noqa: E402
import engines  # noqa: E402
import model_set  # noqa: E402
import population  # noqa: E402

_TREE = pathlib.Path(__file__).resolve().parent.parent
_OURS = "onnxifi"
_MODELS = ("residual_narrow", "depthwise_hard", "encoder_16", "encoder_128", "decoder", "speech_lstm")
_MODELS += ("perceptron_64", "trees_1000", "residual_qdq")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    library = _TREE / "build" / "release" / "lib" / "libonnxifi.so"
    shown = library.relative_to(_TREE)
    add("--library", type=pathlib.Path, default=library, help=f"ours (default: {shown})")
    add("--models", metavar="NAME,...", default=",".join(_MODELS), help="of the population (default: %(default)s)")
    add("--callers", metavar="N,...", default="1,2,4,16", help="threads that ask (default: %(default)s)")
    add("--threads", type=int, help="of the engine (default: the CPUs that this process may use)")
    add("--seconds", type=float, default=1.0, help="of each turn (default: %(default)s)")
    add("--rounds", type=int, default=3, help="turns of each engine (default: %(default)s)")
    add("--json", type=pathlib.Path, help="write all figures to this file")
    add("--require-ratio", type=float, metavar="R", help="end with status 3 where a ratio is below R")
    arguments = parser.parse_args()
    try:
        arguments.callers = [int(text) for text in arguments.callers.split(",")]
    except ValueError:
        parser.error(f"--callers is '{arguments.callers}'; it is a list of numbers.")
    if arguments.threads is None:
        arguments.threads = len(os.sched_getaffinity(0))
    for name, value in (
        ("callers", min(arguments.callers)),
        ("threads", arguments.threads),
        ("rounds", arguments.rounds),
    ):
        if value < 1:
            parser.error(f"--{name} has {value}; it is at least 1.")
    if arguments.seconds <= 0:
        parser.error(f"--seconds is {arguments.seconds}; it is above 0.")
    arguments.models = arguments.models.split(",")
    for name in arguments.models:
        if name not in population.ENTRIES:
            parser.error(f"Model '{name}' is unknown; `compare.py --population --list` has their names.")
    if not arguments.library.exists():
        parser.error(f"{arguments.library} does not exist; build the release preset or give --library.")
    return arguments


class Setting(typing.NamedTuple):
    """One way to set an engine."""

    engine: str
    threads: int  # of a run
    serves_callers: bool = False  # whether it is set for many callers

    def __str__(self):
        return f"{self.engine} set for many callers" if self.serves_callers else self.engine


def list_settings(threads):
    return [
        Setting(_OURS, threads),
        Setting("onnxruntime", threads),
        Setting("onnxruntime", 1, serves_callers=True),
        Setting("openvino", threads),
        Setting("openvino", threads, serves_callers=True),
    ]


def find_percentile(times, share):
    """The least of `times` that so large a share of them does not exceed."""
    ordered = sorted(times)
    return ordered[max(0, -(-round(share * 100) * len(ordered) // 100) - 1)]


def _open(setting, model, arguments):
    """A process of this setting with the model loaded."""
    options = {
        "library": str(arguments.library),
        "device": "cpu",
        "serves_callers": setting.serves_callers,
    }
    process = engines.Engine(setting.engine, setting.threads, options)
    try:
        process.load(model.path, model.inputs)
    except BaseException:
        process.close()
        raise
    return process


def _serve_callers(running, model, callers, arguments, faults):
    """{setting: its turns}; a setting that fails leaves `running` for `faults`."""
    turns = {setting: [] for setting in running}
    for number in range(arguments.rounds):
        for setting in list(running) if number % 2 == 0 else list(reversed(running)):
            try:
                turns[setting].append(running[setting].serve(model.inputs, callers, arguments.seconds))
            except engines.EngineError as fault:
                faults[str(setting)] = f"with {callers} callers: {fault}"
                running.pop(setting).close()
                del turns[setting]
    return turns


def choose_best(turns):
    """{engine: figures} of each engine's better setting."""
    best = {}
    for setting, of in turns.items():
        figures = {
            "setting": str(setting),
            "per_second": statistics.median(1e3 * len(turn["times_ms"]) / turn["together_ms"] for turn in of),
            "p99_ms": statistics.median(find_percentile(turn["times_ms"], 0.99) for turn in of),
        }
        if figures["per_second"] > best.get(setting.engine, {"per_second": -1})["per_second"]:
            best[setting.engine] = figures
    return best


def run_model(name, arguments):
    """The figures of one model: by engine and callers, requests per second and their p99."""
    model = model_set.load_of_population(name)
    running, faults, entries = {}, {}, []
    try:
        for setting in list_settings(arguments.threads):
            try:
                running[setting] = _open(setting, model, arguments)
            except engines.EngineError as fault:
                faults[str(setting)] = str(fault)
        for callers in arguments.callers:
            turns = _serve_callers(running, model, callers, arguments, faults)
            entry = {"model": name, "callers": callers, "engines": choose_best(turns), "faults": faults}
            entry["ratio"] = find_ratio(entry["engines"])
            last = {setting: of[-1:] for setting, of in turns.items()}
            _, differences = compare.compare_outputs(last, model)
            checked = {"is_checked": model.is_checked, "allowed": model.allowed}
            entry["wrong"] = {
                str(setting): difference
                for setting, difference in differences.items()
                if conclusions.is_wrong(checked, {"difference": difference})
            }
            entries.append(entry)
    finally:
        for process in running.values():
            process.close()
    return entries


def find_ratio(figures):
    """Our requests per second over those of the better peer; None where one is missing."""
    peers = [of["per_second"] for name, of in figures.items() if name != _OURS]
    return figures[_OURS]["per_second"] / max(peers) if peers and _OURS in figures else None


def make_table(entries):
    names = (_OURS, "onnxruntime", "openvino")
    width = max(len(entry["model"]) for entry in entries)
    lines = ["Requests per second / p99 in ms"]
    lines.append(f"{'MODEL':<{width}} CALLERS " + " ".join(f"{name:>18}" for name in names) + "  RATIO")
    for entry in entries:
        cells = []
        for name in names:
            of = entry["engines"].get(name)
            cells.append("fails" if of is None else f"{of['per_second']:.5g} / {of['p99_ms']:.3g}")
        ratio = "-" if entry["ratio"] is None else f"{entry['ratio']:.2f}"
        line = " ".join(f"{cell:>18}" for cell in cells)
        lines.append(f"{entry['model']:<{width}} {entry['callers']:>7} {line} {ratio:>6}")
    for entry in entries:
        lines += [f"{entry['model']}, {name}: {text}" for name, text in entry["faults"].items()]
        lines += [
            f"{entry['model']}, {name} with {entry['callers']} callers: wrong by {difference:.3g} tolerances"
            for name, difference in entry["wrong"].items()
        ]
    return "\n".join(dict.fromkeys(lines))


def main():
    arguments = parse_arguments()
    if os.getloadavg()[0] > 0.7:
        compare.say(f"The machine is busy (load {os.getloadavg()[0]:.1f}): there will be fewer requests.")
    entries = []
    for number, name in enumerate(arguments.models, start=1):
        entries += run_model(name, arguments)
        compare.say(f"throughput: {number}/{len(arguments.models)} {name}")
        if arguments.json is not None:
            report = {"machine": compare.read_machine(), "threads": arguments.threads, "results": entries}
            arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    print(make_table(entries))
    if any(_OURS in entry["faults"] or _OURS in entry["wrong"] for entry in entries):
        return 1
    ratios = [entry["ratio"] for entry in entries if entry["ratio"] is not None]
    return 3 if arguments.require_ratio is not None and min(ratios, default=0) < arguments.require_ratio else 0


if __name__ == "__main__":
    sys.exit(main())

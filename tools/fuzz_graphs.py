#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random graphs on a device and compares with ONNX Runtime, which changes nothing in them.

A seed gives a graph of typed blocks (graphs/): what exporters write and what they could write, with several readers
of a value, several outputs, extents as numbers, as symbols and unknown, in every version of operators that ONNX
Runtime has. One session runs it on several shapes in turn, batch 1 and back, after a run on NaN, and into arrays of
the caller. The oracle computes each node alone and unoptimized, and again on values that are moved by a few units in
the last place: how far those lie apart is the tolerance, and what stands on a step of a function is not compared.

A fault is shrunk to a few nodes, whose model, inputs and expected outputs are written to the folder --keep. Kinds:
wrong; refused (ONNX Runtime computes it); crashed; hung. "disputed" is what ONNX's reference evaluator answers as the
device does, "unstable" what roundings explain after all, and "oracle lost" a graph on which ONNX Runtime crashes; none
of them is a failure while few are lost. Equal faults, by kind and operators, refusals by their
sentence without its numbers, are printed once and counted.

ONNXIFI_CPU_ISA, ONNXIFI_NUM_THREADS and other variables of the library choose kernels as always.

The last line is "N passed, N failed". Exit status: 0 no graph failed; 1 some did, or the oracle was lost on many; 2 the
command line is wrong or something needed is missing.
"""

import argparse
import json
import pathlib
import re
import signal
import sys
import time

_HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE))

from graphs.arbiter import answered_by_reference, disturb_more  # noqa: E402
from graphs.generator import generate  # noqa: E402
from graphs.isolation import Isolated, Lost  # noqa: E402
from graphs.known import reason_of  # noqa: E402
from graphs.minimizer import Minimizer, save  # noqa: E402

_PROGRESS_S = 20
# A fault may take so many times as long as a graph until it is shrunk.
_SHRINKING = 10
# On one of so many graphs ONNX Runtime may crash.
_MOST_LOST = 20


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    library = _HERE.parent / "build" / "release" / "lib" / "libonnxifi.so"
    parser.add_argument("--library", type=pathlib.Path, default=library, help="default: build/release")
    parser.add_argument("--device", default="cpu", help="cpu, auto, null, opencl, vulkan, cuda; default: %(default)s")
    parser.add_argument("--count", type=int, default=1000, help="number of graphs; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the first graph; default: %(default)s")
    parser.add_argument("--nodes", type=int, default=25, help="about how many a graph has at most; default: %(default)s")
    parser.add_argument("--timeout", type=float, default=60, help="seconds per graph; default: %(default)s")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="folder for the shrunk graphs of faults")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write the faults to this file")
    parser.add_argument("--no-shrink", action="store_true", help="report faults as they are")
    parser.add_argument("--version", action="version", version="fuzz_graphs 1.0")
    return parser.parse_args(words)


def kind_of_fault(kind, sentence, case):
    """What makes two faults equal."""
    if kind == "refused":
        return re.sub(r"'[^']*'|-?\d+|\[[^\]]*\]", "#", sentence.splitlines()[0])
    return " ".join([kind, *sorted({node.op_type for node in case.model.graph.node})])


class Examiner:
    """Makes the graph of a seed, asks the device about it, and shrinks its fault. ONNX Runtime may crash in here."""

    def __init__(self, arguments, make_subject):
        self._arguments = arguments
        self._device = Isolated(make_subject, arguments.timeout)

    def _find_fault(self, case):
        try:
            return self._device.ask(case)
        except Lost as lost:
            return lost.args

    def answer(self, seed):
        """(nodes, kind, sentence, case); the case only where there is a fault."""
        case = generate(seed, self._arguments.nodes)
        if case is None:
            return 0, "none", "", None
        nodes = len(case.model.graph.node)
        fault = self._find_fault(case)
        return (nodes, "passed", "", None) if fault is None else (nodes, *self._judge(case, *fault))

    def _judge(self, case, kind, sentence):
        if kind == "wrong" and not self._stays_wrong(case):
            return "unstable", sentence, case
        if not self._arguments.no_shrink:
            case, kind, sentence = Minimizer(self._find_fault).shrink(case, kind, sentence)
        if kind == "wrong" and not self._stays_wrong(case):
            kind = "unstable"
        elif kind == "wrong":
            reference = answered_by_reference(case)
            if reference is not None and self._find_fault(reference) is None:
                kind = "disputed"
        return kind, sentence, case

    def _stays_wrong(self, case):
        calm = disturb_more(case)
        fault = calm and self._find_fault(calm)
        return bool(fault) and fault[0] == "wrong"


class Report:
    """Counts graphs and keeps one of each kind of fault."""

    def __init__(self, keep):
        self._keep, self.found, self.counts, self.nodes = keep, {}, {}, 0

    def count(self, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def add(self, seed, kind, sentence, case):
        reason = reason_of(kind, sentence, case)
        self.count("known" if reason else kind)
        key = kind_of_fault(kind, sentence, case)
        known = self.found.get(key)
        if known is not None:
            known["seeds"].append(seed)
            return
        operators = [node.op_type for node in case.model.graph.node]
        entry = {"kind": kind, "seeds": [seed], "sentence": sentence, "nodes": operators, "reason": reason}
        if self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            path = self._keep / f"{kind}_{seed}.onnx"
            save(case, path)
            entry["model"] = str(path)
        self.found[key] = entry
        if not reason:
            print(f"{kind}: seed {seed}, {' '.join(operators[:12])}: {sentence}", flush=True)

    @property
    def failed(self):
        return sum(self.counts.get(kind, 0) for kind in ("wrong", "refused", "crashed", "hung"))

    @property
    def lost(self):
        return self.counts.get("oracle lost", 0)


def run(arguments, make_subject):
    report = Report(arguments.keep)
    examiner = Isolated(lambda: Examiner(arguments, make_subject), _SHRINKING * arguments.timeout)
    told = time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            nodes, kind, sentence, case = examiner.ask(seed)
        except Lost as lost:
            # Not the device's process, which is another.
            nodes, kind, sentence, case = 0, "oracle lost", lost.args[1], None
        report.nodes += nodes
        if case is None:
            report.count(kind)
        else:
            report.add(seed, kind, sentence, case)
        if time.monotonic() - told > _PROGRESS_S:
            told = time.monotonic()
            print(f"seed {seed}: {_counts(report)}", file=sys.stderr, flush=True)
    examiner.close()
    return report


def _counts(report):
    return ", ".join(f"{number} {kind}" for kind, number in sorted(report.counts.items()))


def main(words=None, make_subject=None):
    arguments = parse_arguments(words)
    if make_subject is None:
        if not arguments.library.exists():
            print(f"fuzz_graphs.py: There is no library '{arguments.library}'.", file=sys.stderr)
            return 2

        def make_subject():
            from graphs.subject import Subject  # pylint: disable=import-outside-toplevel

            return Subject(arguments.library, arguments.device)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    report = run(arguments, make_subject)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"counts": report.counts, "faults": list(report.found.values())}, indent=1))
    print(f"{_counts(report)}; {report.nodes} nodes")
    print(f"{report.counts.get('passed', 0)} passed, {report.failed} failed")
    return 1 if report.failed or report.lost > arguments.count // _MOST_LOST else 0


if __name__ == "__main__":
    sys.exit(main())

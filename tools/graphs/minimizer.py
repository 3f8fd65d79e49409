# SPDX-License-Identifier: Apache-2.0
"""Shrinks a graph as long as a fault stays: fewer outputs, fewer nodes, fewer runs.

A node is taken out by making its outputs inputs, which are given what ONNX Runtime computed. Whether the fault stays
is asked of `find_fault`, which may run in a process of its own.
"""

import typing

import numpy
import onnx
from onnx import helper, numpy_helper

from graphs.evaluation import DISTURBED_TRACKS, Evaluator, Refused, captured_names, declare, has_one_rank
from graphs.generator import Case

_MOST_QUESTIONS = 400


def evaluate(model, runs, tracks=DISTURBED_TRACKS, units=4, seed=0):
    """{name: [run][track] arrays} of all values of a model; raises Refused."""
    version = next(opset.version for opset in model.opset_import if not opset.domain)
    evaluator = Evaluator(version, seed, list(model.functions), tracks, units)
    values = {}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        values[tensor.name] = [[array] * evaluator.track_count] * len(runs)
    for value in model.graph.input:
        if value.name not in values:
            values[value.name] = [[run[value.name]] * evaluator.track_count for run in runs]
    for node in model.graph.node:
        values.update(evaluator.evaluate(node, values, len(runs)))
    return values


class Shrunk(typing.NamedTuple):
    case: Case
    kind: str
    sentence: str


class Minimizer:
    def __init__(self, find_fault):
        self._find_fault, self._questions = find_fault, 0

    def shrink(self, case, kind, sentence):
        best = Shrunk(case, kind, sentence)
        size = None
        while size != self._size(best.case) and self._questions < _MOST_QUESTIONS:
            size = self._size(best.case)
            for candidates in (self._fewer_outputs, self._fewer_nodes, self._earlier_outputs, self._fewer_runs):
                best = self._first_that_fails(best, candidates)
        return best

    @staticmethod
    def _size(case):
        return len(case.model.graph.node), len(case.model.graph.output), len(case.runs), len(case.model.graph.input)

    def _first_that_fails(self, best, candidates):
        """Repeats with each smaller graph that has the fault, until none has it."""
        position = 0
        while self._questions < _MOST_QUESTIONS:
            options = candidates(best.case)
            found = False
            for position in range(min(position, len(options)), len(options)):
                made = self._make(best.case, *options[position])
                if made is None or self._size(made) >= self._size(best.case):
                    continue
                self._questions += 1
                fault = self._find_fault(made)
                if fault is not None and fault[0] == best.kind:
                    best, found = Shrunk(made, *fault), True
                    break
                if self._questions >= _MOST_QUESTIONS:
                    break
            if not found:
                return best
        return best

    # Each yields (nodes, outputs, runs, names that become inputs).

    @staticmethod
    def _fewer_outputs(case):
        names = [value.name for value in case.model.graph.output]
        runs = list(range(len(case.runs)))
        if len(names) == 1:
            return []
        alone = [(case.model.graph.node, [name], runs, ()) for name in names]
        return alone + [(case.model.graph.node, [other for other in names if other != name], runs, ()) for name in names]

    @staticmethod
    def _fewer_nodes(case):
        nodes, names = list(case.model.graph.node), [value.name for value in case.model.graph.output]
        runs = list(range(len(case.runs)))
        return [
            (nodes[:k] + nodes[k + 1:], names, runs, tuple(nodes[k].output))
            for k in range(len(nodes))
            if not set(nodes[k].output) & set(names)
        ]  # fmt: skip

    @staticmethod
    def _earlier_outputs(case):
        nodes = list(case.model.graph.node)
        runs = list(range(len(case.runs)))
        return [(nodes, [name], runs, ()) for node in nodes for name in node.output if name][::-1]

    @staticmethod
    def _fewer_runs(case):
        names = [value.name for value in case.model.graph.output]
        count = len(case.runs)
        alone = [(case.model.graph.node, names, [k], ()) for k in range(count)] if count > 1 else []
        return alone + [(case.model.graph.node, names, [j for j in range(count) if j != k], ()) for k in range(count) if count > 2]

    def _make(self, case, nodes, outputs, runs, given):
        """The Case of some of the nodes and runs; None where it has no answer."""
        try:
            known = evaluate(case.model, [case.runs[k] for k in runs])
        except Refused:
            return None
        nodes = _needed(list(nodes), set(outputs))
        if not nodes:
            return None
        used = set().union(*(captured_names(node) for node in nodes)) | set(outputs)
        old = case.model.graph
        initializers = [tensor for tensor in old.initializer if tensor.name in used]
        held = {tensor.name for tensor in initializers}
        inputs = [value for value in old.input if value.name in used]
        feeds = [{v.name: case.runs[k][v.name] for v in inputs if v.name not in held} for k in runs]
        extents = [case.extents[k] for k in runs]
        for name in given:
            if name not in used:
                continue
            arrays = [tracks[0] for tracks in known[name]]
            if not all(isinstance(array, numpy.ndarray) for array in arrays) or not has_one_rank(known[name]):
                return None
            inputs.append(declare(name, arrays[0], _symbols(arrays, extents, name)))
            for feed, array in zip(feeds, arrays):
                feed[name] = array
        declared = {value.name: value for value in old.output}
        results = [declared.get(name) or declare(name, known[name][0][0]) for name in outputs]
        graph = helper.make_graph(nodes, "shrunk", inputs, results, initializers)
        called = {node.domain for node in nodes}
        model = helper.make_model(graph, opset_imports=case.model.opset_import, ir_version=case.model.ir_version,
                                  functions=[f for f in case.model.functions if f.domain in called])  # fmt: skip
        try:
            values = evaluate(model, feeds)
        except Refused:
            return None
        if not all(isinstance(values[name][0][0], numpy.ndarray) and has_one_rank(values[name]) for name in outputs):
            return None
        return Case(model, feeds, {name: values[name] for name in outputs}, extents, case.manner)


def _needed(nodes, wanted):
    kept = []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= captured_names(node)
            kept.append(node)
    return kept[::-1]


def _symbols(arrays, extents, name):
    """Dims of a new input: numbers, and symbols where runs have different extents."""
    dims = []
    for number, along in enumerate(zip(*(array.shape for array in arrays))):
        if len(set(along)) == 1 and len(arrays) > 1:
            dims.append(along[0])
            continue
        symbols = [s for s in extents[0] if all(e[s] == extent for e, extent in zip(extents, along))]
        dims.append(symbols[0] if symbols and len(arrays) > 1 else f"{name}_{number}" if len(arrays) > 1 else along[0])
    return dims


def save(case, path):
    """The model, and beside it what runs are given and what they are to answer."""
    onnx.save(case.model, path)
    arrays = {}
    for number, feeds in enumerate(case.runs):
        arrays.update({f"run{number}/{name}": array for name, array in feeds.items()})
        arrays.update({f"run{number}/expected/{name}": tracks[number][0] for name, tracks in case.values.items()})
    numpy.savez(path.with_suffix(".npz"), **arrays)

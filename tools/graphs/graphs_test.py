# SPDX-License-Identifier: Apache-2.0
"""Devices that lie, which the fuzzer of random graphs must find out, and graphs that it must shrink."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import time
import unittest
import unittest.mock

import numpy
import onnx
from onnx import helper

import fuzz_graphs
from graphs import agreement
from graphs.evaluation import Evaluator
from graphs.generator import Case, generate
from graphs.isolation import Isolated, Lost
from graphs.minimizer import Minimizer, evaluate


class _Liar:
    """Has the right answers for all graphs but those with an operator."""

    def __init__(self, operator, fault=("wrong", "it lies")):
        self._operator, self._fault = operator, fault

    def answer(self, case):
        has_it = any(node.op_type == self._operator for node in case.model.graph.node)
        return self._fault if has_it else None


class _Crasher:
    def answer(self, case):
        if any(node.op_type == "Transpose" for node in case.model.graph.node):
            os.abort()
        return None


def _run(*words, make_subject):
    """(exit status, printed lines, faults)."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
        results = pathlib.Path(folder, "faults.json")
        status = fuzz_graphs.main([*words, "--json", str(results), "--keep", folder], make_subject)
        faults = json.loads(results.read_text())["faults"]
        for fault in faults:
            fault["onnx"] = onnx.load(fault["model"])
    return status, printed.getvalue().splitlines(), faults


def _seed_with(operator):
    """The first seed whose graph has the operator."""
    for seed in range(1, 200):
        case = generate(seed)
        if case is not None and any(node.op_type == operator for node in case.model.graph.node):
            return str(seed)
    raise AssertionError(f"No graph has {operator}.")


class TestFuzzGraphs(unittest.TestCase):
    def test_finds_a_lie_and_shrinks_it_to_one_node(self):
        status, lines, faults = _run("--count", "1", "--seed", _seed_with("Softmax"), make_subject=lambda: _Liar("Softmax"))
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "0 passed, 1 failed")
        self.assertEqual([[node.op_type for node in fault["onnx"].graph.node] for fault in faults], [["Softmax"]])

    def test_believes_who_does_not_lie(self):
        status, lines, faults = _run("--count", "3", make_subject=lambda: _Liar("Nothing"))
        self.assertEqual((status, faults), (0, []))
        self.assertRegex(lines[-1], r"^\d passed, 0 failed$")

    def test_a_crash_costs_one_graph_and_names_it(self):
        status, _, faults = _run("--count", "1", "--seed", _seed_with("Transpose"), make_subject=_Crasher)
        self.assertEqual(status, 1)
        self.assertEqual({fault["kind"] for fault in faults}, {"crashed"})
        self.assertEqual({tuple(n.op_type for n in fault["onnx"].graph.node) for fault in faults}, {("Transpose",)})

    def test_only_who_answers_as_the_reference_is_in_a_dispute(self):
        class Another:
            """ONNX's evaluator, if it were one that adds 1."""

            def __init__(self, model):
                self._model = model

            def run(self, _, feeds):
                known = evaluate(self._model, [feeds])
                return [known[value.name][0][0] + 1 for value in self._model.graph.output]

        class Answering:
            def __init__(self, summand):
                self._summand = summand

            def answer(self, asked):
                known = evaluate(asked.model, asked.runs)
                for name, expected in asked.values.items():
                    for number, tracks in enumerate(expected):
                        said = agreement.difference(known[name][number][0] + numpy.float32(self._summand), tracks)
                        if said:
                            return "wrong", said
                return None

        case = _case([helper.make_node("Neg", ["x"], ["y"])], numpy.linspace(-1, 1, 6, dtype="float32"), "y")
        for summand, kind in ((1, "disputed"), (5, "wrong"), (0, "passed")):
            with unittest.mock.patch("fuzz_graphs.generate", return_value=case), \
                    unittest.mock.patch("graphs.arbiter.ReferenceEvaluator", Another):  # fmt: skip
                status, _, faults = _run("--count", "1", make_subject=lambda: Answering(summand))  # noqa: B023
            self.assertEqual((status, [fault["kind"] for fault in faults]), (int(kind == "wrong"), [kind] * (kind != "passed")))

    def test_an_oracle_that_is_always_lost_is_no_success(self):
        with unittest.mock.patch("fuzz_graphs.generate", side_effect=lambda *_: os.abort()):
            status, lines, _ = _run("--count", "2", make_subject=lambda: _Liar("Nothing"))
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed"))

    def test_counts_equal_refusals_once(self):
        refusal = ("refused", "UNSUPPORTED: node 'n1' has 3 axes.")
        _, _, faults = _run("--count", "12", "--no-shrink", make_subject=lambda: _Liar("Mul", refusal))
        self.assertEqual(len(faults), 1)
        self.assertGreater(len(faults[0]["seeds"]), 1)

    def test_a_library_that_is_not_there_is_no_success(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(fuzz_graphs.main(["--library", "/nowhere/libonnxifi.so"]), 2)


class TestGenerator(unittest.TestCase):
    def test_graphs_are_valid_and_those_of_their_seeds(self):
        kinds = set()
        for seed in range(20):
            case, again = generate(seed), generate(seed)
            if case is None:
                continue
            self.assertEqual(case.model.SerializeToString(), again.model.SerializeToString())
            kinds |= {node.op_type for node in case.model.graph.node}
        self.assertGreater(len(kinds), 60)

    def test_runs_have_several_shapes(self):
        shapes = [{tuple(array.shape for array in run.values()) for run in case.runs}
                  for case in map(generate, range(10)) if case]  # fmt: skip
        self.assertTrue(any(len(of_runs) >= 3 for of_runs in shapes))


def _case(nodes, x, *outputs):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, x.shape)], [helper.make_empty_tensor_value_info(o) for o in outputs]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    runs = [{"x": x}]
    known = evaluate(model, runs)
    return Case(model, runs, {name: known[name] for name in outputs}, [{}])


class TestMinimizer(unittest.TestCase):
    def test_keeps_what_a_fault_needs(self):
        names = ["Neg", "Abs", "Exp", "Tanh", "Sigmoid"]
        nodes = [helper.make_node(name, ["x" if not k else f"v{k - 1}"], [f"v{k}"]) for k, name in enumerate(names)]
        case = _case(nodes, numpy.linspace(-1, 1, 6, dtype="float32"), "v4", "v1")

        def find_fault(candidate):
            kinds = [node.op_type for node in candidate.model.graph.node]
            return ("wrong", "so it is") if "Exp" in kinds and "Tanh" in kinds else None

        shrunk = Minimizer(find_fault).shrink(case, "wrong", "")
        self.assertEqual([node.op_type for node in shrunk.case.model.graph.node], ["Exp", "Tanh"])
        self.assertEqual(len(shrunk.case.model.graph.output), 1)
        feed = shrunk.case.runs[0][shrunk.case.model.graph.input[0].name]
        numpy.testing.assert_allclose(feed, numpy.abs(numpy.linspace(-1, 1, 6)), rtol=1e-6)


class TestAgreement(unittest.TestCase):
    def setUp(self):
        self.x = numpy.array([1.0, 2.0, 4.0], "float32")

    def test_allows_roundings_and_nothing_more(self):
        self.assertEqual(agreement.difference(self.x * numpy.float32(1 + 1e-6), [self.x]), "")
        self.assertIn("1 of 3 elements", agreement.difference(self.x + numpy.array([0, 0, 0.01], "float32"), [self.x]))

    def test_allows_what_disturbed_values_differ_by(self):
        wrong = self.x + numpy.array([0, 0, 0.01], "float32")
        self.assertEqual(agreement.difference(wrong, [self.x, self.x + numpy.float32(0.005)]), "")

    def test_type_and_shape_are_part_of_an_answer(self):
        self.assertIn("type", agreement.difference(self.x.astype("float64"), [self.x]))
        self.assertIn("shape", agreement.difference(self.x[None], [self.x]))

    def test_an_element_that_is_not_written_is_found(self):
        self.assertNotEqual(agreement.difference(numpy.array([1, 2, numpy.nan], "float32"), [self.x]), "")

    def test_integers_that_roundings_decide_are_unstable(self):
        cast = helper.make_node("Cast", ["y"], ["z"], to=7)
        multiply = helper.make_node("Mul", ["x", "c"], ["y"])
        evaluator = Evaluator(17, 0)
        values = {"x": [[numpy.array([2.5, 3.0], "float32")] * 3], "c": [[numpy.array(2, "float32")] * 3]}
        values.update(evaluator.evaluate(multiply, values, 1))
        results = evaluator.evaluate(cast, values, 1)
        self.assertFalse(agreement.is_stable(results["z"][0]))


class TestIsolation(unittest.TestCase):
    def test_tells_a_hang_and_goes_on(self):
        class Sleeper:
            def answer(self, question):
                if question:
                    time.sleep(60)
                return "here"

        isolated = Isolated(Sleeper, timeout_s=0.3)
        self.assertEqual(isolated.ask(False), "here")
        with self.assertRaises(Lost) as lost:
            isolated.ask(True)
        self.assertEqual(lost.exception.args[0], "hung")
        self.assertEqual(isolated.ask(False), "here")
        isolated.close()


if __name__ == "__main__":
    unittest.main()

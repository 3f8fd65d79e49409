# SPDX-License-Identifier: Apache-2.0
"""Tests of what compare.py computes by itself: differences, ratios, sums, exit status, batches."""

import contextlib
import importlib
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import agreement
import compare
import comparison_text
import conclusions
import cuda_memory
import engines
import limited_peers
import machine_limits
import model_set
import ncnn_models
import population
import reference_share
from networks import drawing, float64, image, narrow

_TREE = pathlib.Path(__file__).resolve().parent.parent


class MeasureDifference(unittest.TestCase):
    def test_is_in_multiples_of_the_tolerance(self):
        expected = numpy.array([3.0, -4.0, 0.0], numpy.float32)
        rms = math.sqrt(25 / 3)
        actual = expected + numpy.array([0, 0, 5e-4], numpy.float32)
        self.assertAlmostEqual(
            agreement.measure_difference(actual, expected), 5e-4 / (1e-4 * rms), places=3
        )

    def test_counts_the_element_itself_beside_the_rms(self):
        expected = numpy.array([100.0, 0.0], numpy.float64)
        actual = expected + [0.01, 0]
        bound = 1e-4 * (100 + math.sqrt(5000))
        self.assertAlmostEqual(agreement.measure_difference(actual, expected), 0.01 / bound)

    def test_takes_integers_exactly(self):
        values = numpy.array([1, 2], numpy.int64)
        self.assertEqual(agreement.measure_difference(values, values.copy()), 0)
        self.assertEqual(agreement.measure_difference(values, values + [0, 1]), math.inf)

    def test_one_of_ten_thousand_labels_may_differ(self):
        labels = numpy.zeros((100, 200), numpy.int64)
        others = labels.copy()
        others[3, 5] = 7
        self.assertEqual(agreement.measure_difference(others, labels), 0.5)
        others[4] = 7
        self.assertGreater(agreement.measure_difference(others, labels), 100)
        self.assertEqual(agreement.measure_difference(others[3, :9], labels[3, :9]), math.inf)

    def test_nan_and_infinity_equal_only_themselves(self):
        odd = numpy.array([math.nan, math.inf, 1], numpy.float32)
        self.assertEqual(agreement.measure_difference(odd, odd.copy()), 0)
        for place, value in ((0, 1), (1, -math.inf), (2, math.nan)):
            other = odd.copy()
            other[place] = value
            self.assertEqual(agreement.measure_difference(other, odd), math.inf)

    def test_shape_type_and_name_matter(self):
        values = numpy.zeros((2, 3), numpy.float32)
        self.assertEqual(agreement.measure_difference(values.T, values), math.inf)
        self.assertEqual(agreement.measure_difference(values.astype(float), values), math.inf)
        self.assertEqual(agreement.measure_outputs({"a": values}, {"b": values}), math.inf)


class MakeBatched(unittest.TestCase):
    def _model(self, target, first=1):
        infos = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [first, 2, 3]),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [first, 6]),
        ]
        weight = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        graph = helper.make_graph(
            [
                helper.make_node("Reshape", ["w", "w_target"], ["flat"]),
                helper.make_node("Reshape", ["x", "target"], ["r"]),
                helper.make_node("Add", ["r", "flat"], ["y"]),
            ],
            "test",
            [infos[0]],
            [infos[1]],
            [
                numpy_helper.from_array(weight, "w"),
                numpy_helper.from_array(numpy.array([1, 6]), "w_target"),
                numpy_helper.from_array(numpy.array(target), "target"),
            ],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def test_gives_every_image_its_own_result(self):

        model = model_set.make_batched(self._model([1, 6]), 5)
        x = numpy.random.default_rng(3).standard_normal((5, 2, 3)).astype(numpy.float32)
        (y,) = ReferenceEvaluator(model).run(None, {"x": x})
        single = ReferenceEvaluator(self._model([1, 6]))
        for image in range(5):
            (alone,) = single.run(None, {"x": x[image : image + 1]})
            numpy.testing.assert_array_equal(y[image : image + 1], alone)

    def test_leaves_the_shapes_of_weights(self):
        model = model_set.make_batched(self._model([1, 6]), 5)
        target = next(i for i in model.graph.initializer if i.name == "w_target")
        self.assertEqual(numpy_helper.to_array(target).tolist(), [1, 6])

    def test_refuses_what_is_no_batch(self):
        with self.assertRaisesRegex(model_set.BatchError, "'x' has no first extent of 1"):
            model_set.make_batched(self._model([1, 6], first=2), 5)


class Symbols(unittest.TestCase):
    @staticmethod
    def _model():
        inputs = [
            helper.make_tensor_value_info(name, kind, extents)
            for name, kind, extents in (
                ("image", TensorProto.FLOAT, [1, 3, 32, 32]),
                ("ids", TensorProto.INT64, [1, 32]),
                ("row", TensorProto.FLOAT, [1, 7]),
                ("open", TensorProto.FLOAT, ["n", 5, 4]),
            )
        ]
        outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 3, 32, 32])]
        nodes = [helper.make_node("Relu", ["image"], ["out"])]
        graph = helper.make_graph(nodes, "test", inputs, outputs)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def test_each_axis_has_its_own_but_those_of_other_inputs_as_long(self):
        model = model_set.make_symbolic(self._model())
        shapes = {
            value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
            for value in model.graph.input
        }
        self.assertEqual(shapes["image"], ["image_0", 3, "image_2", "image_3"])
        self.assertEqual(shapes["ids"], ["image_0", "image_2"])
        self.assertEqual(shapes["row"], ["image_0", 7])
        self.assertEqual(shapes["open"], ["n", "open_1", "open_2"])
        self.assertFalse(model.graph.output[0].type.tensor_type.HasField("shape"))
        onnx.checker.check_model(onnx.shape_inference.infer_shapes(model))

    def test_the_peer_is_ours_with_numbers(self):
        self.assertEqual(compare.choose_engines("cpu", has_symbols=True), ["onnxifi", "numbers"])
        self.assertEqual(compare.choose_engines("cpu", without="winograd"), ["onnxifi", "without"])


def _result(ratio, threads=2, kind="convolution", **ours):
    figures = {"median_ms": ratio, "difference": 0.5, **ours}
    return {
        "engines": {"onnxifi": figures},
        "ratio": ratio,
        "load_ratio": 0.5,
        "memory_ratio": 2.0,
        "threads": threads,
        "kind": kind,
        "is_checked": True,
        "allowed": 1.0,
    }


class Population(unittest.TestCase):
    def test_third_that_is_held_out_is_told_apart(self):
        run, held = population.list_names(), population.list_names(is_held=True)
        self.assertEqual(len(run) + len(held), len(population.ENTRIES))
        self.assertFalse(set(run) & set(held))
        self.assertTrue(0.2 < len(held) / len(population.ENTRIES) < 0.45)

    def test_same_name_draws_the_same_weights(self):
        draws = [drawing.Drawing(name).draw_weight for name in ("a", "a", "b")]
        first, same, other = (draw((4, 4), 1) for draw in draws)
        values = [
            numpy_helper.to_array(draw.__self__._initializers[0]) for draw in draws
        ]
        self.assertEqual(first, same)
        numpy.testing.assert_array_equal(values[0], values[1])
        self.assertFalse(numpy.array_equal(values[0], values[2]))

    def test_networks_are_legal_models(self):
        for name in ("perceptron", "trees_one", "decoder_long"):
            model = population.ENTRIES[name].draw().finish()
            self.assertTrue(model.graph.output[0].type.tensor_type.HasField("shape"))

    def test_batches_are_drawn_where_a_network_has_them(self):
        small = {"width": 16, "layers": 1, "patch": 56, "heads": 1}
        model = image.make_vision_transformer("batches", batch=3, **small).finish()
        (scores,) = model.graph.output
        self.assertEqual([dim.dim_value for dim in scores.type.tensor_type.shape.dim], [3, 1000])
        self.assertGreaterEqual(sum(map(population.takes_batches, population.ENTRIES)), 15)
        with self.assertRaisesRegex(model_set.BatchError, "'decoder' is left out at batch 8"):
            model_set.load_of_population("decoder", 8)

    def test_bfloat16_keeps_float32_outside_and_rounds_what_is_expected(self):
        net = drawing.Drawing("bfloat16")
        x = net.add_input("x", numpy.array([[1 + 2**-9, 3.0]], numpy.float32))
        lowest = float(numpy.finfo(numpy.float32).min)
        net.add_output(net.add_scalar("Add", net.add_scalar("Mul", x, 1 + 2**-7), 0.0), "y")
        net.add_output(net.add_scalar("Max", x, lowest), "z")
        wide = net.finish()
        made = narrow.make_bfloat16(wide)
        self.assertEqual({value.type.tensor_type.elem_type for value in made.graph.output}, {1})
        self.assertEqual({tensor.data_type for tensor in made.graph.initializer}, {TensorProto.BFLOAT16})
        for tensor in made.graph.initializer:
            self.assertTrue(numpy.isfinite(numpy_helper.to_array(tensor).astype(numpy.float32)).all())
        y, z = ReferenceEvaluator(narrow.round_to_bfloat16(wide)).run(None, net.samples)
        numpy.testing.assert_array_equal(y, [[1 + 2**-7, 3.03125]])
        numpy.testing.assert_array_equal(z, [[1.0, 3.0]])

    def test_unpacked_matrices_are_what_four_bits_say(self):
        net = drawing.Drawing("packed")
        x = net.add_normal_input("x", (2, 40))
        net.add_output(net.project(x, 40, 24, bias=False), "y")
        packed = narrow.quantize(net.finish(), net.samples, "4bit")
        self.assertEqual([node.op_type for node in packed.graph.node], ["MatMulNBits"])
        exact = narrow.keep_operands(packed)
        answer = onnxruntime.InferenceSession(exact.SerializeToString()).run(None, net.samples)
        (mine,) = ReferenceEvaluator(narrow.unpack(packed)).run(None, net.samples)
        numpy.testing.assert_allclose(mine, answer[0], rtol=1e-5, atol=1e-5)

    def test_expected_values_are_those_of_float64(self):
        net = drawing.Drawing("float64")
        x = net.add_input("x", numpy.array([[1.0, 2**-26]], numpy.float32))
        # In float32 the sum with 1 loses the small number, and the difference is 0.
        ones = net.add_node("Cast", x, to=1)
        y = net.add_node("Sub", net.add_node("ReduceSum", ones, keepdims=0), net.add_constant(1.0))
        net.add_output(y, "y")
        expected = float64.evaluate(net.finish(), net.samples)
        self.assertEqual(expected["y"], numpy.float32(2**-26))
        self.assertEqual(expected["y"].dtype, numpy.float32)

    def test_shards_are_parts_of_the_list(self):
        parser = compare.argparse.ArgumentParser()
        self.assertEqual(compare.parse_shard(parser, "2/5"), (2, 5))
        self.assertIsNone(compare.parse_shard(parser, None))
        for text in ("0/3", "4/3", "1", "a/b"):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                compare.parse_shard(parser, text)

    def test_profile_tells_the_share_of_the_reference(self):
        def step(implementation, ns, flops=0):
            return {
                "node": 0,
                "family": "Map",
                "implementation": implementation,
                "extents": [2, 3],
                "ns": ns,
                "flops": flops,
                "bytes": 4 * ns,
            }

        profile = reference_share.summarise(
            [step("reference", 25), step("engine map", 60, flops=120), step("reference", 15)]
        )
        self.assertAlmostEqual(profile["reference_share"], 0.4)
        self.assertEqual(profile["longest"]["implementation"], "engine map")
        self.assertAlmostEqual(profile["longest"]["share"], 0.6)
        self.assertEqual((profile["longest"]["gflops"], profile["longest"]["gbytes"]), (2, 4))
        self.assertEqual(reference_share.summarise([])["reference_share"], 0)
        self.assertEqual(reference_share.find_largest([{}, {"profile": profile}]), 0.4)
        self.assertIsNone(reference_share.find_largest([{}]))
        self.assertEqual((profile["slow_share"], profile["slow"]), (None, []))

    def test_slow_steps_are_those_far_from_what_the_machine_can_do(self):
        def step(ns, flops=0, size_bytes=0):
            numbers = {"ns": ns, "flops": flops, "bytes": size_bytes}
            return {"family": "Map", "implementation": "engine map", "extents": [], **numbers}

        copies = [{"size_bytes": 1000, "gigabytes_per_s": 10}, {"size_bytes": 5000, "gigabytes_per_s": 1}]
        counted = [{"threads": 1, "float32_gflops": 100, "copies": copies}]
        limits = machine_limits.Limits(json.dumps({"processor": "p", "by_threads": counted}), threads=2)
        # At 10 %, 20 %, 10 % of the limit; the last is too short to be listed.
        steps = [step(500, flops=5000), step(480, size_bytes=960), step(20, size_bytes=20)]
        profile = reference_share.summarise(steps, limits)
        self.assertAlmostEqual(profile["slow_share"], 0.52)
        self.assertEqual([slow["share"] for slow in profile["slow"]], [0.5])
        self.assertAlmostEqual(profile["slow"][0]["of_limit"], 0.1)
        self.assertEqual(reference_share.summarise([], limits)["slow_share"], 0)

    def test_limits_are_told_of_what_they_are_measured_for_only(self):
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "lib" / "libonnxifi.so"
            tool = pathlib.Path(folder) / "bin" / "onnxifi_bench"
            self.assertIn(f"There is no '{tool}'", compare.find_limits(library, "cpu", None, 1)[1])
            self.assertIn("not 'vulkan:0'", compare.find_limits(library, "vulkan:0", None, 1)[1])
            self.assertIn("not avx2", compare.find_limits(library, "cpu:0", "avx2", 1)[1])
            tool.parent.mkdir()
            tool.write_text("#!/bin/sh\necho 'no room' >&2\nexit 1\n")
            tool.chmod(0o755)
            self.assertIn("ended with 1: no room", compare.find_limits(library, "cpu", None, 2)[1])
            machine = {"processor": "p", "by_threads": [{"threads": 1, "float32_gflops": 7, "copies": []}]}
            tool.write_text(f"#!/bin/sh\necho '{json.dumps(machine)}'\n")
            limits, missing = compare.find_limits(library, "cpu", None, 4)
            self.assertEqual((limits.gflops, missing), (7, None))

    def test_what_is_left_out_is_told_where_nothing_is_compared(self):
        report = {"engines": ["onnxifi"], "results": [], "left_out": ["No step differs."], "summaries": []}
        self.assertEqual(comparison_text.make_tables(report), "No model was compared.\nNo step differs.")

    def test_unknown_share_of_slow_steps_is_no_number(self):
        figures = {"median_ms": 1, "best_ms": 1, "first_result_ms": 1, "peak_mib": 1}
        entry = {**_result(0.5), "model": "m", "compared_with": "float64", "engines": {"onnxifi": figures}}
        entry["profile"] = reference_share.summarise([])
        report = {"engines": ["onnxifi"], "results": [entry], "left_out": [], "summaries": []}
        lines = comparison_text.make_tables(report).splitlines()
        row = lines[[line.startswith("MODEL") and "SLOW" in line for line in lines].index(True) + 1]
        self.assertEqual(row.split()[4], "-")


class Summaries(unittest.TestCase):
    def test_ratio_is_to_the_better_peer_of_each_figure(self):
        figures = {
            "onnxifi": {"median_ms": 3.0, "first_result_ms": 10.0, "peak_mib": 8.0},
            "onnxruntime": {"median_ms": 4.0, "first_result_ms": 40.0, "peak_mib": 16.0},
            "openvino": {"median_ms": 2.0, "first_result_ms": 50.0, "peak_mib": 4.0},
        }
        ratios = conclusions.compare_with_peers(figures)
        self.assertEqual(ratios["best_peer_ms"], 2)
        self.assertEqual(
            (ratios["ratio"], ratios["load_ratio"], ratios["memory_ratio"]), (1.5, 0.25, 2)
        )

    def test_ratio_is_unknown_without_peers_or_ourselves(self):
        peer = {"median_ms": 4.0, "first_result_ms": 1.0, "peak_mib": 1.0}
        self.assertIsNone(conclusions.compare_with_peers({"openvino": peer})["ratio"])
        self.assertIsNone(
            conclusions.compare_with_peers({"onnxifi": peer, "openvino": {"fault": "no"}})["ratio"]
        )

    def test_means_are_geometric_and_by_threads_and_kind(self):
        results = [_result(0.5), _result(2.0), _result(9.0, kind="small"), _result(4.0, threads=1)]
        sums = {(s["threads"], s["kind"]): s for s in conclusions.summarise(results)}
        self.assertAlmostEqual(sums[2, "convolution"]["ratio"], 1.0)
        self.assertEqual(sums[2, "convolution"]["worst"], 2.0)
        self.assertAlmostEqual(sums[2, "all"]["ratio"], 9 ** (1 / 3))
        self.assertEqual(sums[1, "all"]["models"], 1)

    def test_exit_status_puts_wrong_results_first(self):
        wrong = _result(5.0, difference=1.5)
        unchecked = {**wrong, "is_checked": False}
        allowed = {**wrong, "allowed": 2.0}
        failed = _result(5.0)
        failed["engines"]["onnxifi"] = {"fault": "no"}
        for results, limit, status in (
            ([_result(5.0)], None, 0),
            ([_result(5.0)], 4.0, 3),
            ([_result(0.5), wrong], 4.0, 1),
            ([unchecked], None, 0),
            ([allowed], None, 0),
            ([failed], None, 1),
        ):
            self.assertEqual(conclusions.find_exit_status({"results": results}, limit), status)


    def test_exit_status_puts_means_of_runs_and_of_loads_to_the_limit(self):
        fast = {**_result(1.0), "load_ratio": 1.0}
        slow_to_load = {**_result(1.0), "load_ratio": 1.1}
        # Means: runs 1.02; loads 1.05 with 2 threads.
        for results, limit, status in (
            ([fast, _result(1.04)], 1.03, 0),
            ([fast, _result(1.10)], 1.03, 3),
            ([fast, slow_to_load], 1.03, 3),
            ([fast, slow_to_load], 1.06, 0),
            # Loads with fewer threads than the most are too few to check by.
            ([fast, {**slow_to_load, "threads": 1}], 1.03, 0),
            ([fast, {**_result(1.04), "threads": 1}], 1.03, 3),
        ):
            report = {"results": results, "summaries": conclusions.summarise(results)}
            self.assertEqual(conclusions.find_exit_status(report, require_mean=limit), status)

    def test_another_build_of_ours_is_a_peer(self):
        figures = {
            "onnxifi": {"median_ms": 3.0, "first_result_ms": 10.0, "peak_mib": 8.0},
            "before": {"median_ms": 2.0, "first_result_ms": 20.0, "peak_mib": 8.0},
        }
        ratios = conclusions.compare_with_peers(figures)
        self.assertEqual(
            (ratios["ratio"], ratios["load_ratio"], ratios["memory_ratio"]), (1.5, 0.5, 1)
        )


class _Timed:
    """An engine that writes down when it is timed."""

    def __init__(self, name, order):
        self.name = name
        self.order = order

    def time(self, warm_up, count):
        self.order.append(self.name)
        return [1000.0] * count


class TakeTurns(unittest.TestCase):
    def test_each_engine_is_first_in_every_other_round(self):
        order = []
        running = {name: _Timed(name, order) for name in ("onnxifi", "before")}
        times = compare.take_turns(running, rounds=4, turn_ms=1)
        ours, other = "onnxifi", "before"
        self.assertEqual(order[-8:], [ours, other, other, ours] * 2)
        self.assertEqual({name: len(runs) for name, runs in times.items()}, {ours: 4, other: 4})


    def test_each_engine_has_as_many_runs_as_are_wanted(self):
        for rounds, runs in ((4, 200), (7, 203)):
            order = []
            times = compare.take_turns({"onnxifi": _Timed("onnxifi", order)}, rounds, 1, 50, 200)
            self.assertEqual(len(times["onnxifi"]), runs)


class CpuTime(unittest.TestCase):
    def test_is_for_one_thread_of_the_processor(self):
        parse = CpuIsa().parse
        self.assertTrue(parse("--cpu-time", "--threads", "1").cpu_time)
        for words in ([], ["--threads", "1,2"], ["--threads", "1", "--csv"], ["--threads", "1", "--device", "vulkan"]):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                parse("--cpu-time", *words)

    def test_does_not_count_what_a_run_waits_for(self):
        # In a process that has no thread but this: other threads' work counts, too.
        text = (
            "import time, engines\n"
            "clocks = time.perf_counter_ns, time.process_time_ns\n"
            "print(*(engines._time_runs(lambda: time.sleep(0.2), 1, clock)[0] for clock in clocks))"
        )
        command = [sys.executable, "-c", text]
        environment = {**os.environ, "PYTHONPATH": str(_TREE / "benchmarks")}
        told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
        passed_ms, spent_ms = (float(word) for word in told.split())
        self.assertGreater(passed_ms, 199)
        self.assertLess(spent_ms, 100)


class CpuIsa(unittest.TestCase):
    def parse(self, *words):
        with unittest.mock.patch.object(sys, "argv", ["compare.py", *words]):
            return compare.parse_arguments()

    def test_compares_engines_that_can_be_limited(self):
        for isa in ("sse4", "avx2"):
            self.assertEqual(self.parse("--cpu-isa", isa).engines, ["onnxifi", "onnxruntime", "openvino"])
        self.assertEqual(self.parse("--cpu-isa", "avx512").engines, ["onnxifi", "openvino"])
        self.assertIn("onnxruntime", self.parse().engines)

    def test_refuses_what_it_cannot_limit(self):
        for words in (
            ("--cpu-isa", "avx3"),
            ("--cpu-isa", "avx512", "--engines", "onnxifi,onnxruntime"),
            ("--cpu-isa", "avx2", "--engines", "onnxifi,torch"),
            ("--cpu-isa", "avx2", "--device", "vulkan"),
            ("--cpu-isa", "avx2", "--csv"),
        ):
            with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
                self.parse(*words)

    def test_reaches_an_engine_by_its_environment(self):
        options = {"device": "cpu", "library": "/nowhere/libonnxifi.so", "cpu_isa": "sse4"}
        with unittest.mock.patch.dict(os.environ):
            engines._Onnxifi.prepare()
            with contextlib.suppress(Exception):
                engines._Onnxifi(1, options)
            self.assertIn(("ONNXIFI_CPU_ISA", "sse4"), os.environ.items())
            with contextlib.suppress(ImportError):
                engines._OpenVino(1, options)
            self.assertIn(("ONEDNN_MAX_CPU_ISA", "SSE41"), os.environ.items())


class LimitedPeers(unittest.TestCase):
    ASKS = b"\x31\xc9\x0f\x01\xd0\xc3"

    def test_code_has_the_answers_of_the_processor_that_it_is_limited_to(self):
        for isa, bits in (("sse4", 3), ("avx2", 7)):
            answer = b"\x31\xc9\x8d\x41" + bytes([bits]) + b"\xc3"
            self.assertEqual(limited_peers.limit(self.ASKS, isa), (answer, 1))

    def test_code_that_only_looks_so_stays_as_it_is(self):
        for add in (b"\x83\xe0\x0f\x01\xd0", b"\xc1\xc8\x0f\x01\xd0"):
            self.assertEqual(limited_peers.limit(add, "avx2"), (add, 0))

    def test_finds_no_vnni(self):
        asks = bytes.fromhex("b807000000 b901000000 0fa2")
        limited, _ = limited_peers.limit(asks + b"\xa8\x10", "avx2")
        self.assertEqual(limited, asks + b"\xa8\x00")

    def make(self, root, code):
        package = root / "packages" / "some_peer"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "code.so").write_bytes(code)
        with unittest.mock.patch.object(sys, "path", [str(package.parent), *sys.path]):
            importlib.invalidate_caches()
            return limited_peers.copy("some_peer", "avx2", root / "cache")

    def test_a_copy_has_limited_libraries_and_the_rest_as_it_is(self):
        with tempfile.TemporaryDirectory() as root:
            folder = self.make(pathlib.Path(root), self.ASKS) / "some_peer"
            self.assertEqual((folder / "code.so").read_bytes()[2:5], b"\x8d\x41\x07")
            self.assertTrue((folder / "__init__.py").is_symlink())

    def test_a_package_of_which_nothing_is_limited_is_refused(self):
        with tempfile.TemporaryDirectory() as root:
            with self.assertRaisesRegex(limited_peers.LimitError, "Package 'some_peer' does not ask"):
                self.make(pathlib.Path(root), b"\xc3")
            self.assertEqual(list((pathlib.Path(root) / "cache" / "limited_peers").iterdir()), [])

    def test_an_answer_that_would_not_be_limited_is_refused(self):
        move_and_ask = b"\xb9\x00\x00\x00\x00\x0f\x01\xd0"
        with tempfile.TemporaryDirectory() as root:
            with self.assertRaisesRegex(limited_peers.LimitError, "'code.so' of .* 'some_peer' asks .* at byte 11 "):
                self.make(pathlib.Path(root), self.ASKS + move_and_ask)

    def test_an_engine_imports_its_copy(self):
        options = {"device": "cpu", "peer_folders": {"onnxruntime": "/nowhere/limited"}}
        with unittest.mock.patch.object(sys, "path", list(sys.path)):
            with contextlib.suppress(ImportError):
                engines._OnnxRuntime(1, options)
            self.assertEqual(sys.path[0], "/nowhere/limited")


class Cuda(unittest.TestCase):
    def test_has_peers_of_its_own(self):
        peers = ["onnxruntime", "torch", "torch-compile"]
        self.assertEqual(compare.choose_engines("cuda:1"), ["onnxifi", *peers])
        self.assertEqual(cuda_memory.index_of("cuda:1"), 1)
        self.assertFalse(cuda_memory.is_on_device("cpu"))

    def test_peers_that_cannot_be_opened_have_a_reason(self):
        options = {"device": "cpu", "library": "/nowhere/libonnxifi.so"}
        absent = compare.find_absent(["torch", "onnxifi"], options)
        self.assertEqual(absent["torch"], "it is compared on CUDA devices only, not on 'cpu'.")
        self.assertIn("/nowhere/libonnxifi.so", absent["onnxifi"])

    def test_nodes_of_another_provider_are_found(self):
        def event(name, provider, kind="Conv", cat="Node"):
            return {"cat": cat, "name": name, "args": {"provider": provider, "op_name": kind}}

        events = [
            event("a_kernel_time", "CUDAExecutionProvider"),
            event("s_kernel_time", "CPUExecutionProvider", "Shape"),
            event("s_kernel_time", "CPUExecutionProvider", "Shape"),
            event("model_run", "", cat="Session"),
            {"cat": "Node", "name": "a_fence_before", "args": {"op_name": "Conv"}},
        ]
        self.assertEqual(
            engines.find_nodes_elsewhere(events, "CUDAExecutionProvider"),
            {"layers": 2, "layers_elsewhere": ["Shape 's'"]},
        )

    def test_what_a_peer_does_otherwise_is_named(self):
        good = {
            "median_ms": 1.0, "best_ms": 1.0, "first_result_ms": 1.0, "peak_mib": 1.0, "difference": 0,
        }
        facts = {"without_graph": "its shape is dynamic", "layers": 3, "layers_elsewhere": ["Shape 's'"]}
        entry = {
            **_result(1.0, threads=1), "model": "m", "compared_with": "float64",
            "engines": {
                "onnxifi": {**good, "facts": {"device": "A"}}, "onnxruntime": {**good, "facts": facts},
            },
        }
        text = comparison_text.make_tables(
            {
                "engines": ["onnxifi", "onnxruntime"], "results": [entry], "has_device_memory": True,
                "left_out": ["torch is not compared: there is none."], "summaries": [],
            }
        )
        self.assertIn("growth of the device's memory until then", text)
        self.assertIn("m, onnxruntime: without a CUDA graph: its shape is dynamic", text)
        self.assertIn("m, onnxruntime: of 3 layers the processor runs Shape 's'", text)
        self.assertIn("torch is not compared: there is none.", text)

    def _compare(self, **environment):
        library = _TREE / "build" / "release" / "lib" / "libonnxifi.so"
        if not library.exists() or not (library.parent / "libonnxifi-cuda.so").exists():
            self.skipTest("There is no release build with the CUDA plugin.")
        command = [sys.executable, str(_TREE / "benchmarks" / "compare.py"), "--device", "cuda"]
        command += ["--models", "identity", "--rounds", "2", "--turn-ms", "1", "--loads", "1"]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **environment}
        )

    def test_without_a_device_it_ends_with_a_sentence(self):
        done = self._compare(CUDA_VISIBLE_DEVICES="")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        (line,) = done.stderr.splitlines()
        self.assertRegex(line, r"^compare\.py: Nothing is compared: There is no .*CUDA.*\.$")

    def test_a_driver_without_a_device_is_named(self):
        folder = _TREE / "build" / "release" / "lib" / "emulated"
        if not folder.exists():
            self.skipTest("There is no emulated device.")
        done = self._compare(LD_LIBRARY_PATH=str(folder), ONNXIFI_EMULATED_DEVICES="0")
        self.assertEqual(done.returncode, 2)
        sentence = "compare.py: Nothing is compared: The CUDA driver finds no device.\n"
        self.assertEqual(done.stderr, sentence)

    def test_runs_on_the_emulated_device(self):
        folder = _TREE / "build" / "release" / "lib" / "emulated"
        if not folder.exists():
            self.skipTest("There is no emulated device.")
        done = self._compare(LD_LIBRARY_PATH=str(folder), ONNXIFI_EMULATED_TWICE="0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nidentity +1 +[0-9.]+ / [0-9.]+ .* same.* \(from float64\)")
        self.assertIn("onnxifi runs on Emulated GPU", done.stdout)
        for peer in ("onnxruntime", "torch", "torch-compile"):
            self.assertRegex(done.stdout, rf"\n{peer} is not compared: .+")


class Ncnn(unittest.TestCase):
    def test_inputs_are_extents_and_types(self):
        inputs = {"x": numpy.zeros((1, 3, 4), numpy.float32), "n": numpy.zeros((2,), numpy.int64)}
        option = ncnn_models.describe_inputs(inputs)
        self.assertEqual(option, "inputshape=[1,3,4]f32,[2]i64")

    def test_inputs_that_pnnx_cannot_have_are_refused(self):
        for array, words in (
            (numpy.zeros((1, 0), numpy.float32), "'x' is empty"),
            (numpy.zeros((1,), numpy.uint8), "no inputs of type uint8"),
        ):
            with self.assertRaisesRegex(ncnn_models.ConversionError, words):
                ncnn_models.describe_inputs({"x": array})

    def test_a_conversion_with_ignored_operators_is_none(self):
        log = "todo Gather\nignore Gather Gather_0 param axis=0\nFLOPS = 1M\n"
        self.assertIn("Gather", ncnn_models.find_fault(0, log, "7767517"))
        self.assertIsNone(ncnn_models.find_fault(0, "FLOPS = 1M\n", "7767517"))
        self.assertIn("FLOPS", ncnn_models.find_fault(0, "FLOPS = 1M\n", ""))
        self.assertIn("-11: no", ncnn_models.find_fault(-11, "\x1b[1;31mno\x1b[m\n", "7767517"))

    def test_is_the_peer_of_vulkan_devices_alone(self):
        self.assertEqual(compare.choose_engines("vulkan:1"), ["onnxifi", "ncnn"])
        self.assertEqual(compare.choose_engines("cpu"), ["onnxifi", "onnxruntime", "openvino"])
        self.assertEqual(compare.choose_engines("vulkan", "old.so"), ["onnxifi", "before"])

    def test_without_finite_results_is_no_peer(self):
        def result(*values):
            return [{"outputs": {"y": numpy.array(values, "float32"), "n": numpy.array([1])}}]

        loaded = {"onnxifi": result(1, 2), "onnxruntime": result(1, 3), "openvino": result(1, numpy.inf)}
        self.assertIn("not finite", compare.find_not_finite(loaded, "openvino"))
        self.assertIsNone(compare.find_not_finite(loaded, "onnxruntime"))
        loaded = {"onnxifi": result(numpy.nan, 2), "openvino": result(1, numpy.inf)}
        self.assertIsNone(compare.find_not_finite(loaded, "openvino"))
        loaded["onnxruntime"] = result(1, 2)
        self.assertIsNone(compare.find_not_finite(loaded, "onnxifi"))

    def test_on_another_device_is_no_peer(self):
        def load(device):
            return [{"facts": {"device": device}}]

        loaded = {"onnxifi": load("A"), "ncnn": load("B")}
        self.assertIn("on 'B', not on 'A'", compare.find_other_devices(loaded, "ncnn"))
        self.assertIsNone(compare.find_other_devices({**loaded, "ncnn": load("A")}, "ncnn"))
        self.assertIsNone(compare.find_other_devices(loaded, "onnxifi"))

    def test_layers_on_the_processor_and_failed_conversions_are_named(self):
        on_device = {"device": "A", "layers": 9, "layers_elsewhere": ["Slice 's'"]}
        good = {
            "median_ms": 1.0, "best_ms": 1.0, "first_result_ms": 1.0, "peak_mib": 1.0,
            "difference": 0, "facts": on_device,
        }
        entry = {
            **_result(1.0), "model": "m", "compared_with": "float64",
            "engines": {"onnxifi": {**good, "facts": {"device": "A"}}, "ncnn": good},
        }
        failed = {
            **entry, "model": "other", "ratio": None, "load_ratio": None, "memory_ratio": None,
            "engines": {**entry["engines"], "ncnn": {"fault": "not compared: pnnx cannot."}},
        }
        text = comparison_text.make_tables(
            {
                "engines": ["onnxifi", "ncnn"], "results": [entry, failed], "left_out": [],
                "summaries": conclusions.summarise([entry, failed]),
            }
        )
        self.assertIn("m, ncnn: of 9 layers the processor runs Slice 's'", text)
        self.assertIn("other, 2 threads, ncnn: not compared: pnnx cannot.", text)
        self.assertIn("ncnn runs on A", text)
        self.assertIn("convolution, 2 threads, 1 models", text)


if __name__ == "__main__":
    unittest.main()

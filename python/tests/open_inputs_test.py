# SPDX-License-Identifier: Apache-2.0
"""Tests of sessions on models that leave the rank of an input open, or how many numbers a list of extents has."""

import pathlib
import subprocess
import tempfile
import threading
import unittest
from unittest import mock

import numpy
import onnx
from onnx import numpy_helper

import onnxifi
from fixture import FLOAT, INT64, LIBRARY_PATH, model, node, session, tensor
from onnxifi import session as open_session

_X = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def _with_list(operator, **attributes):
    """`operator` of x [a, b] and a list of any length."""
    inputs = [tensor("x", ["a", "b"]), tensor("list", ["n"], INT64)]
    return model([node(operator, ["x", "list"], ["y"], **attributes)], inputs, [tensor("y", None)])


def _numbers(*numbers):
    return numpy.array(numbers, numpy.int64)


class OpenInputsTest(unittest.TestCase):
    def test_an_input_without_a_rank_has_that_of_each_run(self):
        made = model([node("Neg", ["x"], ["y"])], [tensor("x", None)], [tensor("y", None)])
        for device in ("cpu", "auto"):
            opened = session(made, device)
            for x in (_X, _X[0], _X[None], numpy.float32(3), _X * 2, _X.T):
                numpy.testing.assert_array_equal(opened.run(None, {"x": x})[0], -x)
        self.assertIsNone(opened.inputs[0].shape)

    def test_lists_have_the_length_of_each_run(self):
        cases = [
            ("Reshape", {}, [_numbers(3, 2), _numbers(6), _numbers(1, -1, 2)], numpy.reshape),
            ("Expand", {}, [_numbers(4, 2, 3), _numbers(1)], lambda x, n: x * numpy.ones(n, x.dtype)),
            ("ReduceSum", {"keepdims": 1}, [_numbers(0), _numbers(0, 1), _numbers(-1)],
             lambda x, n: x.sum(tuple(n), keepdims=True)),
            ("ReduceSum", {"keepdims": 0}, [_numbers(1), _numbers(1, 0)], lambda x, n: x.sum(tuple(n))),
            ("Unsqueeze", {}, [_numbers(0), _numbers(0, 3)], lambda x, n: numpy.expand_dims(x, tuple(n))),
        ]  # fmt: skip
        for device in ("cpu", "auto"):
            for operator, attributes, lists, expected in cases:
                opened = session(_with_list(operator, **attributes), device)
                for numbers in lists:
                    with self.subTest(operator, device=device, numbers=numbers):
                        got = opened(x=_X, list=numbers)["y"]
                        self.assertEqual(got.shape, expected(_X, numbers).shape)
                        numpy.testing.assert_array_equal(got, expected(_X, numbers))

    def test_a_list_may_lack_a_rank_too(self):
        made = _with_list("Reshape")
        made.graph.input[1].type.tensor_type.ClearField("shape")
        opened = session(made)
        self.assertEqual(opened(x=_X, list=_numbers(3, 2))["y"].shape, (3, 2))
        self.assertEqual(opened(x=_X, list=_numbers(6))["y"].shape, (6,))

    def test_what_a_model_has_besides_stays(self):
        weight = numpy_helper.from_array(_X.T.copy(), "weight")
        nodes = [node("MatMul", ["x", "weight"], ["product"]), node("Add", ["product", "bias"], ["y"])]
        bias = tensor("bias", [2])
        made = model(nodes, [tensor("x", None), bias], [tensor("y", None)], [weight])
        made.metadata_props.add(key="k", value="v" * 300)
        made.graph.doc_string = "d" * 200
        given = numpy.array([1, -1], numpy.float32)
        for options in ({}, {"weights": {"bias": given}}):
            opened = session(made.SerializeToString(), **options)
            feeds = {"x": _X} if options else {"x": _X, "bias": given}
            numpy.testing.assert_array_equal(opened(**feeds)["y"], _X @ _X.T + given)
            numpy.testing.assert_array_equal(opened(**{**feeds, "x": _X[0]})["y"], _X[0] @ _X.T + given)

    def test_outputs_bindings_and_reports_are_those_of_the_latest_run(self):
        made = model([node("Neg", ["x"], ["y"])], [tensor("x", None)], [tensor("y", None)])
        opened = session(made, "auto")
        with self.assertRaisesRegex(onnxifi.Error, "it is compiled in the first run"):
            opened.placement()
        y = numpy.empty_like(_X)
        self.assertIs(opened.run(None, {"x": _X}, outputs={"y": y})[0], y)
        numpy.testing.assert_array_equal(y, -_X)
        self.assertEqual([island.device for island in opened.placement()], ["cpu:0"])
        self.assertEqual(len(opened.explain().nodes), 1)
        self.assertFalse(opened.is_emulated)
        self.assertEqual(opened.infer_output_shapes({"x": [4, 5]}), {"y": [4, 5]})
        binding = opened.bind({"x": _X[0].copy()}, {"y": y[0]})
        binding.run()
        numpy.testing.assert_array_equal(y[0], -_X[0])

    def test_more_ranks_than_are_kept_run(self):
        opened = session(_with_list("Reshape"))
        for length in (*range(1, 20), 1):
            shape = (1,) * (length - 1) + (6,)
            self.assertEqual(opened(x=_X, list=_numbers(*shape))["y"].shape, shape)

    def test_what_reads_the_result_may_need_another_length_than_one(self):
        x, w = _X.reshape(2, 3), numpy.ones((1, 1, 3, 3), numpy.float32)
        images = numpy.arange(25, dtype=numpy.float32).reshape(5, 5)
        four = numpy.arange(24, dtype=numpy.float32).reshape(1, 2, 3, 4)
        weight = numpy_helper.from_array(w, "w")
        cases = [
            (node("Reshape", ["x", "l"], ["r"]), node("Transpose", ["r"], ["y"], perm=[0, 2, 1]), x, _numbers(1, 2, 3),
             x.reshape(1, 2, 3).transpose(0, 2, 1)),
            (node("Unsqueeze", ["x", "l"], ["r"]), node("Conv", ["r", "w"], ["y"]), images, _numbers(0, 1),
             numpy.lib.stride_tricks.sliding_window_view(images, (3, 3)).sum((2, 3))[None, None]),
            (node("ReduceSum", ["x", "l"], ["r"], keepdims=0), node("Transpose", ["r"], ["y"], perm=[1, 0]), four,
             _numbers(0, 1), four.sum((0, 1)).T),
        ]  # fmt: skip
        for device in ("cpu", "auto"):
            for producer, reader, given, numbers, expected in cases:
                with self.subTest(producer.op_type, device=device):
                    axes = [f"d{axis}" for axis in range(given.ndim)]
                    inputs = [tensor("x", axes), tensor("l", ["n"], INT64)]
                    opened = session(model([producer, reader], inputs, [tensor("y", None)], [weight]), device)
                    self.assertEqual(opened.inputs[1].shape, ["n"])
                    numpy.testing.assert_array_equal(opened(x=given, l=numbers)["y"], expected)
                    with self.assertRaises(onnxifi.Error):
                        opened(x=given, l=_numbers(0))

    def test_lists_may_need_lengths_that_differ(self):
        nodes = [
            node("Reshape", ["x", "shape"], ["r"]),
            node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
            node("ReduceSum", ["t", "axes"], ["s"], keepdims=0),
            node("Transpose", ["s"], ["y"], perm=[1, 0]),
        ]
        inputs = [tensor("x", ["a"]), tensor("shape", ["n"], INT64), tensor("axes", ["m"], INT64)]
        opened = session(model(nodes, inputs, [tensor("y", None)]))
        with self.assertRaisesRegex(onnxifi.Error, "it is compiled in the first run"):
            opened.placement()
        got = opened(x=_X.ravel(), shape=_numbers(1, 2, 3), axes=_numbers(0))["y"]
        numpy.testing.assert_array_equal(got, _X)

    def test_declared_ranks_and_symbols_hold(self):
        outputs = [tensor("y", None), tensor("z", None, INT64)]
        nodes = [node("Neg", ["x"], ["y"]), node("Identity", ["ids"], ["z"])]
        opened = session(model(nodes, [tensor("x", None), tensor("ids", ["n"], INT64)], outputs))
        self.assertEqual(opened(x=_X, ids=_numbers(0, 1))["z"].tolist(), [0, 1])
        with self.assertRaises(onnxifi.MismatchError) as refused:
            opened(x=_X, ids=_numbers(0, 1)[None])
        self.assertEqual(refused.exception.status, "MISMATCHING_SHAPE")
        lists = session(_with_list("Reshape"))
        for wrong in (_numbers(3, 2)[None], 6):
            with self.assertRaisesRegex(onnxifi.MismatchError, "Input 'list' has [02] axes instead of 1"):
                lists(x=_X, list=wrong)
        for kept in (tensor("v", ["n"]), tensor("v", ["n"], INT64), tensor("v", ["k", "n"])):
            nodes = [node("Reshape", ["x", "ids"], ["y"]), node("Identity", ["v"], ["z"])]
            number = kept.type.tensor_type.elem_type
            given = (1,) * (len(kept.type.tensor_type.shape.dim) - 1)
            made = model(
                nodes,
                [tensor("x", ["a", "b"]), tensor("ids", ["n"], INT64), kept],
                [tensor("y", None), tensor("z", None, number)],
            )
            opened = session(made)
            dtype = numpy.int64 if number == INT64 else numpy.float32
            for length, wrong in ((2, 3), (2, 1), (3, 2)):
                ids = _numbers(*[6, 1, 1][:length])
                self.assertEqual(opened(x=_X, ids=ids, v=numpy.ones((*given, length), dtype))["y"].ndim, length)
                with self.assertRaises(onnxifi.MismatchError):
                    opened(x=_X, ids=ids, v=numpy.ones((*given, wrong), dtype))

    def test_lengths_of_data_compile_nothing_anew(self):
        outputs = [tensor("y", None), tensor("z", None, INT64)]
        data = tensor("data", ["m"], INT64)
        keeps_data = node("Neg", ["data"], ["z"])
        unranked = session(model([node("Neg", ["x"], ["y"]), keeps_data], [tensor("x", None), data], outputs))
        listed = session(
            model(
                [node("Reshape", ["x", "list"], ["y"]), keeps_data],
                [tensor("x", ["a", "b"]), data, tensor("list", ["n"], INT64)],
                outputs,
            )
        )
        for opened, feeds in ((unranked, {"x": _X}), (listed, {"x": _X, "list": _numbers(3, 2)})):
            opened(**feeds, data=_numbers(1))
            compiled = set(opened._variants.values())
            for length in range(2, 6):
                z = opened(**feeds, data=_numbers(*range(length)))["z"]
                self.assertEqual(z.tolist(), [-number for number in range(length)])
            self.assertEqual(set(opened._variants.values()), compiled)
            self.assertFalse(any(variant._variants for variant in compiled))

    def test_reports_are_of_the_latest_run_whatever_is_inferred(self):
        made = model([node("Neg", ["x"], ["y"])], [tensor("x", None)], [tensor("y", None)])
        opened = session(made, "auto", profile=True)
        opened.run(None, {"x": _X})
        steps = opened.profile()
        self.assertEqual(opened.infer_output_shapes({"x": [4, 5, 6]}), {"y": [4, 5, 6]})
        self.assertEqual(opened.profile(), steps)
        self.assertTrue(steps)

    def test_the_variants_used_last_are_kept(self):
        opened = session(_with_list("Reshape"))

        def run(length):
            opened(x=_X, list=_numbers(*(1,) * (length - 1), 6))
            return opened._latest

        often = run(1)
        for length in range(2, 21):
            run(length)
            self.assertIs(run(1), often)
        self.assertEqual(len(opened._variants), 16)
        again = run(20)
        self.assertIs(run(20), again)
        self.assertFalse(opened._compiling)

    def test_runs_of_other_lengths_go_on_while_one_compiles(self):
        opened = session(_with_list("Reshape"))
        opened(x=_X, list=_numbers(6))
        waits, goes_on, compiled = threading.Event(), threading.Event(), []

        class Slow(open_session._ClosedVariant):
            def __init__(self, *arguments, **options):
                compiled.append(self)
                if len(compiled) == 1:
                    waits.set()
                    goes_on.wait(60)
                super().__init__(*arguments, **options)

        results = []
        with mock.patch.object(open_session, "_ClosedVariant", Slow):
            threads = [
                threading.Thread(target=lambda: results.append(opened(x=_X, list=_numbers(3, 2))["y"])) for _ in range(3)
            ]
            for thread in threads:
                thread.start()
            self.assertTrue(waits.wait(60))

            def run_others():
                for numbers in (_numbers(6), _numbers(1, 2, 3)):
                    opened(x=_X, list=numbers)
                goes_on.set()

            other = threading.Thread(target=run_others)
            other.start()
            other.join(10)
            has_gone_on = goes_on.is_set()
            goes_on.set()
            for thread in (*threads, other):
                thread.join(60)
        self.assertTrue(has_gone_on)
        self.assertEqual(len(compiled), 2)  # that of (3, 2), once for its three threads, and that of (1, 2, 3)
        self.assertEqual([y.shape for y in results], [(3, 2)] * 3)

    def test_a_refused_length_leaves_nothing_behind(self):
        opened = session(_with_list("Unsqueeze"))
        before = dict(opened._variants)
        for _ in range(2):
            with self.assertRaises(onnxifi.Error):
                opened(x=_X, list=_numbers(*range(70)))
        self.assertEqual(opened._variants, before)
        self.assertFalse(opened._compiling)
        self.assertEqual(opened(x=_X, list=_numbers(0))["y"].shape, (1, 2, 3))

    def test_refusals_for_another_reason_are_told_when_the_model_is_opened(self):
        body = onnx.helper.make_graph(
            [node("Unsqueeze", ["v", "zero"], ["w"]), node("Identity", ["more"], ["again"])],
            "body",
            [tensor("k", [], INT64), tensor("more", [], onnx.TensorProto.BOOL), tensor("v", None, INT64)],
            [tensor("again", [], onnx.TensorProto.BOOL), tensor("w", None, INT64)],
        )
        nodes = [node("Loop", ["count", "", "x"], ["y"], body=body)]
        inputs = [tensor("count", [], INT64), tensor("x", ["n"], INT64)]
        made = model(nodes, inputs, [tensor("y", None, INT64)], [numpy_helper.from_array(_numbers(0), "zero")])
        with self.assertRaisesRegex(onnxifi.UnsupportedError, "enters with 1 axes and leaves with 2"):
            session(made)

    def test_onnxifi_run_takes_the_length_of_its_file(self):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            onnx.save(_with_list("Reshape"), folder / "model.onnx")
            numpy.save(folder / "x.npy", _X)
            numpy.save(folder / "list.npy", _numbers(3, 2))
            expected = numpy_helper.from_array(_X.reshape(3, 2), "y")
            (folder / "output_0.pb").write_bytes(expected.SerializeToString())
            command = [LIBRARY_PATH.parents[1] / "bin" / "onnxifi_run", folder / "model.onnx", "--device", "cpu"]
            command += ["--input", folder / "x.npy", "--input", folder / "list.npy", "--expect", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_names_and_closing_are_checked(self):
        made = model([node("Neg", ["x"], ["y"])], [tensor("x", None, FLOAT)], [tensor("y", None)])
        opened = session(made)
        with self.assertRaisesRegex(onnxifi.Error, "no input 'z'; Input 'x' is not given"):
            opened.run(None, {"z": _X})
        with self.assertRaisesRegex(onnxifi.Error, "no output 'q'"):
            opened.run(["q"], {"x": _X})
        opened.close()
        with self.assertRaisesRegex(onnxifi.Error, "closed"):
            opened.run(None, {"x": _X})


if __name__ == "__main__":
    unittest.main()

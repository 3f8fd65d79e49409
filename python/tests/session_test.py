# SPDX-License-Identifier: Apache-2.0
"""Tests of onnxifi.Session: what it takes, what it gives, what it says, and what it leaves behind."""

import gc
import pathlib
import pickle
import sys
import tempfile
import threading
import unittest
import unittest.mock

import ml_dtypes
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxifi
from onnxifi import element_types
from fixture import BOOL, DIGITS, FLOAT, INT64, LIBRARY, STRING, identity, model, node, resident_mib, session, tensor

_X = numpy.linspace(-2, 2, 12, dtype=numpy.float32).reshape(3, 4)


def add_one(shape=("n", 4)):
    one = numpy_helper.from_array(numpy.array(1, numpy.float32), "one")
    return model([node("Add", ["x", "one"], ["y"])], [tensor("x", shape)], [tensor("y", shape)], [one])


def classifier():
    """Maps of probabilities, and numbers beside them."""
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, [])))
    return model(
        [node("ZipMap", ["p"], ["m"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]), node("Add", ["p", "p"], ["d"])],
        [tensor("p", ["n", 2])], [helper.make_value_info("m", maps), tensor("d", ["n", 2])], domains=[("ai.onnx.ml", 3)],
    )


class ModelTest(unittest.TestCase):
    def test_path_bytes_and_proto_are_the_same_model(self):
        image = numpy.random.default_rng(1).random((1, 1, 8, 8), numpy.float32)
        content = DIGITS.read_bytes()
        answers = [
            session(given).run(None, {"image": image})[0]
            for given in (DIGITS, str(DIGITS), content, bytearray(content), onnx.load_from_string(content))
        ]
        for answer in answers[1:]:
            numpy.testing.assert_array_equal(answer, answers[0])

    def test_inputs_and_outputs_are_told_as_onnx_runtime_does(self):
        opened = session(DIGITS)
        (image,), (scores,) = opened.get_inputs(), opened.get_outputs()
        self.assertEqual((image.name, image.shape, image.type), ("image", ["batch", 1, 8, 8], "tensor(float)"))
        self.assertEqual((scores.name, scores.dtype), ("scores", numpy.float32))

    def test_initializers_that_are_inputs_too_are_not_asked_for(self):
        one = numpy_helper.from_array(numpy.array(1, numpy.float32), "one")
        made = model([node("Add", ["x", "one"], ["y"])], [tensor("x", [2]), tensor("one", [])], [tensor("y", [2])], [one])
        self.assertEqual([value.name for value in session(made).inputs], ["x"])

    def test_inputs_become_weights(self):
        made = model([node("MatMul", ["x", "w"], ["y"])], [tensor("x", ["n", 4]), tensor("w", [4, 2])], [tensor("y", ["n", 2])])
        w = numpy.arange(8, dtype=numpy.float32).reshape(4, 2)
        given = w.copy()
        for device in ("cpu", "auto"):
            opened = session(made, device, weights={"w": given})
            self.assertEqual([value.name for value in opened.inputs], ["x"])
            given[:] = 0  # they are copied
            numpy.testing.assert_allclose(opened(x=_X)["y"], _X @ w, rtol=1e-6)
            given[:] = w
        with self.assertRaisesRegex(onnxifi.MismatchError, "'v' is no input that can become a weight; there are 'x', 'w'"):
            session(made, weights={"v": w})

    def test_external_data_is_found_beside_the_file(self):
        weight = numpy.arange(2048, dtype=numpy.float32)
        made = model(
            [node("Add", ["x", "w"], ["y"])], [tensor("x", [2048])], [tensor("y", [2048])],
            [numpy_helper.from_array(weight, "w")],
        )
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model.onnx"
            onnx.save(made, path, save_as_external_data=True, location="weights", size_threshold=0)
            with session(path) as opened:
                numpy.testing.assert_array_equal(opened(x=weight)["y"], 2 * weight)
            with open(path, "rb") as file, self.assertRaises(onnxifi.InvalidError):
                session(file.read())

    def test_a_squeeze_that_was_traced_with_one_row_follows_the_rows_of_each_run(self):
        made = model(
            [node("Squeeze", ["x"], ["y"])],
            [tensor("x", ["rows", 4])],
            [tensor("y", ["columns"])],
        )
        with session(made) as opened:
            for rows, shape in ((3, (3, 4)), (1, (4,)), (2, (2, 4))):
                x = numpy.arange(rows * 4, dtype="f").reshape(rows, 4)
                (y,) = opened.run(None, {"x": x})
                self.assertEqual(shape, y.shape)
                numpy.testing.assert_array_equal(x.reshape(shape), y)

    def test_a_squeeze_keeps_a_batch_of_one_where_numbers_make_the_declared_rank(self):
        made = model(
            [node("Squeeze", ["x"], ["squeezed"]), node("Neg", ["squeezed"], ["y"])],
            [tensor("x", ["rows", 4, 1, 1])],
            [tensor("y", ["rows", 4])],
            value_info=[tensor("squeezed", ["rows", 4])],
        )
        with session(made) as opened:
            for rows in (3, 1):
                x = numpy.arange(rows * 4, dtype="f").reshape(rows, 4, 1, 1)
                (y,) = opened.run(None, {"x": x})
                numpy.testing.assert_array_equal(-x.reshape(rows, 4), y)

    # A network is compiled for its shape, where a batch of one is a number like others.
    def test_a_squeeze_keeps_a_batch_of_one_in_a_network_of_its_shape(self):
        random = numpy.random.default_rng(7)
        layers = [0.1 * random.standard_normal((16, channels, 3, 3)).astype("f") for channels in (3, 16, 16)]
        pooled = []
        last = "x"
        for k in range(len(layers)):
            pooled += [node("Conv", [last, f"w{k}"], [f"c{k}"], pads=[1, 1, 1, 1]), node("Relu", [f"c{k}"], [f"r{k}"])]
            last = f"r{k}"
        pooled.append(node("GlobalAveragePool", [last], ["g"]))
        squeezed = [node("Squeeze", ["g"], ["s"]), node("ReduceMax", ["s", "rows"], ["y"], keepdims=0)]
        # Axes were attributes then.
        squeezed_before_13 = [node("Squeeze", ["g"], ["s"]), node("ReduceMax", ["s"], ["y"], axes=[0], keepdims=0)]
        declared = tensor("s", ["n", 16])
        y = tensor("y", [16])
        weights = [numpy_helper.from_array(layer, f"w{k}") for k, layer in enumerate(layers)]
        weights += [
            numpy_helper.from_array(numpy.array([0], "i8"), "rows"),
            numpy_helper.from_array(numpy.zeros(16, "f"), "none"),
        ]

        def expect(images):
            for layer in layers:
                padded = numpy.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
                windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
                images = numpy.maximum(numpy.einsum("nchwij,ocij->nohw", windows, layer, optimize=True), 0)
            return images.mean(axis=(2, 3)).max(axis=0)

        x = tensor("x", ["n", 3, "h", "w"])
        then_branch = helper.make_graph(squeezed, "then", [], [y], value_info=[declared])
        else_branch = helper.make_graph([node("Identity", ["none"], ["y"])], "else", [], [y])
        branch = node("If", ["is_taken"], ["y"], then_branch=then_branch, else_branch=else_branch)
        for made in (
            model(pooled + squeezed, [x], [y], weights, value_info=[declared]),
            model(pooled + squeezed_before_13, [x], [y], weights, opset=11, value_info=[declared]),
            model([*pooled, branch], [x, tensor("is_taken", [], BOOL)], [y], weights),
        ):
            with session(made) as opened:
                for rows in (1, 2, 1, 1, 1):
                    images = random.standard_normal((rows, 3, 32, 32)).astype("f")
                    feeds = {"x": images, "is_taken": numpy.array(True)}
                    (found,) = opened.run(None, {taken.name: feeds[taken.name] for taken in opened.get_inputs()})
                    numpy.testing.assert_allclose(expect(images), found, rtol=1e-4, atol=1e-5)

    # Which axis the Squeeze removes follows the branch, and each branch's network is compiled for its shapes.
    def test_a_squeeze_behind_branches_removes_the_ones_of_the_branch(self):
        random = numpy.random.default_rng(8)
        layers = [0.2 * random.standard_normal((8, channels, 3, 3)).astype("f") for channels in (3, 8)]
        made = model(
            [
                node("Conv", ["x", "w0"], ["c0"], pads=[1, 1, 1, 1]),
                node("Conv", ["c0", "w1"], ["c1"], pads=[1, 1, 1, 1]),
                node("GlobalAveragePool", ["c1"], ["pooled"]),
                node("Squeeze", ["pooled", "maps"], ["rows"]),
                node("Shape", ["x"], ["n"], start=0, end=1),
                node("Equal", ["n", "two"], ["is_two"]),
                node(
                    "If",
                    ["is_two"],
                    ["branch"],
                    then_branch=helper.make_graph(
                        [node("Unsqueeze", ["rows", "front"], ["t"])], "then", [], [tensor("t", [1, "n", 8])]
                    ),
                    else_branch=helper.make_graph(
                        [node("Unsqueeze", ["rows", "between"], ["e"])], "else", [], [tensor("e", ["n", 1, 1, 8])]
                    ),
                ),
                node("Squeeze", ["branch"], ["squeezed"]),
                node("ReduceMax", ["squeezed", "front"], ["y"], keepdims=0),
            ],
            [tensor("x", ["n", 3, "h", "w"])],
            [tensor("y", [8])],
            [
                numpy_helper.from_array(layers[0], "w0"),
                numpy_helper.from_array(layers[1], "w1"),
                numpy_helper.from_array(numpy.array([2, 3], "i8"), "maps"),
                numpy_helper.from_array(numpy.array([2], "i8"), "two"),
                numpy_helper.from_array(numpy.array([0], "i8"), "front"),
                numpy_helper.from_array(numpy.array([1, 2], "i8"), "between"),
            ],
            value_info=[tensor("squeezed", ["n", 8])],
        )
        with session(made) as opened:
            for rows in (3, 2, 3, 2, 3, 2, 1, 1, 1):
                images = random.standard_normal((rows, 3, 16, 16)).astype("f")
                expected = images
                for layer in layers:
                    padded = numpy.pad(expected, ((0, 0), (0, 0), (1, 1), (1, 1)))
                    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
                    expected = numpy.einsum("nchwij,ocij->nohw", windows, layer, optimize=True)
                (found,) = opened.run(None, {"x": images})
                numpy.testing.assert_allclose(expected.mean(axis=(2, 3)).max(axis=0), found, rtol=1e-4, atol=1e-5)

    def test_what_is_no_model_is_told(self):
        with tempfile.NamedTemporaryFile() as empty, self.assertRaisesRegex(onnxifi.InvalidError, "0 bytes|no graph"):
            session(empty.name)
        with self.assertRaisesRegex(onnxifi.InvalidError, "no serialised ModelProto") as caught:
            session(b"\x3a\xff\xff\xff\x7f")
        self.assertEqual(caught.exception.status, "INVALID_PROTOBUF")
        with self.assertRaisesRegex(onnxifi.InvalidError, "'/nowhere/m.onnx' cannot be read: No such file"):
            session("/nowhere/m.onnx")
        with self.assertRaisesRegex(onnxifi.InvalidError, "not a int"):
            session(5)

    def test_operator_that_nobody_has(self):
        made = model([node("Foo", ["x"], ["y"], domain="com.acme")], [tensor("x", [2])], [tensor("y", [2])], domains=[("com.acme", 1)])
        with self.assertRaisesRegex(onnxifi.UnsupportedError, "Foo") as caught:
            session(made)
        self.assertEqual(caught.exception.status, "UNSUPPORTED_OPERATOR")


class InputTest(unittest.TestCase):
    def setUp(self):
        self.session = session(add_one())

    def check(self, given, expected=_X + 1):
        result = self.session.run(None, {"x": given})[0]
        numpy.testing.assert_array_equal(result, expected)
        self.assertEqual(result.dtype, numpy.float32)

    def test_dense_array_is_read_where_it_lies(self):
        # What the run reads is the memory at the time of the run, so that a binding sees a change.
        x = _X.copy()
        binding = self.session.bind({"x": x})
        x += 3
        binding.run()
        numpy.testing.assert_array_equal(binding.outputs["y"], _X + 4)

    def test_other_strides_orders_and_alignments(self):
        self.check(numpy.repeat(_X, 2, axis=1)[:, ::2])
        self.check(numpy.asfortranarray(_X))
        self.check(_X[::-1], _X[::-1] + 1)
        self.check(_X.astype(">f4"))
        read_only = _X.copy()
        read_only.flags.writeable = False
        self.check(read_only)
        odd = numpy.frombuffer(b"\0" + _X.tobytes(), numpy.uint8)[1:].view(numpy.float32).reshape(_X.shape)
        self.assertFalse(odd.flags.aligned)
        self.check(odd)
        self.check(numpy.empty((0, 4), numpy.float32), numpy.empty((0, 4), numpy.float32))
        self.check(numpy.ma.masked_array(_X).data)

    def test_lists_and_numbers_are_converted(self):
        self.check(_X.tolist())
        self.check([[1, 2, 3, 4]], numpy.array([[2, 3, 4, 5]]))
        whole = session(identity(TensorProto.UINT8))
        self.assertEqual(whole(x=[1, 255])["y"].tolist(), [1, 255])
        for wrong in ([1.5], [256], [-1], ["a"]):
            with self.assertRaises(onnxifi.MismatchError, msg=wrong):
                whole(x=wrong)

    def test_another_type_is_refused(self):
        with self.assertRaisesRegex(onnxifi.MismatchError, "Input 'x' is of type float64; the model declares float") as caught:
            self.check(_X.astype(numpy.float64))
        self.assertEqual(caught.exception.status, "MISMATCHING_DATATYPE")
        with self.assertRaises(onnxifi.MismatchError):
            self.check(numpy.array(["a"]))

    def test_names(self):
        with self.assertRaisesRegex(onnxifi.MismatchError, "no input 'z'; Input 'x' is not given; the inputs are 'x'"):
            self.session.run(None, {"z": _X})
        with self.assertRaisesRegex(onnxifi.MismatchError, "no input 'z'"):
            self.session.run(None, {"x": _X, "z": _X})
        with self.assertRaisesRegex(onnxifi.MismatchError, "no output 'z'; its outputs are 'y'"):
            self.session.run(["z"], {"x": _X})
        self.assertEqual(len(self.session.run(["y", "y"], {"x": _X})), 2)
        self.assertEqual(self.session.run([], {"x": _X}), [])

    def test_shapes(self):
        with self.assertRaisesRegex(onnxifi.MismatchError, "x") as caught:
            self.session.run(None, {"x": _X.reshape(4, 3)})
        self.assertEqual(caught.exception.status, "MISMATCHING_SHAPE")
        with self.assertRaises(onnxifi.Error):
            self.session.run(None, {"x": _X.ravel()})
        # More shapes than are kept.
        for count in list(range(1, 100)) * 2:
            self.check(numpy.ones((count, 4), numpy.float32), numpy.full((count, 4), 2))

    def test_unknown_option(self):
        with self.assertRaisesRegex(TypeError, "no option 'exact'; there are base_folder"):
            session(DIGITS, exact=True)
        with self.assertRaisesRegex(onnxifi.InvalidError, "'half' is none of float32, tf32"):
            session(DIGITS, precision="half")
        with self.assertRaisesRegex(onnxifi.InvalidError, "no device 'gpu'; the .* present are: auto, cpu:0"):
            session(DIGITS, "gpu")


class ElementTypeTest(unittest.TestCase):
    def test_type_of_ml_dtypes_without_the_package(self):
        with unittest.mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            element_types.dtype_of.cache_clear()
            with self.assertRaisesRegex(onnxifi.UnsupportedError, "package ml_dtypes, which is not installed"):
                session(identity(TensorProto.BFLOAT16))
        session(identity(TensorProto.BFLOAT16))

    def test_every_type_passes_through(self):
        numbers = [0, 1, 1, 0, 1, 1, 0]
        for name, element_type in TensorProto.DataType.items():
            if name in ("UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128"):
                continue
            with self.subTest(name):
                dtype = helper.tensor_dtype_to_np_dtype(element_type)
                x = numpy.array(numbers).astype(dtype)
                with session(identity(element_type)) as opened:
                    y = opened(x=x)["y"]
                self.assertEqual(y.dtype, dtype)
                numpy.testing.assert_array_equal(y.astype(numpy.float32), x.astype(numpy.float32))

    def test_narrow_elements_keep_every_code(self):
        for name, bits in (("int4", 4), ("uint4", 4), ("int2", 2), ("uint2", 2), ("float4_e2m1fn", 4), ("float6_e2m3fn", 6)):
            with self.subTest(name):
                dtype = numpy.dtype(getattr(ml_dtypes, name))
                x = numpy.arange(1 << bits, dtype=numpy.uint8)[1:].view(dtype)
                opened = session(identity(helper.np_dtype_to_tensor_dtype(dtype)))
                y = numpy.zeros_like(x)
                opened.run(None, {"x": x}, outputs={"y": y})
                numpy.testing.assert_array_equal(y.view(numpy.uint8), x.view(numpy.uint8))

    def test_cast_of_int4_agrees_with_ml_dtypes(self):
        made = model(
            [node("Cast", ["x"], ["y"], to=FLOAT)], [tensor("x", [3, 5], TensorProto.INT4)], [tensor("y", [3, 5])]
        )
        x = numpy.arange(-8, 7).reshape(3, 5).astype(ml_dtypes.int4)
        numpy.testing.assert_array_equal(session(made)(x=x)["y"], x.astype(numpy.float32))


class OutputTest(unittest.TestCase):
    def test_arrays_of_the_caller_are_filled(self):
        opened, y = session(add_one()), numpy.zeros((3, 4), numpy.float32)
        (result,) = opened.run(None, {"x": _X}, outputs={"y": y})
        self.assertIs(result, y)
        numpy.testing.assert_array_equal(y, _X + 1)

    def test_memory_that_the_caller_names(self):
        x, y = _X.copy(), numpy.zeros((3, 4), numpy.float32)
        given, taken = (onnxifi.Memory(array.ctypes.data, array.shape, memory_type=0) for array in (x, y))
        binding = session(add_one()).bind({"x": given}, {"y": taken})
        self.assertIs(binding.outputs["y"], taken)
        binding.run()
        numpy.testing.assert_array_equal(y, _X + 1)

    def test_model_without_inputs(self):
        three = numpy_helper.from_array(numpy.arange(3), "three")
        opened = session(model([node("Identity", ["three"], ["y"])], [], [tensor("y", [3], INT64)], [three]))
        self.assertEqual(opened.run(None, {})[0].tolist(), [0, 1, 2])

    def test_arrays_that_do_not_fit_are_refused(self):
        opened = session(add_one())
        for wrong, sentence in (
            (numpy.zeros((3, 4)), "is of type float64; the output is float32"),
            (numpy.zeros((4, 4), numpy.float32), r"has shape \(4, 4\); the output has \(3, 4\)"),
            (numpy.zeros((3, 8), numpy.float32)[:, ::2], "is not dense"),
            (numpy.broadcast_to(numpy.float32(0), (3, 4)), "is read-only|is not dense"),
            ([1], "no array"),
        ):
            with self.assertRaisesRegex(onnxifi.Error, sentence):
                opened.run(None, {"x": _X}, outputs={"y": wrong})
        with self.assertRaisesRegex(onnxifi.MismatchError, "no output 'z'"):
            opened.run(None, {"x": _X}, outputs={"z": _X})

    def test_extents_that_only_a_run_tells(self):
        made = model([node("NonZero", ["x"], ["y"])], [tensor("x", ["n"])], [tensor("y", [1, "m"], INT64)])
        opened = session(made)
        for x in ([0, 3, 0, 4], [0, 0], [1]):
            numpy.testing.assert_array_equal(opened(x=x)["y"], numpy.nonzero(numpy.array(x)))
        self.assertEqual(opened.infer_output_shapes({"x": [4]}), {"y": [1, None]})
        with self.assertRaisesRegex(onnxifi.UnsupportedError, "only a run tells"):
            opened.run(None, {"x": [1]}, outputs={"y": numpy.zeros((1, 1), numpy.int64)})

    def test_extents_that_only_a_run_tells_on_auto(self):
        # Declared with a symbol of the input, so that only the first run shows it.
        made = model(
            [node("NonZero", ["x"], ["p"]), node("Squeeze", ["p"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"], INT64)]
        )
        opened = session(made, "auto")
        for x in ([0, 3, 0, 4], [0, 0], [1, 2]):
            numpy.testing.assert_array_equal(opened(x=x)["y"], numpy.nonzero(numpy.array(x))[0])

    def test_shapes_that_a_file_declares_wrongly(self):
        one = numpy_helper.from_array(numpy.array(1, numpy.float32), "one")
        made = model([node("Add", ["x", "one"], ["y"])], [tensor("x", [2, 3])], [tensor("y", [3])], [one])
        for device in ("cpu", "auto"):
            numpy.testing.assert_array_equal(session(made, device)(x=numpy.ones((2, 3), numpy.float32))["y"], numpy.full((2, 3), 2))

    def test_symbols_that_a_file_gives_outputs_wrongly(self):
        pool = node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
        made = model([pool], [tensor("x", ["n", 1, "h", "w"])], [tensor("y", ["n", 1, "h", "w"])])
        for device in ("cpu", "auto"):
            opened = session(made, device)
            for height, width in ((4, 6), (2, 8), (4, 6)):
                x = numpy.arange(2 * height * width, dtype=numpy.float32).reshape(2, 1, height, width)
                numpy.testing.assert_array_equal(opened(x=x)["y"], x[:, :, 1::2, 1::2])

    def test_symbols_that_a_file_gives_empty_outputs_wrongly(self):
        bounds = [numpy_helper.from_array(numpy.array([n], numpy.int64), name) for name, n in (("two", 2), ("many", 1000))]
        made = model([node("Slice", ["x", "two", "many"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"])], bounds)
        opened = session(made)
        for length in (1, 5, 1):
            x = numpy.arange(length, dtype=numpy.float32)
            numpy.testing.assert_array_equal(opened(x=x)["y"], x[2:])

    def test_run_that_fails_on_its_data(self):
        for outputs, names in (([tensor("y", [])], ["y"]), ([tensor("y", []), tensor("r", ["k"])], ["y", "r"])):
            made = model(
                [node("Reshape", ["x", "shape"], ["r"]), node("ReduceSum", ["r"], ["y"], keepdims=0)],
                [tensor("x", ["n"]), tensor("shape", [1], INT64)], outputs,
            )
            opened, x = session(made), numpy.ones(6, numpy.float32)
            self.assertEqual(opened.run(["y"], {"x": x, "shape": [6]})[0], 6)
            with self.assertRaisesRegex(onnxifi.UnavailableError, "^running: Reshape"):
                opened.run(names, {"x": x, "shape": [4]})
            self.assertEqual(opened.run(["y"], {"x": x, "shape": [6]})[0], 6)

    def test_results_of_a_run_stay_when_the_next_comes(self):
        opened = session(add_one())
        first = opened(x=_X)["y"]
        opened(x=_X * 0)
        numpy.testing.assert_array_equal(first, _X + 1)


class ValueTest(unittest.TestCase):
    def test_texts(self):
        for shape, texts in (((2, 3), ["", "a", "\u00e4\u4e16 \U0001f600", "b\0c", "", "d"]), ((), ["scalar"]), ((0, 4), [])):
            given = numpy.empty(len(texts), object)
            given[:] = texts
            opened = session(identity(STRING, shape))
            y = opened(x=given.reshape(shape))["y"]
            self.assertEqual((y.shape, y.ravel().tolist()), (shape, texts))
        self.assertEqual(session(identity(STRING))(x=["a", "b"])["y"].tolist(), ["a", "b"])
        self.assertEqual(session(identity(STRING))(x=numpy.array(["a", "bc"]))["y"].tolist(), ["a", "bc"])
        with self.assertRaisesRegex(onnxifi.MismatchError, "declares string"):
            session(identity(STRING))(x=_X)

    def test_sequences_and_optionals(self):
        sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, ["n"]))
        optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, ["n"]))
        made = model(
            [node("SequenceInsert", ["s", "t"], ["u"]), node("OptionalHasElement", ["o"], ["has"])],
            [helper.make_value_info("s", sequence), tensor("t", ["n"]), helper.make_value_info("o", optional)],
            [helper.make_value_info("u", sequence), tensor("has", [], TensorProto.BOOL)],
        )
        opened = session(made)
        self.assertEqual([value.type for value in opened.inputs], ["seq(tensor(float))", "tensor(float)", "optional(tensor(float))"])
        parts = [numpy.array([1, 2], numpy.float32), numpy.array([3], numpy.float32)]
        found = opened(s=parts[:1], t=parts[1], o=None)
        self.assertEqual([part.tolist() for part in found["u"]], [[1, 2], [3]])
        self.assertFalse(found["has"])
        self.assertTrue(opened(s=[], t=parts[1], o=parts[0])["has"])

    def test_maps_of_a_classifier(self):
        made = model(
            [node("ZipMap", ["p"], ["m"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])],
            [tensor("p", ["n", 2])],
            [helper.make_value_info("m", onnx.helper.make_sequence_type_proto(onnx.helper.make_map_type_proto(STRING, helper.make_tensor_type_proto(FLOAT, []))))],
            domains=[("ai.onnx.ml", 3)],
        )
        found = session(made)(p=[[0.25, 0.75], [1, 0]])["m"]
        self.assertEqual(found, [{"no": 0.25, "yes": 0.75}, {"no": 1, "yes": 0}])

    def test_runs_one_after_the_other_share_what_they_are_made_of(self):
        opened = session(classifier())
        for count in (2, 1, 3, 0, 1, 3, 3):
            p = numpy.random.default_rng(count).random((count, 2), numpy.float32)
            expected = [{"no": no, "yes": yes} for no, yes in p.tolist()]
            m, doubled = opened.run(None, {"p": p})
            self.assertEqual(m, expected)
            numpy.testing.assert_array_equal(doubled, p + p)
            again, m, doubled = opened.run(["d", "m", "d"], {"p": p.tolist() if count else p})
            self.assertEqual(m, expected)
            numpy.testing.assert_array_equal(again, doubled)
        self.assertEqual(len(opened._value_runs), 1)  # pylint: disable=protected-access

    def test_a_run_on_values_after_one_that_failed(self):
        opened, p = session(classifier()), numpy.ones((1, 2), numpy.float32)
        for fault, feeds, names in (
            (onnxifi.MismatchError, {"p": p.astype(numpy.float64)}, None),
            (onnxifi.MismatchError, {"p": p[:, :1]}, None),
            (onnxifi.MismatchError, {"p": p, "q": p}, None),
            (onnxifi.MismatchError, {"q": p}, None),
            (onnxifi.MismatchError, {"p": p}, ["d", "e"]),
        ):
            with self.assertRaises(fault):
                opened.run(names, feeds)
            self.assertEqual(opened.run(["m"], {"p": p}), [[{"no": 1, "yes": 1}]])


class ReportTest(unittest.TestCase):
    def test_pins_and_explanation(self):
        other = next((device.key for device in LIBRARY.devices() if device.plugin == "vulkan"), None)
        if other is None:
            self.skipTest("There is no second device.")
        with session(DIGITS, "auto", pins={"conv0": "vulkan", 1: other}) as opened:
            plan, explanation = opened.placement(), opened.explain()
        self.assertEqual({node for island in plan if island.device == other for node in island.nodes}, {0, 1})
        self.assertEqual([node.device for node in explanation.nodes[:3]], [other, other, "cpu:0"])
        self.assertTrue(explanation.nodes[0].answers["null:0"].is_emulated)
        self.assertIn(f"0 Conv 'conv0' on {other}; cpu:0: yes", str(explanation))
        with session(DIGITS, "auto", placement=plan) as again:
            self.assertEqual([island.device for island in again.placement()], [island.device for island in plan])
        with session(DIGITS, "auto", placement="prefer:vulkan") as preferred:
            self.assertEqual([island.device for island in preferred.placement()], [other])

    def test_pins_that_name_nothing(self):
        with self.assertRaisesRegex(onnxifi.InvalidError, "pin of node 'conv'.*0 nodes of that name"):
            session(DIGITS, "auto", pins={"conv": "cpu"})
        with self.assertRaisesRegex(onnxifi.InvalidError, "12 nodes, counted from 0"):
            session(DIGITS, "auto", pins={12: "cpu"})
        with self.assertRaisesRegex(onnxifi.UnsupportedError, "no others to place nodes on"):
            session(DIGITS, "cpu", pins={0: "cpu"})

    def test_refused_node_has_the_sentence(self):
        made = model(
            [node("Relu", ["x"], ["r"]), node("Foo", ["r"], ["y"], domain="com.acme")],
            [tensor("x", [2])], [tensor("y", [2])], domains=[("com.acme", 1)],
        )
        device = LIBRARY.device("cpu")
        with self.assertRaisesRegex(onnxifi.UnsupportedError, "'Foo'"):
            device.check_compatibility(made.SerializeToString())
        self.assertFalse(device.check_compatibility(add_one().SerializeToString()))

    def test_profile(self):
        opened = session(DIGITS, profile=True)
        opened(image=numpy.zeros((1, 1, 8, 8), numpy.float32))
        steps = opened.profile()
        self.assertTrue(steps and all(step.implementation for step in steps))
        with self.assertRaisesRegex(onnxifi.InvalidError, "INVALID_STATE"):
            session(DIGITS).profile()


class LifetimeTest(unittest.TestCase):
    def test_closed_session_says_so(self):
        with session(add_one()) as opened:
            opened(x=_X)
        opened.close()
        with self.assertRaisesRegex(onnxifi.InvalidError, "closed"):
            opened(x=_X)
        with self.assertRaisesRegex(onnxifi.InvalidError, "closed"):
            opened.bind({"x": _X})
        with self.assertRaisesRegex(onnxifi.InvalidError, "closed"):
            opened.explain()

    def test_last_session_ends_the_threads_of_the_device(self):
        gc.collect()
        threads = pathlib.Path("/proc/self/task")
        before = len(list(threads.iterdir()))
        first, second = session(DIGITS), session(DIGITS)
        self.assertIs(first.device.backend(), second.device.backend())
        image = numpy.zeros((64, 1, 8, 8), numpy.float32)
        for opened in (first, second):
            opened(image=image)
        first.close()
        numpy.testing.assert_array_equal(second(image=image)["scores"].shape, (64, 10))
        second.close()
        self.assertLessEqual(len(list(threads.iterdir())), before)

    def test_many_sessions_leave_nothing(self):
        weight = numpy_helper.from_array(numpy.ones((512, 512), numpy.float32), "w")  # 1 MiB
        made = model([node("MatMul", ["x", "w"], ["y"])], [tensor("x", ["n", 512])], [tensor("y", ["n", 512])], [weight])
        content = made.SerializeToString()
        x = numpy.ones((2, 512), numpy.float32)

        def use(count):
            for number in range(count):
                opened = session(content)
                opened(x=x)
                if number % 2:
                    opened.close()

        use(20)
        gc.collect()
        before = resident_mib()
        use(100)
        gc.collect()
        self.assertLess(resident_mib() - before, 30)

    def test_many_runs_leave_nothing(self):
        numbers, texts = session(add_one()), session(identity(STRING))

        def use(count):
            for _ in range(count):
                for _ in range(10):
                    numbers.run(None, {"x": _X})
                texts.run(None, {"x": ["a" * 1000]})

        use(500)
        before = resident_mib()
        use(5000)
        self.assertLess(resident_mib() - before, 4)


class ThreadTest(unittest.TestCase):
    def test_other_threads_of_python_go_on_during_a_run(self):
        side = 1500
        product = model(
            [node("MatMul", ["x", "x"], ["a"]), node("MatMul", ["a", "x"], ["y"])],
            [tensor("x", [side, side])], [tensor("y", [side, side])],
        )
        opened, x = session(product), numpy.ones((side, side), numpy.float32)
        opened.run(None, {"x": x})
        turns, is_over = [0], threading.Event()

        def count():
            while not is_over.is_set():
                turns[0] += 1

        counter = threading.Thread(target=count)
        counter.start()
        before = turns[0]
        opened.run(None, {"x": x})
        counted = turns[0] - before
        is_over.set()
        counter.join()
        self.assertGreater(counted, 1000)

    def run_in_threads(self, work, count=8):
        faults = []

        def guarded(number):
            try:
                work(number)
            except BaseException as fault:  # pylint: disable=broad-exception-caught
                faults.append(fault)

        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])

    def test_threads_share_a_session(self):
        opened = session(add_one())

        def work(number):
            for turn in range(300):
                x = numpy.full((1 + (number + turn) % 3, 4), number * 1000 + turn, numpy.float32)
                numpy.testing.assert_array_equal(opened.run(None, {"x": x})[0], x + 1)

        self.run_in_threads(work)

    def test_threads_share_a_session_of_texts(self):
        opened = session(identity(STRING))

        def work(number):
            for turn in range(100):
                texts = [f"{number} {turn}"] * (1 + turn % 3)
                self.assertEqual(opened.run(None, {"x": texts})[0].tolist(), texts)

        self.run_in_threads(work)

    def test_threads_share_a_session_of_maps(self):
        opened = session(classifier())

        def work(number):
            for turn in range(200):
                p = numpy.full((1 + (number + turn) % 5, 2), number * 1000 + turn, numpy.float32)
                m, doubled = opened.run(None, {"p": p})
                self.assertEqual(m, [{"no": row[0], "yes": row[1]} for row in p.tolist()])
                numpy.testing.assert_array_equal(doubled, p + p)

        self.run_in_threads(work)

    def test_arrays_from_files_are_bound_where_they_lie(self):
        x = pickle.loads(pickle.dumps(_X))
        self.assertIsNot(x.dtype, _X.dtype)
        binding = session(add_one()).bind({"x": x})
        for summand in (0, 5):
            x[...] = _X + summand
            binding.run()
            numpy.testing.assert_array_equal(binding.outputs["y"], _X + summand + 1)

    def test_bindings_run_beside_one_another(self):
        opened = session(add_one())

        def work(number):
            x = numpy.full((3, 4), number, numpy.float32)
            binding = opened.bind({"x": x})
            for _ in range(300):
                binding.outputs["y"][:] = 0
                binding.run()
                numpy.testing.assert_array_equal(binding.outputs["y"], x + 1)

        self.run_in_threads(work)

    def test_threads_open_and_close_sessions(self):
        def work(_):
            for _ in range(20):
                with session(add_one()) as opened:
                    opened(x=_X)

        self.run_in_threads(work, 4)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tests of convolutions.py: its list is one of networks' layers of every kind, each is a model that computes
the layer, and its figures are what was measured.
"""

import contextlib
import dataclasses
import io
import json
import math
import pathlib
import tempfile
import unittest

import numpy
import onnx

import convolution_layers as layers
import convolutions
import machine_limits

_MACHINE = json.dumps(
    {
        "processor": "a processor",
        "by_threads": [
            {
                "threads": threads,
                "float32_gflops": 100.0 * threads,
                "copies": [
                    {"size_bytes": 1000, "gigabytes_per_s": 50.0},
                    {"size_bytes": 1000000, "gigabytes_per_s": 10.0},
                ],
            }
            for threads in (1, 2)
        ],
    }
)


def _conv(attributes=None, shape=(1, 8, 9, 7), behind=()):
    """A model of a convolution, 8 to 6 channels by 3 x 3, and of nodes behind it."""
    helper = onnx.helper
    weights = onnx.numpy_helper.from_array(numpy.ones((6, 8, 3, 3), "float32"), "weights")
    ones = [onnx.numpy_helper.from_array(numpy.ones(6, "float32"), f"ones_{number}") for number in range(4)]
    bounds = [onnx.numpy_helper.from_array(numpy.float32(each), f"bound_{each}") for each in (0, 6)]
    nodes = [helper.make_node("Conv", ["x", "weights"], ["y"], **(attributes or {})), *behind]
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    end = onnx.ValueInfoProto(name=nodes[-1].output[0])
    graph = helper.make_graph(nodes, "network", [value], [end], [weights, *ones, *bounds])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


class TheList(unittest.TestCase):
    def setUp(self):
        self.layers = layers.read_list()

    def test_has_enough_of_every_kind(self):
        self.assertGreaterEqual(len(self.layers), 120)
        names = [layer.name for layer in self.layers]
        self.assertEqual(len(names), len(set(names)))
        kinds = [layer.kind for layer in self.layers]
        for kind in (
            "along one axis",
            "along three axes",
            "transposed",
            "grouped",
            "depthwise",
            "dilated",
            "large kernels",
            "few channels",
            "first",
            "1 x 1",
            "3 x 3",
        ):
            with self.subTest(kind):
                self.assertGreaterEqual(kinds.count(kind), 8)
        self.assertGreaterEqual(sum(layer.is_first and layer.input[1] == 3 for layer in self.layers), 8)

    def test_layers_are_models(self):
        for layer in self.layers[::5] + layers.list_supplement()[::3]:
            with self.subTest(layer.name):
                model, feeds = layers.build_model(onnx, layer)
                onnx.checker.check_model(model, full_check=True)
                extents = [each.dim_value for each in model.graph.output[0].type.tensor_type.shape.dim]
                if layer.is_last:
                    self.assertEqual(extents[1:], [layer.outs, *layer.output[2:]])
                else:
                    self.assertEqual(extents[1:], [16, *(max(extent // 4, 1) for extent in layer.output[2:])])
                self.assertEqual(feeds["input"].shape[2:], layer.input[2:])
                around = [node.op_type for node in model.graph.node].count("Conv") - (not layer.is_transposed)
                self.assertEqual(around, 2 - layer.is_first - layer.is_last)

    def test_is_written_as_it_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list.json"
            layers.write_list(self.layers, path)
            self.assertEqual(layers.read_list(path), self.layers)
            self.assertEqual(path.read_text(), layers.LIST.read_text())


class Taking(unittest.TestCase):
    def take(self, *arguments, **others):
        return list(layers.take_layers(onnx, _conv(*arguments, **others), "network"))

    def test_takes_what_a_convolution_is(self):
        (layer,) = self.take({"strides": [2, 1], "pads": [1, 0, 1, 2], "dilations": [1, 2]})
        self.assertEqual(layer.input, (1, 8, 9, 7))
        self.assertEqual(layer.weights, (6, 8, 3, 3))
        self.assertEqual((layer.strides, layer.pads, layer.dilations), ((2, 1), (1, 0, 1, 2), (1, 2)))
        self.assertEqual((layer.is_first, layer.is_last, layer.activation), (True, True, ""))
        self.assertEqual(layer.output, (1, 6, 5, 5))
        self.assertEqual(layer.flops, 2 * 6 * 5 * 5 * 8 * 9)

    def test_leaves_what_is_not_told(self):
        self.assertEqual(self.take(shape=(1, 8, "height", 7)), [])
        self.assertEqual(self.take({"auto_pad": "SAME_UPPER"}), [])

    def test_finds_activations(self):
        make = onnx.helper.make_node
        norm = make("BatchNormalization", ["y", "ones_0", "ones_1", "ones_2", "ones_3"], ["n"])
        for behind, expected, numbers, is_last in (
            ([make("Relu", ["y"], ["z"])], "Relu", (), True),
            ([norm, make("LeakyRelu", ["n"], ["z"], alpha=0.1)], "LeakyRelu", (0.1,), True),
            ([make("Clip", ["y", "bound_0", "bound_6"], ["z"])], "Clip", (0.0, 6.0), True),
            ([make("Clip", ["y", "", "bound_6"], ["z"])], "", (), False),
            ([make("Sigmoid", ["y"], ["g"]), make("Mul", ["y", "g"], ["z"])], "Silu", (), True),
            ([make("Sigmoid", ["y"], ["g"]), make("Mul", ["g", "g"], ["z"])], "Sigmoid", (), False),
            ([make("Sigmoid", ["y"], ["g"]), make("Mul", ["y", "bound_6"], ["z"])], "", (), False),
            ([make("Relu", ["y"], ["r"]), make("Add", ["y", "r"], ["z"])], "", (), False),
        ):
            with self.subTest([node.op_type for node in behind]):
                (layer,) = self.take(behind=behind)
                self.assertEqual((layer.activation, layer.numbers), (expected, numbers))
                self.assertEqual(layer.is_last, is_last)

    def test_chooses_the_same_whatever_the_order(self):
        many = [
            dataclasses.replace(self.take()[0], input=(1, 8, extent, 9), weights=(32, 32, 3, 3), is_first=False)
            for extent in range(9, 60)
        ]
        many = [dataclasses.replace(each, input=(1, 32, *each.input[2:])) for each in many]
        chosen = layers.choose(many)
        self.assertEqual(chosen, layers.choose(many[::-1]))
        own = [each for each in chosen if each in many]
        self.assertEqual((len(own), own[0], own[-1]), (12, many[0], many[-1]))
        # Another batch is the same layer.
        more = [dataclasses.replace(each, input=(8, *each.input[1:])) for each in many]
        self.assertEqual(layers.choose(many + more), chosen)


class Figures(unittest.TestCase):
    def setUp(self):
        self.limits = machine_limits.Limits(_MACHINE, 2)
        self.layer = layers.Layer(
            "Conv", (1, 32, 10, 10), (64, 32, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), is_first=True, is_last=True
        )

    def test_limits_are_those_of_the_threads(self):
        self.assertEqual(machine_limits.Limits(_MACHINE, 1).gflops, 100)
        self.assertEqual(machine_limits.Limits(_MACHINE, 4).gflops, 200)
        arithmetic, memory = self.limits.milliseconds(2e8, 2000)
        self.assertAlmostEqual(arithmetic, 1)
        self.assertAlmostEqual(memory, 2000 / 50e6)
        self.assertAlmostEqual(self.limits.milliseconds(0, 2001)[1], 2001 / 10e6)
        self.assertAlmostEqual(self.limits.milliseconds(0, 10**9)[1], 100)

    def test_neighbours_count(self):
        inner = dataclasses.replace(self.layer, is_first=False, is_last=False)
        # Behind it are 2 x 2 pixels.
        self.assertEqual(inner.model_flops, inner.flops + 2 * 100 * 4 * 32 + 2 * 4 * 64 * 16)
        weights = 64 * 32 * 9
        self.assertEqual(self.layer.model_bytes, 4 * (100 * (32 + 64) + weights))
        self.assertEqual(
            inner.model_bytes, 4 * (100 * (4 + 2 * 32 + 2 * 64) + weights + 4 * (2 * 64 + 16))
        )

    def test_compares_with_the_better_peer(self):
        least = self.layer.flops / 200e6
        times = {"onnxifi": 2 * least, "onnxruntime": 4 * least, "openvino": least}
        result = convolutions.compare_layer(self.layer, times, 0.5, self.limits)
        self.assertAlmostEqual(result["ratio"], 2)
        self.assertAlmostEqual(result["share"], 0.5)
        self.assertAlmostEqual(result["gflops"], 100)
        self.assertFalse(result["is_memory"])
        self.assertTrue(convolutions.is_behind(result))
        line = convolutions.describe(result)
        self.assertIn(" 50% ", line)
        self.assertIn(" 2.00 ", line)

    def test_tells_what_is_behind(self):
        for ratio, share, is_memory, expected in (
            (1.2, 0.9, False, True),
            (1.1, 0.4, False, True),
            (1.1, 0.4, True, False),
            (0.9, 0.4, False, False),
            (1.1, 0.6, False, False),
        ):
            result = {"ratio": ratio, "share": share, "is_memory": is_memory}
            self.assertEqual(convolutions.is_behind(result), expected, result)

    def test_measures_again_what_is_behind(self):
        ratios = {"good": [0.9], "chance": [1.3, 0.8], "slow": [1.5, 1.3, 1.4]}
        left = {name: list(own) for name, own in ratios.items()}

        def run(name):
            return {"ratio": left[name].pop(0), "share": 0.9, "is_memory": False}

        results = convolutions.measure_again(list(ratios), run)
        self.assertEqual([each["ratio"] for each in results], [0.9, 0.8, 1.3])
        self.assertEqual([each.get("runs", 1) for each in results], [1, 2, 3])
        self.assertEqual(left, {name: [] for name in ratios})

    def test_refusals_are_told(self):
        times = {"onnxifi": "It is refused.", "onnxruntime": 1.0}
        result = convolutions.compare_layer(self.layer, times, None, self.limits)
        self.assertIsNone(result["ratio"])
        self.assertTrue(convolutions.is_behind(result))
        self.assertIn("It is refused.", convolutions.describe(result))

    def test_writes_a_page(self):
        least = self.layer.flops / 200e6
        results = [
            convolutions.compare_layer(self.layer, {"onnxifi": scale * least, "onnxruntime": least}, 0.1, self.limits)
            for scale in (1.5, 4)
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            convolutions.write_report(results, path, "A title", ["Facts."])
            text = path.read_text()
        mean = math.sqrt(1.5 * 4)
        self.assertIn(f"| 3 x 3 | 2 | {mean:.2f} | 4.00 | 2 | 1 |", text)
        self.assertLess(text.index("| 4.00 | 50 | 25% |"), text.index("| 1.50 | 133 | 67% |"))

    def test_an_empty_folder_leaves_the_list_as_it_is(self):
        before = layers.LIST.read_text()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            with self.assertRaises(SystemExit) as end:
                convolutions.main(["--take", folder])
        self.assertEqual(end.exception.code, 2)
        self.assertIn(f"'{folder}' has no NAME/model.onnx", said.getvalue())
        self.assertEqual(layers.LIST.read_text(), before)

    def test_shards(self):
        parser, _ = convolutions.parse([])
        self.assertEqual(convolutions.find_shard(parser, "2/3"), (1, 3))


if __name__ == "__main__":
    unittest.main()

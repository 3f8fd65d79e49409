# SPDX-License-Identifier: Apache-2.0
"""The layers of layer_models.py are models of ONNX that compute what their names say."""

import unittest

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

import layer_models


class LayerModelsTest(unittest.TestCase):
    def expect(self, model, inputs, expected, tolerance):
        onnx.checker.check_model(model, full_check=True)
        (actual,) = ReferenceEvaluator(model).run(None, inputs)
        numpy.testing.assert_allclose(actual.astype(numpy.float64), expected, atol=tolerance)

    def draw(self, model):
        generator = numpy.random.default_rng(1)
        inputs = {}
        for value in model.graph.input:
            kind = value.type.tensor_type
            extents = [dim.dim_value for dim in kind.shape.dim]
            inputs[value.name] = generator.standard_normal(extents).astype(
                onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            )
        return inputs

    def test_each_computes_what_it_says(self):
        for dtype, tolerance in ((numpy.float32, 1e-5), (numpy.float16, 2e-2)):
            product = layer_models.make_product(dtype, 3, 5, 4)
            inputs = self.draw(product)
            wide = {name: array.astype(numpy.float64) for name, array in inputs.items()}
            self.expect(product, inputs, wide["a"] @ wide["b"], tolerance)
            attention = layer_models.make_attention(dtype, heads=2, tokens=9, width=16)
            inputs = self.draw(attention)
            q, k, v = (inputs[name].astype(numpy.float64) for name in "qkv")
            scores = q @ k.swapaxes(-1, -2) / 4
            weights = numpy.exp(scores - scores.max(-1, keepdims=True))
            self.expect(attention, inputs, weights / weights.sum(-1, keepdims=True) @ v, tolerance)
            convolution = layer_models.make_convolution(dtype, 2, 5, 3, 1, 2)
            inputs = self.draw(convolution)
            weights = onnx.numpy_helper.to_array(convolution.graph.initializer[0]).astype(numpy.float64)
            image = inputs["x"].astype(numpy.float64)[:, :, ::2, ::2]
            expected = numpy.einsum("oc,ncyx->noyx", weights[:, :, 0, 0], image)
            self.expect(convolution, inputs, numpy.maximum(expected, 0), tolerance)

    def test_convolutions_are_those_of_resnet_50(self):
        layers = layer_models.list_convolutions()
        self.assertEqual(len(layers), len(set(layers)))
        # Those of torchvision's resnet50, each once, whose strides are in the 3 x 3.
        for layer in ((3, 224, 64, 7, 2), (256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (256, 56, 512, 1, 2)):
            self.assertIn(layer, layers)
        self.assertIn((512, 7, 2048, 1, 1), layers)
        self.assertEqual(len(layers), 23)
        self.assertEqual(len(layer_models.list_layers()), 2 * (2 + len(layers)))


if __name__ == "__main__":
    unittest.main()

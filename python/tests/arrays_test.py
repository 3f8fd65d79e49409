# SPDX-License-Identifier: Apache-2.0
"""Tests of onnxifi.arrays: tensors of other packages, by DLPack."""

import gc
import math
import unittest
import unittest.mock
import weakref

import numpy

import onnxifi
from onnxifi import arrays
from onnxifi.element_types import number_of


class Tensor:
    """Another package's: nothing but __dlpack__, over memory that it owns."""

    def __init__(self, array, device=(1, 0)):
        self.array, self._device = array, device

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


class DlpackTest(unittest.TestCase):
    def test_memory_is_shared(self):
        for dtype in ("float32", "float64", "float16", "int8", "uint8", "int64", "uint32", "complex64", "bool"):
            with self.subTest(dtype):
                source = numpy.arange(6).astype(dtype).reshape(2, 3)
                array = arrays.as_input("x", Tensor(source), number_of(numpy.dtype(dtype)))
                self.assertEqual((array.dtype, array.shape), (source.dtype, (2, 3)))
                source[1, 2] = 1
                numpy.testing.assert_array_equal(array, source)

    def test_strides_are_followed_by_a_copy(self):
        source = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
        for view in (source[:, ::2], source.T, source[1:3, 1:4], source[:0], source[2, 3], source[::-1, ::2]):
            array = arrays.as_input("x", Tensor(numpy.asarray(view)), 1)
            numpy.testing.assert_array_equal(array, view)
            self.assertTrue(array.flags.c_contiguous)

    def test_memory_lives_as_long_as_the_array_and_no_longer(self):
        class Owner(numpy.ndarray):
            pass

        source = numpy.arange(1000, dtype=numpy.float32).view(Owner)
        gone = weakref.ref(source)
        array = arrays.as_input("x", Tensor(source), 1)
        del source
        gc.collect()
        self.assertIsNotNone(gone())
        numpy.testing.assert_array_equal(array[:3], [0, 1, 2])
        del array
        gc.collect()
        self.assertIsNone(gone())

    def test_tensor_that_tells_no_strides(self):
        # As older packages do where elements lie densely.
        for shape in ((), (5,), (2, 3, 4)):
            source = numpy.arange(24, dtype=numpy.float32)[: math.prod(shape)].reshape(shape)
            capsule = source.__dlpack__()
            arrays._Tensor.from_address(arrays._get_pointer(capsule, b"dltensor")).strides = None
            tensor = unittest.mock.Mock(spec=["__dlpack__", "__dlpack_device__"])
            tensor.__dlpack__, tensor.__dlpack_device__ = (lambda given=capsule: given), lambda: (1, 0)
            numpy.testing.assert_array_equal(arrays.from_dlpack(tensor, "x"), source)

    def test_other_devices_and_types_are_refused(self):
        with self.assertRaisesRegex(onnxifi.UnsupportedError, "lies on a device"):
            arrays.as_input("x", Tensor(numpy.zeros(1), (2, 0)), 1)
        with self.assertRaisesRegex(onnxifi.MismatchError, "float64; the model declares float"):
            arrays.as_input("x", Tensor(numpy.zeros(1)), 1)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tests of onnxifi_value: texts come back as they were given, with few objects for many of them."""

import unittest

import numpy

import onnxifi_value


class TextsTest(unittest.TestCase):
    def check(self, texts, extents):
        given = numpy.empty(len(texts), object)
        given[:] = texts
        given = given.reshape(extents)
        value = onnxifi_value.from_texts("x", given)
        name, read = onnxifi_value.read(value.value)
        self.assertEqual(name, "x")
        self.assertEqual(read.shape, given.shape)
        self.assertEqual(read.tolist(), given.tolist())
        return value

    def test_any_text_and_shape(self):
        self.check(["", "a", "\u00e4\u4e16 \U0001f600", "b\0c", "", "d"], (2, 3))
        self.check(["scalar"], ())
        self.check([], (0, 4))
        self.check([""], (1,))

    def test_memory_of_many_texts_is_one_block(self):
        value = self.check([str(number) for number in range(3000)], (3000,))
        self.assertLess(sum(not isinstance(part, onnxifi_value.Value) for part in vars(value).values()), 5)


if __name__ == "__main__":
    unittest.main()

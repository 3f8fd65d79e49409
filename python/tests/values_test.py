# SPDX-License-Identifier: Apache-2.0
"""Tests of onnxifi.values: texts come back as they were given, with few objects for many of them."""

import ctypes
import unittest

import numpy
from onnx import helper

from onnxifi import values
from fixture import FLOAT, INT64, STRING, model, node, session, tensor


def fields_of(given):
    return values.fields_of(ctypes.addressof(given.value))


class TextsTest(unittest.TestCase):
    def check(self, texts, extents):
        given = numpy.empty(len(texts), object)
        given[:] = texts
        given = given.reshape(extents)
        value = values.GivenValue("x", ("tensor", STRING), given)
        fields = fields_of(value)
        read = values.read(fields)
        self.assertEqual(values.read_name(fields), b"x")
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
        self.assertLess(len(value._kept), 5)  # pylint: disable=protected-access


class NestedTest(unittest.TestCase):
    def test_what_is_given_is_read(self):
        x = numpy.arange(6, dtype=numpy.int64).reshape(2, 3)
        for kind, content in (
            (("seq", ("tensor", 7)), [x, x[:1], x[:0]]),
            (("optional", ("tensor", 7)), x),
            (("optional", ("seq", ("tensor", 7))), None),
            (("seq", ("map", STRING, ("tensor", 1))), [{"a": 1.5, "b": 2}, {}]),
            (("map", 7, ("seq", ("tensor", 7))), {3: [x], -1: []}),
        ):
            with self.subTest(kind):
                given = values.GivenValue("x", kind, content)
                numpy.testing.assert_equal(values.read(fields_of(given)), content)


class RowsTest(unittest.TestCase):
    """Maps of a library lie evenly; those of GivenValue do not, and are read one by one."""

    def test_rows_of_a_classifier_are_read_at_once(self):
        for keys in ([3, 1, 2], ["no", "yes"]):
            kind = {"classlabels_int64s": keys} if isinstance(keys[0], int) else {"classlabels_strings": keys}
            made = model(
                [node("ZipMap", ["p"], ["m"], domain="ai.onnx.ml", **kind)],
                [tensor("p", ["n", len(keys)])],
                [helper.make_value_info("m", helper.make_sequence_type_proto(
                    helper.make_map_type_proto(INT64 if isinstance(keys[0], int) else STRING, helper.make_tensor_type_proto(FLOAT, []))))],
                domains=[("ai.onnx.ml", 3)],
            )
            opened = session(made)
            for count in (0, 1, 3, 4, 5, 1000):
                p = numpy.random.default_rng(count).random((count, len(keys)), numpy.float32)
                self.assertEqual(opened(p=p)["m"], [dict(zip(keys, row)) for row in p.tolist()])

    def test_maps_with_keys_of_their_own_are_told_apart(self):
        maps = [{"a": 1.0, "b": 2.0}, {"b": 3.0}, {"c": 4.0}, {}, {"d": 5.0, "a": 6.0}] * 3
        given = values.GivenValue("x", ("seq", ("map", STRING, ("tensor", FLOAT))), maps)
        self.assertEqual(values.read(fields_of(given)), maps)


if __name__ == "__main__":
    unittest.main()

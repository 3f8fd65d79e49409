# SPDX-License-Identifier: Apache-2.0
"""The measure of errors, and what --check objects to."""

import unittest

import numpy

from deviation.engines import Refused
from deviation.measurement import Deviation, errors, measure
from make_deviation_report import find_fault, list_refusals, number


class _Engine:
    def __init__(self, answer):
        self._answer = answer

    def run(self, model, inputs):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class DeviationTest(unittest.TestCase):
    def test_errors_are_relative_to_value_and_root_mean_square(self):
        expected = numpy.array([3.0, -4.0])  # rms 3.5355
        found = errors(numpy.array([3.0, -3.0]), expected)
        self.assertEqual(found[0], 0)
        self.assertAlmostEqual(found[1], 1 / (4 + numpy.sqrt(12.5)))

    def test_numbers_that_are_none_are_infinitely_wrong(self):
        self.assertEqual(errors(numpy.array([numpy.nan]), numpy.array([1.0])).max(), numpy.inf)
        self.assertEqual(errors(numpy.array([1.0]), numpy.array([numpy.inf])).max(), numpy.inf)

    def test_another_shape_is_a_refusal(self):
        with self.assertRaises(Refused):
            errors(numpy.zeros(2), numpy.zeros((2, 1)))

    def test_an_engine_that_refuses_has_the_reason(self):
        problems = [(None, {}, numpy.ones(2))]
        self.assertEqual(measure(_Engine(Refused("no")), problems).refusal, "no")
        deviation = measure(_Engine(numpy.array([1.0, 1.5])), problems)
        self.assertEqual(deviation.elements, 2)
        self.assertAlmostEqual(deviation.largest, 0.25)
        self.assertAlmostEqual(deviation.mean, 0.125)

    def test_growth_and_refusals_are_faults(self):
        grown = Deviation(2, 5e-7, 1e-8, "")
        self.assertIn("5.00e-07", find_fault(grown, 1e-7, 4))
        self.assertIsNone(find_fault(grown, 1.3e-7, 4))
        refused = Deviation(0, None, None, "no kernel")
        self.assertEqual(find_fault(refused, 1e-7, 4), "no kernel")
        self.assertIsNone(find_fault(refused, None, 4))
        self.assertIn("not refused", find_fault(grown, None, 4))

    def test_expected_values_of_double_have_errors_of_their_own(self):
        self.assertIsNone(find_fault(Deviation(2, 3.9e-15, 1e-18, ""), 1.5e-16, 4))
        self.assertIn("4.10e-15", find_fault(Deviation(2, 4.1e-15, 1e-18, ""), 1.5e-16, 4))

    def test_a_refusal_of_several_lines_is_one_row(self):
        refused = Deviation(0, None, None, "no | kernel.\n  at node 0")
        rows = list_refusals([("Exp", "double", [refused, Deviation(1, 0.0, 0.0, "")])])
        self.assertIn("| Exp | double | ours | no \\| kernel. at node 0 |\n", rows)

    def test_numbers_have_two_digits(self):
        self.assertEqual(number(1.26e-7), "1.3e-07")
        self.assertEqual(number(0.0), "0")
        self.assertEqual(number(None), "-")


if __name__ == "__main__":
    unittest.main()

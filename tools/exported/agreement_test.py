# SPDX-License-Identifier: Apache-2.0
"""Tests of how answers are compared, and of what expected values must not be."""

import math
import unittest

import numpy

from exported import agreement, known
from exported.exported_case import Rounding


class MeasureTest(unittest.TestCase):
    def test_counts_the_error_in_tolerances(self):
        expected = numpy.array([1.0, -1.0])
        self.assertAlmostEqual(agreement.measure(expected + [0, 2e-4], expected, 1e-4), 1.0, 6)

    def test_takes_no_other_extents(self):
        self.assertEqual(agreement.measure(numpy.zeros((1, 2)), numpy.zeros(2), 1.0), math.inf)

    def test_takes_no_other_integer(self):
        self.assertEqual(agreement.measure(numpy.array([3]), numpy.array([4]), 1.0), math.inf)

    def test_takes_no_number_for_nan(self):
        expected = numpy.array([math.nan, 1])
        self.assertEqual(agreement.measure(numpy.array([0.0, 1]), expected, 1.0), math.inf)

    def test_takes_nan_for_nan(self):
        value = numpy.array([math.nan, 1.0])
        self.assertEqual(agreement.measure(value, value.copy(), 1e-9), 0.0)

    def test_compares_texts(self):
        one, other = numpy.array(["a", "b"], object), numpy.array(["a", "c"])
        self.assertEqual(agreement.measure(one, one.copy(), 1.0), 0.0)
        self.assertEqual(agreement.measure(one, other, 1.0), math.inf)

    def test_compares_maps_by_key(self):
        expected = [{0: 0.25, 1: 0.75}]
        self.assertEqual(agreement.measure([{1: 0.75, 0: 0.25}], expected, 1e-6), 0.0)
        self.assertGreater(agreement.measure([{0: 0.75, 1: 0.25}], expected, 1e-6), 1)
        self.assertEqual(agreement.measure([{0: 0.25}], expected, 1e-6), math.inf)

    def test_takes_no_shorter_sequence(self):
        self.assertEqual(agreement.measure([], [numpy.zeros(1)], 1.0), math.inf)


class MeasuredToleranceTest(unittest.TestCase):
    def roundings(self, *errors):
        exact = numpy.array([1.0, -1.0])
        return [Rounding([exact], [[exact], [exact + [0, error]]]) for error in errors]

    def test_is_eight_times_the_largest_error_of_float32(self):
        tolerance, fault = agreement.measured_tolerance(self.roundings(2e-4, 1e-3), 1e-4)
        self.assertAlmostEqual(tolerance, 8 * 5e-4, 9)
        self.assertEqual(fault, "")

    def test_is_never_below_the_usual_one(self):
        self.assertEqual(agreement.measured_tolerance(self.roundings(1e-6), 1e-4), (1e-4, ""))

    def test_refuses_what_would_let_faults_pass(self):
        _, fault = agreement.measured_tolerance(self.roundings(0.02), 1e-4)
        self.assertIn("lies 0.01 of the values off its float64; at most 0.0063", fault)

    def test_refuses_other_extents(self):
        rounding = Rounding([numpy.zeros(2)], [[numpy.zeros(3)]])
        self.assertTrue(agreement.measured_tolerance([rounding], 1e-4)[1])


class FaultTest(unittest.TestCase):
    def test_refuses_constant_answers(self):
        self.assertTrue(agreement.list_faults([[numpy.ones(9)], [numpy.ones(9)]]))

    def test_refuses_answers_that_no_input_changes(self):
        answer = numpy.arange(9.0)
        self.assertTrue(agreement.list_faults([[answer], [answer.copy()]]))

    def test_refuses_what_is_not_finite(self):
        self.assertTrue(agreement.list_faults([[numpy.array([math.inf, 1.0])]]))

    def test_refuses_saturated_probabilities(self):
        first, second = numpy.zeros(40), numpy.zeros(40)
        first[3] = second[7] = 1 - 1e-9
        self.assertTrue(agreement.list_faults([[first], [second]]))

    def test_takes_answers_that_differ(self):
        generator = numpy.random.default_rng(1)
        self.assertEqual(
            agreement.list_faults([[generator.standard_normal(9)], [generator.standard_normal(9)]]),
            [],
        )


class KnownTest(unittest.TestCase):
    def verdict(self, name, error, peer_error, status="wrong"):
        return known.verdict_of({"name": f"torchvision/{name}", "exporter": "torch script", "reason": "",
                                 "status": status, "error": error, "peer_error": peer_error})  # fmt: skip

    def test_unstable_networks_may_be_off_where_the_peer_is(self):
        self.assertEqual(self.verdict("retinanet_resnet50_fpn", math.inf, math.inf), "not supported")
        self.assertEqual(self.verdict("retinanet_resnet50_fpn", math.inf, 0.1), "failed")
        self.assertEqual(self.verdict("retinanet_resnet50_fpn", 2, 2), "failed")
        self.assertEqual(self.verdict("retinanet_resnet50_fpn", 0, 0, status="crashed"), "failed")
        self.assertEqual(self.verdict("efficientnet_b0", 2, 2), "failed")


if __name__ == "__main__":
    unittest.main()

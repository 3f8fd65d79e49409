# SPDX-License-Identifier: Apache-2.0
"""Tests that output_check.py refuses what would check nothing.

Run from the folder above: python3 -m unittest models.output_check_test
"""

import unittest

import numpy

from models import output_check

_SCORES = [numpy.random.default_rng(seed).standard_normal((1, 1000)) for seed in (1, 2)]


def _check(*values, noise=0.0):
    expected = [[value] for value in values]
    return output_check.check_outputs(["y"], expected, [[value + noise] for value in values])


class OutputCheckTest(unittest.TestCase):
    def test_accepts_scores_that_differ_and_returns_the_float32_share(self):
        # The allowed error is smallest, about 1e-4, where the score is about 0.
        self.assertAlmostEqual(_check(*_SCORES, noise=1e-6), 0.01, delta=0.002)

    def test_refuses_a_constant_output(self):
        with self.assertRaisesRegex(ValueError, "nearly constant"):
            _check(numpy.full((1, 1000), 0.001), _SCORES[0])

    def test_refuses_an_output_that_ignores_the_input(self):
        with self.assertRaisesRegex(ValueError, "hardly depends"):
            _check(_SCORES[0], _SCORES[0] + 0.01 * _SCORES[1])

    def test_refuses_probabilities_with_one_winner(self):
        probabilities = numpy.full((1, 1000), 0.05 / 999)
        probabilities[0, 3] = 0.95
        with self.assertRaisesRegex(ValueError, "one winner"):
            _check(probabilities)

    def test_refuses_what_is_not_finite(self):
        with self.assertRaisesRegex(ValueError, "not finite"):
            _check(numpy.where(_SCORES[0] > 3, numpy.inf, _SCORES[0]))

    def test_refuses_a_network_that_float32_cannot_evaluate(self):
        with self.assertRaisesRegex(ValueError, "Plain float32"):
            _check(*_SCORES, noise=1e-4)


if __name__ == "__main__":
    unittest.main()

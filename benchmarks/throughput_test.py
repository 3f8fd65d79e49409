# SPDX-License-Identifier: Apache-2.0
"""Tests of what throughput.py computes by itself: percentiles, ratios, the table, and runs of several threads."""

import threading
import unittest

import engines
import throughput


class Figures(unittest.TestCase):
    def test_a_percentile_is_a_time_that_was_measured(self):
        times = [float(k) for k in range(1, 201)]
        self.assertEqual(throughput.find_percentile(times, 0.99), 198.0)
        self.assertEqual(throughput.find_percentile(times, 0.5), 100.0)
        self.assertEqual(throughput.find_percentile([3.0], 0.99), 3.0)

    def test_the_ratio_is_to_the_better_peer(self):
        figures = {name: {"per_second": value} for name, value in (("onnxifi", 30), ("a", 10), ("b", 20))}
        self.assertEqual(throughput.find_ratio(figures), 1.5)
        self.assertIsNone(throughput.find_ratio({"onnxifi": {"per_second": 1}}))
        self.assertIsNone(throughput.find_ratio({"a": {"per_second": 1}}))

    def test_the_table_says_who_failed_and_why_once(self):
        entry = {
            "model": "m", "callers": 2, "ratio": None, "faults": {"openvino": "It has no trees."},
            "engines": {"onnxifi": {"per_second": 12.5, "p99_ms": 3.25}},
        }
        text = throughput.make_table([entry, {**entry, "callers": 4}])
        self.assertIn("12.5 / 3.25", text)
        self.assertIn("fails", text)
        self.assertEqual(text.count("m, openvino: It has no trees."), 1)


class Callers(unittest.TestCase):
    def test_each_has_a_thread_of_its_own(self):
        seen = {}
        both = threading.Barrier(2)

        def make(number):
            def run():
                if number not in seen:
                    seen[number] = threading.get_ident()
                    both.wait(60)

            return run

        times, together_ms = engines._time_callers([make(0), make(1)], 0.02)
        self.assertEqual(len(set(seen.values())), 2)
        self.assertGreaterEqual(len(times), 2)
        self.assertGreaterEqual(together_ms, 20)
        self.assertGreaterEqual(min(times), 0)


if __name__ == "__main__":
    unittest.main()

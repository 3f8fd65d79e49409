# SPDX-License-Identifier: Apache-2.0
"""Tests of what throughput.py computes by itself: percentiles, ratios, the table, and runs of several threads."""

import threading
import types
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
            "wrong": {"onnxifi": 2.5},
        }
        text = throughput.make_table([entry, {**entry, "callers": 4}])
        self.assertIn("12.5 / 3.25", text)
        self.assertIn("fails", text)
        self.assertEqual(text.count("m, openvino: It has no trees."), 1)
        self.assertIn("m, onnxifi with 4 callers: wrong by 2.5 tolerances", text)

    def test_an_engine_counts_with_its_better_setting(self):
        few, many = (throughput.Setting("a", 2, serves_callers=is_many) for is_many in (False, True))
        turn = {"times_ms": [1.0, 1.0], "together_ms": 2.0}
        best = throughput.choose_best({few: [turn], many: [{**turn, "together_ms": 1.0}]})
        self.assertEqual(best, {"a": {"setting": "a set for many callers", "per_second": 2000.0, "p99_ms": 1.0}})


class Settings(unittest.TestCase):
    class Broken:
        """An engine that fails in its second turn."""

        turns = closed = 0

        def serve(self, inputs, callers, seconds):
            self.turns += 1
            if self.turns == 2:
                raise engines.EngineError("It died.")
            return {"times_ms": [1.0], "together_ms": 1.0}

        def close(self):
            self.closed += 1

    def test_one_that_fails_takes_no_other_with_it(self):
        model = types.SimpleNamespace(inputs={})
        arguments = types.SimpleNamespace(rounds=3, seconds=1)
        broken, good = self.Broken(), self.Broken()
        good.turns = 2
        few, many = (throughput.Setting("a", 2, serves_callers=is_many) for is_many in (False, True))
        running, faults = {few: broken, many: good}, {}
        turns = throughput._serve_callers(running, model, 4, arguments, faults)
        self.assertEqual({setting: len(of) for setting, of in turns.items()}, {many: 3})
        self.assertEqual(faults, {"a": "with 4 callers: It died."})
        self.assertEqual((broken.closed, list(running)), (1, [many]))


class Callers(unittest.TestCase):
    def time_two(self, seconds):
        """The milliseconds of two callers whose first runs wait for each other, and those they took together."""
        seen = {}
        both = threading.Barrier(2)

        def make(number):
            def run():
                if number not in seen:
                    seen[number] = threading.get_ident()
                    both.wait()

            return run

        times, together_ms = engines._time_callers([make(0), make(1)], seconds)
        self.assertEqual(len(set(seen.values())), 2)
        self.assertGreaterEqual(min(times), 0)
        return times, together_ms

    def test_each_has_a_thread_of_its_own(self):
        times, together_ms = self.time_two(0.02)
        self.assertGreaterEqual(len(times), 2)
        self.assertGreaterEqual(together_ms, 20)

    def test_one_that_begins_late_runs_once(self):
        self.assertEqual(len(self.time_two(0)[0]), 2)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Tests of what auto_device.py computes by itself: the ratio of a model, and the plan in words."""

import json
import pathlib
import tempfile
import unittest

import auto_device


class ChooseNear(unittest.TestCase):
    def test_is_the_best_and_what_comes_near_it(self):
        alone = {"cpu": 12.0, "opencl": 10.0, "slow": 15.1}
        self.assertEqual(auto_device.choose_near(alone), ["opencl", "cpu"])

    def test_is_nothing_where_no_device_runs_the_model(self):
        self.assertEqual(auto_device.choose_near({}), [])


class RunsInTurn(unittest.TestCase):
    def test_are_as_many_as_asked_for_unless_that_is_over_too_soon(self):
        self.assertEqual(auto_device.runs_in_turn(20, {"cpu": 12.0, "opencl": 80.0}), 20)
        self.assertEqual(auto_device.runs_in_turn(20, {"cpu": 0.5, "opencl": 80.0}), 400)
        self.assertEqual(auto_device.runs_in_turn(20, {"cpu": 0.0}), 20000)


class RatioOf(unittest.TestCase):
    def test_is_that_of_the_middle_turn_to_the_best_device(self):
        turns = {
            "cpu": [(2.5, 0.8), (20.0, 1.5), (3.0, 1.1)],
            "opencl": [(9.0, 0.2), (1.0, 30.0), (9.0, 0.3)],
        }
        self.assertEqual(auto_device.ratio_of(turns), 1.1)

    def test_leaves_out_devices_that_had_no_turn(self):
        self.assertEqual(auto_device.ratio_of({"cpu": [], "opencl": [(2.0, 1.5)]}), 1.5)

    def test_is_none_where_nothing_can_be_compared(self):
        self.assertIsNone(auto_device.ratio_of({"cpu": []}))
        self.assertIsNone(auto_device.ratio_of({}))


class DescribePlan(unittest.TestCase):
    def describe(self, keys):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "plan.json"
            file.write_text(json.dumps({"islands": [{"device": key} for key in keys]}))
            return auto_device.describe_plan(file)

    def test_names_the_device_that_has_all(self):
        self.assertEqual(self.describe(["cpu:0"]), "cpu:0")

    def test_counts_islands_by_device(self):
        self.assertEqual(
            self.describe(["opencl:0", "cpu:0", "opencl:0"]), "3 islands: 1 on cpu:0, 2 on opencl:0"
        )


if __name__ == "__main__":
    unittest.main()

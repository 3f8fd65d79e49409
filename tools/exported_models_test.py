#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of exported_models.py: what becomes of cases whose worker hangs."""

import types
import unittest
from unittest import mock

import exported_models


class FakeWorker:
    """Answers with the lines of a script, and hangs where the script ends."""

    scripts = []

    def __init__(self, _arguments, _keys):
        self._lines = iter(self.scripts.pop(0))

    def read(self, _timeout_s):
        for line in self._lines:
            return line
        raise TimeoutError

    def end(self):
        return -9


def run_cases(scripts, keys):
    FakeWorker.scripts = list(scripts)
    with mock.patch.object(exported_models, "Worker", FakeWorker):
        return list(exported_models.run_cases(types.SimpleNamespace(timeout=3), keys))


class HangingWorkerTest(unittest.TestCase):
    def test_a_case_that_hangs_is_its_own_fault(self):
        begins = [{"begins": "a [x]"}], [{"begins": "b [x]"}, {"status": "passed"}]
        results = run_cases(begins, ["a [x]", "b [x]"])
        self.assertEqual([(one["name"], one["status"]) for one in results], [("a", "crashed"), ("b", "passed")])

    def test_a_worker_that_begins_no_case_is_told(self):
        with self.assertRaisesRegex(SystemExit, "begins no case within 3 s"):
            run_cases([[]], ["a [x]"])

    def test_a_worker_that_hangs_after_its_last_case_is_over(self):
        results = run_cases([[{"begins": "a [x]"}, {"status": "passed"}]], ["a [x]"])
        self.assertEqual([one["status"] for one in results], ["passed"])


if __name__ == "__main__":
    unittest.main()

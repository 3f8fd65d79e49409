# SPDX-License-Identifier: Apache-2.0
"""The table of pairs, against ONNX's registry."""

import unittest

from opsets import case, table
from opsets.case import Pair


class TableTest(unittest.TestCase):
    def setUp(self):
        self.pairs = [Pair("", "Abs", 1), Pair("", "Abs", 6), Pair("", "Upsample", 10)]
        self.cases = {self.pairs[0]: ["test_a"], self.pairs[1]: ["test_b"]}
        self.reasons = {self.pairs[2]: "It is deprecated."}

    def test_a_full_table_has_no_fault(self):
        self.assertEqual(table.find_faults(self.pairs, self.cases, self.reasons), [])

    def test_a_pair_without_case_and_reason_is_a_fault(self):
        faults = table.find_faults(self.pairs, {self.pairs[0]: ["test_a"]}, self.reasons)
        self.assertEqual(
            faults, ["ai.onnx Abs 6 has neither a case nor a reason why none can exist."]
        )

    def test_a_reason_for_a_pair_that_has_a_case_is_a_fault(self):
        self.reasons[self.pairs[0]] = "It cannot be."
        faults = table.find_faults(self.pairs, self.cases, self.reasons)
        self.assertEqual(len(faults), 1)
        self.assertIn(
            "ai.onnx Abs 1 has a reason why no case can exist, and case test_a", faults[0]
        )

    def test_a_reason_for_no_pair_is_a_fault(self):
        self.reasons[Pair("", "Abs", 2)] = "It is not there."
        faults = table.find_faults(self.pairs, self.cases, self.reasons)
        self.assertEqual(len(faults), 1)

    def test_reasons_are_for_deprecated_versions_alone(self):
        deprecated = {pair for pair, schema in case.schemas().items() if schema.deprecated}
        self.assertEqual(set(table.REASONS), deprecated)

    def test_names_of_cases_are_distinct_and_cases_have_their_pair(self):
        names = set()
        for pair in case.schemas():
            for made in case.list_cases(pair):
                self.assertNotIn(made.name, names)
                names.add(made.name)
                self.assertIn(pair, case.pairs_of(made.model), made.name)

    def test_a_case_of_another_version_is_refused(self):
        made = case.list_cases(Pair("", "Abs", 6))[0]._replace(pair=Pair("", "Abs", 13))
        with self.assertRaises(ValueError):
            case.check(made)


if __name__ == "__main__":
    unittest.main()

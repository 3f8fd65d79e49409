# SPDX-License-Identifier: Apache-2.0
"""Shows that check_layers.py finds each kind of offence, on small trees made for the purpose."""

import pathlib
import tempfile
import unittest

import check_layers

_RULES = {"base": [], "middle": ["base"], "top": ["middle"]}


class FindOffencesTest(unittest.TestCase):
    def find(self, files, rules=_RULES):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.find_offences(root, rules)

    def test_allows_a_lower_layer_however_far_below(self):
        files = {"base/a.h": "", "middle/b.h": '#include "base/a.h"\n', "top/c.h": '#include "base/a.h"\n'}
        self.assertEqual(self.find(files), [])

    def test_reports_a_higher_layer(self):
        files = {"base/a.h": '#include "top/c.h"\n', "top/c.h": ""}
        self.assertEqual(self.find(files), ["base/a.h:1: 'base' may not include 'top'."])

    def test_reports_a_higher_layer_in_angles(self):
        files = {"base/a.h": "\n#include <top/c.h>\n", "top/c.h": ""}
        self.assertEqual(self.find(files), ["base/a.h:2: 'base' may not include 'top'."])

    def test_reports_an_include_relative_to_its_own_file(self):
        files = {"base/a.h": "", "base/b.h": '#include "a.h"\n'}
        (offence,) = self.find(files)
        self.assertIn("written from there", offence)

    def test_takes_the_top_of_a_project_for_its_own_files_alone(self):
        files = {"top/a/b.h": "", "top/c.h": '#include "a/b.h"\n', "middle/d.h": '#include "a/b.h"\n'}
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            (offence,) = check_layers.find_offences(root, _RULES, ("top",))
        self.assertIn("middle/d.h:1", offence)

    def test_reports_a_folder_without_a_rule(self):
        (offence,) = self.find({"stray/a.h": ""})
        self.assertIn("'stray' has no rule", offence)

    def test_reports_folders_that_include_each_other(self):
        files = {
            "base/a.h": '#include "base/inner/b.h"\n',
            "base/c.h": "",
            "base/inner/b.h": '#include "base/c.h"\n',
        }
        (offence,) = self.find(files)
        self.assertEqual(
            offence,
            "Folders include each other in a circle: base -> base/inner (base/a.h:1)"
            " -> base (base/inner/b.h:1).",
        )

    def test_reports_folders_in_a_circle_of_three(self):
        files = {
            "base/a/a.h": '#include "base/b/b.h"\n',
            "base/b/b.h": '#include "base/c/c.h"\n',
            "base/c/c.h": '#include "base/a/other.h"\n',
            "base/a/other.h": "",
        }
        (offence,) = self.find(files)
        self.assertIn("base/a -> base/b (base/a/a.h:1) -> base/c (base/b/b.h:1) -> base/a", offence)

    def test_lets_tests_include_the_folder_testing(self):
        files = {
            "base/a.h": "",
            "base/a_test.cc": '#include "base/testing/t.h"\n',
            "base/testing/t.h": '#include "base/a.h"\n',
        }
        self.assertEqual(self.find(files), [])

    def test_lets_tests_of_a_kernel_include_their_plugin(self):
        files = {
            "backends/x/device.h": '#include "backends/x/kernel/k.h"\n',
            "backends/x/kernel/k.h": "",
            "backends/x/kernel/k_test.cc": '#include "backends/x/device.h"\n#include "base/a.h"\n',
            "base/a.h": "",
        }
        rules = {"backends/x": ["backends/x/kernel", "base"], "backends/x/kernel": [], "base": []}
        self.assertEqual(self.find(files, rules), [])
        files["backends/x/kernel/k.cc"] = '#include "base/a.h"\n'
        (offence,) = self.find(files, rules)
        self.assertIn("'backends/x/kernel' may not include 'base'", offence)

    def test_reports_modules_whose_sources_close_a_circle(self):
        files = {
            "base/a.h": "",
            "base/a.cc": '#include "base/a.h"\n#include "base/b.h"\n',
            "base/b.h": "",
            "base/b.cc": '#include "base/b.h"\n\n#include "base/a.h"\n',
        }
        self.assertEqual(
            self.find(files),
            ["Modules include each other in a circle: base/a -> base/b (base/a.cc:2) -> base/a (base/b.cc:3)."],
        )

    def test_counts_an_inline_header_to_its_module(self):
        files = {
            "base/a.h": "",
            "base/a-inl.h": '#include "base/a.h"\n#include "base/b.h"\n',
            "base/b.h": '#include "base/a.h"\n',
        }
        (offence,) = self.find(files)
        self.assertIn("base/a -> base/b (base/a-inl.h:2) -> base/a (base/b.h:1)", offence)

    def test_reports_files_in_a_circle_once_more_than_their_modules(self):
        files = {"base/a.h": '#include "base/b.h"\n', "base/b.h": '#include "base/a.h"\n'}
        offences = self.find(files)
        self.assertEqual([offence.split()[0] for offence in offences], ["Files", "Modules"])
        self.assertIn("base/a.h -> base/b.h (base/a.h:1) -> base/a.h (base/b.h:1).", offences[0])

    def test_reports_a_file_that_includes_itself(self):
        (offence,) = self.find({"base/a.h": '#include "base/a.h"\n'})
        self.assertIn("base/a.h -> base/a.h (base/a.h:1).", offence)

    def test_allows_a_test_to_close_a_circle_of_modules(self):
        files = {
            "base/a.h": "",
            "base/a_test.cc": '#include "base/b.h"\n',
            "base/b.h": '#include "base/a.h"\n',
        }
        self.assertEqual(self.find(files), [])


class FindCirclesTest(unittest.TestCase):
    def find(self, text):
        edges = {}
        for pair in text.split():
            edges.setdefault(pair[0], {})[pair[1]] = "line"
        return ["".join(circle) for circle in check_layers.find_circles(edges)]

    def test_finds_none_in_a_graph_without_any(self):
        self.assertEqual(self.find("ab ac bd cd"), [])

    def test_finds_the_shortest_first(self):
        self.assertEqual(self.find("ab bc ca ba"), ["ab"])
        self.assertEqual(self.find("ab bc ca cb"), ["bc"])

    def test_finds_every_circle_of_those_that_share_a_node(self):
        self.assertEqual(self.find("ab ba ac ca"), ["ab", "ac"])
        self.assertEqual(self.find("ab bc ca ad de ea"), ["abc", "ade"])

    def test_finds_circles_that_are_reached_late(self):
        self.assertEqual(self.find("ab bc cd dc"), ["cd"])


class FindMissingFoldersTest(unittest.TestCase):
    def test_reports_rules_and_permissions_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "base").mkdir()
            (root / "top").mkdir()
            self.assertEqual(check_layers.find_missing_folders(root, {"base": [], "top": ["base"]}), [])
            (offence,) = check_layers.find_missing_folders(root, {"base": ["gone"], "top": []})
            self.assertIn("'gone', which does not exist", offence)
            (offence,) = check_layers.find_missing_folders(root, {"base": [], "away": ["base"]})
            self.assertIn("'away', which does not exist", offence)


class FindLargeFoldersTest(unittest.TestCase):
    def test_counts_product_lines_of_each_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, count in {
                "base/a/x.h": 2,
                "base/a/x.cc": 3,
                "base/a/x_test.cc": 9,
                "base/a/testing/t.h": 9,
                "base/b/y.cc": 5,
                "other/z.cc": 9,
            }.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("// line\n" * count)
            self.assertEqual(check_layers.find_large_folders(root, {"base": 5}), [])
            self.assertEqual(
                check_layers.find_large_folders(root, {"base": 4}),
                [
                    "The folder 'base/a' has 5 lines of product code; the limit is 4.",
                    "The folder 'base/b' has 5 lines of product code; the limit is 4.",
                ],
            )


if __name__ == "__main__":
    unittest.main()

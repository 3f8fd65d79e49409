# SPDX-License-Identifier: Apache-2.0
"""Shows that check_layers.py finds each kind of offence, on small trees made for the purpose."""

import pathlib
import tempfile
import unittest

import check_layers

_RULES = {"base": [], "middle": ["base"], "top": ["middle"]}


class FindOffencesTest(unittest.TestCase):
    def find(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.find_offences(root, _RULES)

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
        self.assertIn("'base' and 'base/inner' include each other", offence)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Shows that check_links.py finds each kind of link that leads nowhere, on small trees made for the purpose."""

import pathlib
import tempfile
import unittest

import check_links


class FindOffencesTest(unittest.TestCase):
    def find(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_links.find_offences(root, [name for name in files if name.endswith(".md")])

    def test_takes_links_to_files_folders_and_headings(self):
        files = {
            "a.md": "[b](docs/b.md) [f](docs) [h](docs/b.md#two-words-onnxrungraph) [own](#top)\n# Top\n",
            "docs/b.md": "## Two words: `onnxRunGraph`\n[up](../a.md)\n",
        }
        self.assertEqual(self.find(files), [])

    def test_reports_a_file_that_is_not_there(self):
        self.assertEqual(self.find({"a.md": "\n[b](b.md)\n"}), ["a.md:2: 'b.md' does not exist."])

    def test_reports_a_heading_that_is_not_there(self):
        self.assertEqual(self.find({"a.md": "# Top\n[b](#bottom)\n"}), ["a.md:2: 'a.md' has no heading '#bottom'."])

    def test_numbers_equal_headings(self):
        self.assertEqual(self.find({"a.md": "# Top\n# Top\n[b](#top-1)\n"}), [])

    def test_reports_images_and_definitions(self):
        files = {"a.md": '<img src="b.svg">\n[c]: c.md\n![d](d.png)\n'}
        self.assertEqual(len(self.find(files)), 3)

    def test_leaves_code_and_other_schemes_alone(self):
        files = {"a.md": "`[b](b.md)` [c](https://example.org/c)\n```\n[d](d.md)\n# no heading\n```\n"}
        self.assertEqual(self.find(files), [])


if __name__ == "__main__":
    unittest.main()

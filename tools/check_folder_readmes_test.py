# SPDX-License-Identifier: Apache-2.0
"""Shows that check_folder_readmes.py finds folders without a README, and READMEs that are too long."""

import unittest

import check_folder_readmes


def sources(folder, count):
    return {f"{folder}/{number}.cc": None for number in range(count)}


class FindOffencesTest(unittest.TestCase):
    def test_lets_small_folders_be(self):
        self.assertEqual(check_folder_readmes.find_offences({**sources("a", 5), **sources("a/b", 5)}), [])

    def test_reports_a_larger_folder(self):
        self.assertEqual(check_folder_readmes.find_offences(sources("a/b", 6)), ["a/b has 6 files and no README.md."])

    def test_takes_a_short_readme(self):
        self.assertEqual(check_folder_readmes.find_offences({**sources("a", 6), "a/README.md": "line\n" * 20}), [])

    def test_reports_a_long_readme(self):
        (offence,) = check_folder_readmes.find_offences({"a/README.md": "line\n" * 21})
        self.assertEqual(offence, "a/README.md has 21 lines, more than 20.")

    def test_lets_the_top_folder_and_data_be(self):
        images = {f"d/{number}.png": None for number in range(9)}
        texts = {**{f"{number}.cc": None for number in range(9)}, "README.md": "line\n" * 99, **images}
        self.assertEqual(check_folder_readmes.find_offences(texts), [])


if __name__ == "__main__":
    unittest.main()

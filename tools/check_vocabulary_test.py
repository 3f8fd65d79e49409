# SPDX-License-Identifier: Apache-2.0
"""Shows that check_vocabulary.py finds each kind of refused word, with words made for the purpose."""

import unittest

import check_vocabulary

_IDENTIFIERS = check_vocabulary.read_list(
    "# a comment\n\nOldName  new name\nkOld\\w*  kNew\ntype Spot  Slot\nold_file  f\n"
)
_PHRASES = check_vocabulary.read_list("an old phrase  a new phrase\n")


class FindInTest(unittest.TestCase):
    def find(self, name, text):
        return check_vocabulary.Vocabulary(_IDENTIFIERS, _PHRASES).find_in(name, text)

    def test_reports_an_identifier_with_its_line_and_term(self):
        self.assertEqual(self.find("a.cc", "\nint OldName;\n"), ["a.cc:2: 'OldName'; the term is: new name."])

    def test_takes_identifiers_whole(self):
        self.assertEqual(self.find("a.cc", "OldNames VeryOldName skOld"), [])

    def test_takes_regular_expressions(self):
        self.assertEqual(len(self.find("a.py", "kOld kOldWindow")), 2)

    def test_reports_comments_and_documents_too(self):
        self.assertEqual(len(self.find("a.cc", "// OldName")), 1)
        self.assertEqual(len(self.find("a.md", "`OldName`")), 1)

    def test_reports_types_but_not_other_uses_of_their_name(self):
        self.assertEqual(len(self.find("a.h", "struct Spot {")), 1)
        self.assertEqual(len(self.find("a.h", "enum class Spot : int {\nusing Spot = int;")), 2)
        self.assertEqual(self.find("a.h", "// Spot the difference."), [])

    def test_reports_names_of_files(self):
        (offence,) = self.find("x/old_file.cc", "")
        self.assertEqual(offence, "x/old_file.cc: the file is named 'old_file'; the term is: f.")

    def test_reports_phrases_in_documents_across_lines_and_case(self):
        (offence,) = self.find("a.md", "\nThis is An old\n  phrase.")
        self.assertEqual(offence, "a.md:2: 'an old phrase'; the term is: a new phrase.")
        self.assertEqual(self.find("a.md", "an older phrase"), [])
        self.assertEqual(self.find("a.cc", "// an old phrase"), [])


class ReadListTest(unittest.TestCase):
    def test_refuses_a_line_without_a_term(self):
        with self.assertRaisesRegex(ValueError, "line 2"):
            check_vocabulary.read_list("# fine\nOldName\n")


if __name__ == "__main__":
    unittest.main()

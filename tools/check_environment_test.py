# SPDX-License-Identifier: Apache-2.0
"""Shows that check_environment.py finds the variables of every language, and each side's surplus."""

import unittest

import check_environment


class NamesTest(unittest.TestCase):
    def test_finds_those_of_c_and_of_wrappers(self):
        text = 'std::getenv("SOME_NAME"); read_paths("OTHER_NAME", &out); Say("lower"); Say(prefix + "LATER_NAME");'
        self.assertEqual(check_environment.names_in("a.cc", text), {"SOME_NAME", "OTHER_NAME"})

    def test_leaves_c_without_getenv_alone(self):
        self.assertEqual(check_environment.names_in("a.cc", 'Say("SOME_NAME");'), set())

    def test_finds_names_of_ours_that_are_given_to_functions_elsewhere(self):
        text = 'FindFolder("ONNXIFI_SOME_DIR"); AddList(list, "ONNXIFI_OTHER_DIR");'
        self.assertEqual(check_environment.names_in("a.cc", text), {"ONNXIFI_SOME_DIR", "ONNXIFI_OTHER_DIR"})
        self.assertEqual(check_environment.names_in("a_test.cc", text), set())

    def test_finds_those_of_python(self):
        text = (
            "import os\n_NAME = 'OF_CONSTANT'\nos.environ.get('OF_GET')\nos.environ['OF_READ']\n"
            "os.getenv('OF_GETENV')\nos.environ[_NAME]\nos.environ['OF_WRITE'] = '1'\n'OF_TEST' in os.environ\n"
        )
        self.assertEqual(
            check_environment.names_in("a.py", text), {"OF_GET", "OF_READ", "OF_GETENV", "OF_CONSTANT", "OF_TEST"}
        )

    def test_finds_those_of_shell_scripts_without_their_own(self):
        text = (
            "#!/usr/bin/env bash\n# $IN_COMMENT\nOWN_NAME=1\necho $OWN_NAME ${WITH_DEFAULT:-2} $PLAIN_NAME \\$ESCAPED\n"
            "echo ${BASH_SOURCE[0]}\n"
        )
        self.assertEqual(check_environment.names_in("tools/run", text), {"WITH_DEFAULT", "PLAIN_NAME"})

    def test_finds_those_of_cmake(self):
        self.assertEqual(check_environment.names_in("a/CMakeLists.txt", "set(a $ENV{SOME_NAME})"), {"SOME_NAME"})


class FindOffencesTest(unittest.TestCase):
    _READER = {"a.cc": 'std::getenv("SOME_NAME")'}

    def test_takes_equal_sides(self):
        self.assertEqual(check_environment.find_offences(self._READER, "| `SOME_NAME` | a |\n"), [])

    def test_reports_what_is_not_explained(self):
        (offence,) = check_environment.find_offences(self._READER, "`SOME_NAME` in a sentence\n")
        self.assertEqual(offence, "a.cc reads SOME_NAME, which docs/environment.md does not explain.")

    def test_reports_what_nothing_reads(self):
        (offence,) = check_environment.find_offences({}, "| `SOME_NAME` | a |\n")
        self.assertEqual(offence, "docs/environment.md explains SOME_NAME, which nothing reads.")


if __name__ == "__main__":
    unittest.main()

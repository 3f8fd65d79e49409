# SPDX-License-Identifier: Apache-2.0
"""Shows which differences check_outputs.py sees, and that it writes what a command prints."""

import pathlib
import tempfile
import unittest

import check_outputs

_DOCUMENT = """# Title
```console
$ first
one
two
$ second --option
```
```
$ no example
```
```console
$ third
3
```
"""


class FindExamplesTest(unittest.TestCase):
    def test_finds_commands_and_the_lines_of_their_outputs(self):
        lines = _DOCUMENT.splitlines()
        found = [(e.command, lines[e.first : e.last]) for e in check_outputs.find_examples(lines)]
        self.assertEqual(found, [("first", ["one", "two"]), ("second --option", []), ("third", ["3"])])


class DifferTest(unittest.TestCase):
    def test_takes_other_times_and_fractions(self):
        printed = "in 12.0 ms; 70 us, 0 %, at [5] 4.5"
        self.assertEqual(check_outputs.differ("in 1.234 ms; 7 us, 3 %, at [5] 4.44", printed), [])

    def test_takes_other_spaces(self):
        self.assertEqual(check_outputs.differ("a   b\nc", " a b \nc\n"), [])

    def test_sees_other_counts_words_and_lines(self):
        self.assertNotEqual(check_outputs.differ("12 nodes", "13 nodes"), [])
        self.assertNotEqual(check_outputs.differ("runs", "fails"), [])
        self.assertNotEqual(check_outputs.differ("one", "one\ntwo"), [])
        self.assertNotEqual(check_outputs.differ("[5] 4.44", "[6] 4.44"), [])

    def test_leaves_versions_alone(self):
        self.assertNotEqual(check_outputs.differ("version 1.2.3", "version 1.2.4"), [])


class HideNamesTest(unittest.TestCase):
    def test_replaces_the_longest_name_first(self):
        hidden = check_outputs.hide_names("pocl-Processor 9 and Processor 9", {"Processor 9", "pocl-Processor 9"})
        self.assertEqual(hidden, "<device name> and <device name>")


class Says:
    def __init__(self, outputs):
        self._outputs = outputs

    def run(self, command):
        return self._outputs[command]


class CheckTest(unittest.TestCase):
    _OUTPUTS = {"first": "one\n", "second --option": "new\nlines\n", "third": "3\n"}

    def check(self, writes):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.md"
            path.write_text(_DOCUMENT)
            return check_outputs.check(path, Says(self._OUTPUTS), writes), path.read_text()

    def test_reports_without_writing(self):
        differences, text = self.check(writes=False)
        commands = [line for line in differences if line.startswith("a.md")]
        self.assertEqual(commands, ["a.md:3: $ first", "a.md:6: $ second --option"])
        self.assertEqual(text, _DOCUMENT)

    def test_writes_what_commands_print(self):
        _, text = self.check(writes=True)
        self.assertEqual(text, _DOCUMENT.replace("one\ntwo\n", "one\n").replace("--option\n", "--option\nnew\nlines\n"))


if __name__ == "__main__":
    unittest.main()

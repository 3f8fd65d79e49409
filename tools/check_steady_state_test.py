# SPDX-License-Identifier: Apache-2.0
"""Tests of check_steady_state: what passes and what does not."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

_TOOL = pathlib.Path(__file__).resolve().parent / "check_steady_state.py"

# A program whose runs cost what the case says, behind a first run that costs more.
_PROGRAM = """#!{python}
import json, sys
runs = int(sys.argv[sys.argv.index("--repeat") + 1])
each = {each}
print(json.dumps({{"counters": {{name: 7 + count * runs for name, count in each.items()}}}}))
"""


class SteadyStateTest(unittest.TestCase):
    def check(self, **each):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program")
            program.write_text(_PROGRAM.format(python=sys.executable, each=json.dumps(each)), encoding="utf-8")
            program.chmod(0o755)
            command = [sys.executable, str(_TOOL), "--device", "any", "--program", str(program), "model.onnx"]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_one_submission_and_a_copy_per_tensor(self):
        done = self.check(runs=1, submissions=1, copies=2, allocations=0, recordings=0)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("5 passed, 0 failed", done.stdout)

    def test_anything_more_is_named(self):
        done = self.check(runs=1, submissions=2, copies=2, allocations=1)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("2 passed, 2 failed", done.stdout)
        self.assertRegex(done.stdout, r"submissions +6 in 3 runs, not 3")
        self.assertRegex(done.stdout, r"allocations +3 in 3 runs, not 0")

    def test_a_counter_that_is_missing_is_no_pass(self):
        done = self.check(runs=1, submissions=1)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("has no counter 'copies'", done.stderr)


if __name__ == "__main__":
    unittest.main()

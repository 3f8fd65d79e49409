# SPDX-License-Identifier: Apache-2.0
"""Shows that tools/test adds up what its stages report, with stand-ins for everything that it starts."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

_TOP = pathlib.Path(__file__).resolve().parent.parent

# The suite: so many cases on the first device, others on the second, none failed on either.
_CONFORMANCE = """#!/bin/sh
case "$*" in
  *"--suite operators --device cpu"*) echo "Expanded twins: 9 passed, 0 failed, 9 not supported"
    echo "20 passed, 0 failed, 3 not supported" ;;
  *"--suite operators --device opencl"*) [ -z "$FAILED" ] || echo "fail   node/test_abs_cpu: It is wrong."
    echo "7 passed, ${FAILED:-0} failed, 4 not supported"
    [ "${FAILED:-0}" = 0 ] ;;
  *"--suite interface"*) echo "5 passed, 0 failed" ;;
esac
"""

_CTEST = """#!/bin/sh
cat <<'END'
100% tests passed, 0 tests failed out of 9

The following tests did not run:
	  3 - cpu_test.Matmul.Avx512 (Skipped)
	  4 - cpu_test.Matmul.Amx (Skipped)
	 10 - auto_test.SleepingDevices (Disabled)
END
"""


class SumsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        programs = {
            "bin/cmake": "#!/bin/sh\n",
            "bin/git": "#!/bin/sh\necho $COMMIT\n",
            "bin/python": "#!/bin/sh\n",
            "tools/setup": f"#!/bin/sh\necho {self.root}/bin/python\n",
            "build/release/bin/onnxifi_conformance": _CONFORMANCE,
        }
        for name, text in programs.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)
        shutil.copy(_TOP / "tools" / "test", self.root / "tools" / "test")
        self.results = self.root / "build" / "test_results.jsonl"

    def run_test(self, *arguments, **environment):
        """Lines that tools/test prints, and its exit status."""
        path = f"{self.root}/bin{os.pathsep}{os.get_exec_path()[0]}{os.pathsep}{os.defpath}"
        ran = subprocess.run(
            [self.root / "tools" / "test", *arguments],
            env=os.environ | {"COMMIT": "c0ffee"} | environment | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.stdout.splitlines(), ran.returncode

    def run_stages(self, only, **environment):
        return self.run_test("--only", only, **environment)

    def list_shards(self):
        """Name -> sum of budgets in seconds."""
        lines, status = self.run_test("--list")
        self.assertEqual(status, 0)
        return {name: int(budget) for name, budget, _ in (line.split() for line in lines[1:])}

    def record(self, commit, **failed):
        with self.results.open("a") as file:
            for shard in self.list_shards():
                file.write(
                    f'{{"commit": "{commit}", "shard": "{shard}", "passed": 3, "failed": {failed.get(shard, 0)},'
                    ' "not_supported": 0, "seconds": 5, "ended": ""}\n'
                )

    def test_adds_up_refusals_and_ends_with_the_sum(self):
        lines, status = self.run_stages("^(interface on cpu|(some )?operators on (cpu|opencl))$")
        self.assertEqual(lines[-1], "32 passed, 0 failed")
        self.assertEqual(lines[-2], "7 not supported, as conformance/expectations lists")
        self.assertEqual(status, 0)
        table = [line.split(" s  ")[-1] for line in lines if "budget" not in line]
        self.assertIn("20 passed, 0 failed, 3 not supported", table)
        self.assertIn("5 passed, 0 failed", table)

    def test_a_failed_case_fails(self):
        lines, status = self.run_stages("^some operators on opencl$", FAILED="2")
        self.assertEqual(lines[-1], "7 passed, 2 failed")
        self.assertEqual(lines[-2], "4 not supported, as conformance/expectations lists")
        self.assertIn("some operators on opencl: fail   node/test_abs_cpu: It is wrong.", lines)
        self.assertEqual(status, 1)

    def test_failed_unit_tests_are_named_at_the_end(self):
        ctest = self.root / "bin" / "ctest"
        failed = "\nThe following tests FAILED:\n\t 12 - cpu_test.Matmul.IsRight (Failed)\nEND\nexit 8\n"
        ctest.write_text(_CTEST.replace("100%", "90%").replace(", 0 tests", ", 1 tests").replace("\nEND\n", failed))
        ctest.chmod(0o755)
        lines, status = self.run_stages("^unit tests$")
        self.assertIn("unit tests: \t 12 - cpu_test.Matmul.IsRight (Failed)", lines)
        self.assertNotIn("Skipped", "".join(line for line in lines if line.startswith("unit tests: ")))
        self.assertEqual(status, 1)

    def test_an_expression_that_matches_no_stage_fails(self):
        lines, status = self.run_stages("^interfaces$")
        self.assertIn("The expression '^interfaces$' matches no stage of the shard 'every'.", lines)
        self.assertEqual((lines[-1], status), ("0 passed, 1 failed", 1))

    def test_skipped_tests_are_not_among_those_passed(self):
        ctest = self.root / "bin" / "ctest"
        ctest.write_text(_CTEST)
        ctest.chmod(0o755)
        lines, status = self.run_stages("^unit tests$")
        self.assertEqual((lines[-1], status), ("7 passed, 0 failed", 0))
        self.assertIn("3 skipped", lines)

    def test_shards_take_at_most_forty_minutes(self):
        shards = self.list_shards()
        self.assertIn("every", shards)
        self.assertEqual({name: budget for name, budget in shards.items() if budget > 2400}, {})

    def test_a_shard_records_commit_and_result(self):
        _, status = self.run_test("--shard", "operators-opencl", FAILED="2")
        self.assertEqual(status, 1)
        self.run_test("--shard", "operators-opencl", COMMIT="c0ffee-dirty")
        first, second = (json.loads(line) for line in self.results.read_text().splitlines())
        self.assertEqual([first[key] for key in ("commit", "shard", "passed", "failed", "not_supported")],
                         ["c0ffee", "operators-opencl", 7, 2, 4])
        self.assertEqual([second["commit"], second["failed"]], ["c0ffee-dirty", 0])

    def test_what_was_chosen_from_a_shard_is_no_result(self):
        self.run_stages("^interface on cpu$")
        self.assertFalse(self.results.exists())

    def test_refuses_a_shard_that_there_is_not(self):
        self.assertEqual(self.run_test("--shard", "operators")[1], 2)

    def test_full_asks_for_every_shard_on_one_commit(self):
        self.record("c0ffee")
        lines, status = self.run_test("--full")
        self.assertEqual((lines[-1], status), (f"{3 * len(self.list_shards())} passed, 0 failed", 0))
        # What passed on another commit, or failed last, runs again; nothing is built for it here.
        for results in ({"commit": "beef"}, {"commit": "c0ffee", "claims": 1}):
            self.results.write_text("")
            self.record(**results)
            lines, status = self.run_test("--full")
            self.assertIn("=== shard claims", lines)
            self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()

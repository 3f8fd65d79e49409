# SPDX-License-Identifier: Apache-2.0
"""Tests of gpu_check: what becomes of a check, and of a second slice."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import unittest.mock

_TOOL = pathlib.Path(__file__).resolve().parent / "gpu_check"


def load(path):
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


class RunCheckTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self._tool = load(_TOOL)

    def run_shell(self, text, limit_s=20, left_s=60):
        check = self._tool.Check("a check", ["sh", "-c", text], limit_s)
        log = pathlib.Path(self._folder.name, "log")
        return self._tool.run_check(check, dict(os.environ), left_s, log)

    def test_status_and_telling_line(self):
        status, _, summary = self.run_shell("echo 3 passed, 0 failed; echo goodbye")
        self.assertEqual((status, summary), ("passed", "3 passed, 0 failed"))
        status, _, summary = self.run_shell("echo 2 passed, 1 failed; exit 3")
        self.assertEqual((status, summary), ("failed", "status 3: 2 passed, 1 failed"))

    def test_own_limit_fails_and_end_of_slice_cuts(self):
        status, seconds, summary = self.run_shell("echo 1 passed; sleep 30", limit_s=1)
        self.assertEqual(status, "failed")
        self.assertIn("takes longer than 1 s", summary)
        self.assertLess(seconds, 10)
        status, _, summary = self.run_shell("sleep 30", left_s=0.5)
        self.assertEqual(status, "cut")
        self.assertIn("the slice ended", summary)

    def test_shards_are_one_check(self):
        text = 'echo "[  PASSED  ] $((GTEST_SHARD_INDEX + 1)) tests."'
        log = pathlib.Path(self._folder.name, "log")
        check = self._tool.Check("a check", ["sh", "-c", text], 20, shards=3)
        status, _, summary = self._tool.run_check(check, dict(os.environ), 60, log)
        self.assertEqual((status, summary), ("passed", "6 passed in 3 shards"))
        self.assertEqual(sorted(path.name for path in log.parent.iterdir()), ["log"])
        check.command = ["sh", "-c", text + "; exit $GTEST_SHARD_INDEX"]
        status, _, summary = self._tool.run_check(check, dict(os.environ), 60, log)
        self.assertEqual((status, summary), ("failed", "status 1: shards that failed: [1, 2], 6 tests passed"))
        check.command = ["sh", "-c", "echo $GTEST_TOTAL_SHARDS passed; sleep $((GTEST_SHARD_INDEX * 30))"]
        check.limit_s = 1
        status, seconds, summary = self._tool.run_check(check, dict(os.environ), 60, log)
        self.assertEqual(status, "failed")
        self.assertIn("takes longer than 1 s", summary)
        self.assertLess(seconds, 10)


class SliceTest(unittest.TestCase):
    """A pack whose programs are scripts that write down how often they ran."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._pack = pathlib.Path(folder.name, "pack")
        (self._pack / "bin").mkdir(parents=True)
        (self._pack / "commit").write_text("c0ffee\n")
        shutil.copy(_TOOL, self._pack / "gpu_check")
        self._tool = load(self._pack / "gpu_check")
        self._results = pathlib.Path(folder.name, "results")
        self.write_program("exit 0")

    def write_program(self, end):
        program = self._pack / "bin/onnxifi_conformance"
        program.write_text(f'#!/bin/sh\necho "$@" >> {self._pack}/calls\necho 5 passed, 0 failed\n{end}\n')
        program.chmod(0o755)

    def call(self, *arguments):
        """(exit status, what was printed, how many calls of the program there have been)."""
        printed = io.StringIO()
        known = sys.argv
        sys.argv = ["gpu_check", "--results", str(self._results), "--only", "^interface", *arguments]
        try:
            with contextlib.redirect_stdout(printed):
                status = self._tool.main()
        finally:
            sys.argv = known
        calls = self._pack / "calls"
        return status, printed.getvalue(), len(calls.read_text().splitlines()) if calls.exists() else 0

    def test_second_slice_runs_only_what_has_no_result(self):
        status, printed, calls = self.call()
        self.assertEqual((status, calls), (0, 2))
        self.assertIn("5 passed, 0 failed", printed)
        results = [json.loads(line) for line in (self._results / "results.jsonl").read_text().splitlines()]
        self.assertEqual([result["status"] for result in results], ["passed", "passed"])
        self.assertEqual(results[0]["commit"], "c0ffee")
        self.assertEqual(self.call()[2], 2)
        self.assertEqual(self.call("--again")[2], 4)
        (self._pack / "commit").write_text("another\n")
        self.assertEqual(self.call()[2], 6)

    def test_failure_is_the_exit_status_also_when_it_is_only_known(self):
        self.write_program("exit 1")
        self.assertEqual(self.call()[0], 1)
        self.assertEqual(self.call()[0], 1)

    def test_no_time_leaves_checks_open(self):
        status, printed, calls = self.call("--minutes", "0.01", "--json")
        self.assertEqual((status, calls), (0, 0))
        self.assertEqual({row["status"] for row in json.loads(printed)}, {"open"})

    def test_kernels_are_compiled_by_the_packs_compiler_unless_told_otherwise(self):
        paths = self._pack / "paths"
        self.write_program(f'echo "$LD_LIBRARY_PATH" > {paths}')
        self.call("--library-path", "/somewhere")
        folders = paths.read_text().strip().split(":")
        self.assertLess(folders.index(str(self._pack / "lib/nvrtc")), folders.index("/somewhere"))
        self.call("--again", "--own-nvrtc")
        self.assertNotIn("lib/nvrtc", paths.read_text())

    def test_programs_of_python_are_told_the_packs_libraries_and_do_not_meet_them(self):
        told = self._pack / "told"
        command = ["sh", "-c", f'echo "$LD_LIBRARY_PATH" "$@" > {told}', "sh"]
        environment = {**os.environ, "LD_LIBRARY_PATH": "/of/the/pack"}
        self._results.mkdir()
        slice_ = self._tool.Slice(self._results, environment, self._tool.time.monotonic() + 60)
        check = self._tool.Check("a check", command, 5, is_python=True)
        with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/of/the/machine"}):
            self.assertEqual(slice_.run(check)[0], "passed")
        self.assertEqual(told.read_text(), "/of/the/machine --library-path /of/the/pack\n")

    def test_programs_that_do_not_start_are_told(self):
        def start():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                status = self._tool.start_programs({**os.environ, "LD_LIBRARY_PATH": "/of/the/pack"})
            return status, printed.getvalue().splitlines()

        # A wrong command line is no failure, and scripts of Python do not meet the pack's libraries.
        self.write_program("exit 2")
        (self._pack / "tools").mkdir()
        script = self._pack / "tools/make_models.py"
        script.write_text('import os\nassert "LD_LIBRARY_PATH" not in os.environ\n')
        self.assertEqual(start(), (0, ["2 passed, 0 failed"]))
        self.write_program('echo "libsomething.so.1: cannot open shared object file" >&2; exit 127')
        script.write_text("import a_module_that_was_not_packed\n")
        status, lines = start()
        self.assertEqual((status, lines[2]), (1, "0 passed, 2 failed"))
        self.assertIn("libsomething.so.1", lines[0])
        self.assertIn("a_module_that_was_not_packed", lines[1])
        # What no pack has is not asked of a bare machine.
        self.write_program("exit 0")
        script.write_text("raise ModuleNotFoundError(\"No module named 'onnx'\")\n")
        status, lines = start()
        self.assertEqual((status, lines[1]), (0, "2 passed, 0 failed"))
        self.assertIn("No module named 'onnx'", lines[0])

    def test_folders_of_a_command_are_made_once(self):
        script = self._pack / "benchmarks/layer_models.py"
        script.parent.mkdir()
        script.write_text(f'import sys\nopen("{self._pack}/made", "a").write("once ")\nprint(sys.argv[1])\n')
        self._results.mkdir()
        slice_ = self._tool.Slice(self._results, dict(os.environ), self._tool.time.monotonic() + 60)
        check = self._tool.Check("a check", ["sh", "-c", "echo 1 passed, in LAYERS"], 5)
        layers = f"{self._results}/layers"
        for _ in range(2):
            status, _, summary = slice_.run(check)
            self.assertEqual((status, summary), ("passed", f"1 passed, in {layers}"))
        self.assertEqual((self._pack / "made").read_text(), "once ")
        script.write_text('raise SystemExit("There is no onnx.")')
        slice_ = self._tool.Slice(self._results, dict(os.environ), self._tool.time.monotonic() + 60)
        self.assertEqual(slice_.run(check), ("not run", 0, "there are no layers: There is no onnx."))

    def test_what_a_gpu_has_to_show_has_a_check(self):
        checks = {check.name: check for check in self._tool.list_checks("MODELS", self._results)}
        self.assertEqual(checks["host time on cuda"].command, ["bin/cuda_host_benchmark", "--require"])
        for name, words in (
            ("comparison of layers", ("--device", "cuda", "--files", "LAYERS")),
            ("comparison in float16", ("--population", "encoder_half,residual_half,decoder_prompt_half")),
            ("claims on cuda", ("tools/fuzz_claims.py", "lib/libonnxifi.so", "cuda")),
        ):
            self.assertLessEqual(set(words), set(checks[name].command), name)
            # Python's packages do not meet the pack's libraries.
            self.assertTrue(checks[name].is_python, name)
        self.assertFalse(checks["comparison of layers"].needs_models)

    def test_what_is_missing_is_told(self):
        check = self._tool.Check("a check", ["true"], 5, "no-such-program")
        slice_ = self._tool.Slice(self._results, {"PATH": "/nowhere"}, self._tool.time.monotonic() + 60)
        self.assertEqual(slice_.run(check)[:1], ("not run",))
        python = self._tool.Check("a check", ["true"], 5, packages=("numpy_that_is_not_there",))
        slice_ = self._tool.Slice(self._results, dict(os.environ), self._tool.time.monotonic() + 60)
        self.assertEqual(slice_.run(python), ("not run", 0, "Python has no numpy_that_is_not_there"))
        compiled = self._tool.Check("a check", ["true"], 5, needs_compiler=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self._pack)}
        for version in (13, 12):
            (self._pack / f"libnvrtc.so.{version}").write_text("This is no library.")
        slice_ = self._tool.Slice(self._results, environment, self._tool.time.monotonic() + 60)
        status, _, summary = slice_.run(compiled)
        self.assertEqual(status, "not run")
        self.assertIn("NVRTC cannot be opened", summary)
        self._results.mkdir()
        slice_ = self._tool.Slice(self._results, {"PATH": "/nowhere"}, self._tool.time.monotonic() + 60)
        models = self._tool.Check("a check", ["true", "MODELS/x"], 5)
        status, _, summary = slice_.run(models)
        self.assertEqual(status, "not run")
        self.assertIn("there are no models", summary)


if __name__ == "__main__":
    unittest.main()

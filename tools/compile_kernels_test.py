# SPDX-License-Identifier: Apache-2.0
"""Tests of compile_kernels: what passes and what does not."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

_TOOL = pathlib.Path(__file__).resolve().parent / "compile_kernels.py"

# A program that does with a model what the model's own text says.
_PROGRAM = """#!{python}
import json, pathlib, sys, time
model = json.loads(pathlib.Path(sys.argv[6]).read_text())
time.sleep(model.get("takes_s", 0))
print(model.get("says", ""), file=sys.stderr)
print(json.dumps({{"kernels": model.get("kernels", [])}}))
sys.exit(model.get("status", 0))
"""


def kernel(name, family, spill_bytes=0, stack_bytes=0):
    return {
        "kernel": name,
        "family": family,
        "registers": 40,
        "stack_bytes": stack_bytes,
        "spill_bytes": spill_bytes,
        "shared_bytes": 0,
    }


class CompileKernelsTest(unittest.TestCase):
    def compile(self, *models, table=""):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            program = folder / "program"
            program.write_text(_PROGRAM.format(python=sys.executable), encoding="utf-8")
            program.chmod(0o755)
            for number, model in enumerate(models):
                (folder / "cases" / str(number)).mkdir(parents=True)
                (folder / "cases" / str(number) / "model.onnx").write_text(json.dumps(model), encoding="utf-8")
            if table:
                heading = "kernel,family,registers,stack_bytes,spill_bytes,shared_bytes\n"
                (folder / "cuda-kernels-sm_90.csv").write_text(heading + table, encoding="utf-8")
            command = [sys.executable, str(_TOOL), str(folder / "cases"), "--program", str(program), "--limit", "2"]
            environment = {**os.environ, "ONNXIFI_CACHE_DIR": name}
            return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def expect(self, done, words, status):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(words, done.stdout)

    def test_models_that_run_to_their_end_pass(self):
        done = self.compile({"kernels": [kernel("a", "Contract"), kernel("b", "Map", spill_bytes=8)]}, {})
        self.expect(done, "2 passed, 0 failed", 0)
        self.assertIn("Map kernel b spills 8 bytes", done.stdout)

    def test_what_has_to_stop_without_data_passes(self):
        reason = "onnxifi_run: Input 'x' has the kind map; inputs are read and drawn as tensors alone."
        self.expect(self.compile({"says": reason, "status": 1}), "1 passed, 0 failed", 0)

    def test_any_other_end_fails(self):
        for model in (
            {"says": "onnxifi_run: NVRTC refuses a kernel: error", "status": 1},
            {"says": "onnxifi_run: CUDA cannot load a kernel: unknown error.", "status": 1},
            {"says": "", "status": 139},
            {"takes_s": 5},
        ):
            self.expect(self.compile(model, {}), "1 passed, 1 failed", 1)

    def test_products_and_attention_may_not_spill(self):
        for family in ("Contract", "Attention"):
            for bytes_of in ("spill_bytes", "stack_bytes"):
                done = self.compile({"kernels": [kernel("a", family, **{bytes_of: 4})]}, {})
                self.expect(done, f"failed: {family} kernel a spills", 1)
                self.assertIn("1 passed, 1 failed", done.stdout)

    def test_kernels_that_no_model_asks_for_are_left_alone(self):
        self.expect(self.compile({}, table="a,Contract,255,0,16,0\n"), "1 passed, 0 failed", 0)


if __name__ == "__main__":
    unittest.main()

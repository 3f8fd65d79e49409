# SPDX-License-Identifier: Apache-2.0
"""Shows that tools/test adds up what its stages report, with stand-ins for everything that it starts."""

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
  *"--suite operators --device opencl"*) echo "7 passed, ${FAILED:-0} failed, 4 not supported"
    [ "${FAILED:-0}" = 0 ] ;;
  *"--suite interface"*) echo "5 passed, 0 failed" ;;
esac
"""


class SumsTest(unittest.TestCase):
    def run_stages(self, only, **environment):
        """Lines that tools/test prints, and its exit status."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            programs = {
                "bin/cmake": "#!/bin/sh\n",
                "bin/python": "#!/bin/sh\n",
                "tools/setup": f"#!/bin/sh\necho {root}/bin/python\n",
                "build/release/bin/onnxifi_conformance": _CONFORMANCE,
            }
            for name, text in programs.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
                (root / name).chmod(0o755)
            shutil.copy(_TOP / "tools" / "test", root / "tools" / "test")
            ran = subprocess.run(
                [root / "tools" / "test", "--only", only],
                env=os.environ | environment | {"PATH": f"{root}/bin{os.pathsep}{os.get_exec_path()[0]}{os.pathsep}{os.defpath}"},
                capture_output=True,
                text=True,
                check=False,
            )
            return ran.stdout.splitlines(), ran.returncode

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
        self.assertEqual(status, 1)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own tests of backends (onnx.backend.test.BackendTest) over onnxifi.backend, on one device.

  python/tests/backend_suite.py [--library LIB] [--device CPU] [--filter RE]

Prints a line for each test that fails, how many are left out and why, and as
the last line "N passed, N failed". Models that the runner would download are left out.
Exit status 1 where any failed.
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile
import unittest
import warnings

import onnx.backend.test

# Names, and why no backend can pass.
_LEFT_OUT = {
    "bernoulli|training_dropout_(default|mask|default_mask|cpu)": "random numbers, of which ONNX defines no generator",
    "loop16_seq_none": "the runner asks for the length of an array without axes",
}
# As tools/make_onnx_cases.py: where zero is expected, the runner allows 1e-7 of sums of numbers up to 99.
_TOLERANCES = {"test_dft_inverse": {"atol": 1e-6}, "test_dft_inverse_opset19": {"atol": 1e-6}}
_TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_TREE / "python"))

import onnxifi  # noqa: E402
import onnxifi.backend  # noqa: E402


class _Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def _is_downloaded(model_test):
    return model_test.url is not None and not model_test.url.startswith("onnx/backend/test/data/light/")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=str(_TREE / "build" / "release" / "lib" / "libonnxifi.so"))
    parser.add_argument("--device", default="CPU", help="CPU, CUDA, or a key of ours such as auto, which runs as CPU")
    parser.add_argument("--filter", default="", help="regular expression for names of tests")
    arguments = parser.parse_args()

    class Backend(onnxifi.backend.OnnxifiBackend):
        library = onnxifi.Library(arguments.library)

        @classmethod
        def _find_device(cls, device):
            # The runner knows two devices.
            return super()._find_device(arguments.device if device == "CPU" else "no device")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ONNX's cases overflow on purpose
        tests = onnx.backend.test.BackendTest(Backend, __name__, _TOLERANCES)
    downloaded = [test.name for test in onnx.backend.test.loader.load_model_tests(kind="real") if _is_downloaded(test)]
    if arguments.filter:
        tests.include(arguments.filter)
    for name in downloaded:
        tests.exclude(f"^{name}_cpu$")
    for names in _LEFT_OUT:
        tests.exclude(f"^test_({names})")
    result = _Result()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ONNX_MODELS"] = folder  # the runner makes folders there
        tests.test_suite.run(result)
    for test, text in result.failures + result.errors:
        print(f"fail   {test.id().rpartition('.')[2]}: {text.strip().splitlines()[-1]}")
    # Every test is there once more for CUDA.
    skipped = [name for name in (test.id().rpartition(".")[2] for test, _ in result.skipped) if name.endswith("_cpu")]
    for names, reason in _LEFT_OUT.items():
        print(f"{sum(bool(re.match(f'test_({names})', name)) for name in skipped)} left out: {reason}")
    if downloaded:
        print(f"{len(downloaded)} left out: models that the runner would download")
    others = [name for name in skipped if name.removesuffix("_cpu") not in downloaded]
    others = [name for name in others if not any(re.match(f"test_({names})", name) for names in _LEFT_OUT)]
    print(f"{len(others)} skipped by the runner: {', '.join(others)}")
    failed = len(result.failures) + len(result.errors)
    print(f"{result.passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

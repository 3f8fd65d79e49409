#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the suites of operators, opsets, domains and models on a library that lies, once per lie: each must be found.

The library, conformance/mutants, forwards every call to a plugin and lies in one way. A lie is found
when a case fails that does not fail without it. Each lie has the cases and variants that are there to
find it; that others find it too is not asked.

Ends with "N passed, N failed"; exit status 1 when any failed.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parent.parent

# `variants`: of --variants, empty for cases as they are; `cases`: of --filter.
Lie = collections.namedtuple("Lie", "name suite variants cases")

_SOME = (
    "^test_(add|matmul_2d|gemm_all_attributes|basic_conv_with_padding|averagepool_2d_pads|relu"
    "|softmax_axis_1|reduce_sum_keepdims_random|layer_normalization_2d_axis1|transpose_default)"
)


def _operators(name, cases=_SOME, variants=""):
    return Lie(name, "operators", variants, cases)


LIES = (
    _operators("strides rows by one element too few"),
    _operators("computes one element wrongly"),
    _operators("takes the next axis", "^test_(softmax|concat_2d|argmax_keepdims|gather)_"),
    _operators("swallows the attribute alpha", "^test_(leakyrelu|elu|gemm)"),
    _operators("swallows the attribute dilations", "^test_(basic_)?(conv|maxpool|averagepool)"),
    _operators("swallows the attribute keepdims", "^test_reduce_(sum|max)"),
    _operators("swallows the attribute count_include_pad", "^test_averagepool_2d"),
    _operators("changes initializers", _SOME, "initializers"),
    _operators("changes initializers", _SOME, "constants"),
    _operators("ignores weight descriptors", _SOME, "descriptors"),
    _operators("adds the run before", _SOME, "rerun"),
    _operators("keeps NaN of the run before", _SOME, "rerun"),
    _operators("leaks a buffer in every run", _SOME, "rerun"),
    _operators("computes the tail of symbols wrongly", _SOME, "symbols"),
    _operators("tells bounds as extents of outputs", "^test_(nonzero|compress|unique|nonmaxsuppression)", "bounds"),
    _operators("computes the tail wrongly", "^test_(add|relu|softmax_axis_1|matmul_2d)", "tiled"),
    _operators("computes rightly on one thread alone", _SOME, "callers"),
    _operators("refuses graphs of values", "^test_(sequence_insert|identity_sequence|split_to_sequence)"),
    _operators("tells outputs by another name", "^test_(identity_sequence|split_to_sequence)"),
    _operators("draws zeros", "^test_draws_bernoulli_float_float"),
    _operators("draws the same in every run", "^test_draws_random_(normal|uniform)_float"),
    Lie("computes one element wrongly", "opsets", "", "^test_(add|conv|softmax)_"),
    Lie("takes the operators of later sets", "opsets", "", "^test_(log)?softmax_11"),
    Lie("swallows the attribute axis", "opsets", "", "^test_(concat|softmax|flatten)_"),
    Lie("swallows the attribute broadcast", "opsets", "", "^test_(add|mul)_[16]_"),
    Lie("changes initializers", "opsets", "initializers", "^test_(add|conv|softmax)_"),
    Lie("computes the tail of symbols wrongly", "opsets", "symbols", "^test_(add|conv|softmax)_"),
    Lie("computes one element wrongly", "domains", "", "^test_(fusedgemm|fusedconv|skiplayer)"),
    Lie("swallows the attribute activation", "domains", "", "^test_fused(gemm|conv)"),
    Lie("swallows the attribute activation_gamma", "domains", "", "^test_fused(gemm|matmul)"),
    Lie("swallows the attribute channels_last", "domains", "", "^test_nchwc_order"),
    Lie("swallows the attribute epsilon", "domains", "", "^test_skip"),
    Lie("changes initializers", "domains", "", "^test_(matmulnbits|nchwc_conv|qgemm)"),
    Lie("adds the run before", "domains", "rerun", "^test_fused(gemm|conv)"),
    Lie("computes the tail of symbols wrongly", "domains", "symbols", "^test_fused(gemm|conv)"),
    Lie("computes rightly on one thread alone", "domains", "callers", "^test_fused(gemm|conv)"),
    Lie("strides rows by one element too few", "models", "", "^transformer_encoder$"),
    Lie("takes the next axis", "models", "", "^transformer_encoder$"),
    Lie("changes initializers", "models", "", "^transformer_encoder$"),
    Lie("computes the tail wrongly", "models", "", "^transformer_encoder$"),
    Lie("adds the run before", "models", "", "^transformer_decoder_lengths$"),
)


class Runner:
    def __init__(self, build, folder):
        self._conformance = build / "bin" / "onnxifi_conformance"
        self._mutant = build / "conformance" / "mutants" / "libconformance_mutant.so"
        self._libraries = build / "lib"
        self._results = pathlib.Path(folder, "results.json")
        self._truths = {}

    def _target(self, suite, options):
        # Whole models take long as plain loops, which what is tiled is compared with.
        name = "cpu" if suite == "models" or "tiled" in options else "null"
        return self._libraries / f"libonnxifi-{name}.so"

    def run(self, lie, suite, options):
        """The exit status, and verdicts by name of a case; none where the run did not take place."""
        self._results.unlink(missing_ok=True)
        command = [self._conformance, "--suite", suite, "--library", self._mutant]
        environment = {
            "ONNXIFI_MUTANT_TARGET": str(self._target(suite, options)),
            "ONNXIFI_MUTANT_LIE": lie,
        }
        ran = subprocess.run(
            [*command, "--json", self._results, *options],
            env=os.environ | environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if not self._results.exists():
            return ran.returncode, {}
        lines = map(json.loads, self._results.read_text().splitlines())
        return ran.returncode, {line["name"]: line["verdict"] for line in lines}

    def failures(self, lie, suite, options):
        _, verdicts = self.run(lie, suite, options)
        kept = ("pass", "not-supported", "unlisted", "not-applicable")
        return verdicts, {name for name, verdict in verdicts.items() if verdict not in kept}

    def find(self, lie):
        """What is wrong with the run, or None and the cases that found the lie."""
        # Only the variant's own replays are to find it.
        names = f"({lie.cases}).*@{lie.variants}$" if lie.variants else f"({lie.cases})[^@]*$"
        if lie.suite == "models":
            names = lie.cases
        options = ["--filter", names]
        if lie.variants:
            options += ["--variants", lie.variants]
        key = (lie.suite, *options)
        if key not in self._truths:
            self._truths[key] = self.failures("", lie.suite, options)
        verdicts, truth = self._truths[key]
        if "pass" not in verdicts.values():
            return "no case passes without the lie", set()
        return None, self.failures(lie.name, lie.suite, options)[1] - truth


def refuses_everything(runner, folder):
    """A device that refuses all, with a file that lists all, must not pass."""
    listed = pathlib.Path(folder, "listed.json")
    status, verdicts = runner.run(
        "refuses everything", "operators", ["--write-expectations", listed]
    )
    return status == 1 and "not-supported" in verdicts.values() and "pass" not in verdicts.values()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=TREE / "build" / "release")
    arguments = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(arguments.build, folder)
        for lie in LIES:
            problem, found = runner.find(lie)
            where = lie.suite + (f", {lie.variants}" if lie.variants else "")
            if found:
                passed += 1
                print(f"{lie.name} ({where}): found by {len(found)} cases, e.g. {min(found)}")
            else:
                failed += 1
                print(f"fail  {lie.name} ({where}): {problem or 'no case finds it'}")
        if refuses_everything(runner, folder):
            passed += 1
            print("refuses everything (operators): does not pass")
        else:
            failed += 1
            print("fail  refuses everything (operators): passes")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

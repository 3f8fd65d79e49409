#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that runs of a model on a device cost nothing once its first ones are done.

A device whose queues replay recordings shall make one submission a run, one copy per input and
output, and no allocation, recording, binding, lowering or kernel. Runs the model twice, with
different numbers of runs, and holds the differences of the counters against that.
"""

import argparse
import json
import pathlib
import subprocess
import sys

_TREE = pathlib.Path(__file__).resolve().parent.parent


def count(arguments, runs):
    """The graph's counters behind `runs` runs, and how many tensors go in and out."""
    command = [str(arguments.program), "--device", arguments.device, "--probe-limit", "0", str(arguments.model)]
    done = subprocess.run([*command, "--repeat", str(runs), "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{arguments.program} ends with status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["counters"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="as onnxifi_run has it")
    parser.add_argument("--runs", type=int, default=3, help="that are looked at (default: 3)")
    parser.add_argument("--tensors", type=int, default=2, help="inputs and outputs of the model (default: 2)")
    parser.add_argument("--program", type=pathlib.Path, default=_TREE / "build/release/bin/onnxifi_run")
    parser.add_argument("model", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error(f"--runs is {arguments.runs}; at least 1 has to be looked at")

    # The first run compiles, the second records.
    before = count(arguments, 3)
    after = count(arguments, 3 + arguments.runs)
    wanted = {name: 0 for name in after}
    wanted.update(runs=arguments.runs, submissions=arguments.runs, copies=arguments.runs * arguments.tensors)
    for name in wanted.keys() - after.keys():
        sys.exit(f"{arguments.program} has no counter '{name}'.")
    failed = 0
    for name in sorted(wanted):
        difference = after[name] - before[name]
        is_right = difference == wanted[name]
        failed += not is_right
        print(f"{name:<14} {difference:>6} in {arguments.runs} runs{'' if is_right else f', not {wanted[name]}'}")
    print(f"{len(wanted) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

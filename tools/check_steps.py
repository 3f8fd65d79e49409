#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Evaluates the random steps that step_fuzz wrote, on its own, with numpy: floats in float64 with a bound of the error that the
# step's own types may make, integers exactly. Compares with the reference's results, which lie in the same files. The folder
# steps/ beside this file does both for one step; here steps are drawn and counted.
#
#   check_steps.py PREFIX                     reads PREFIX.jsonl and PREFIX.bin
#   check_steps.py --binary step_fuzz --count N   draws N steps of all families and checks them on all cores

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

from steps.check import check
from steps.step import Step

# Steps of each family, in parts of a thousand; Reduce and Row take the longest to evaluate here.
SHARES = {
    "Map": 250, "Index": 250, "Contract": 125, "Window": 125, "Scan": 125, "Reduce": 75, "Row": 50,
}
PART = 500  # steps per process


class Tally:
    """Steps, differences and elements of one family."""

    def __init__(self):
        self.steps = self.different = self.told = self.untold = 0
        self.differences = []

    def add(self, other):
        self.steps += other.steps
        self.different += other.different
        self.told += other.told
        self.untold += other.untold
        self.differences += other.differences

    def untold_percent(self):
        return 100.0 * self.untold / max(1, self.told + self.untold)


def check_files(prefix):
    """Tallies of the families in PREFIX.jsonl and PREFIX.bin."""
    tallies = collections.defaultdict(Tally)
    with open(prefix + ".bin", "rb") as file:
        data = file.read()
    with open(prefix + ".jsonl") as lines:
        for line in lines:
            record = json.loads(line)
            difference, told, untold = check(Step(record, data))
            tally = tallies[record["family"]]
            tally.steps += 1
            tally.told += told
            tally.untold += untold
            if difference:
                tally.different += 1
                tally.differences.append(
                    "%s step of seed %d: %s" % (record["family"], record["seed"], difference)
                )
    return dict(tallies)


def draw_and_check(binary, family, seed, count):
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "steps")
        command = [binary, "--out", prefix, "--family", family, "--seed", str(seed)]
        subprocess.run(command + ["--count", str(count)], check=True)
        return check_files(prefix)


def draw_and_check_all(binary, count, seed):
    tallies = collections.defaultdict(Tally)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        parts = []
        for family, share in SHARES.items():
            left = -(-count * share // 1000)
            start = seed
            while left > 0:
                parts.append(pool.submit(draw_and_check, binary, family, start, min(left, PART)))
                start += PART
                left -= PART
        for part in parts:
            for family, tally in part.result().items():
                tallies[family].add(tally)
    return tallies


def main():
    parser = argparse.ArgumentParser(description="Checks the reference's random steps with numpy.")
    parser.add_argument("prefix", nargs="?", help="files that step_fuzz wrote")
    parser.add_argument("--binary", help="step_fuzz itself, to draw steps with")
    parser.add_argument("--count", type=int, default=1000, help="steps to draw, of all families")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-least", type=int, default=1, help="steps that each family must have")
    parser.add_argument("--show", type=int, default=5, help="differences to print")
    arguments = parser.parse_args()
    if (arguments.prefix is None) == (arguments.binary is None):
        parser.error("either files or --binary")
    if arguments.binary:
        tallies = draw_and_check_all(arguments.binary, arguments.count, arguments.seed)
    else:
        tallies = check_files(arguments.prefix)
    failed = not tallies
    total = Tally()
    for family, tally in sorted(tallies.items()):
        total.add(tally)
        print(
            "%-8s %7d steps, %d different, %.2f %% of elements cannot be told"
            % (family, tally.steps, tally.different, tally.untold_percent())
        )
        # Bounds that tell nothing would make a check that cannot fail.
        failed |= tally.different > 0 or tally.steps < arguments.at_least
        failed |= tally.untold_percent() > 15
    for difference in total.differences[: arguments.show]:
        print(difference)
    print("total    %7d steps, %d different" % (total.steps, total.different))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What onnxifi_bench --machine measured: the least time that so much work can take."""

import json
import pathlib
import subprocess


class LimitsError(Exception):
    """The limits are not known; a sentence says why."""


def read(tool, threads):
    """Limits of this machine as the program `tool`, onnxifi_bench, tells them; it measures what it does not know."""
    if not pathlib.Path(tool).exists():
        raise LimitsError(f"There is no '{tool}', which tells the machine's limits; build it.")
    told = subprocess.run([str(tool), "--machine", "--json"], capture_output=True, text=True)
    if told.returncode != 0:
        said = told.stderr.strip().splitlines()
        raise LimitsError(f"'{tool} --machine' ended with {told.returncode}: {said[-1] if said else 'it says nothing'}")
    return Limits(told.stdout, threads)


class Limits:
    """Of the machine with so many threads, out of the JSON that onnxifi_bench prints."""

    def __init__(self, text, threads):
        machine = json.loads(text)
        measured = [each for each in machine["by_threads"] if each["threads"] <= threads]
        own = max(measured, key=lambda each: each["threads"])
        self.processor = machine["processor"]
        self.gflops = own["float32_gflops"]
        self._copies = sorted(own["copies"], key=lambda copy: copy["size_bytes"])

    def milliseconds(self, flops, size_bytes):
        """The least that multiply-adds take, and that reading and writing takes."""
        # As machine::ThreadLimits::BandwidthFor: the smallest copy that moves as much.
        fitting = [copy for copy in self._copies if 2 * copy["size_bytes"] >= size_bytes]
        copy = fitting[0] if fitting else self._copies[-1]
        return flops / self.gflops / 1e6, size_bytes / copy["gigabytes_per_s"] / 1e6

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has NVRTC compile every kernel that a folder of cases or models asks for, without a GPU.

Prints how many kernels the models ask for on each architecture, which of them spill registers, and
what did not come so far. The kernels stay in the cache folder (ONNXIFI_CACHE_DIR), with what each
takes in a table; those that are there are not compiled again, and count. Exits with 0 only if each
model ran to its end, or stopped where one without data or without strings has to, and no kernel of
a product or of attention that they ask for spills or has a stack.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

_TREE = pathlib.Path(__file__).resolve().parent.parent

# Families whose kernels keep all they have in registers, or are wrong.
_WITHOUT_SPILLS = ("Contract", "Attention")

# Why a model may stop. The device computes nothing: numbers that only data tell are 0 there.
_RIGHTFUL = (
    r"inputs are read and drawn as tensors alone",
    r"Operator \S+ of version \d+ is not supported",
    r"Tensor .* has \d+ bytes of data instead of|has \d+ strings for \d+ elements",
    r"Expand: Shapes .* do not broadcast",
    r"Reshape: Extent .* copies an axis of the input",
    r"Split: The sum of split and the extent of the axis differ",
    r"Slice: A step is 0",
    r"Axis \S+ is given twice",
    r"AffineGrid: The batches of theta and size differ",
    r"Col2Im: The channels and the multiple of the block differ",
)


def find_models(folder):
    """Every model.onnx below the folder, with the folder of its first inputs or None."""
    for model in sorted(folder.rglob("model.onnx")):
        data = model.parent / "test_data_set_0"
        yield model, data if data.is_dir() else None


def compile_one(program, architecture, model, data, limit_s):
    """(kernels, None) of one model, or ([], what stopped it)."""
    command = [str(program), "--compile-for", architecture, "--json", "--probe-limit", "0", str(model)]
    if data is not None:
        command += ["--input", str(data), "--expect", str(data)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return [], f"takes longer than {limit_s} s"
    if done.returncode == 0:
        return json.loads(done.stdout)["kernels"], None
    return [], (done.stderr.strip() or f"ends with status {done.returncode}").splitlines()[0]


def compile_all(program, architecture, models, jobs, limit_s):
    """Prints the result of one architecture; how many models and kernels failed."""
    kernels, failed, stopped = {}, [], collections.Counter()
    begin = told = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(compile_one, program, architecture, model, data, limit_s): model for model, data in models
        }
        for count, ended in enumerate(concurrent.futures.as_completed(waiting), 1):
            asked_for, reason = ended.result()
            kernels.update((kernel["kernel"], kernel) for kernel in asked_for)
            if reason is not None and not any(re.search(rightful, reason) for rightful in _RIGHTFUL):
                failed.append((waiting[ended], reason))
            elif reason is not None:
                stopped[re.sub(r"'[^']*'|\d+", "...", reason)] += 1
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"{architecture}: {count} of {len(waiting)} models, {len(kernels)} kernels", flush=True)
    for model, reason in failed:
        print(f"{architecture}: failed: {model}: {reason}")
    for reason, count in stopped.most_common():
        print(f"{architecture}: {count} models do not run to their end: {reason}")
    spilling = [kernel for kernel in kernels.values() if kernel["spill_bytes"] or kernel["stack_bytes"]]
    wrong = [kernel for kernel in spilling if kernel["family"] in _WITHOUT_SPILLS]
    for kernel in spilling:
        failing = "failed: " if kernel in wrong else ""
        print(
            f"{architecture}: {failing}{kernel['family']} kernel {kernel['kernel']} spills"
            f" {kernel['spill_bytes']} bytes, stack {kernel['stack_bytes']} bytes, {kernel['registers']} registers"
        )
    most = max((kernel["registers"] for kernel in kernels.values()), default=0)
    print(
        f"{architecture}: {len(kernels)} kernels for {len(models)} models,"
        f" {len(spilling)} of them spill, {len(wrong)} of these for products or attention,"
        f" at most {most} registers, {len(failed)} models failed, {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    return len(failed) + len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="+", help="folders of cases or models")
    parser.add_argument("--architecture", action="append", help="such as sm_90, the default; may be repeated")
    parser.add_argument("--program", type=pathlib.Path, default=_TREE / "build/release/bin/onnxifi_run")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th model")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="for one model (default: 120)")
    options = parser.parse_args()
    models = [pair for folder in options.folder for pair in find_models(folder)][:: options.every]
    if not models:
        sys.exit(f"compile_kernels: there is no model.onnx below {', '.join(map(str, options.folder))}.")
    failed = [
        compile_all(options.program, architecture, models, options.jobs, options.limit)
        for architecture in options.architecture or ["sm_90"]
    ]
    print(f"{max(0, len(models) * len(failed) - sum(failed))} passed, {sum(failed)} failed")
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has NVRTC compile every kernel that a folder of cases or models asks for, without a GPU.

Prints how many kernels each architecture has, which of them spill registers, and what did not come
so far. Exits with 0 only if NVRTC refused none. The kernels stay in the cache folder
(ONNXIFI_CACHE_DIR).
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
    """Prints the result of one architecture; how many models NVRTC refused a kernel of."""
    kernels, refused, stopped = {}, [], collections.Counter()
    begin = told = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(compile_one, program, architecture, model, data, limit_s): model for model, data in models
        }
        for count, ended in enumerate(concurrent.futures.as_completed(waiting), 1):
            made, reason = ended.result()
            kernels.update((kernel["kernel"], kernel) for kernel in made)
            if reason is not None and "NVRTC" in reason:
                refused.append((waiting[ended], reason))
            elif reason is not None:
                stopped[re.sub(r"'[^']*'|\d+", "...", reason)] += 1
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"{architecture}: {count} of {len(waiting)} models, {len(kernels)} kernels", flush=True)
    for model, reason in refused:
        print(f"{architecture}: {model}: {reason}")
    for reason, count in stopped.most_common():
        print(f"{architecture}: {count} models do not run to their end: {reason}")
    spilling = [kernel for kernel in kernels.values() if kernel["spill_bytes"] or kernel["stack_bytes"]]
    for kernel in spilling:
        print(
            f"{architecture}: kernel {kernel['kernel']} spills {kernel['spill_bytes']} bytes, stack"
            f" {kernel['stack_bytes']} bytes, {kernel['registers']} registers"
        )
    most = max((kernel["registers"] for kernel in kernels.values()), default=0)
    print(
        f"{architecture}: {len(kernels)} kernels compiled now for {len(models)} models,"
        f" {len(spilling)} of them spill, at most {most} registers, {len(refused)} models refused,"
        f" {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    return len(refused)


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
    refused = [
        compile_all(options.program, architecture, models, options.jobs, options.limit)
        for architecture in options.architecture or ["sm_90"]
    ]
    print(f"{len(models) * len(refused) - sum(refused)} passed, {sum(refused)} failed")
    return 1 if any(refused) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the auto device with each device by itself, on whole models.

Every model is first loaded once with ONNXIFI_MEASURE=1, so that the auto device has measured what
it plans by; those numbers go to a cache folder of this program's own. Then the auto device and the
devices take turns, a process each per turn, and the table shows the median of every turn's median.
"ratio" is auto's over that of the best device, so 1.00 means that auto lost nothing; "measuring" is
what loading took in the first process, "plan" in the last, both in ms.

Exit status: 0 compared; 2 the command line is wrong or something needed is missing; 3 a ratio
exceeds --require-ratio.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

_TREE = pathlib.Path(__file__).resolve().parent.parent


def find_models(cache):
    """Returns the model files of tools/make_models.py by name."""
    found = {}
    for path in sorted(cache.glob("models/*/*/model.onnx")):
        found[name_of(path)] = path
    return found


def name_of(path):
    """Returns what the table calls a model file."""
    return path.parent.name if path.stem == "model" else path.stem


def run(program, model, device, repeat, environment):
    """Returns the report of one process, or the last line of what it complains of."""
    command = [str(program), str(model), "--device", device, "--repeat", str(repeat), "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    if done.returncode != 0:
        return (done.stderr.strip() or done.stdout.strip() or "no reason").splitlines()[-1]
    return json.loads(done.stdout)


def compare(options, name, model, environment):
    """Prints a line of the table and returns the ratio, or None where there is none."""
    first = run(options.program, model, "auto", 1, {**environment, "ONNXIFI_MEASURE": "1"})
    if isinstance(first, str):
        print(f"{name:30} {first}")
        return None
    times = {device: [] for device in ("auto", *options.devices)}
    init_ms = None
    for _ in range(options.turns):
        for device, medians in times.items():
            report = run(options.program, model, device, options.repeat, environment)
            # A device that does not run the model is none to be compared with.
            if isinstance(report, str):
                continue
            medians.append(report["median_ms"])
            if device == "auto":
                init_ms = report["init_ms"]
    medians = {device: statistics.median(of) for device, of in times.items() if of}
    alone = {device: medians[device] for device in options.devices if device in medians}
    if "auto" not in medians or not alone:
        print(f"{name:30} does not run twice")
        return None
    ratio = medians["auto"] / min(alone.values())
    cells = "".join(
        f"{medians[device]:12.3f}" if device in medians else f"{'-':>12}"
        for device in ("auto", *options.devices)
    )
    print(f"{name:30}{cells}{ratio:8.2f}{first['init_ms']:12.0f}{init_ms:8.0f}", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", type=pathlib.Path, help="default: tools/make_models.py's"
    )
    parser.add_argument(
        "--program", type=pathlib.Path, default=_TREE / "build" / "release" / "bin" / "onnxifi_run"
    )
    parser.add_argument("--devices", nargs="+", default=["cpu", "opencl"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=20, help="runs in a turn")
    parser.add_argument("--require-ratio", type=float, help="fail where auto takes longer")
    options = parser.parse_args()
    if not options.program.exists():
        print(f"auto_device.py: '{options.program}' is not built.", file=sys.stderr)
        return 2
    shared = os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")
    cache = pathlib.Path(shared) / "onnxifi-build"
    models = {name_of(path): path for path in options.models} or find_models(cache)
    if not models:
        print("auto_device.py: there are no models; run tools/make_models.py.", file=sys.stderr)
        return 2
    header = "".join(f"{device:>12}" for device in ("auto", *options.devices))
    print(f"{'ms':30}{header}{'ratio':>8}{'measuring':>12}{'plan':>8}", flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"ONNXIFI_CACHE_DIR": folder}
        for name, model in models.items():
            ratio = compare(options, name, model, environment)
            if ratio is not None:
                ratios.append(ratio)
    if ratios:
        print(f"worst ratio {max(ratios):.2f} of {len(ratios)} models")
    is_slower = options.require_ratio is not None and (
        not ratios or max(ratios) > options.require_ratio
    )
    return 3 if is_slower else 0


if __name__ == "__main__":
    sys.exit(main())

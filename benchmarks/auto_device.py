#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the auto device with each device by itself, on whole models.

Every model is first loaded once with ONNXIFI_MEASURE=1, so that the auto device has measured what
it plans by; those numbers go to a cache folder of this program's own. Then every device runs it a
few times by itself, and the best, with those that come near it, runs beside the auto device in a
process per turn, a run each, which slows both down alike when something slows down the machine; a
turn has --repeat pairs of runs, or as many as take a fifth of a second.
The columns of devices are the medians of the turns' medians, or of the few first runs in brackets.
"ratio" is auto's time over that of the best device: in each turn the median of the ratios of runs,
of these the median, so that 1.00 means that auto lost nothing. "measuring" is what loading took in
the first process, "load" in the last, both in ms; "plan" is what auto chose: a device, or the
number of islands with the devices that have them.

Exit status: 0 compared; 2 the command line is wrong or something needed is missing; 3 a ratio
exceeds --require-ratio, or auto fails where a device does not.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# What a device takes in this many runs by itself decides whether it is compared with: where it is
# beyond so many times the best, it is not.
_FIRST_RUNS = 3
_NEAR = 1.5
# Runs of one process get faster for about this long, and those of a millisecond vary by a tenth
# before.
_LEAST_TURN_MS = 200

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


def run(options, model, devices, repeat, environment, plan=None):
    """Returns the report of one process, or the last line of what it complains of.

    The first device is the one that is reported on, the others run beside it.
    """
    command = [str(options.program), str(model), "--device", devices[0], "--repeat", str(repeat)]
    for device in devices[1:]:
        command += ["--beside", device]
    if plan is not None:
        command += ["--plan", str(plan)]
    try:
        done = subprocess.run(
            [*command, "--json"],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
            timeout=options.timeout,
        )
    except subprocess.TimeoutExpired:
        return f"takes more than {options.timeout} s on {', '.join(devices)}"
    if done.returncode != 0:
        return (done.stderr.strip() or done.stdout.strip() or "no reason").splitlines()[-1]
    return json.loads(done.stdout)


def describe_plan(file):
    """Returns what the auto device chose, as the plan file of onnxifi_run says it."""
    islands = json.loads(file.read_text())["islands"]
    keys = [island["device"] for island in islands]
    if len(keys) == 1:
        return keys[0]
    counts = ", ".join(f"{keys.count(key)} on {key}" for key in sorted(set(keys)))
    return f"{len(keys)} islands: {counts}"


def choose_near(alone):
    """Returns the devices that may be the best one, the best first.

    `alone` maps each device that runs the model to its median of a few runs by itself.
    """
    best = min(alone.values(), default=0)
    return sorted((device for device in alone if alone[device] <= _NEAR * best), key=alone.get)


def runs_in_turn(repeat, alone):
    """Returns how many runs a turn has: `repeat`, or more of what takes little time."""
    return max(repeat, math.ceil(_LEAST_TURN_MS / max(min(alone.values()), 0.01)))


def ratio_of(turns):
    """Returns auto's time over that of the device that is best over all turns, or None.

    `turns` maps each device beside auto to pairs of its median and the ratio, one of every turn.
    """
    if not any(turns.values()):
        return None
    best = min(
        (device for device in turns if turns[device]),
        key=lambda device: statistics.median(time for time, _ in turns[device]),
    )
    return statistics.median(ratio for _, ratio in turns[best])


def compare(options, name, model, environment, folder):
    """Prints a line of the table; returns the ratio, infinity where only auto fails, or None."""
    plan = pathlib.Path(folder) / "plan.json"
    complaints = {}
    first = run(options, model, ["auto"], 1, {**environment, "ONNXIFI_MEASURE": "1"})
    if isinstance(first, str):
        complaints["auto"] = first
    alone = {}
    for device in options.devices:
        report = run(options, model, [device], _FIRST_RUNS, environment)
        if isinstance(report, str):
            complaints[device] = report
        else:
            alone[device] = report["median_ms"]
    near = choose_near(alone)
    turns = {device: [] for device in near}
    auto_ms = []
    for _ in range(options.turns):
        if "auto" in complaints or not near:
            break
        repeat = runs_in_turn(options.repeat, alone)
        report = run(options, model, ["auto", *near], repeat, environment, plan)
        if isinstance(report, str):
            complaints["auto"] = report
            break
        auto_ms.append(report["median_ms"])
        load_ms = report["init_ms"]
        for device, beside in zip(near, report["beside"], strict=True):
            turns[device].append((beside["median_ms"], beside["ratio"]))
    ratio = None if "auto" in complaints else ratio_of(turns)
    cells = f"{statistics.median(auto_ms):12.3f}" if auto_ms else f"{'-':>12}"
    for device in options.devices:
        if turns.get(device):
            cells += f"{statistics.median(time for time, _ in turns[device]):12.3f}"
        else:
            cells += f"{f'({alone[device]:.3f})':>12}" if device in alone else f"{'-':>12}"
    if ratio is None:
        print(f"{name:30}{cells}")
    else:
        print(
            f"{name:30}{cells}{ratio:8.3f}{first['init_ms']:12.0f}{load_ms:8.0f}"
            f"  {describe_plan(plan)}"
        )
    for device, complaint in complaints.items():
        print(f"{'':30}{device}: {complaint}")
    sys.stdout.flush()
    if "auto" in complaints and alone:
        return math.inf
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
    parser.add_argument("--repeat", type=int, default=20, help="runs in a turn, more where they take little time")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one process")
    parser.add_argument(
        "--require-ratio", type=float, help="fail where auto takes longer than that, e.g. 1.05"
    )
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
    print(f"{'ms':30}{header}{'ratio':>8}{'measuring':>12}{'load':>8}  plan", flush=True)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {"ONNXIFI_CACHE_DIR": folder}
        for name, model in models.items():
            ratio = compare(options, name, model, environment, folder)
            if ratio is not None:
                ratios.append(ratio)
    if ratios:
        compared = [ratio for ratio in ratios if ratio != math.inf]
        worst = f"worst ratio {max(compared):.3f} of {len(compared)} models" if compared else ""
        failed = len(ratios) - len(compared)
        print(worst + (f"; auto fails on {failed} that a device runs" if failed else ""))
    is_slower = options.require_ratio is not None and (
        not ratios or max(ratios) > options.require_ratio
    )
    return 3 if is_slower else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares this library with ONNX Runtime, OpenVINO, ncnn and PyTorch: time per run, load, memory, results.

Needs `tools/setup --compare` once and a release build. Each engine has a process of its own, per
model and thread count. They take turns on the same inputs: in every round each engine runs for
about --turn-ms after a warm-up, while the others sleep; the table shows the median and the best
over all rounds. "ratio" is our median over that of the better peer, so below 1 means faster than
both.

"load" is the time from the model file to the first result, because engines that prepare lazily move
work there; "memory" is what the process has grown by at its peak until then, from before it opened
the engine.

Results are compared with float64 values where the model comes with them, else with ONNX Runtime's:
|a-b| <= 1e-4 * (|b| + rms(b)). Networks of narrow numbers may lie as far from the float64 values of the
network in float32 as ONNX Runtime does, and a quarter more. The light_* models are not checked: model_set.py
says why.

With --device vulkan the peer is ncnn on the same Vulkan device, without its 16-bit and 8-bit types
and with Winograd's algorithm; pnnx converts the models before anything is timed. A model that it does
not convert, a device of another name, and layers that ncnn leaves to the processor are named below
the table. Threads are those of Mesa's lavapipe (LP_NUM_THREADS); a GPU has no such number.

With --device cuda the peers are ONNX Runtime's CUDA provider, eager PyTorch in a CUDA graph, and
torch.compile in its mode max-autotune, each where Python can import it; the others are named with the
reason. PyTorch gets the same networks by torch_translation.py, before anything is timed. All compute in
float32 without TF32, on inputs in the device's memory, results stay there, and each engine has at least 50
runs before 200 that are timed. Memory is the device's. A peer on another device, and nodes that ONNX Runtime
leaves to the processor, are named below the table.

Loads find the kernels that earlier processes compiled and kept, ours and the driver's;
--empty-caches gives each load empty cache folders instead.

With --files the models are the caller's own, with seeded random inputs, and results are held against ONNX Runtime's.

With --cpu-isa our engine uses no instructions beyond that set, as on a processor that has no others, and neither do
the peers: for sse4 and avx2 they are copies of limited_peers.py. Beyond avx512 go what OpenVINO does not take from
oneDNN, and ONNX Runtime, which is left out there.

With --cpu-time times are those that the process had a processor for, of --threads 1: on a machine that does other
work they hardly change, and runs below 20 us are too short for that clock. Caches are shared with the other work.

With --against-library the peer is another build of this library, "before", with the plugins that lie
beside it: two builds in turns. Neither ONNX Runtime nor OpenVINO is needed then.

With --symbols extents of inputs are symbols (model_set.make_symbolic), and the peer is our library with the same
network of numbers; --engines names others.

With --without the peer is our library without a kernel of the CPU plugin, on the models of which a step runs otherwise
then: ratios below 1 are what the kernel is worth. ONNXIFI_CPU_WITHOUT of docs/environment.md lists their names.

--population runs the networks of population.py instead of the models of the table, by default with two
threads and fewer turns; --held-out those of them that are run for closing notes only. With --batch those
that are drawn for one image or sequence only are left out. Of each run it adds which share the
reference's loops took and which were slow, that is, below 15 % of what `onnxifi_bench --machine` measured, those
steps above 3 % of the run, and the longest step, from the profile. Slow steps are told for the device 'cpu' with all
of its instructions, which is what onnxifi_bench measures. With --json what the
file holds already is kept and not measured again, so that shards (--shard 1/4 ...) and runs that were
cut short add up to one report.

--csv adds the figures to docs/measurements/<date>-<processor>.csv, from which
benchmarks/performance_page.py makes the table and the picture of docs/performance.md.

Exit status: 0 compared; 1 our results differ or a model does not run on our engine; 2 the command
line is wrong or something needed is missing; 3 a ratio exceeds --require-ratio, or a geometric mean
--require-mean.
"""

import argparse
import datetime
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import private_python

_HERE = pathlib.Path(__file__).resolve().parent
_TREE = _HERE.parent
# Which of them by default is a question of the device.
_PEERS = ("onnxruntime", "openvino", "ncnn", "torch", "torch-compile")
_NCNN = "ncnn"
_TORCH = ("torch", "torch-compile")
# On CUDA devices.
_CUDA_PEERS = ("onnxruntime", *_TORCH)
# What has the version of a peer, where it is no package of the peer's name.
_PACKAGES = {"onnxruntime": ("onnxruntime-gpu", "onnxruntime"), "torch-compile": ("torch",)}
# Runs of each engine on a CUDA device, before those that are timed and timed at least.
_CUDA_WARM_UP, _CUDA_RUNS = 50, 200
# The peer of --against-library.
_BEFORE = "before"
# That of --symbols.
_NUMBERS = "numbers"
# That of --without.
_WITHOUT = "without"
# Peers that are this library, too.
_OWN_PEERS = (_BEFORE, _NUMBERS, _WITHOUT)
# Without a setting for the instructions that they may use. limited_peers.py limits the first below AVX-512.
_UNLIMITED = ("onnxruntime", *_TORCH)
# Of --csv without a file.
_DEFAULT_FILE = pathlib.Path()
# Pool threads of the engine before spin for a moment; they are asleep after this.
_PAUSE_S = 0.12
_MOST_RUNS_PER_TURN = 2000


def enter_private_python():
    """Continues in the environment of `tools/setup --compare` where this one lacks an engine."""
    # The command line is parsed once the modules are there that it takes.
    words = sys.argv[1:]
    is_cuda = any(re.search(r"^--device[= ]cuda", " ".join(words[at : at + 2])) for at in range(len(words)))
    # Of CUDA's peers those are compared that are there.
    is_ours = any(word.startswith(("--against-library", "--symbols", "--without")) for word in words)
    has_peers = not is_cuda and (not is_ours or any(word.startswith("--engines") for word in words))
    private_python.enter(__file__, (*(name for name in _PEERS if name not in _TORCH), "pnnx") if has_peers else ())


if __name__ == "__main__":
    enter_private_python()

import agreement  # noqa: E402 (they need what the private environment has)
import chart  # noqa: E402
import comparison_text  # noqa: E402
import conclusions  # noqa: E402
import cuda_memory  # noqa: E402
import engines  # noqa: E402
import given_models  # noqa: E402
import limited_peers  # noqa: E402
import machine_limits  # noqa: E402
import measurements  # noqa: E402
import model_set  # noqa: E402
import ncnn_models  # noqa: E402
import population  # noqa: E402
import reference_share  # noqa: E402
import torch_models  # noqa: E402


def say(text):
    print(text, file=sys.stderr, flush=True)


def refuse(sentence):
    say(f"compare.py: {sentence}")
    sys.exit(2)


def choose_engines(device, against_library=None, cpu_isa=None, has_symbols=False, without=None):
    """The engines for a device, where none are asked for."""
    if against_library:
        return [measurements.OURS, _BEFORE]
    if has_symbols:
        return [measurements.OURS, _NUMBERS]
    if without:
        return [measurements.OURS, _WITHOUT]
    if cpu_isa and cpu_isa not in limited_peers.ISAS:
        return [measurements.OURS, "openvino"]
    if cuda_memory.is_on_device(device):
        return [measurements.OURS, *_CUDA_PEERS]
    is_vulkan = device.partition(":")[0] == "vulkan"
    of_device = (_NCNN,) if is_vulkan else ("onnxruntime", "openvino")
    return [measurements.OURS, *of_device]


def parse_shard(parser, text):
    """"2/5" as (2, 5); None for None."""
    if text is None:
        return None
    number, slash, count = text.partition("/")
    if not (slash and number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        parser.error(f"--shard is '{text}'; it is I/N with 1 <= I <= N.")
    return int(number), int(count)


def parse_dims(parser, text):
    """"N=4,x.1=3" as {"N": 4, "x.1": 3}."""
    sizes = {}
    for item in text.split(",") if text else ():
        name, equals, number = item.rpartition("=")
        if not (name and equals and number.isdigit()):
            parser.error(f"--dim has '{item}'; it is NAME=N.")
        sizes[name] = int(number)
    return sizes


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    default = _TREE / "build" / "release" / "lib" / "libonnxifi.so"
    shown = default.relative_to(_TREE)
    add("--library", type=pathlib.Path, default=default, help=f"ours (default: {shown})")
    add("--against-library", type=pathlib.Path, metavar="LIBRARY", help="the peer: another build of ours")
    add("--symbols", action="store_true", help="extents of inputs are symbols; the peer is ours with numbers")
    add("--without", metavar="KERNEL", help="the peer: ours without this kernel of the CPU plugin")
    add("--device", default="cpu", help="its device (default: cpu)")
    isa = "processor instructions that engines use at the most"
    add("--cpu-isa", choices=engines.CPU_ISAS, help=isa)
    add("--library-path", metavar="FOLDERS", help="LD_LIBRARY_PATH of our processes alone")
    files = "these ONNX files, or those of a folder, with random inputs, instead of the models of the table"
    add("--files", metavar="FILE,...", help=files)
    add("--dim", metavar="NAME=N,...", help="with --files: extents of symbols, or of an axis: INPUT.AXIS=N")
    add("--models", metavar="NAME,...", help="only these (default: all)")
    add("--list", action="store_true", help="print the names of the models and end")
    peers = "onnxruntime,openvino, those of the device, or two builds of ours"
    add("--engines", metavar="NAME,...", help=f"only these (default: {measurements.OURS},{peers})")
    add("--population", action="store_true", help="the networks of population.py")
    add("--held-out", action="store_true", help="with --population: the third that is held out")
    add("--shard", metavar="I/N", help="of the models every N-th, from the I-th on")
    add("--threads", metavar="N,...", help="default: 1,2; with --population 2, on CUDA devices 1")
    add("--cpu-time", action="store_true", help="times of runs are those on a processor; for --threads 1")
    add("--batch", type=int, default=1, help="images or sequences (default: 1)")
    add("--rounds", type=int, help="turns of each engine (default: 7; with --population 5)")
    add("--turn-ms", type=float, default=150, help="length of a turn (default: 150)")
    loads = "loads of each model in fresh processes, at the most threads (default: 7; with --population 1)"
    add("--loads", type=int, help=loads)
    empty = "each load with empty folders of compiled kernels"
    add("--empty-caches", action="store_true", help=empty)
    add("--json", type=pathlib.Path, help="write all figures to this file")
    file = "add the figures to this file (default: docs/measurements/<date>-<processor>.csv)"
    add("--csv", type=pathlib.Path, nargs="?", const=_DEFAULT_FILE, help=file)
    add("--chart", type=pathlib.Path, help="draw a bar chart of the most threads, .svg")
    limit = "end with status 3 where a ratio is above R"
    add("--require-ratio", type=float, metavar="R", help=limit)
    limit = "end with status 3 where the geometric mean of runs or of loads is above R"
    add("--require-mean", type=float, metavar="R", help=limit)
    arguments = parser.parse_args()
    if arguments.held_out and not arguments.population:
        parser.error("--held-out is for --population.")
    for name, table, of_population in (("threads", "1,2", "2"), ("rounds", 7, 5), ("loads", 7, 1)):
        if name == "threads" and cuda_memory.is_on_device(arguments.device):
            of_population = table = "1"
        if getattr(arguments, name) is None:
            setattr(arguments, name, of_population if arguments.population else table)
    arguments.shard = parse_shard(parser, arguments.shard)
    if arguments.files and (arguments.population or arguments.batch != 1 or arguments.csv is not None):
        parser.error("--files goes without --population, --batch and --csv.")
    arguments.dim = parse_dims(parser, arguments.dim)
    if arguments.dim and not arguments.files:
        parser.error("--dim is for --files.")
    for name in ("batch", "rounds", "loads"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} is {getattr(arguments, name)}; it is at least 1.")
    try:
        arguments.threads = [int(text) for text in arguments.threads.split(",")]
    except ValueError:
        parser.error(f"--threads is '{arguments.threads}'; it is a list of numbers.")
    if min(arguments.threads) < 1:
        parser.error("--threads has a number below 1.")
    if arguments.cpu_time and (arguments.threads != [1] or arguments.device != "cpu" or arguments.csv is not None):
        parser.error("--cpu-time is for --threads 1 on the device 'cpu', without --csv.")
    if arguments.engines is None:
        chosen = choose_engines(
            arguments.device, arguments.against_library, arguments.cpu_isa, arguments.symbols, arguments.without
        )
        arguments.engines = ",".join(chosen)
    arguments.engines = arguments.engines.split(",")
    for name in arguments.engines:
        if name not in engines.NAMES:
            parser.error(f"Engine '{name}' is unknown; there are {', '.join(engines.NAMES)}.")
        is_limited = name in limited_peers.PACKAGES and arguments.cpu_isa in limited_peers.ISAS
        if arguments.cpu_isa and name in _UNLIMITED and not is_limited:
            parser.error(f"Engine '{name}' has no setting for --cpu-isa {arguments.cpu_isa}.")
    if arguments.cpu_isa and arguments.device != "cpu":
        parser.error(f"--cpu-isa is for the device 'cpu', not '{arguments.device}'.")
    if arguments.cpu_isa and arguments.csv is not None:
        parser.error("--csv has no column for --cpu-isa.")
    if (_BEFORE in arguments.engines) != (arguments.against_library is not None):
        parser.error(f"Engine '{_BEFORE}' is the library of --against-library; one needs the other.")
    if _NUMBERS in arguments.engines and not arguments.symbols:
        parser.error(f"Engine '{_NUMBERS}' is for --symbols.")
    if (_WITHOUT in arguments.engines) != (arguments.without is not None):
        parser.error(f"Engine '{_WITHOUT}' is ours without the kernel of --without; one needs the other.")
    if arguments.without and (arguments.device != "cpu" or "," in arguments.without):
        parser.error(
            f"--without is for one kernel of the device 'cpu', not for '{arguments.without}' of '{arguments.device}'."
        )
    for option in ("symbols", "without"):
        if arguments.csv is not None and getattr(arguments, option):
            parser.error(f"--csv has no column for --{option}.")
    if arguments.chart and arguments.chart.suffix != ".svg":
        parser.error(f"--chart is '{arguments.chart}'; it ends in .svg.")
    if arguments.csv is not None and arguments.against_library:
        parser.error("--csv is for comparisons with other engines, not with another build of ours.")
    return arguments


def find_made_models():
    """The folder of tools/make_models.py, made now if there is none."""
    command = [sys.executable, str(_TREE / "tools" / "make_models.py")]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        refuse("tools/make_models.py failed.")
    return pathlib.Path(made.stdout.splitlines()[-1])


def read_machine():
    processor = platform.processor() or platform.machine()
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    return {"processor": processor, "usable_cpus": len(os.sched_getaffinity(0))}


def limit_peers(names, cpu_isa):
    """Where peers that use no more than `cpu_isa` are imported from: {package: folder}."""
    if cpu_isa not in limited_peers.ISAS:
        return {}
    cache = population.case_store.find_cache_root()
    limited = [name for name in names if name in limited_peers.PACKAGES]
    try:
        return {name: str(limited_peers.copy(name, cpu_isa, cache)) for name in limited}
    except limited_peers.LimitError as fault:
        refuse(str(fault))


@functools.cache
def find_limits(library, device, cpu_isa, threads):
    """What steps are held against, measured now if it is not known, and None; or None, and why there is nothing."""
    if device.partition(":")[0] != "cpu":
        return None, f"onnxifi_bench measures the processor, not '{device}'."
    if cpu_isa:
        return None, f"onnxifi_bench measures all of the processor's instructions, not {cpu_isa}."
    try:
        return machine_limits.read(library.parent.parent / "bin" / "onnxifi_bench", threads), None
    except machine_limits.LimitsError as fault:
        return None, str(fault)


def load_all(names, threads, options, model, loads, place):
    """Loads a model `loads` times in each engine, in turns, each time in a fresh process.

    What has to be written goes to the folder `place`. Returns the engines of the last time, ready to
    run, and what the loads took: per engine a list of engines.Engine.load's results, or the sentence of its failure.
    """
    results = {name: [] for name in names}
    paths = dict.fromkeys(names, model.path)
    if options.get("has_symbols"):
        symbolic = model_set.write_symbolic(model, place)
        paths = {name: model.path if name == _NUMBERS else symbolic for name in names}
    if _NCNN in names:
        try:
            paths[_NCNN] = ncnn_models.convert(model.path, model.inputs, place)
        except ncnn_models.ConversionError as fault:
            results[_NCNN] = f"not compared: {fault}."
    translated = [name for name in names if name in _TORCH]
    if translated:
        try:
            paths.update(dict.fromkeys(translated, torch_models.convert(model.path, model.inputs, place)))
        except torch_models.TranslationError as fault:
            results.update(dict.fromkeys(translated, f"not compared: {fault}."))
    running = {}
    for number in range(loads):
        for name in names:
            if isinstance(results[name], str):
                continue
            engine = None
            try:
                folder = tempfile.mkdtemp(dir=place) if options["has_empty_caches"] else None
                engine = engines.Engine(name, threads, {**options, "cache_folder": folder})
                results[name].append(engine.load(paths[name], model.inputs))
            except engines.EngineError as fault:
                results[name] = str(fault)
            if engine is not None and (number < loads - 1 or isinstance(results[name], str)):
                engine.close()
            elif engine is not None:
                running[name] = engine
    return running, results


def take_turns(running, rounds, turn_ms, warm_up=1, least_runs=1):
    """Times the engines in turns; returns {name: milliseconds of every run}, at least `least_runs`."""
    times = {name: [] for name in running}
    counts = {}
    least = -(-least_runs // rounds)
    for name, engine in running.items():
        engine.time(0, warm_up)  # The first runs after loading are not like the others.
        once = statistics.median(engine.time(1, 2))
        counts[name] = max(least, min(_MOST_RUNS_PER_TURN, max(1, round(turn_ms / once))))
    for number in range(rounds):
        # Of two engines each comes first in every other round.
        for name, engine in list(running.items())[:: 1 if number % 2 == 0 else -1]:
            time.sleep(_PAUSE_S)
            # What the engine before left in the caches is not this one's.
            times[name] += engine.time(min(2, counts[name]), counts[name])
    return times


def compare_outputs(loaded, model):
    """What results are compared with, the model's oracle or a peer; per engine the worst difference in tolerances."""
    outputs = {name: results[-1]["outputs"] for name, results in loaded.items()}
    oracle, expected = model.oracle, model.expected
    if expected is None:
        oracle = next((peer for peer in (*_PEERS, *_OWN_PEERS) if peer in outputs), None)
        if oracle is None:
            return "nothing", {}
        expected = outputs[oracle]
    return oracle, {name: agreement.measure_outputs(values, expected) for name, values in outputs.items()}


def find_other_devices(loaded, name):
    """The sentence for an engine that ran on a device of another name than ours, or None."""
    devices = {engine: results[-1]["facts"].get("device") for engine, results in loaded.items()}
    ours, its = devices.get(measurements.OURS), devices.get(name)
    if name in _OWN_PEERS or its is None or ours is None or its == ours:
        return None
    return f"not compared: it runs on '{its}', not on '{ours}'."


def find_not_finite(loaded, name):
    """The sentence for a peer with infinities or NaN where another engine has none, or None."""
    if name == measurements.OURS or agreement.are_finite(loaded[name][-1]["outputs"]):
        return None
    if not any(agreement.are_finite(results[-1]["outputs"]) for results in loaded.values()):
        return None
    return "not compared: its results are not finite, those of another engine are."


def has_same_steps(running, model):
    """Whether each step has the same kernel, which does it the same way, without that of --without."""

    def list_kernels(name):
        steps = running[name].profile(model.path, model.inputs)
        return [(step["implementation"], step["detail"], step["extents"]) for step in steps]

    return list_kernels(measurements.OURS) == list_kernels(_WITHOUT)


def run_model(model, threads, arguments, loads, place):
    """One entry of the report: one model at one number of threads. None where --without changes nothing."""
    options = {
        "library": str(arguments.library),
        "against_library": str(arguments.against_library),
        "device": arguments.device,
        "has_empty_caches": arguments.empty_caches,
        "library_path": arguments.library_path,
        "cpu_isa": arguments.cpu_isa,
        "is_cpu_time": arguments.cpu_time,
        "peer_folders": limit_peers(arguments.engines, arguments.cpu_isa),
        "has_symbols": arguments.symbols,
        "without": arguments.without,
    }
    running, loaded = load_all(arguments.engines, threads, options, model, loads, place)
    entry = {"model": model.name, "kind": model.kind, "threads": threads, "engines": {}}
    faults = {name: result for name, result in loaded.items() if isinstance(result, str)}
    loaded = {name: result for name, result in loaded.items() if not isinstance(result, str)}
    for name in list(loaded):
        if sentence := find_other_devices(loaded, name) or find_not_finite(loaded, name):
            faults[name] = sentence
            del loaded[name]
            running.pop(name).close()
    steps = None
    try:
        if _WITHOUT in running and measurements.OURS in running and has_same_steps(running, model):
            return None
        is_cuda = cuda_memory.is_on_device(arguments.device)
        least = (_CUDA_WARM_UP, _CUDA_RUNS) if is_cuda else (1, 1)
        times = take_turns(running, arguments.rounds, arguments.turn_ms, *least)
        if arguments.population and measurements.OURS in running:
            steps = running[measurements.OURS].profile(model.path, model.inputs)
    finally:
        for engine in running.values():
            engine.close()
    entry["compared_with"], differences = compare_outputs(loaded, model)
    entry["is_checked"], entry["allowed"] = model.is_checked, model.allowed
    if steps is not None:
        limits, _ = find_limits(arguments.library, arguments.device, arguments.cpu_isa, threads)
        entry["profile"] = reference_share.summarise(steps, limits)
    for name in arguments.engines:
        if name in faults:
            entry["engines"][name] = {"fault": faults[name]}
            continue
        middle = {
            key: statistics.median(result[key] for result in loaded[name])
            for key in ("load_ms", "first_result_ms", "peak_mib", "process_peak_mib")
        }
        entry["engines"][name] = {
            "median_ms": statistics.median(times[name]),
            "best_ms": min(times[name]),
            "runs": len(times[name]),
            "loads": len(loaded[name]),
            **middle,
            "difference": differences.get(name),
            "facts": loaded[name][-1]["facts"],
        }
    entry.update(conclusions.compare_with_peers(entry["engines"]))
    return entry


def read_version(name):
    """That of the package that is there; empty where none is."""
    for package in _PACKAGES.get(name, (name,)):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def read_versions(names):
    """What each engine calls its version; of ours, the commit of this tree."""
    versions = {name: read_version(name) for name in names if name in _PEERS}
    described = subprocess.run(
        ["git", "-C", str(_TREE), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
    )
    versions[measurements.OURS] = described.stdout.strip() if described.returncode == 0 else ""
    return versions


def find_absent(names, options):
    """Which engines cannot be opened on the device at all: {name: sentence}."""
    absent = {}
    for name in names:
        try:
            engines.Engine(name, 1, options).close()
        except engines.EngineError as fault:
            absent[name] = str(fault).removeprefix(f"{name}: ")
    return absent


def read_earlier(path, settings):
    """The results of a report that --json added to; none where there is no file."""
    if path is None or not path.exists():
        return []
    report = json.loads(path.read_text())
    if report["settings"] != settings:
        refuse(f"{path} was measured with other settings ({report['settings']}); give another file.")
    return report["results"]


def write_report(path, report):
    if path is not None:
        path.write_text(json.dumps(report, indent=1) + "\n")


def main():
    arguments = parse_arguments()
    given = {}
    if arguments.files:
        paths = [pathlib.Path(file) for file in arguments.files.split(",")]
        given = given_models.name_files(given_models.find_files(paths))
    made_folder = None if arguments.population or given else find_made_models()
    if given:
        known = list(given)
    elif arguments.population:
        known = population.list_names(arguments.held_out)
    else:
        known = model_set.list_names(made_folder)
    if arguments.list:
        print("\n".join(known))
        return 0
    wanted = arguments.models.split(",") if arguments.models else known
    for name in wanted:
        if name not in known:
            refuse(f"Model '{name}' is unknown; there are {', '.join(known)}.")
    if arguments.shard:
        wanted = wanted[arguments.shard[0] - 1 :: arguments.shard[1]]
    if measurements.OURS in arguments.engines and not arguments.library.exists():
        refuse(f"{arguments.library} does not exist; build the release preset or give --library.")
    if arguments.against_library and not arguments.against_library.exists():
        refuse(f"{arguments.against_library} of --against-library does not exist.")
    absent = {}
    if cuda_memory.is_on_device(arguments.device):
        options = {"library": str(arguments.library), "device": arguments.device}
        options["library_path"] = arguments.library_path
        absent = find_absent(arguments.engines, options)
        if measurements.OURS in absent:
            refuse(f"Nothing is compared: {absent[measurements.OURS]}")
        arguments.engines = [name for name in arguments.engines if name not in absent]
    if os.getloadavg()[0] > 0.7 and not arguments.cpu_time:
        say(f"The machine is busy (load {os.getloadavg()[0]:.1f}): times will be too long.")

    report = {
        "machine": read_machine(),
        "versions": read_versions(arguments.engines),
        "engines": arguments.engines,
        "has_device_memory": cuda_memory.is_on_device(arguments.device),
        "settings": {
            "device": arguments.device,
            "batch": arguments.batch,
            "rounds": arguments.rounds,
            "turn_ms": arguments.turn_ms,
            "loads": arguments.loads,
            "has_empty_caches": arguments.empty_caches,
        },
        "results": [],
        "left_out": [f"{name} is not compared: {sentence}" for name, sentence in absent.items()],
    }
    if arguments.cpu_isa:
        report["settings"]["cpu_isa"] = arguments.cpu_isa
    if arguments.cpu_time:
        report["settings"]["is_cpu_time"] = True
    if arguments.symbols:
        report["settings"]["has_symbols"] = True
    if arguments.without:
        report["settings"]["without"] = arguments.without
    if given:
        report["settings"]["dims"] = arguments.dim
    if arguments.population:
        report["settings"]["is_held_out"] = arguments.held_out
        report["results"] = read_earlier(arguments.json, report["settings"])
    measured = {(result["model"], result["threads"]) for result in report["results"]}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(wanted, start=1):
            try:
                if given:
                    model = given_models.load(name, given[name], arguments.dim)
                elif arguments.population:
                    model = model_set.load_of_population(name, arguments.batch)
                else:
                    model = model_set.load(name, made_folder, arguments.batch, pathlib.Path(place))
            except (given_models.GivenModelError, model_set.BatchError, population.PopulationError) as fault:
                report["left_out"].append(str(fault))
                continue
            for threads in arguments.threads:
                if (name, threads) in measured:
                    continue
                files = tempfile.mkdtemp(dir=place)
                # Load is compared at the most threads only; it takes most of the time.
                loads = arguments.loads if threads == max(arguments.threads) else 1
                try:
                    entry = run_model(model, threads, arguments, loads, files)
                finally:
                    shutil.rmtree(files, ignore_errors=True)
                if entry is None:
                    say(f"compare: {number}/{len(wanted)} {name} is the same without '{arguments.without}'")
                    continue
                report["results"].append(entry)
                write_report(arguments.json, report)
                say(
                    f"compare: {number}/{len(wanted)} ({time.monotonic() - start:.0f} s) {name}, "
                    f"{threads} threads, ratio {comparison_text.format_ratio(entry['ratio'])}"
                )
    if arguments.without and not report["results"]:
        report["left_out"].append(f"No step of these models is another one without '{arguments.without}'.")
    report["summaries"] = conclusions.summarise(report["results"])
    if any("profile" in result for result in report["results"]):
        told = {
            find_limits(arguments.library, arguments.device, arguments.cpu_isa, threads)[1]
            for threads in arguments.threads
        }
        report["left_out"] += [f"Which steps are slow is not told: {sentence}" for sentence in told - {None}]
    for result in report["results"]:
        device = result["engines"].get(measurements.OURS, {}).get("facts", {}).get("device")
        if report["has_device_memory"] and device:
            report["machine"]["processor"] = device
    print(comparison_text.make_tables(report))
    write_report(arguments.json, report)
    date = datetime.date.today().isoformat()
    command = shlex.join(["benchmarks/compare.py", *sys.argv[1:]])
    rows = measurements.make_rows(report, date, command)
    if arguments.csv is not None and rows:
        file = arguments.csv
        if file == _DEFAULT_FILE:
            file = measurements.FOLDER / measurements.name_file(date, rows[0]["processor"])
        measurements.add_to(file, rows)
        say(f"compare: {len(rows)} rows are in {file}.")
    if arguments.chart and report["results"]:
        arguments.chart.write_text(chart.make(rows))
    return conclusions.find_exit_status(report, arguments.require_ratio, arguments.require_mean)


if __name__ == "__main__":
    sys.exit(main())

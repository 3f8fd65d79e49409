#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX's own backend test cases for `onnxifi_conformance --suite operators`.

The node cases exist only as Python in the pinned `onnx` package and are computed here; simple,
pytorch-converted and pytorch-operator are files of the package and are copied. The package's
`light_*` models are left out: every weight is 0.02 and every expected number the same.

The cases of ml_cases.py, draw_cases.py and image_cases.py are written beside them.

The last line printed is the folder written. case_store.py describes the layout.
"""

import argparse
import concurrent.futures
import functools
import importlib
import os
import pathlib
import pkgutil
import re
import shutil
import sys
import warnings

# One thread per process: the numpy code of the cases is small, --jobs is what scales.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy
import onnx
import onnx.backend.test.case.node
import onnx.backend.test.loader

import case_store
import draw_cases
import image_cases
import ml_cases

_NODE_PACKAGE = onnx.backend.test.case.node
_FILE_KINDS = ("simple", "pytorch-converted", "pytorch-operator")

# Sums of terms near 10 that are zero, of which ONNX's expected values have the rounding errors that
# numpy makes in float32 (1.9e-7), above ONNX's absolute tolerance of 1e-7.
_LEAST_ATOL = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}

# ONNX names a twin <case>_expanded or <case>_expanded_verN.
_EXPANDED = re.compile(r"_expanded(_ver\d+)?$")


def list_node_modules():
    """Returns the names of all modules that define node cases, without importing them."""
    return sorted(
        module.name
        for module in pkgutil.walk_packages(_NODE_PACKAGE.__path__, _NODE_PACKAGE.__name__ + ".")
        if not module.ispkg
    )


def describe_case(case_folder, model, case, data_sets):
    return case_store.write_description(
        case_folder,
        model,
        case.kind,
        data_sets,
        expanded=_EXPANDED.search(case.name) is not None,
        rtol=case.rtol,
        atol=max(case.atol, _LEAST_ATOL.get(case.name, 0)),
    )


def write_node_case(case, folder):
    case_folder = folder / case.kind / case.name
    case_folder.mkdir(parents=True, exist_ok=True)
    (case_folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        case_store.write_data_set(case_folder, number, case.model, inputs, outputs)
    return describe_case(case_folder, case.model, case, len(case.data_sets))


def write_node_module(module_name, folder, wanted):
    """Imports one module, which runs its exports, and writes the cases that appear.

    Every export starts from the same seed, so the cases do not depend on the import order. A
    module that imports another brings that one's cases along; the same bytes are written twice.
    """
    # Without Pillow ONNX takes its frozen images, which do not change with the JPEG decoder.
    sys.modules["PIL.Image"] = None
    cases = _NODE_PACKAGE._NodeTestCases  # pylint: disable=protected-access
    first = len(cases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # Overflow is what some cases are about.
        importlib.import_module(module_name)
    return [write_node_case(case, folder) for case in cases[first:] if wanted.search(case.name)]


def write_node_cases(folder, wanted, jobs):
    modules = list_node_modules()
    progress = case_store.Progress("node cases, modules", len(modules))
    write = functools.partial(write_node_module, folder=folder, wanted=wanted)
    entries = {}
    with concurrent.futures.ProcessPoolExecutor(max_workers=jobs) as pool:
        for module, written in zip(modules, pool.map(write, modules)):
            entries.update((entry["name"], entry) for entry in written)
            progress.advance(module.rpartition(".")[2])
    return [entries[name] for name in sorted(entries)]


def write_ml_case(case, folder):
    case_folder = folder / case.kind / case.name
    for number, data_set in enumerate(case.data_sets):
        set_folder = case_folder / f"test_data_set_{number}"
        set_folder.mkdir(parents=True)
        for prefix, values in zip(("input", "output"), data_set):
            for position, value in enumerate(values):
                content = ml_cases.encode_value(value).SerializeToString()
                (set_folder / f"{prefix}_{position}.pb").write_bytes(content)
    (case_folder / "model.onnx").write_bytes(case.model.SerializeToString())
    return describe_case(case_folder, case.model, case, len(case.data_sets))


def write_draw_case(case, folder):
    case_folder = folder / case.kind / case.name
    case_folder.mkdir(parents=True)
    (case_folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        case_store.write_data_set(case_folder, number, case.model, inputs, outputs)
    return case_store.write_description(
        case_folder, case.model, case.kind, len(case.data_sets), draws=case.draws
    )


def write_draw_cases(folder, wanted):
    cases = sorted(draw_cases.list_cases(), key=lambda case: case.name)
    return [write_draw_case(case, folder) for case in cases if wanted.search(case.name)]


def write_image_cases(folder, wanted):
    cases = sorted(image_cases.list_cases(), key=lambda case: case.name)
    return [write_node_case(case, folder) for case in cases if wanted.search(case.name)]


def write_ml_cases(folder, wanted):
    cases = sorted(ml_cases.list_cases(), key=lambda case: case.name)
    return [write_ml_case(case, folder) for case in cases if wanted.search(case.name)]


def write_file_case(case, folder):
    source = pathlib.Path(case.model_dir)
    case_folder = folder / case.kind / case.name
    shutil.copytree(source, case_folder)
    model = onnx.load(case_folder / "model.onnx")
    data_sets = len(list(case_folder.glob("test_data_set_*")))
    inputs = len(case_store.list_runtime_inputs(model))
    for number in range(data_sets):
        provided = len(list((case_folder / f"test_data_set_{number}").glob("input_*.pb")))
        if provided != inputs:
            raise ValueError(
                f"Case '{case.name}' provides {provided} inputs, its graph asks for {inputs}."
            )
    return describe_case(case_folder, model, case, data_sets)


def write_file_cases(folder, wanted):
    entries = []
    for kind in _FILE_KINDS:
        cases = onnx.backend.test.loader.load_model_tests(kind=kind)
        for case in sorted(cases, key=lambda case: case.name):
            if wanted.search(case.name):
                entries.append(write_file_case(case, folder))
    return entries


def print_counts(index):
    twins = sum(count["expanded"] for count in index["counts"].values())
    for kind, count in index["counts"].items():
        print(f"{kind}: {count['cases']} cases, {count['expanded']} expanded twins")
    print(f"total: {len(index['cases']) - twins} cases, {twins} expanded twins")


def make(output=None, wanted="", jobs=None):
    """Writes the cases unless they are there; returns their folder and its index."""
    facts = {
        "onnx": onnx.__version__,
        "numpy": numpy.__version__,
        "pillow": image_cases.PILLOW_VERSION,
        "filter": wanted,
    }
    makers = (case_store, draw_cases, image_cases, ml_cases)
    sources = [__file__, *(maker.__file__ for maker in makers)]
    stamp = case_store.make_stamp(sources, facts)
    cache = case_store.find_cache_root() / "cases"
    folder = (output or cache / stamp).absolute()
    index = case_store.read_index(folder, stamp)
    if index is None:
        expression = re.compile(wanted)
        with case_store.replace_folder(folder) as fresh:
            entries = write_node_cases(fresh, expression, jobs or os.cpu_count())
            entries += write_ml_cases(fresh, expression)
            entries += write_draw_cases(fresh, expression)
            entries += write_image_cases(fresh, expression)
            entries += write_file_cases(fresh, expression)
            if not entries:
                raise SystemExit(f"No case matches the filter '{wanted}'.")
            index = case_store.write_index(fresh, stamp, facts, entries)
        case_store.prune_unused(cache, keep=folder)
    return folder, index


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, help="folder (default: in the cache)")
    parser.add_argument("--filter", default="", metavar="RE", help="only cases it is found in")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    if arguments.filter and not arguments.output:
        parser.error("--filter needs --output: the cache holds complete sets of cases only.")

    folder, index = make(arguments.output, arguments.filter, arguments.jobs)
    print_counts(index)
    print(folder)


if __name__ == "__main__":
    main()

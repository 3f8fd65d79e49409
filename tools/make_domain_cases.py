#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of `onnxifi_conformance --suite domains`: operators of com.microsoft.

Every operator that the kit knows in this domain has cases of domains/.
Expected values are ONNX Runtime's, which is asked while the cases are made.

The last line printed is the folder written. case_store.py describes the layout.
"""

import argparse
import importlib
import pathlib
import pkgutil
import sys

import numpy
import onnx
import onnxruntime

import case_store
import domains
from domains import blocked, case, untold

_KIND = "domains"


def load_modules():
    found = [
        each for each in pkgutil.iter_modules(domains.__path__, "domains.") if not each.name.endswith("_test")
    ]
    return [importlib.import_module(each.name) for each in sorted(found, key=lambda each: each.name)]


def write_case(made, folder):
    case_folder = folder / _KIND / made.name
    case_folder.mkdir(parents=True)
    (case_folder / "model.onnx").write_bytes(made.model.SerializeToString())
    case_store.write_data_set(case_folder, 0, made.model, made.inputs, made.outputs)
    tolerances = {"rtol": made.rtol, "atol": made.atol, "rtol_bfloat16": max(made.rtol, 2.0**-6)}
    return case_store.write_description(case_folder, made.model, _KIND, 1, **tolerances)


def write_cases(folder):
    covered = case.functions()
    progress = case_store.Progress("operators of domains", len(covered))
    entries, nodes = {}, []
    for function, op_types in covered.items():
        for made in function():
            if made.name in entries:
                raise SystemExit(f"The case {made.name} is there twice.")
            entries[made.name] = write_case(made, folder)
            nodes += made.model.graph.node
        progress.advance(", ".join(op_types))
    if gaps := untold.find_gaps(nodes):
        raise SystemExit("\n".join(gaps))
    return [entries[name] for name in sorted(entries)]


def make(output=None):
    """Writes the cases unless they are there; returns their folder and its index."""
    modules = load_modules()
    facts = {
        "numpy": numpy.__version__,
        "onnx": onnx.__version__,
        "onnxruntime": onnxruntime.__version__,
        "channels of a block": blocked.block(),
        "operators": sorted(name for names in case.functions().values() for name in names),
    }
    stamp = case_store.make_stamp(
        [__file__, case_store.__file__, *(each.__file__ for each in modules)], facts
    )
    cache = case_store.find_cache_root() / _KIND
    folder = (output or cache / stamp).absolute()
    index = case_store.read_index(folder, stamp)
    if index is None:
        with case_store.replace_folder(folder) as fresh:
            index = case_store.write_index(fresh, stamp, facts, write_cases(fresh))
        case_store.prune_unused(cache, keep=folder)
    return folder, index


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, help="folder (default: in the cache)")
    arguments = parser.parse_args()
    folder, index = make(arguments.output)
    print(f"{len(index['operators'])} operators")
    print(f"total: {len(index['cases'])} cases")
    print(folder)


if __name__ == "__main__":
    sys.exit(main())

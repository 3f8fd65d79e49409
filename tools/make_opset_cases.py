#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of `onnxifi_conformance --suite opsets`: each operator in each of its versions.

Every pair of an operator and a version of ONNX's registry has cases of opsets/, or one of those of
make_onnx_cases.py, or a written reason. A pair that has neither, or both, ends the program.

The last line printed is the folder written. case_store.py describes the layout; index.json has the
table of pairs, too.
"""

import argparse
import collections
import pathlib
import shutil
import sys

import numpy
import onnx

import case_store
import make_onnx_cases
import ml_cases
from opsets import case, table

_KIND = "opsets"


def find_borrowed(folder, index, wanted):
    """By pair in `wanted`: the case of ONNX (or of ml_cases) that has it in the smallest model."""
    best = {}
    for entry in index["cases"]:
        if entry["expanded"]:
            continue
        model = onnx.load(folder / entry["path"] / "model.onnx")
        size = sum(1 for _ in case.nodes_of(model.graph))
        for pair in case.pairs_of(model) & wanted:
            best[pair] = min(
                best.get(pair, (size, entry["name"], entry)), (size, entry["name"], entry)
            )
    return {pair: entry for pair, (_, _, entry) in best.items()}


def write_case(made, folder):
    case_folder = folder / _KIND / made.name
    set_folder = case_folder / "test_data_set_0"
    set_folder.mkdir(parents=True)
    for prefix, values in (("input", made.inputs), ("output", made.outputs)):
        for position, value in enumerate(values):
            content = ml_cases.encode_value(value).SerializeToString()
            (set_folder / f"{prefix}_{position}.pb").write_bytes(content)
    (case_folder / "model.onnx").write_bytes(made.model.SerializeToString())
    return case_store.write_description(
        case_folder, made.model, _KIND, 1, rtol=made.rtol, atol=made.atol
    )


def write_cases(folder, onnx_folder, onnx_index):
    """Writes all cases and returns their entries, and the table."""
    pairs = case.schemas()
    entries, cases = {}, collections.defaultdict(list)
    progress = case_store.Progress("versions of operators", len(pairs))
    for pair in sorted(pairs):
        for made in case.list_cases(pair):
            case.check(made)
            entries[made.name] = write_case(made, folder)
            cases[pair].append(made.name)
        progress.advance(pair.op_type)
    wanted = set(pairs) - set(cases)
    for pair, entry in sorted(find_borrowed(onnx_folder, onnx_index, wanted).items()):
        if entry["name"] not in entries:
            shutil.copytree(onnx_folder / entry["path"], folder / entry["path"])
        entries[entry["name"]] = entry
        cases[pair].append(entry["name"])
    faults = table.find_faults(pairs, cases, table.REASONS)
    if faults:
        raise SystemExit("\n".join(faults))
    return [entries[name] for name in sorted(entries)], table.describe(pairs, cases, table.REASONS)


def make(output=None):
    """Writes the cases unless they are there; returns their folder and its index."""
    onnx_folder, onnx_index = make_onnx_cases.make()
    facts = {"onnx": onnx.__version__, "numpy": numpy.__version__, "cases": onnx_index["stamp"]}
    sources = [__file__, case_store.__file__, ml_cases.__file__]
    sources += [module.__file__ for module in (table, *table.MODULES)]
    stamp = case_store.make_stamp(sources, facts)
    cache = case_store.find_cache_root() / _KIND
    folder = (output or cache / stamp).absolute()
    index = case_store.read_index(folder, stamp)
    if index is None:
        with case_store.replace_folder(folder) as fresh:
            entries, rows = write_cases(fresh, onnx_folder, onnx_index)
            index = case_store.write_index(fresh, stamp, facts | {"pairs": rows}, entries)
        case_store.prune_unused(cache, keep=folder)
    return folder, index


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, help="folder (default: in the cache)")
    arguments = parser.parse_args()
    folder, index = make(arguments.output)
    with_cases = sum("cases" in row for row in index["pairs"])
    print(f"{len(index['pairs'])} pairs: {with_cases} with cases, the others with a reason")
    print(f"total: {len(index['cases'])} cases")
    print(folder)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The folder layout in which onnxifi_conformance reads its cases, and its cache.

make_onnx_cases.py and make_models.py write through this file, the conformance runner reads:

    DIR/index.json                                  stamp, counts, one entry per case
    DIR/<group>/<case>/case.json                    tolerances, number of data sets, value kinds
    DIR/<group>/<case>/model.onnx
    DIR/<group>/<case>/test_data_set_N/input_I.pb   TensorProto, SequenceProto, ... as case.json
    DIR/<group>/<case>/test_data_set_N/output_I.pb  says in input_kinds and output_kinds

input_I belongs to the I-th graph input that is not an initializer, output_I to graph output I.
A folder appears complete or not at all, and is reused while its stamp is unchanged.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time

from onnx import TensorProto, numpy_helper

_INDEX = "index.json"
_UNUSED_DAYS = 14


def find_cache_root():
    """Returns the folder outside the tree that holds everything generated."""
    own = os.environ.get("ONNXIFI_CACHE_HOME")
    if own:
        return pathlib.Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(shared) if shared else pathlib.Path.home() / ".cache") / "onnxifi-build"


def make_stamp(sources, facts):
    """Returns 16 hex digits that change with the text of `sources` (files) or with `facts`."""
    digest = hashlib.sha256()
    for source in sorted(map(str, sources)):
        digest.update(pathlib.Path(source).read_bytes())
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def read_index(folder, stamp):
    """Returns the index of a folder made under `stamp`; None if there is none.

    Marks it as used last, by its time: that is the one the conformance runner takes by default.
    """
    path = folder / _INDEX
    try:
        index = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    if index.get("stamp") != stamp:
        return None
    with contextlib.suppress(OSError):  # A read-only cache is still a cache.
        os.utime(path)
    return index


@contextlib.contextmanager
def replace_folder(folder):
    """Lends an empty folder; on success it takes the place of `folder` in one rename.

    Raises SystemExit if `folder` holds something that was not written by this file.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / _INDEX).is_file():
        raise SystemExit(f"{folder} is not empty and has no {_INDEX}, so it is not replaced.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    workplace = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        fresh = workplace / "fresh"
        fresh.mkdir()
        yield fresh
        if folder.exists():
            folder.rename(workplace / "stale")
        fresh.rename(folder)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def write_index(folder, stamp, facts, cases):
    """Writes index.json: the stamp, the facts that went into it, counts per group, all cases."""
    counts = {}
    for case in cases:
        group = counts.setdefault(case["kind"], {"cases": 0, "expanded": 0})
        group["expanded" if case["expanded"] else "cases"] += 1
    index = {"stamp": stamp, **facts, "counts": counts, "cases": cases}
    (folder / _INDEX).write_text(json.dumps(index, indent=1, sort_keys=True) + "\n")
    return index


def prune_unused(parent, keep):
    """Removes folders beside `keep` that no run has asked for in two weeks."""
    for index in parent.glob(f"*/{_INDEX}"):
        if index.parent != keep and time.time() - index.stat().st_mtime > _UNUSED_DAYS * 86400:
            shutil.rmtree(index.parent, ignore_errors=True)


def get_kind(type_proto):
    """Returns what a TypeProto describes: tensor, sequence, optional, map, sparse_tensor."""
    return type_proto.WhichOneof("value").removesuffix("_type")


def encode_value(value, type_proto, name):
    """Returns the bytes of the protobuf message that ONNX uses for a value of this type."""
    kind = get_kind(type_proto)
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    encode = {
        "tensor": numpy_helper.from_array,
        "sequence": numpy_helper.from_list,
        "optional": numpy_helper.from_optional,
        "map": numpy_helper.from_dict,
    }[kind]
    message = encode(value, name)
    if kind == "tensor" and message.data_type != type_proto.tensor_type.elem_type:
        raise ValueError(
            f"Value '{name}' has element type {message.data_type}, "
            f"the model declares {type_proto.tensor_type.elem_type}."
        )
    return message.SerializeToString()


def list_runtime_inputs(model):
    """Returns the graph inputs that a caller provides: those that are not initializers."""
    constants = {initializer.name for initializer in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def write_data_set(case_folder, number, model, inputs, outputs):
    """Writes test_data_set_<number>; inputs and outputs come in the order of the graph."""
    folder = case_folder / f"test_data_set_{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for prefix, infos, values in (
        ("input", list_runtime_inputs(model), inputs),
        ("output", model.graph.output, outputs),
    ):
        if len(infos) != len(values):
            raise ValueError(
                f"Case '{case_folder.name}' has {len(values)} {prefix} values, "
                f"its graph {len(infos)} {prefix}s."
            )
        for position, (info, value) in enumerate(zip(infos, values)):
            content = encode_value(value, info.type, info.name)
            (folder / f"{prefix}_{position}.pb").write_bytes(content)


def write_description(case_folder, model, kind, data_sets, expanded=False, **facts):
    """Writes case.json beside model.onnx and returns the case's entry for the index."""
    description = {
        "name": case_folder.name,
        "kind": kind,
        "expanded": expanded,
        "data_sets": data_sets,
        "input_kinds": [get_kind(value.type) for value in list_runtime_inputs(model)],
        "output_kinds": [get_kind(value.type) for value in model.graph.output],
        **facts,
    }
    (case_folder / "case.json").write_text(json.dumps(description, indent=1) + "\n")
    return {
        "name": case_folder.name,
        "kind": kind,
        "expanded": expanded,
        "path": f"{case_folder.parent.name}/{case_folder.name}",
    }


class Progress:
    """One line on a terminal, a plain line per tenth elsewhere; writes to stderr."""

    def __init__(self, label, total):
        self._label = label
        self._total = total
        self._done = 0
        self._shown_tenths = 0
        self._start = time.monotonic()

    def advance(self, note=""):
        self._done += 1
        tenths = 10 * self._done // self._total
        seconds = time.monotonic() - self._start
        line = f"{self._label}: {self._done}/{self._total} ({seconds:.0f} s) {note}"
        if sys.stderr.isatty():
            end = "\n" if self._done == self._total else ""
            print(f"\r\033[K{line[:100]}", end=end, file=sys.stderr, flush=True)
        elif tenths > self._shown_tenths:
            print(line.rstrip(), file=sys.stderr, flush=True)
        self._shown_tenths = tenths

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/operators.md: each operator, its versions, the element types that run, and what devices refuse.

Reads the table of pairs that make_opset_cases.py made, the models of its cases and of those of make_domain_cases.py,
and the expectation files, which `onnxifi_conformance --suite opsets` and `--suite domains` hold against what each
device does. Asks the CPU's plugin about the types that no case has. With --check, the file is compared.
Exit status: 0 written or equal, 1 different.
"""

import argparse
import collections
import json
import pathlib
import re
import sys
import textwrap

import onnx

import make_domain_cases
import make_opset_cases
import probe_types
from domains import declarations, recurrent, refused

TREE = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = TREE / "docs" / "operators.md"
# Those on which tools/test runs the suite.
DEVICES = ("auto", "cpu", "null", "opencl", "vulkan", "cuda")
# And those on which it runs the cases of the domains beside ONNX's.
DOMAIN_DEVICES = ("auto", "cpu", "null", "opencl", "vulkan", "cuda")

_HEADER = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# Operators

Made by `tools/make_operator_docs.py`; `tools/test` checks that it is current. ONNX {onnx}: {pairs} operators of a
version, of which {passed} have a case that passes on each of {devices}.

- **versions**: the `since_version`s of which a case passes. In brackets: those of which none does, and why below.
- **element types**: those that tensors of these cases have, and those that the CPU's plugin takes where a case is given
  another type of the schema's (`tools/probe_types.py`), each at the first version that has it.
- **refused**: types of the schema that it refuses then; cases that a device refuses, by their names, with the number of
  them. `onnxifi_info --ops` asks a device about a model.
"""
_DOMAINS = """
## Operators beside ONNX's

What ONNX Runtime's tools write, in version 1 of its domain or in ONNX's own.
The cases run on {devices}.

| domain | operator | element types | refused |
|---|---|---|---|
"""
_DOMAIN_NOTES = (
    """**com.microsoft.nchwc** is what ONNX Runtime writes at `ORT_ENABLE_ALL`, the level that it saves models with unless
    told otherwise. It keeps channels in blocks, and a file holds filters in this order without saying how many channels
    a block has. That is the processor's matter: 16 with AVX-512 and on Arm, 8 on others. The library, as ONNX Runtime,
    takes the number of the processor that it runs on. Where extents show that a file has the other, it is refused.
    Where they do not, because all channels are multiples of 16, a file of another kind of processor gives wrong
    results in both. ONNX Runtime's warning when it saves such a file says so. `ORT_ENABLE_EXTENDED` saves files for
    every processor. The library warns in its log that it took this processor's number.""",
    """**DynamicQuantizeLSTM**: ONNX Runtime rounds the hidden state to 8 bits before each step. Here only the input is
    rounded, and the hidden state stays float32, which is closer to the LSTM that was quantized. The cases allow
    results that differ from ONNX Runtime's by {lstm}.""",
)
_REFUSED = """
Of ONNX Runtime's domain these are refused:

| operators | reason |
|---|---|
"""
# By domain, below its table.
_NOTES = {
    "ai.onnx.preview.training": """
Gradient differentiates {derivatives}, of the versions from which the attribute `broadcast` and softmaxes of matrices
are gone. A graph with another operator between is refused by the name of that operator.
"""
}
_EXCEPTIONS = """
## Versions without a case that passes

| operator | version | reason |
|---|---|---|
"""


def element_types(model):
    """The element types of a model's inputs and outputs, as numbers."""
    found = set()
    for value in [*model.graph.input, *model.graph.output]:
        kind = value.type
        while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
            kind = getattr(kind, kind.WhichOneof("value")).elem_type
        if kind.WhichOneof("value") == "tensor_type":
            found.add(kind.tensor_type.elem_type)
    return found


def read_refusals(device, names, suite="opsets"):
    """By case that the device's expectation file lists for the suite: its reason."""
    text = (TREE / "conformance" / "expectations" / f"{device}.json").read_text()
    refusals = {}
    for entry in json.loads(text)["unsupported"]:
        if entry["suite"] != suite:
            continue
        for pattern in map(re.compile, entry["cases"]):
            refusals.update({name: entry["reason"] for name in names if pattern.fullmatch(name)})
    return refusals


def read_derivatives():
    """The operators that Gradient differentiates, as its source lists them."""
    text = (TREE / "backends" / "core" / "ops" / "gradient.cc").read_text()
    table = re.search(r"kFirstVersions = \{(.*?)\};", text, re.DOTALL).group(1)
    names = sorted(re.findall(r'\{"(\w+)", \d+\}', table))
    return ", ".join(names[:-1]) + " and " + names[-1]


def name_types(numbers):
    # In the order of their numbers, which is that of ONNX's versions.
    return ", ".join(onnx.TensorProto.DataType.Name(number).lower() for number in sorted(numbers))


def describe_refusals(cases, refusals):
    """What each device refuses of these cases; one text where all refuse the same. `refusals` is by device."""
    texts = {}
    for device, names in refusals.items():
        refused = [name for name in cases if name in names]
        if refused:
            texts[device] = f"`{refused[0]}`" + (f" and {len(refused) - 1} more" if refused[1:] else "")
    if len(texts) == len(refusals) and len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{device}: {text}" for device, text in texts.items())


def read_schema(pair):
    return onnx.defs.get_schema(pair["operator"], pair["version"], pair["domain"])


def make_document(folder, index, domains_text, device):
    paths = {case["name"]: case["path"] for case in index["cases"]}
    refusals = {device: read_refusals(device, paths) for device in DEVICES}
    operators = collections.defaultdict(list)
    for pair in index["pairs"]:
        operators[pair["domain"] or "ai.onnx", pair["operator"]].append(pair)
    domains = collections.defaultdict(list)
    exceptions, passed_count = [], 0
    for (domain, operator), pairs in sorted(operators.items()):
        versions, types, known, all_cases, refused_types = [], [], set(), [], set()
        for pair in pairs:
            cases = pair.get("cases", [])
            passing = [name for name in cases if all(name not in refusals[d] for d in DEVICES)]
            versions.append(str(pair["version"]) if passing else f"({pair['version']})")
            passed_count += bool(passing)
            if not passing:
                reason = pair.get("reason") or refusals[DEVICES[0]][cases[0]]
                exceptions.append(f"| {operator} | {pair['version']} | {reason} |")
            models = [onnx.load(folder / paths[name] / "model.onnx") for name in passing]
            found = set().union(*map(element_types, models))
            asked = probe_types.probe(device, models, read_schema(pair), known | found)
            found |= asked.taken
            if found - known:
                types.append(f"{pair['version']}: {name_types(found - known)}")
            known |= found
            refused_types = asked.refused
            all_cases += cases
        row = f"| {operator} | {', '.join(versions)} | {'; '.join(types)} |"
        texts = [name_types(refused_types - known), describe_refusals(all_cases, refusals)]
        domains[domain].append(f"{row} {'; '.join(filter(None, texts))} |")
    text = _HEADER.format(
        onnx=onnx.__version__,
        pairs=len(index["pairs"]),
        passed=passed_count,
        devices=", ".join(DEVICES),
    )
    for domain, rows in domains.items():
        text += f"\n## {domain}\n\n| operator | versions | element types | refused |\n|---|---|---|---|\n"
        text += "\n".join(rows) + "\n"
        if domain in _NOTES:
            note = " ".join(_NOTES[domain].split()).format(derivatives=read_derivatives())
            text += "\n" + textwrap.fill(note, 120) + "\n"
    return text + domains_text + _EXCEPTIONS + "\n".join(exceptions) + "\n"


def describe_domains(folder, index):
    """The tables of the operators beside ONNX's, of their one version."""
    paths = {case["name"]: case["path"] for case in index["cases"]}
    refusals = {device: read_refusals(device, paths, "domains") for device in DOMAIN_DEVICES}
    operators = collections.defaultdict(lambda: (set(), []))
    for name, path in sorted(paths.items()):
        model = onnx.load(folder / path / "model.onnx")
        found = {(node.domain or "ai.onnx", node.op_type) for node in model.graph.node}
        if len(found) > 1 and {domain for domain, _ in found} != {declarations.BLOCKED}:
            continue  # a whole model
        for key in found:
            types, cases = operators[key]
            if all(name not in refused for refused in refusals.values()):
                types |= element_types(model) | {each.data_type for each in model.graph.initializer}
            cases.append(name)
    text = _DOMAINS.format(devices=", ".join(DOMAIN_DEVICES))
    for (domain, operator), (types, cases) in sorted(operators.items()):
        text += f"| {domain} | {operator} | {name_types(types)} | {describe_refusals(cases, refusals)} |\n"
    for note in _DOMAIN_NOTES:
        text += "\n" + textwrap.fill(" ".join(note.split()).format(lstm=recurrent.ATOL), 120) + "\n"
    rows = [f"| {', '.join(sorted(names))} | {reason} |\n" for reason, names in refused.REASONS.items()]
    return text + _REFUSED + "".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only compare")
    parser.add_argument("--build", type=pathlib.Path, default=TREE / "build" / "release")
    arguments = parser.parse_args()
    device = probe_types.Device(arguments.build / "lib" / "libonnxifi.so", "cpu")
    text = make_document(*make_opset_cases.make(), describe_domains(*make_domain_cases.make()), device)
    if not arguments.check:
        DOCUMENT.write_text(text)
        return 0
    if DOCUMENT.is_file() and DOCUMENT.read_text() == text:
        return 0
    print(f"{DOCUMENT.relative_to(TREE)} is not current: tools/make_operator_docs.py writes it.")
    return 1


if __name__ == "__main__":
    sys.exit(main())

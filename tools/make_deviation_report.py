#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/deviation.md: errors of operators against float64, ours and ONNX Runtime's side by side.

Runs under the interpreter of `tools/setup --compare --print-python`, which has ONNX Runtime. With
--check any interpreter with onnx will do: it measures this library alone and holds it against the
document. An operator whose largest error has grown more than --factor times fails, and so does a row
that is missing or that nothing makes.

Exit status: 0 written or as the document says, 1 not so.
"""

import argparse
import datetime
import pathlib
import platform
import re
import sys

import onnx

from deviation.engines import OnnxRuntime, Ours
from deviation.measurement import TYPES, list_problems, measure
from deviation.operators import OPSET, list_samples

TREE = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = TREE / "docs" / "deviation.md"

_HEADER = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# Errors against float64

Made by `{command}` on {processor}, {date}. Ours is the device
{device} of this tree; the other is {peer}. Operators are those of opset {opset}, or of the first that has them, of
`ai.onnx.ml` and of `com.microsoft`; `tools/deviation/operators.py` has their attributes, shapes and ranges of inputs.

- Inputs are drawn with a seed and rounded to the element type. What is expected is computed from them in float64 by
  the reference evaluator of ONNX {onnx}, which shares no code with either engine; for Erf, Gelu, cubic
  Resize, LRN, GlobalLpPool, MeanVarianceNormalization, AffineGrid, Swish, SwiGLU and those of the other domains, which
  it has not or not rightly in float64, by their formulas in `tools/deviation/engines.py`.
- An error is |a - b| / (|b| + rms(b)), as the conformance suite measures: b is expected, rms(b) its root mean square.
- One rounding is at most 6.0e-08 for float, 4.9e-04 for float16, 3.9e-03 for bfloat16, 1.1e-16 for double. Of double,
  the expected value has errors of this size itself.
- The reference evaluator finds positions of GridSample and DeformConv in float32, so double has larger errors there than
  the engines make. ONNX's functions of HardSwish and of Gelu with `tanh` have constants of float32; in double ours has
  that of HardSwish, ONNX Runtime those of Gelu.
- ONNX defines Softmax, LogSoftmax, RotaryEmbedding and Attention by simpler operators, each of which rounds to the
  element type. Ours does too.
- Regressors of `ai.onnx.ml` answer in float, whatever the type of their inputs.
- A dash stands where the engine refuses the model; the reasons are below the table.

| operator | type | elements | ours, largest | ours, mean | ONNX Runtime, largest | ONNX Runtime, mean |
|---|---|---:|---:|---:|---:|---:|
"""
# Largest errors that expected values of double may have on some processor.
_OF_EXPECTED = 1e-15
_ROW = "| {label} | {type_name} | {elements} | {largest} | {mean} | {peer_largest} | {peer_mean} |\n"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return re.sub(r"\s+", " ", line.partition(":")[2].strip())
    return platform.processor() or "a processor without a name"


def number(value):
    return "-" if value is None else f"{value:.1e}" if value else "0"


def measure_all(engines):
    """(label, type name, a deviation per engine) of each row."""
    samples = list_samples()
    for position, sample in enumerate(samples):
        for type_name in sample.types:
            problems = list(list_problems(sample, type_name))
            yield sample.label, type_name, [measure(engine, problems) for engine in engines]
        if (position + 1) * 10 // len(samples) > position * 10 // len(samples):
            print(f"deviation: {position + 1} of {len(samples)} operators", file=sys.stderr)


def summarise(rows):
    """How often which engine has the smaller largest error, by type."""
    lines = ["", "## Whose largest error is smaller", ""]
    lines += ["| type | rows of both | ours smaller | equal | ONNX Runtime's smaller |"]
    lines += ["|---|---:|---:|---:|---:|"]
    for type_name in TYPES:
        both = [
            (ours.largest, peer.largest)
            for _, kind, (ours, peer) in rows
            if kind == type_name and not ours.refusal and not peer.refusal
        ]
        # Two digits, as printed.
        smaller = sum(float(number(a)) < float(number(b)) for a, b in both)
        larger = sum(float(number(a)) > float(number(b)) for a, b in both)
        equal = len(both) - smaller - larger
        lines.append(f"| {type_name} | {len(both)} | {smaller} | {equal} | {larger} |")
    return "\n".join(lines) + "\n"


def list_refusals(rows):
    lines = ["", "## Refused", "", "| operator | type | engine | reason |", "|---|---|---|---|"]
    for label, type_name, deviations in rows:
        for engine, deviation in zip(("ours", "ONNX Runtime"), deviations):
            if deviation.refusal:
                reason = " ".join(deviation.refusal.split())
                reason = re.sub(r"/[^ ]*/", "", reason).replace("|", "\\|")
                lines.append(f"| {label} | {type_name} | {engine} | {reason} |")
    return "\n".join(lines) + "\n"


def write(arguments):
    ours, peer = Ours(arguments.library, arguments.device), OnnxRuntime()
    rows = list(measure_all([ours, peer]))
    text = _HEADER.format(
        command=f"tools/make_deviation_report.py --device {arguments.device}",
        processor=processor(),
        date=datetime.date.today().isoformat(),
        device=f"`{arguments.device}`",
        peer=peer.name,
        opset=OPSET,
        onnx=onnx.__version__,
    )
    for label, type_name, (mine, other) in rows:
        text += _ROW.format(
            label=label,
            type_name=type_name,
            elements=mine.elements or other.elements,
            largest=number(mine.largest),
            mean=number(mine.mean),
            peer_largest=number(other.largest),
            peer_mean=number(other.mean),
        )
    DOCUMENT.write_text(text + summarise(rows) + list_refusals(rows))
    print(f"{len(rows)} rows in {DOCUMENT}")
    return 0


def read_document():
    """Our largest error by operator and type; None where we refuse."""
    known = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 7 and cells[1] in TYPES:
            known[tuple(cells[:2])] = None if cells[3] == "-" else float(cells[3])
    return known


def find_fault(deviation, known, factor):
    """What of a row is not as the document says, or None."""
    if (known is None) != bool(deviation.refusal):
        return deviation.refusal or "is not refused, as the document says"
    # What is expected of double has such errors itself: numpy adds products up as is best for the processor.
    if known is not None and deviation.largest > factor * max(known, _OF_EXPECTED):
        return f"has an error of {deviation.largest:.2e}, where the document says {known:.1e}"
    return None


def check(arguments):
    known, faults = read_document(), []
    for label, type_name, (mine,) in measure_all([Ours(arguments.library, arguments.device)]):
        row = (label, type_name)
        if row not in known:
            faults.append(f"{label} of {type_name} is not in the document.")
            continue
        fault = find_fault(mine, known.pop(row), arguments.factor)
        if fault:
            faults.append(f"{label} of {type_name}: {fault}")
    faults += [f"{label} of {type_name} is in the document alone." for label, type_name in known]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} rows are not as docs/deviation.md says")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    library = TREE / "build" / "release" / "lib" / "libonnxifi.so"
    parser.add_argument("--library", default=library, help="default: that of the release build")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--factor", type=float, default=4, help="what an error may grow by")
    arguments = parser.parse_args()
    return check(arguments) if arguments.check else write(arguments)


if __name__ == "__main__":
    sys.exit(main())

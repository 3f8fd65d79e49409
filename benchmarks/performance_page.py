#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the table and the picture of docs/performance.md from the newest file of docs/measurements.

    benchmarks/performance_page.py            writes both
    benchmarks/performance_page.py --check    changes nothing; exit status 1 and a sentence for each that differs

The table has the models of tools/make_models.py at batch 1 with the most threads, and the geometric means of
every batch and number of threads in the file. Needs nothing but Python.
"""

import argparse
import sys

import chart
import measurements

_DOCS = measurements.FOLDER.parent
_BEGIN = "<!-- made by benchmarks/performance_page.py -->\n"
_END = "<!-- end of what is made -->\n"
_KINDS = ("convolution", "weights", "transformer")
_RATIOS = ("ratio", "load_ratio", "memory_ratio")
# A mean of fewer models is none.
_LEAST_MODELS = 3


def _is_shown(row):
    """Whether the row is of a model whose results are checked, and not of one that is a single call."""
    return row["kind"] in _KINDS and not row["model"].startswith("light_")


def _show(text, digits):
    return f"{float(text):{digits}}" if text else "-"


def _make_means(rows):
    """Yields a line of the table for each batch, number of threads and kind."""
    ours = [row for row in rows if row["engine"] == measurements.OURS and _is_shown(row)]
    setups = sorted({(int(row["batch"]), -int(row["threads"])) for row in ours})
    for batch, threads in setups:
        for kind in _KINDS:
            chosen = [
                row
                for row in ours
                if (int(row["batch"]), -int(row["threads"]), row["kind"]) == (batch, threads, kind)
            ]
            if len(chosen) < _LEAST_MODELS:
                continue
            cells = []
            for key in _RATIOS:
                values = [float(row[key]) for row in chosen if row[key]]
                # A process that does not grow at all counts as a thousandth.
                mean = measurements.geometric_mean([max(value, 1e-3) for value in values])
                cells.append(f"{mean:.2f}" if values else "-")
            setup = f"batch {batch}, {-threads} thread{'s' * (threads < -1)}"
            yield f"| mean of {len(chosen)}, {setup} | {kind} | | | | {' | '.join(cells)} |"


def make_table(rows):
    """Returns the lines of the table of these rows."""
    ours = [row for row in chart.choose_rows(rows) if row["engine"] == measurements.OURS]
    peers = {
        (row["model"], row["engine"]): row["run_ms"]
        for row in chart.choose_rows(rows)
        if row["engine"] != measurements.OURS
    }
    versions = {row["engine"]: row["version"] for row in rows if row["version"]}
    lines = [
        "| model | kind | this SDK, ms | "
        + " | ".join(
            f"{name} {versions[engine]}, ms" if engine in versions else f"{name}, ms"
            for engine, name in (("onnxruntime", "ONNX Runtime"), ("openvino", "OpenVINO"))
        )
        + " | ratio | load | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ours:
        if not _is_shown(row):
            continue
        cells = [row["model"], row["kind"], _show(row["run_ms"], ".4g")]
        cells += [
            _show(peers.get((row["model"], engine), ""), ".4g")
            for engine in ("onnxruntime", "openvino")
        ]
        cells += [_show(row[key], ".2f") for key in _RATIOS]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, *_make_means(rows)]


def put_table(page, lines):
    """Returns the page with `lines` between its marks. ValueError where it has no marks."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"The page has no lines '{_BEGIN.strip()}' and '{_END.strip()}'.")
    return before + begin + "\n".join(lines) + "\n" + end + after


def make_page(page, path):
    """Returns the page made from the file of measurements, with the sentence that names it."""
    rows = measurements.read(path)
    source = f"From [{path.name}](measurements/{path.name}), where the commands stand:"
    return put_table(page, [source, "", *make_table(rows)])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only say what differs")
    is_check = parser.parse_args().check
    path = measurements.find_newest()
    if path is None:
        print(f"performance_page.py: {measurements.FOLDER} has no measurements.", file=sys.stderr)
        return 2
    page = _DOCS / "performance.md"
    picture = _DOCS / "performance.svg"
    wanted = {
        page: make_page(page.read_text(), path),
        picture: chart.make(measurements.read(path)),
    }
    status = 0
    for file, text in wanted.items():
        if file.exists() and file.read_text() == text:
            continue
        if is_check:
            print(f"{file.name} is not what benchmarks/performance_page.py makes of {path.name}.")
            status = 1
        else:
            file.write_text(text)
            print(f"Wrote {file}.")
    return status


if __name__ == "__main__":
    sys.exit(main())

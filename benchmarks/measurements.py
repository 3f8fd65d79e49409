# SPDX-License-Identifier: Apache-2.0
"""Results of compare.py as rows of a CSV file, one file per day and processor in docs/measurements.

One row is one engine on one model, with one batch and one number of threads. Figures that are not known
stay empty. Needs nothing but Python.
"""

import csv
import io
import math
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "measurements"

# run_ms, load_ms: medians of `runs` runs and of `loads` loads in fresh processes; a load is the time from
# the model file to the first result. memory_mib: what the process grows by at its peak until then. The
# ratios are to the better of the other engines, each figure to its own, in rows of this SDK alone.
COLUMNS = (
    "date",
    "processor",
    "model",
    "kind",
    "batch",
    "threads",
    "engine",
    "version",
    "run_ms",
    "runs",
    "load_ms",
    "loads",
    "memory_mib",
    "ratio",
    "load_ratio",
    "memory_ratio",
    "command",
)
# Rows of one file that agree in these are one measurement: the later replaces the earlier.
_KEY = ("model", "batch", "threads", "engine")

# This SDK's engine in rows and reports.
OURS = "onnxifi"


def name_file(date, processor):
    """Returns the name of the file for the results of a day on a processor."""
    words = re.sub(r"\(r\)|\(tm\)|@.*", " ", processor.lower())
    return f"{date}-{'-'.join(re.findall(r'[a-z0-9]+', words))}.csv"


def make_rows(report, date, command):
    """Returns the rows of a report of compare.py."""

    def show(value):
        return "" if value is None else f"{value:.5g}"

    rows = []
    for result in report["results"]:
        for engine, figures in result["engines"].items():
            if "fault" in figures:
                continue
            row = dict.fromkeys(COLUMNS, "")
            row.update(
                date=date,
                processor=report["machine"]["processor"],
                model=result["model"],
                kind=result["kind"],
                batch=str(report["settings"]["batch"]),
                threads=str(result["threads"]),
                engine=engine,
                version=report["versions"].get(engine, ""),
                run_ms=show(figures["median_ms"]),
                runs=str(figures["runs"]),
                load_ms=show(figures["first_result_ms"]),
                loads=str(figures["loads"]),
                memory_mib=show(figures["peak_mib"]),
                command=command,
            )
            if engine == OURS:
                for key in ("ratio", "load_ratio", "memory_ratio"):
                    row[key] = show(result[key])
            rows.append(row)
    return rows


def read(path):
    """Returns the rows of a file. ValueError where its columns are others."""
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{path} has the columns {reader.fieldnames}; they are {COLUMNS}.")
        return list(reader)


def merge(rows, newer):
    """Returns `rows` with `newer` put in the place of those that they replace, or at the end."""
    merged = {tuple(row[key] for key in _KEY): row for row in rows}
    merged.update({tuple(row[key] for key in _KEY): row for row in newer})
    return list(merged.values())


def format_rows(rows):
    """Returns the text of a file with these rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def add_to(path, rows):
    """Writes `rows` to the file, beside those that it has of other models, batches and threads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(format_rows(merge(read(path) if path.exists() else [], rows)))


def find_newest(folder=FOLDER):
    """Returns the file of the latest day, the last by name of several; None where there is none."""
    return max(folder.glob("????-??-??-*.csv"), default=None, key=lambda path: path.name)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan

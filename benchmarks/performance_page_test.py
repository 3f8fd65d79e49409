# SPDX-License-Identifier: Apache-2.0
"""Tests of measurements.py, performance_page.py and chart.py: rows, table, page, picture."""

import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

import chart
import measurements
import performance_page


def _row(model, engine="onnxifi", run_ms="", kind="convolution", batch=1, threads=2, **more):
    row = dict.fromkeys(measurements.COLUMNS, "")
    row.update(model=model, engine=engine, kind=kind, batch=str(batch), threads=str(threads))
    row.update(run_ms=run_ms, date="2026-01-02", processor="Fast <1>", **more)
    return row


def _report():
    figures = {"median_ms": 1.23456789, "runs": 700, "first_result_ms": 20, "peak_mib": 3, "loads": 7}
    return {
        "machine": {"processor": "Fast (R) CPU @ 3 GHz"},
        "settings": {"batch": 8},
        "versions": {"onnxifi": "abc", "openvino": "9.1"},
        "results": [
            {
                "model": "net",
                "kind": "weights",
                "threads": 2,
                "ratio": 0.61234567,
                "load_ratio": 0.5,
                "memory_ratio": None,
                "engines": {
                    "onnxifi": figures,
                    "openvino": {**figures, "median_ms": 2},
                    "onnxruntime": {"fault": "no"},
                },
            }
        ],
    }


class Measurements(unittest.TestCase):
    def test_rows_have_what_was_measured_and_nothing_else(self):
        ours, peer = measurements.make_rows(_report(), "2026-01-02", "compare.py --batch 8")
        self.assertEqual(set(ours), set(measurements.COLUMNS))
        self.assertEqual((ours["run_ms"], ours["runs"], ours["load_ms"]), ("1.2346", "700", "20"))
        self.assertEqual((ours["ratio"], ours["memory_ratio"]), ("0.61235", ""))
        self.assertEqual((peer["engine"], peer["version"], peer["ratio"]), ("openvino", "9.1", ""))
        self.assertEqual((peer["command"], peer["batch"]), ("compare.py --batch 8", "8"))

    def test_a_file_keeps_other_rows_and_replaces_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "new" / "2026-01-02-fast.csv"
            measurements.add_to(path, [_row("a", run_ms="1"), _row("b", run_ms="2")])
            measurements.add_to(path, [_row("a", run_ms="3"), _row("a", run_ms="4", batch=8)])
            rows = measurements.read(path)
            self.assertEqual([row["run_ms"] for row in rows], ["3", "2", "4"])
            path.write_text("model,run\na,1\n")
            with self.assertRaisesRegex(ValueError, "has the columns"):
                measurements.read(path)

    def test_files_are_named_by_day_and_processor_and_the_newest_counts(self):
        name = measurements.name_file("2026-01-02", "Intel(R) Xeon(R) CPU @ 2.10GHz")
        self.assertEqual(name, "2026-01-02-intel-xeon-cpu.csv")
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            self.assertIsNone(measurements.find_newest(root))
            for name in ("2026-01-02-b.csv", "2025-12-31-z.csv", "README.md"):
                (root / name).touch()
            self.assertEqual(measurements.find_newest(root).name, "2026-01-02-b.csv")


class Page(unittest.TestCase):
    _ROWS = [
        _row("net", run_ms="1.23456", ratio="0.5", load_ratio="0.25"),
        _row("net", "onnxruntime", run_ms="2.46912", version="1.2"),
        _row("net", "openvino", run_ms="3"),
        _row("light_net", run_ms="1", ratio="9"),
        _row("tiny", run_ms="1", kind="small", ratio="9"),
        _row("second", ratio="1", batch=8),
        _row("third", ratio="2", batch=8),
        _row("fourth", ratio="4", batch=8),
    ]

    def test_table_has_models_of_the_smallest_batch_and_means_of_three_and_more(self):
        lines = performance_page.make_table(self._ROWS)
        self.assertEqual(
            lines,
            [
                "| model | kind | this SDK, ms | ONNX Runtime 1.2, ms | OpenVINO, ms | ratio | load | memory |",
                "|---|---|---|---|---|---|---|---|",
                "| net | convolution | 1.235 | 2.469 | 3 | 0.50 | 0.25 | - |",
                "| mean of 3, batch 8, 2 threads | convolution | | | | 2.00 | - | - |",
            ],
        )

    def test_table_goes_between_the_marks_only(self):
        page = f"a\n{performance_page._BEGIN}old\n{performance_page._END}b\n"
        made = performance_page.put_table(page, ["new"])
        self.assertEqual(made, page.replace("old", "new"))
        with self.assertRaisesRegex(ValueError, "has no lines"):
            performance_page.put_table("a\n", ["new"])

    def test_picture_is_well_formed_and_has_a_bar_for_each_figure(self):
        picture = chart.make(self._ROWS)
        root = xml.etree.ElementTree.fromstring(picture)
        texts = [node.text for node in root.iter() if node.tag.endswith("text")]
        self.assertIn("Fast <1>, 2 threads, float32, batch 1, 2026-01-02", texts)
        self.assertIn("2.47 ms", texts)
        # No peer has run it: there is nothing to compare it with.
        self.assertNotIn("light_net", texts)
        self.assertEqual(picture, chart.make(self._ROWS))

    def test_picture_cuts_long_bars_and_says_so(self):
        rows = [_row("net", run_ms="50"), _row("net", "openvino", run_ms="10")]
        self.assertIn("50 ms (5.0)", chart.make(rows))


if __name__ == "__main__":
    unittest.main()

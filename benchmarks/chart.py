# SPDX-License-Identifier: Apache-2.0
"""The bar chart of a comparison: time per run of each engine over that of the better peer."""

import matplotlib

matplotlib.use("Agg")
# The same figures give the same bytes.
matplotlib.rcParams["svg.hashsalt"] = "onnxifi"

from matplotlib import pyplot  # noqa: E402 (after the choice of backend)

_COLORS = {"onnxifi": "#d1495b", "onnxruntime": "#30638e", "openvino": "#8fb8de"}
# Bars longer than this end there; the number beside them tells.
_LONGEST = 3.0


def write(path, report):
    """Draws the largest thread count of `report` (as compare.py writes it) as SVG or PNG."""
    threads = max(result["threads"] for result in report["results"])
    results = [
        result
        for result in report["results"]
        if result["threads"] == threads and result["ratio"] is not None
    ]
    engines = report["engines"]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.5 * len(results)), layout="constrained")
    height = 0.8 / len(engines)
    for number, engine in enumerate(engines):
        for row, result in enumerate(results):
            figures = result["engines"].get(engine, {})
            if "median_ms" not in figures:
                continue
            value = figures["median_ms"] / result["best_peer_ms"]
            y = row + (number - (len(engines) - 1) / 2) * height
            axes.barh(y, min(value, _LONGEST), height, color=_COLORS[engine])
            axes.text(
                min(value, _LONGEST) + 0.02,
                y,
                f"{figures['median_ms']:.3g} ms" + (f" ({value:.1f})" if value > _LONGEST else ""),
                va="center",
                fontsize=7,
            )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(results)), [result["model"] for result in results])
    axes.invert_yaxis()
    axes.set_xlim(0, _LONGEST + 0.3)
    axes.set_xlabel("time of a run over that of the better peer (median; shorter is better)")
    versions = report["versions"]
    handles = [
        pyplot.Rectangle(
            (0, 0), 1, 1, color=_COLORS[engine], label=f"{engine} {versions.get(engine, '')}"
        )
        for engine in engines
    ]
    axes.legend(handles=handles, loc="lower right", fontsize=8)
    axes.set_title(
        f"{report['machine']['processor']}, {threads} thread{'s' * (threads > 1)}, "
        f"float32, batch {report['settings']['batch']}",
        fontsize=10,
    )
    metadata = {"Date": None} if str(path).endswith(".svg") else {}
    figure.savefig(path, metadata=metadata, dpi=150)
    pyplot.close(figure)

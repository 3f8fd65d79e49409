# SPDX-License-Identifier: Apache-2.0
"""The bar chart of a comparison: time per run of each engine over that of the better peer, as SVG.

The same rows give the same bytes, so that a test can compare the picture with its figures. Needs nothing but
Python.
"""

from xml.sax.saxutils import escape

import measurements

_COLORS = {
    "onnxifi": "#d1495b",
    "onnxruntime": "#30638e",
    "openvino": "#8fb8de",
    "before": "#30638e",
}
# Bars longer than this end there; the number beside them tells.
_LONGEST = 3.0

_LEFT = 190  # where bars begin
_UNIT = 170  # pixels of a ratio of 1
_BAR = 9  # height of a bar
_TOP = 48
_WIDTH = _LEFT + int(_LONGEST * _UNIT) + 130


def choose_rows(rows):
    """Returns the rows of the smallest batch at the most threads that this SDK and a peer have run."""
    compared = {
        (int(row["batch"]), int(row["threads"]))
        for row in rows
        if row["engine"] != measurements.OURS and row["run_ms"]
    }
    if not compared:
        return []
    batch = min(batch for batch, _ in compared)
    threads = max(threads for other, threads in compared if other == batch)
    return [
        row
        for row in rows
        if row["run_ms"] and (int(row["batch"]), int(row["threads"])) == (batch, threads)
    ]


def make(rows):
    """Returns the chart of `rows`, as measurements.read gives them; of those that choose_rows chooses."""
    chosen = choose_rows(rows)
    engines = list(dict.fromkeys(row["engine"] for row in chosen))
    times = {}
    for row in chosen:
        times.setdefault(row["model"], {})[row["engine"]] = float(row["run_ms"])
    times = {
        model: of for model, of in times.items() if any(name != measurements.OURS for name in of)
    }
    step = _BAR * len(engines) + 6
    height = _TOP + step * len(times) + 34
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
        f' height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]

    def write(x, y, text, **attributes):
        named = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
        lines.append(f'<text x="{x:g}" y="{y:g}"{named}>{escape(text)}</text>')

    if chosen:
        first = chosen[0]
        plural = "s" * (int(first["threads"]) > 1)
        write(
            _LEFT,
            16,
            f"{first['processor']}, {first['threads']} thread{plural}, float32, batch {first['batch']},"
            f" {first['date']}",
            font_size=12,
        )
    x = _LEFT
    for engine in engines:
        version = next(row["version"] for row in chosen if row["engine"] == engine)
        lines.append(f'<rect x="{x}" y="26" width="10" height="10" fill="{_COLORS[engine]}"/>')
        write(x + 14, 35, f"{engine} {version}".strip())
        x += 150
    for number, (model, of) in enumerate(times.items()):
        top = _TOP + number * step
        best = min(value for name, value in of.items() if name != measurements.OURS)
        write(_LEFT - 6, top + step / 2, model, text_anchor="end")
        for position, engine in enumerate(name for name in engines if name in of):
            ratio = of[engine] / best
            y = top + position * _BAR
            width = round(min(ratio, _LONGEST) * _UNIT, 1)
            lines.append(
                f'<rect x="{_LEFT}" y="{y}" width="{width:g}" height="{_BAR - 1}"'
                f' fill="{_COLORS[engine]}"/>'
            )
            over = f" ({ratio:.1f})" if ratio > _LONGEST else ""
            write(_LEFT + width + 3, y + _BAR - 2, f"{of[engine]:.3g} ms{over}", font_size=8)
    bottom = _TOP + step * len(times)
    line = _LEFT + _UNIT
    lines.append(f'<path d="M{line} {_TOP - 4}V{bottom}" stroke="black" stroke-width="0.8"/>')
    for ratio in (0, 1, 2, 3):
        write(_LEFT + ratio * _UNIT, bottom + 13, str(ratio), text_anchor="middle")
    write(
        _LEFT,
        bottom + 28,
        "time of a run over that of the better peer (median; shorter is better)",
    )
    lines.append("</svg>")
    return "\n".join(lines) + "\n"

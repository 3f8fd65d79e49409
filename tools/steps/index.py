# SPDX-License-Identifier: Apache-2.0
"""Index: addresses that depend on data, one element after the other where the order counts."""

import numpy as np

from steps.number_format import PACKED_BITS, is_float, quantise, wrap_packed
from steps.value import Value


def run_index(step):
    kind = step.body["kind"]
    at = step.coordinates(step.domain)
    source = step.load(0, at, step.domain).v
    if kind == 0:
        return scatter(step, at, source)
    if kind == 1:
        return top_k(step, source)
    if kind == 4:
        return [(0, at, Value(suppress(step, at, source)))]
    found = np.argwhere(source != 0) if step.domain else np.zeros((int(source != 0), 0))
    if kind == 2:
        return [(0, [], Value(np.array(len(found), np.int64)))]
    columns = found.T.astype(np.int64)
    return [(0, step.coordinates(columns.shape), Value(columns))]


def scatter(step, at, source):
    target = tuple(step.body["target"])
    view = step.record["writes"][0]
    kind = view["type"]
    places = step.linear(view["offset"], view["strides"], step.coordinates(target), target)
    values = step.before[view["buffer"]][places]
    coordinates = [step.load(k + 1, at, step.domain).v.ravel() for k in range(len(target))]
    combine = ["none", "add", "mul", "min", "max"][step.body["combine"]]
    for lane, update in enumerate(source.ravel()):
        slot = tuple(int(c[lane]) for c in coordinates)
        if any(c < 0 or c >= n for c, n in zip(slot, target)):
            continue
        if combine != "none":
            with np.errstate(all="ignore"):
                old = values[slot]
                if is_float(kind):
                    if combine in ("min", "max"):
                        new = np.nan if old != old or update != update else {"min": min, "max": max}[combine](old, update)
                    else:
                        new = old + update if combine == "add" else old * update
                    if kind == 1:
                        update = np.float64(np.float32(new))
                    else:
                        update = new if kind == 11 else quantise(kind, np.array([new], np.float64))[0]
                else:
                    wide = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
                    update = wide[combine](np.array([old]), np.array([update]))
                    update = (wrap_packed(kind, update) if kind in PACKED_BITS else update)[0]
        values[slot] = update
    return [(0, step.coordinates(target), Value(values))]


def suppress(step, at, candidates):
    length = step.domain[-1]
    kept = np.zeros(step.domain, bool).reshape(-1, max(length, 1))
    if not candidates.size:
        return kept.reshape(step.domain)
    rows = [step.load(k, at, step.domain).v.reshape(-1, length) for k in range(1, 7)]
    boxes = np.stack(rows[:4], axis=-1).astype(np.float32)  # y1, x1, y2, x2; rounded at each operation
    area = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    for row, candidate in enumerate(candidates.reshape(-1, length)):
        threshold, limit = np.float32(rows[4][row, 0]), int(rows[5][row, 0])
        chosen = []
        for k in range(length):
            if not candidate[k] or len(chosen) >= limit:
                continue
            mine, theirs = boxes[row, k], boxes[row, chosen]
            height = np.minimum(mine[2], theirs[:, 2]) - np.maximum(mine[0], theirs[:, 0])
            width = np.minimum(mine[3], theirs[:, 3]) - np.maximum(mine[1], theirs[:, 1])
            meets = (height > 0) & (width > 0)
            shared = height * width
            joined = area[row, k] + area[row, chosen] - shared
            ratio = np.divide(shared, joined, out=np.zeros_like(shared), where=joined > 0)
            if not (meets & (joined > 0) & (ratio > threshold)).any():
                chosen.append(k)
        kept[row, chosen] = True
    return kept.reshape(step.domain)


def top_k(step, source):
    k = step.body["k"]
    rows = source.reshape(-1, step.domain[-1]) if step.domain[-1] else source.reshape(0, 0)
    shape = step.domain[:-1] + (k,)
    picked = np.zeros(shape, np.int64).reshape(-1, max(k, 1)) if k else np.zeros((0, 1), np.int64)
    for number, row in enumerate(rows):
        if not k:
            break
        def key(position):
            value = row[position]
            value = float("inf") if value != value else (value.item() if hasattr(value, "item") else value)
            rank = (1 if row[position] != row[position] else 0, value)
            return rank
        order = sorted(range(len(row)), key=key, reverse=step.body["largest"])
        # A reversed sort keeps equal items in their order, as Python documents.
        picked[number] = order[:k]
    at = step.coordinates(shape)
    positions = picked.reshape(shape) if k else np.zeros(shape, np.int64)
    values = np.take_along_axis(source, positions, axis=-1) if positions.size else np.zeros(shape, source.dtype)
    return [(0, at, Value(values)), (1, at, Value(positions))]

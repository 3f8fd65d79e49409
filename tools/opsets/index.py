# SPDX-License-Identifier: Apache-2.0
"""Operators that read and write at positions, or choose elements."""

import numpy

from opsets.case import covers, is_float, narrow, widen


@covers("Gather")
def make_gather(request):
    for name in request.types():
        data = request.values(name, (5, 37, 3))
        low = -37 if request.version >= 11 else 0
        for kind in ("int64", "int32"):
            indices = request.random.integers(low, 37, (4, 7)).astype(kind)
            outputs = [numpy.take(data, indices, axis=1)]
            yield request.case(f"{name}_{kind}", [data, indices], outputs, axis=1)


@covers("GatherElements")
def make_gather_elements(request):
    for name in request.types():
        data = request.values(name, (5, 37, 3))
        indices = request.random.integers(-37, 37, (4, 11, 3))
        outputs = [numpy.take_along_axis(data[:4], indices, axis=1)]
        yield request.case(name, [data, indices], outputs, axis=1)
        indices = request.random.integers(-5, 5, (9, 37, 3)).astype(numpy.int32)
        outputs = [numpy.take_along_axis(data, indices, axis=0)]
        yield request.case(f"{name}_int32", [data, indices], outputs)


@covers("GatherND")
def make_gather_nd(request):
    for name in request.types():
        data = request.values(name, (5, 37, 3))
        indices = numpy.stack(
            [request.random.integers(-extent, extent, (4, 7)) for extent in (5, 37)], axis=-1
        )
        outputs = [data[indices[..., 0], indices[..., 1]]]
        yield request.case(name, [data, indices], outputs)
        if request.version >= 12:
            indices = request.random.integers(0, 37, (5, 11, 1))
            outputs = [numpy.take_along_axis(data, numpy.repeat(indices, 3, 2), axis=1)]
            yield request.case(f"{name}_batch", [data, indices], outputs, batch_dims=1)


_REDUCTIONS = {"add": numpy.add, "mul": numpy.multiply}
_EXTREMES = {"max": numpy.maximum, "min": numpy.minimum}


def _reductions(request, name):
    """What may be done with an update, besides storing it."""
    if name in ("string", "bool") or "complex" in name or request.version < 16:
        return {}
    return _REDUCTIONS | (_EXTREMES if request.version >= 18 else {})


@covers("Scatter", "ScatterElements")
def make_scatter_elements(request):
    for name in request.types():
        data = request.values(name, (5, 37, 3))
        # Each position once: the result does not depend on the order of writes.
        order = request.random.permuted(numpy.tile(numpy.arange(37), (15, 1)), axis=1)
        indices = order[:, :11].reshape(5, 3, 11).transpose(0, 2, 1).copy()
        indices -= 37 * request.random.integers(0, 2, indices.shape) * (request.version >= 11)
        updates = request.values(name, indices.shape)
        y = data.copy()
        numpy.put_along_axis(y, indices, updates, axis=1)
        yield request.case(name, [data, indices, updates], [y], axis=1)
        for reduction, function in _reductions(request, name).items():
            repeated = request.random.integers(-37, 37, (4, 11, 3))
            updates = request.values(name, repeated.shape)
            y = widen(data)
            for place in numpy.ndindex(repeated.shape):
                target = (place[0], repeated[place], place[2])
                y[target] = function(y[target], widen(updates)[place])
            inputs = [data, repeated, updates]
            outputs = [narrow(y, name)]
            yield request.case(f"{name}_{reduction}", inputs, outputs, axis=1, reduction=reduction)


@covers("ScatterND")
def make_scatter_nd(request):
    for name in request.types():
        data = request.values(name, (5, 37, 3))
        flat = request.random.permutation(5 * 37)[:23]
        indices = numpy.stack([flat // 37, flat % 37], axis=-1)
        updates = request.values(name, (23, 3))
        y = data.copy()
        y[indices[:, 0], indices[:, 1]] = updates
        yield request.case(name, [data, indices, updates], [y])
        for reduction, function in _reductions(request, name).items():
            indices = request.random.integers(0, 3, (7, 2))
            updates = request.values(name, (7, 3))
            y = widen(data)
            for position, update in zip(indices, widen(updates)):
                y[tuple(position)] = function(y[tuple(position)], update)
            inputs = [data, indices, updates]
            outputs = [narrow(y, name)]
            yield request.case(f"{name}_{reduction}", inputs, outputs, reduction=reduction)


@covers("Compress")
def make_compress(request):
    for name in request.types():
        x = request.values(name, (5, 37))
        condition = request.values("bool", (30,))
        yield request.case(name, [x, condition], [x[:, :30][:, condition]], axis=1)
        yield request.case(f"{name}_flat", [x, condition], [x.reshape(-1)[:30][condition]])
        if request.version >= 11:
            outputs = [x[:, :30][:, condition]]
            yield request.case(f"{name}_negative", [x, condition], outputs, axis=-1)


@covers("NonZero")
def make_non_zero(request):
    for name in request.types():
        x = request.values(name, (5, 37), -1, 1)
        is_kept = request.random.integers(0, 6, x.shape) == 0
        if name == "float":  # Most of them zero.
            x *= is_kept
        if name == "string":
            x[~is_kept] = ""
        found = x != "" if name == "string" else widen(x)
        yield request.case(name, [x], [numpy.array(numpy.nonzero(found), numpy.int64)])


@covers("ArgMax", "ArgMin")
def make_arg_extreme(request):
    function = numpy.argmax if request.op_type == "ArgMax" else numpy.argmin
    for name in request.types():
        x = request.values(name, (5, 37, 3))
        wide = widen(x)
        outputs = [function(wide, axis=1)[:, None]]
        yield request.case(name, [x], outputs, axis=1)
        yield request.case(f"{name}_flat", [x], [function(wide, axis=0)], keepdims=0)
        if request.version >= 11:
            outputs = [function(wide, axis=-1)[..., None]]
            yield request.case(f"{name}_negative", [x], outputs, axis=-1)
        if request.version >= 12:
            last = 36 - function(wide[:, ::-1], axis=1)[:, None]
            yield request.case(f"{name}_last", [x], [last], axis=1, select_last_index=1)


@covers("TopK")
def make_top_k(request):
    for name in request.types():
        # All different along the axis, so that there is one answer.
        rows = request.random.permuted(numpy.tile(numpy.arange(37), (10, 1)), axis=1)
        x = narrow(rows.reshape(2, 5, 37).transpose(0, 2, 1) - 9 * is_float(name), name)
        options = [("", 1, {})]
        if request.version >= 11:
            options += [("_smallest", -1, {"largest": 0}), ("_unsorted", 1, {"sorted": 0})]
        for suffix, sign, attributes in options:
            order = numpy.argsort(-sign * widen(x), axis=1)[:, :8]
            outputs = [numpy.take_along_axis(x, order, axis=1), order]
            if suffix == "_unsorted":  # In any order: all of them are asked for.
                order = numpy.argsort(-widen(x), axis=1)[:, :1]
                outputs = [numpy.take_along_axis(x, order, axis=1), order]
            count = outputs[1].shape[1]
            if request.version == 1:
                yield request.case(name, [x], outputs, axis=1, k=count)
                continue
            inputs = [x, numpy.array([count])]
            yield request.case(f"{name}{suffix}", inputs, outputs, axis=1, **attributes)
            suffix = f"{name}{suffix}_constant"
            yield request.case(suffix, inputs, outputs, constants=[1], axis=1, **attributes)


@covers("Unique")
def make_unique(request):
    for name in request.types(but=[each for each in request.types() if "complex" in each]):
        x = request.values(name, (5, 7))
        keys = widen(x) if name != "string" else x.astype(numpy.str_)
        found = numpy.unique(
            keys, return_index=True, return_inverse=True, return_counts=True, axis=None
        )
        order = found[1]
        outputs = [
            x.reshape(-1)[order],
            *(each.reshape(-1).astype(numpy.int64) for each in found[1:]),
        ]
        yield request.case(name, [x], outputs)
        # In order of appearance.
        rank = numpy.argsort(order)
        back = numpy.argsort(rank)
        first = [
            x.reshape(-1)[order[rank]],
            order[rank],
            back[found[2].reshape(-1)],
            found[3][rank],
        ]
        first = [first[0], *(each.astype(numpy.int64) for each in first[1:])]
        yield request.case(f"{name}_unsorted", [x], first, sorted=0)
        if name == "string":
            continue
        x = request.values(name, (23, 2), -1, 1)
        keys, places, inverse, counts = numpy.unique(
            widen(x), return_index=True, return_inverse=True, return_counts=True, axis=0
        )
        outputs = [narrow(keys, name), places, inverse.reshape(-1), counts]
        yield request.case(f"{name}_axis", [x], outputs, axis=0)


@covers("CumSum")
def make_cum_sum(request):
    for name in request.types("T"):
        x = request.values(name, (5, 37, 3), -1, 1)
        axis = numpy.array(1, numpy.int32)
        wide = widen(x)
        outputs = [narrow(numpy.cumsum(wide, 1), name)]
        yield request.case(name, [x, axis], outputs, constants=[1])
        back = numpy.cumsum(wide[:, ::-1], 1)[:, ::-1]
        outputs = [narrow(back - wide, name)]
        inputs = [x, numpy.array(-2, numpy.int64)]
        yield request.case(f"{name}_back", inputs, outputs, constants=[1], exclusive=1, reverse=1)


def _overlap(a, b):
    """Intersection over union of two boxes y1, x1, y2, x2."""
    height = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    width = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    shared = height * width
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


@covers("NonMaxSuppression")
def make_non_max_suppression(request):
    corners = request.random.integers(0, 40, (2, 29, 2)) / 4
    extents = request.random.integers(4, 20, (2, 29, 2)) / 4
    boxes = numpy.concatenate([corners, corners + extents], axis=2).astype(numpy.float32)
    scores = request.random.permutation(2 * 3 * 29).reshape(2, 3, 29).astype(numpy.float32) / 174
    chosen = []
    for batch, kind in numpy.ndindex(2, 3):
        kept = []
        for box in numpy.argsort(-scores[batch, kind]):
            if scores[batch, kind, box] <= 0.25 or len(kept) == 7:
                continue
            if all(_overlap(boxes[batch, box], boxes[batch, other]) <= 0.375 for other in kept):
                kept.append(box)
        chosen += [[batch, kind, box] for box in kept]
    limits = [numpy.int64([7]), numpy.float32([0.375]), numpy.float32([0.25])]
    outputs = [numpy.array(chosen, numpy.int64)]
    yield request.case("corners", [boxes, scores, *limits], outputs)
    centers = numpy.concatenate(
        [
            (boxes[..., 1::2].sum(2, keepdims=True) / 2),
            (boxes[..., ::2].sum(2, keepdims=True) / 2),
            (boxes[..., 3:] - boxes[..., 1:2]),
            (boxes[..., 2:3] - boxes[..., :1]),
        ],
        axis=2,
    ).astype(numpy.float32)
    inputs = [centers, scores, *limits]
    yield request.case("centers", inputs, outputs, constants=[2], center_point_box=1)

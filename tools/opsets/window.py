# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling, by plain loops over windows."""

import itertools
import math

import numpy

from opsets.case import covers, narrow, widen


def _resolve(extents, kernel, strides, dilations, pads, auto_pad, ceil_mode):
    """Output extents, and what lies before the input on each axis."""
    outputs, befores = [], []
    for axis, extent in enumerate(extents):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        before, after = pads[axis], pads[axis + len(extents)]
        stride = strides[axis]
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-extent // stride)
            total = max(0, (count - 1) * stride + span - extent)
            before = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
        elif auto_pad == "VALID":
            before = 0
            count = -(-(extent - span + 1) // stride)
        else:
            steps = (extent + before + after - span) / stride
            count = (math.ceil(steps) if ceil_mode else math.floor(steps)) + 1
            # A window that starts in the padding at the end is none.
            if ceil_mode and (count - 1) * stride >= extent + before:
                count -= 1
        outputs.append(count)
        befores.append(before)
    return outputs, befores


def _windows(x, kernel, strides, dilations, pads, auto_pad="NOTSET", ceil_mode=0):
    """By output position: input elements [N, C, taps in range], their flat positions, the number of
    taps that lie in the input or its padding."""
    extents = x.shape[2:]
    rank = len(extents)
    outputs, befores = _resolve(extents, kernel, strides, dilations, pads, auto_pad, ceil_mode)
    for place in itertools.product(*map(range, outputs)):
        taps, padded = [], 0
        for offset in itertools.product(*map(range, kernel)):
            position = [
                place[k] * strides[k] - befores[k] + offset[k] * dilations[k] for k in range(rank)
            ]
            if all(p < e + pads[rank + k] for k, (p, e) in enumerate(zip(position, extents))):
                padded += 1
            if all(0 <= p < e for p, e in zip(position, extents)):
                taps.append((numpy.ravel_multi_index(position, extents), offset))
        yield outputs, place, taps, padded


_GEOMETRIES = (
    ("plain", 11, {"kernel_shape": [3]}),
    ("pads", (9, 7), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
    ("same_upper", (9, 7), {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ("same_lower", (9, 7), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    ("valid", (9, 7), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "VALID"}),
    ("volume", (5, 4, 6), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2]}),
    ("ceil", (10, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ("dilations", (9, 11), {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [1, 2, 0, 1]}),
)

# The version that brought an attribute.
_SINCE = {
    "AveragePool": {"ceil_mode": 10, "dilations": 19},
    "LpPool": {"ceil_mode": 18, "dilations": 18},
    "MaxPool": {"ceil_mode": 10, "dilations": 10},
}


def _geometries(request):
    for suffix, extents, attributes in _GEOMETRIES:
        since = _SINCE[request.op_type]
        if any(request.version < since.get(key, 1) for key in attributes):
            continue
        extents = (extents,) if isinstance(extents, int) else extents
        rank = len(extents)
        geometry = {
            "kernel": attributes["kernel_shape"],
            "strides": attributes.get("strides", [1] * rank),
            "dilations": attributes.get("dilations", [1] * rank),
            "pads": attributes.get("pads", [0] * 2 * rank),
            "auto_pad": attributes.get("auto_pad", "NOTSET"),
            "ceil_mode": attributes.get("ceil_mode", 0),
        }
        yield suffix, extents, geometry, attributes


def _pool(x, geometry, function):
    """`function(elements [N, C, taps], number of taps and padding)` at each position."""
    flat = x.reshape(*x.shape[:2], -1)
    y = None
    for outputs, place, taps, padded in _windows(x, **geometry):
        y = numpy.zeros((*x.shape[:2], *outputs)) if y is None else y
        y[(slice(None), slice(None), *place)] = function(
            flat[:, :, [tap[0] for tap in taps]], padded
        )
    return y


@covers("AveragePool")
def make_average_pool(request):
    for suffix, extents, geometry, attributes in _geometries(request):
        for name in request.types() if suffix == "pads" else ("float",):
            x = request.values(name, (2, 3, *extents))
            y = _pool(widen(x), geometry, lambda taps, _: taps.mean(-1))
            yield request.case(f"{name}_{suffix}", [x], [narrow(y, name)], **attributes)
            if request.version >= 7 and "auto_pad" not in attributes:
                y = _pool(widen(x), geometry, lambda taps, padded: taps.sum(-1) / padded)
                outputs = [narrow(y, name)]
                suffix_of_case = f"{name}_{suffix}_with_pads"
                yield request.case(suffix_of_case, [x], outputs, count_include_pad=1, **attributes)


@covers("LpPool")
def make_lp_pool(request):
    for suffix, extents, geometry, attributes in _geometries(request):
        for name in request.types() if suffix == "pads" else ("float",):
            x = request.values(name, (2, 3, *extents))
            for p in (1, 2, 3):
                y = _pool(
                    widen(x), geometry, lambda taps, _: (numpy.abs(taps) ** p).sum(-1) ** (1 / p)
                )
                power = float(p) if request.version == 1 else p
                outputs = [narrow(y, name)]
                yield request.case(f"{name}_{suffix}_{p}", [x], outputs, p=power, **attributes)


@covers("MaxPool")
def make_max_pool(request):
    for suffix, extents, geometry, attributes in _geometries(request):
        for name in request.types() if suffix == "pads" else ("float",):
            # All different, so that the index of the largest is one.
            count = 6 * math.prod(extents)
            numbers = request.random.permutation(count).reshape(2, 3, *extents)
            x = narrow(numbers - (0 if "uint" in name or "bfloat" in name else count // 2), name)
            x = (
                x
                if count <= 256 or name not in ("int8", "uint8")
                else request.values(name, x.shape)
            )
            y = narrow(_pool(widen(x), geometry, lambda taps, _: taps.max(-1)), name)
            yield request.case(f"{name}_{suffix}", [x], [y], **attributes)
            if request.version < 8 or name != "float":
                continue
            for order in (0, 1):
                places = _max_positions(widen(x), geometry, order)
                attributes_of_case = attributes | ({"storage_order": 1} if order else {})
                suffix_of_case = f"{name}_{suffix}_indices_{order}"
                yield request.case(suffix_of_case, [x], [y, places], **attributes_of_case)


def _max_positions(x, geometry, order):
    """Flat positions of the largest elements in the whole tensor; columns first if `order` is 1."""
    flat = x.reshape(*x.shape[:2], -1)
    extents = x.shape[2:]
    volume = math.prod(extents)
    y = None
    for outputs, place, taps, _ in _windows(x, **geometry):
        y = numpy.zeros((*x.shape[:2], *outputs), numpy.int64) if y is None else y
        places = numpy.array([tap[0] for tap in taps])
        best = places[flat[:, :, places].argmax(-1)]
        if order:
            best = numpy.ravel_multi_index(numpy.unravel_index(best, extents), extents, order="F")
        image = numpy.arange(x.shape[0] * x.shape[1]).reshape(x.shape[:2]) * volume
        y[(slice(None), slice(None), *place)] = best + image
    return y


_GLOBAL = {
    "GlobalAveragePool": lambda x: x.mean(-1),
    "GlobalMaxPool": lambda x: x.max(-1),
}


@covers(*_GLOBAL)
def make_global_pool(request):
    for name in request.types():
        for extents in ((37,), (5, 7), (3, 4, 5)):
            x = request.values(name, (2, 3, *extents))
            y = _GLOBAL[request.op_type](widen(x).reshape(2, 3, -1))
            outputs = [narrow(y.reshape(2, 3, *[1] * len(extents)), name)]
            yield request.case(f"{name}_{len(extents)}", [x], outputs)


@covers("GlobalLpPool")
def make_global_lp_pool(request):
    for name in request.types():
        for p in (1, 2, 3):
            x = request.values(name, (2, 3, 5, 7))
            y = (numpy.abs(widen(x)) ** p).sum((2, 3), keepdims=True) ** (1 / p)
            power = float(p) if request.version == 1 else p
            yield request.case(f"{name}_{p}", [x], [narrow(y, name)], p=power)


@covers("MaxUnpool")
def make_max_unpool(request):
    for name in request.types("T1"):
        x = request.values(name, (2, 3, 4, 5))
        base = numpy.arange(4)[:, None] * 2 * 15 + numpy.arange(5) * 3
        inside = request.random.integers(0, 2, x.shape) * 15 + request.random.integers(
            0, 3, x.shape
        )
        image = numpy.arange(6).reshape(2, 3, 1, 1) * 120
        indices = base + inside + image
        y = numpy.zeros(720, x.dtype)
        y[indices.reshape(-1)] = x.reshape(-1)
        outputs = [y.reshape(2, 3, 8, 15)]
        attributes = {"kernel_shape": [2, 3], "strides": [2, 3]}
        yield request.case(name, [x, indices], outputs, **attributes)
        # Indices are those of the output without a shape; a larger one is filled at its ends.
        inputs = [x, indices, numpy.array([2, 3, 9, 16])]
        outputs = [numpy.pad(outputs[0], ((0, 0), (0, 0), (0, 1), (0, 1)))]
        yield request.case(f"{name}_shape", inputs, outputs, constants=[2], **attributes)


def convolve(x, w, geometry, group):
    flat = x.reshape(*x.shape[:2], -1)
    maps, channels = w.shape[:2]
    y = None
    for outputs, place, taps, _ in _windows(x, **geometry):
        y = numpy.zeros((x.shape[0], maps, *outputs)) if y is None else y
        places = [tap[0] for tap in taps]
        offsets = [numpy.ravel_multi_index(tap[1], w.shape[2:]) for tap in taps]
        weights = w.reshape(maps, channels, -1)[:, :, offsets]
        for number in range(group):
            part = slice(number * maps // group, (number + 1) * maps // group)
            some = flat[:, number * channels : (number + 1) * channels][:, :, places]
            y[(slice(None), part, *place)] = numpy.einsum("nck,mck->nm", some, weights[part])
    return y


_CONVOLUTIONS = (
    ("line", (2, 5, 19), (7, 5, 3), {"pads": [1, 2]}),
    ("pads", (1, 6, 9, 8), (4, 3, 3, 2), {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1]}),
    ("depthwise", (1, 6, 9, 8), (6, 1, 3, 3), {"group": 6, "dilations": [2, 1]}),
    ("same_upper", (1, 3, 9, 8), (4, 3, 4, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    ("same_lower", (1, 3, 9, 8), (4, 3, 4, 2), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    ("volume", (1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"strides": [1, 2, 1]}),
)


@covers("Conv")
def make_conv(request):
    for suffix, shape, kernel, attributes in _CONVOLUTIONS:
        for name in request.types() if suffix == "pads" else ("float",):
            x, w = request.values(name, shape, -1, 1), request.values(name, kernel, -1, 1)
            bias = request.values(name, kernel[:1])
            rank = len(shape) - 2
            geometry = {
                "kernel": kernel[2:],
                "strides": attributes.get("strides", [1] * rank),
                "dilations": attributes.get("dilations", [1] * rank),
                "pads": attributes.get("pads", [0] * 2 * rank),
                "auto_pad": attributes.get("auto_pad", "NOTSET"),
            }
            y = convolve(widen(x), widen(w), geometry, attributes.get("group", 1))
            outputs = [narrow(y + widen(bias).reshape(-1, *[1] * rank), name)]
            yield request.case(f"{name}_{suffix}", [x, w, bias], outputs, **attributes)
            outputs = [narrow(y, name)]
            yield request.case(f"{name}_{suffix}_constant", [x, w], outputs, [1], **attributes)


def _transpose_convolve(x, w, strides, dilations, group):
    """All that the input reaches; without pads, the output is this."""
    batch, channels = x.shape[:2]
    maps = w.shape[1]
    rank = x.ndim - 2
    extents = [
        (x.shape[2 + k] - 1) * strides[k] + (w.shape[2 + k] - 1) * dilations[k] + 1
        for k in range(rank)
    ]
    y = numpy.zeros((batch, maps * group, *extents))
    part = channels // group
    for number, offset in itertools.product(
        range(group), itertools.product(*map(range, w.shape[2:]))
    ):
        some = x[:, number * part : (number + 1) * part]
        weights = w[(slice(number * part, (number + 1) * part), slice(None), *offset)]
        places = tuple(slice(offset[k] * dilations[k], None, strides[k]) for k in range(rank))
        target = y[(slice(None), slice(number * maps, (number + 1) * maps), *places)]
        product = numpy.einsum("nc...,cm->nm...", some, weights)
        target[(slice(None), slice(None), *(slice(0, e) for e in x.shape[2:]))] += product
    return y


_TRANSPOSED = (
    ("line", (2, 5, 9), (5, 4, 3), {"strides": [2]}),
    ("pads", (1, 6, 5, 4), (6, 2, 3, 3), {"group": 2, "strides": [2, 3], "pads": [1, 0, 1, 2]}),
    ("dilations", (1, 3, 5, 4), (3, 2, 3, 2), {"dilations": [2, 3]}),
    ("more", (1, 3, 5, 4), (3, 2, 3, 3), {"strides": [3, 2], "output_padding": [2, 1]}),
    ("shape", (1, 3, 5, 4), (3, 2, 3, 3), {"strides": [3, 2], "output_shape": [16, 9]}),
)


@covers("ConvTranspose")
def make_conv_transpose(request):
    for suffix, shape, kernel, attributes in _TRANSPOSED:
        for name in request.types() if suffix == "pads" else ("float",):
            x, w = request.values(name, shape, -1, 1), request.values(name, kernel, -1, 1)
            rank = len(shape) - 2
            group = attributes.get("group", 1)
            strides = attributes.get("strides", [1] * rank)
            dilations = attributes.get("dilations", [1] * rank)
            y = _transpose_convolve(widen(x), widen(w), strides, dilations, group)
            more = list(attributes.get("output_padding", [0] * rank))
            if (
                "output_shape" in attributes
            ):  # Larger than what the input reaches: added at the end.
                more = [a - b for a, b in zip(attributes["output_shape"], y.shape[2:])]
            y = numpy.pad(y, [(0, 0), (0, 0), *((0, each) for each in more)])
            pads = attributes.get("pads", [0] * 2 * rank)
            y = y[
                (
                    slice(None),
                    slice(None),
                    *(slice(pads[k], y.shape[2 + k] - pads[rank + k]) for k in range(rank)),
                )
            ]
            bias = request.values(name, (kernel[1] * group,))
            outputs = [narrow(y + widen(bias).reshape(-1, *[1] * rank), name)]
            if suffix == "shape":
                # How the missing row is split between both ends is told by auto_pad.
                continue
            yield request.case(f"{name}_{suffix}", [x, w, bias], outputs, **attributes)
            yield request.case(f"{name}_{suffix}_no_bias", [x, w], [narrow(y, name)], **attributes)


@covers("MaxRoiPool")
def make_max_roi_pool(request):
    # Fast R-CNN: ends belong to a region, whose parts are rounded outwards; empty parts give 0.
    scale, rows, columns = 0.5, 3, 4
    for name in request.types():
        x = request.values(name, (2, 3, 9, 13))
        corners = numpy.array(
            [
                [0, 2, 3, 17, 11],
                [1, 0, 0, 25, 17],
                [1, 7, 5, 8, 5],
                [0, 20, 10, 40, 30],
                [1, 5, 4, 2, 2],
            ]
        )
        y = numpy.zeros((len(corners), 3, rows, columns))
        for number, (batch, *roi) in enumerate(corners):
            left, top, right, bottom = (int(math.floor(each * scale + 0.5)) for each in roi)
            height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
            for row, column in itertools.product(range(rows), range(columns)):
                first = (math.floor(row * height / rows), math.floor(column * width / columns))
                last = (
                    math.ceil((row + 1) * height / rows),
                    math.ceil((column + 1) * width / columns),
                )
                ys = [min(max(each + top, 0), 9) for each in (first[0], last[0])]
                xs = [min(max(each + left, 0), 13) for each in (first[1], last[1])]
                part = widen(x)[batch, :, ys[0] : ys[1], xs[0] : xs[1]]
                if part.size:
                    y[number, :, row, column] = part.max((1, 2))
        rois = corners.astype(x.dtype)
        attributes = {"pooled_shape": [rows, columns], "spatial_scale": scale}
        yield request.case(name, [x, rois], [narrow(y, name)], **attributes)

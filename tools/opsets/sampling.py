# SPDX-License-Identifier: Apache-2.0
"""Operators that sample images, whose values ONNX's own reference evaluator computes."""

import numpy
import onnx.reference
from onnx import helper

from opsets.case import covers, is_float, narrow, value_info, widen


def evaluate(op_type, opset, inputs, **attributes):
    """The first output of a node in the reference evaluator, computed in float64."""
    names = [f"x{k}" if value is not None else "" for k, value in enumerate(inputs)]
    given = {name: value for name, value in zip(names, inputs) if name}
    node = helper.make_node(op_type, names, ["y"], **attributes)
    infos = [value_info(name, value) for name, value in given.items()]
    graph = helper.make_graph([node], op_type, infos, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return onnx.reference.ReferenceEvaluator(model).run(None, given)[0]


@covers("DeformConv")
def make_deform_conv(request):
    for name in request.types():
        x, w = request.values(name, (1, 4, 7, 6), -1, 1), request.values(name, (6, 2, 3, 2), -1, 1)
        offset = request.values(name, (1, 2 * 2 * 6, 3, 6), -1, 1)
        bias = request.values(name, (6,), -1, 1)
        mask = request.values(name, (1, 2 * 6, 3, 6), 0, 1)
        attributes = {"strides": [2, 1], "pads": [0, 1, 0, 0], "group": 2, "offset_group": 2}
        for suffix, inputs in (("offset", [x, w, offset]), ("mask", [x, w, offset, bias, mask])):
            y = evaluate("DeformConv", 19, [widen(each) for each in inputs], **attributes)
            yield request.case(f"{name}_{suffix}", inputs, [narrow(y, name)], **attributes)


@covers("GridSample")
def make_grid_sample(request):
    # Version 20 renamed two modes and added volumes.
    modes = {"linear": "bilinear", "cubic": "bicubic"} if request.version < 20 else {}
    for name in [each for each in request.types("T1") if is_float(each)]:
        x, grid = request.values(name, (2, 3, 5, 7)), request.values(
            name, (2, 4, 3, 2), -1.25, 1.25
        )
        for mode in ("nearest", "linear", "cubic"):
            for padding in ("zeros", "border", "reflection"):
                for aligned in (0, 1):
                    options = {"padding_mode": padding, "align_corners": aligned}
                    # Beyond the border the reference evaluator moves the position and not the pixels
                    # around it, as PyTorch and ONNX Runtime do.
                    is_split = (mode, padding) == ("cubic", "border")
                    at = (grid * grid.dtype.type(0.25)) if is_split else grid
                    y = evaluate("GridSample", 20, [widen(x), widen(at)], mode=mode, **options)
                    options["mode"] = modes.get(mode, mode)
                    suffix = f"{name}_{mode}_{padding}_{aligned}"
                    loose = {"rtol": 1e-6, "atol": 4e-6} if is_split and name == "double" else {}
                    yield request.case(suffix, [x, at], [narrow(y, name)], **loose, **options)
    if request.version >= 20:
        x, grid = request.values("float", (1, 2, 3, 5, 4)), request.values(
            "float", (1, 2, 3, 2, 3), -1, 1
        )
        y = evaluate("GridSample", 20, [widen(x), widen(grid)], mode="linear")
        yield request.case("volume", [x, grid], [narrow(y, "float")], mode="linear")


@covers("RoiAlign")
def make_roi_align(request):
    for name in request.types("T1"):
        x = request.values(name, (2, 3, 9, 13))
        rois = numpy.array([[1, 2, 9, 7], [0, 0, 25, 17], [7.5, 5, 8, 5.5]]).astype(x.dtype)
        batches = numpy.array([0, 1, 1])
        attributes = {"output_height": 3, "output_width": 4, "spatial_scale": 0.5}
        modes = ["output_half_pixel"] + (["half_pixel"] if request.version >= 16 else [])
        for mode in modes:
            for ratio in (0, 2):
                options = attributes | {"sampling_ratio": ratio}
                told = options | {"coordinate_transformation_mode": mode}
                y = evaluate("RoiAlign", 16, [widen(x), widen(rois), batches], **told)
                options = told if request.version >= 16 else options
                outputs = [narrow(y, name)]
                yield request.case(f"{name}_{mode}_{ratio}", [x, rois, batches], outputs, **options)


# Suffix, scales, sizes, attributes, the first version that has them.
_RESIZES = (
    ("nearest", [1, 1, 2, 3], None, {}, 11),
    ("down", [1, 1, 0.75, 0.625], None, {"nearest_mode": "floor"}, 11),
    ("sizes", None, [2, 3, 9, 4], {"mode": "linear"}, 11),
    ("linear", [1, 1, 2.5, 0.75], None, {"mode": "linear"}, 11),
    (
        "align",
        None,
        [2, 3, 9, 4],
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        11,
    ),
    ("cubic", [1, 1, 1.75, 2.5], None, {"mode": "cubic", "cubic_coeff_a": -0.5}, 11),
    ("cubic_outside", [1, 1, 1.75, 0.75], None, {"mode": "cubic", "exclude_outside": 1}, 11),
    (
        "torch",
        [1, 1, 1.75, 2.5],
        None,
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
        11,
    ),
    ("antialias", [1, 1, 0.5, 0.75], None, {"mode": "linear", "antialias": 1}, 18),
    ("axes", [1.75, 2.5], None, {"mode": "linear", "axes": [3, 2]}, 18),
    (
        "policy",
        None,
        [9, 9],
        {"mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"},
        18,
    ),
)


@covers("Resize")
def make_resize(request):
    for name in request.types("T" if request.version == 10 else "T1"):
        x = request.values(name, (2, 3, 5, 7))
        if request.version == 10:
            yield from _first_resizes(request, name, x)
            continue
        for suffix, scales, sizes, attributes, since in _RESIZES:
            if request.version < since or (not is_float(name) and "mode" in attributes):
                continue
            scales = numpy.float32(scales if scales is not None else [])
            sizes = None if sizes is None else numpy.array(sizes, numpy.int64)
            given = [None, scales if scales.size else None] + ([] if sizes is None else [sizes])
            y = _resize(x, given, name, attributes)
            # Version 11 wants a region and scales, which may be empty.
            roi = numpy.zeros(0, numpy.float32) if request.version == 11 else None
            filled = scales if scales.size or request.version == 11 else None
            inputs = [x, roi, filled] + ([] if sizes is None else [sizes])
            constants = [k for k, value in enumerate(inputs) if k and value is not None]
            # Positions follow from scales, which are float32.
            loose = {"rtol": 1e-5, "atol": 1e-5} if name == "double" else {}
            yield request.case(f"{name}_{suffix}", inputs, [y], constants, **loose, **attributes)


def _resize(x, given, name, attributes):
    if "mode" in attributes and attributes["mode"] != "nearest":
        return narrow(evaluate("Resize", 19, [widen(x), *given], **attributes), name)
    # The evaluator moves positions, so that elements may be of any type.
    positions = numpy.arange(x.size, dtype=numpy.float64).reshape(x.shape)
    return x.reshape(-1)[evaluate("Resize", 19, [positions, *given], **attributes).astype(int)]


def _first_resizes(request, name, x):
    """Version 10: element k of the result lies at k / scale."""
    for mode in ("nearest", "linear"):
        if mode == "linear" and not is_float(name):
            continue
        scales = numpy.float32([1, 1, 2, 3])
        told = {
            "mode": mode,
            "nearest_mode": "floor",
            "coordinate_transformation_mode": "asymmetric",
        }
        y = _resize(x, [None, scales], name, told)
        yield request.case(f"{name}_{mode}", [x, scales], [y], constants=[1], mode=mode)

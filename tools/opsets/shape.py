# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, or tell of their shape."""

import numpy
import onnx
from onnx import helper

from opsets.case import covers, dtype_of, is_float, narrow, number_of, widen


def _int64(*numbers):
    return numpy.array(numbers, numpy.int64)


@covers("Identity")
def make_identity(request):
    for name in request.types("T" if request.version < 14 else "V"):
        x = request.values(name)
        yield request.case(name, [x], [x])


@covers("Reshape")
def make_reshape(request):
    for name in request.types():
        x = request.values(name, (3, 37, 4))
        if request.version == 1:
            yield request.case(name, [x], [x.reshape(4, 37, 3)], shape=[4, -1, 3])
            yield request.case(f"{name}_copied", [x], [x.reshape(3, 148)], shape=[0, 148])
            continue
        outputs = [x.reshape(3, 148)]
        yield request.case(name, [x, _int64(0, -1)], outputs)
        outputs = [x.reshape(4, 111)]
        yield request.case(f"{name}_constant", [x, _int64(4, 111)], outputs, constants=[1])
    if request.version >= 14:
        x = request.values("float", (0, 3, 4))
        outputs = [x.reshape(4, 0, 3)]
        yield request.case("allowzero", [x, _int64(4, 0, 3)], outputs, constants=[1], allowzero=1)


@covers("Flatten")
def make_flatten(request):
    for name in request.types():
        x = request.values(name, (3, 5, 7, 2))
        for axis, shape in ((2, (15, 14)), (0, (1, 210)), (4, (210, 1))):
            yield request.case(f"{name}_{axis}", [x], [x.reshape(shape)], axis=axis)
        if request.version >= 11:
            yield request.case(f"{name}_negative", [x], [x.reshape(105, 2)], axis=-1)


@covers("Squeeze", "Unsqueeze")
def make_squeeze(request):
    is_squeeze = request.op_type == "Squeeze"
    for name in request.types():
        small, large = request.values(name, (3, 37, 2)), None
        lists = [(0, 2), (1,)] + ([(-1, -3)] if request.version >= 11 else [])
        for number, axes in enumerate(lists):
            large = numpy.expand_dims(small, axes)
            x, y = (large, small) if is_squeeze else (small, large)
            if request.version < 13:
                yield request.case(f"{name}_{number}", [x], [y], axes=list(axes))
            else:
                yield request.case(f"{name}_{number}", [x, _int64(*axes)], [y], constants=[1])
        if is_squeeze:
            yield request.case(f"{name}_all", [large], [small])


@covers("Transpose")
def make_transpose(request):
    for name in request.types():
        x = request.values(name, (3, 37, 4))
        yield request.case(name, [x], [x.transpose(1, 2, 0)], perm=[1, 2, 0])
        yield request.case(f"{name}_reversed", [x], [x.transpose()])


@covers("Shape", "Size")
def make_extents(request):
    for name in request.types():
        x = request.values(name, (3, 5, 7, 2))
        whole = numpy.array(x.shape if request.op_type == "Shape" else x.size, numpy.int64)
        yield request.case(name, [x], [whole])
        if request.op_type == "Shape" and request.version >= 15:
            yield request.case(f"{name}_part", [x], [whole[1:-1]], start=1, end=-1)


@covers("Concat")
def make_concat(request):
    for name in request.types():
        parts = [request.values(name, (3, extent, 5)) for extent in (2, 37, 1)]
        outputs = [numpy.concatenate(parts, 1)]
        if request.version == 1:  # Where the axis is 1 unless told otherwise.
            yield request.case(f"{name}_default", parts, outputs)
        yield request.case(name, parts, outputs, axis=1)
        parts = [request.values(name, (extent, 5)) for extent in (2, 37, 1)]
        yield request.case(f"{name}_first", parts, [numpy.concatenate(parts)], axis=0)
        if request.version >= 11:
            yield request.case(f"{name}_negative", parts, [numpy.concatenate(parts)], axis=-2)


@covers("Split")
def make_split(request):
    for name in request.types():
        x = request.values(name, (3, 12, 7))
        sizes = (1, 4, 7)
        parts = numpy.split(x, [1, 5], 1)
        equal = numpy.split(x, 3, 1)
        if request.version < 13:
            yield request.case(name, [x], parts, axis=1, split=list(sizes))
        else:
            yield request.case(name, [x, _int64(*sizes)], parts, constants=[1], axis=1)
        if request.version >= 18:
            uneven = numpy.split(x, [3, 6], 2)
            yield request.case(f"{name}_uneven", [x], uneven, axis=2, num_outputs=3)
            yield request.case(f"{name}_equal", [x], equal, axis=1, num_outputs=3)
        else:
            yield request.case(f"{name}_equal", [x], equal, axis=1)
        if request.version == 1 and name == "float":
            lengths = numpy.array(sizes, numpy.float32)
            yield request.case("input", [x, lengths], parts, constants=[1], axis=1)
        if request.version >= 11:
            parts = numpy.split(x, [2], -1)
            given = {"split": [2, 5]} if request.version < 13 else {}
            inputs, constants = ([x], []) if given else ([x, _int64(2, 5)], [1])
            yield request.case(f"{name}_negative", inputs, parts, constants, axis=-1, **given)


@covers("Slice")
def make_slice(request):
    for name in request.types():
        x = request.values(name, (9, 37, 5))
        if request.version == 1:
            starts, ends = [2, -30], [7, 2**31 - 1]
            outputs = [x[2:7, :, :][:, -30:]]
            yield request.case(name, [x], outputs, starts=starts, ends=ends)
            outputs = [x[:, 3:-4, 1:]]
            yield request.case(
                f"{name}_axes", [x], outputs, axes=[2, 1], starts=[1, 3], ends=[9, -4]
            )
            continue
        for kind in ("int64", "int32"):
            numbers = [numpy.array(each, kind) for each in ([7, 1], [-100, 9], [0, 2], [-2, 3])]
            outputs = [x[7::-2, :, 1:9:3]]
            yield request.case(f"{name}_{kind}", [x, *numbers], outputs, constants=[1, 2, 3, 4])
        outputs = [x[2:-1, 3:]]
        yield request.case(f"{name}_run", [x, _int64(2, 3), _int64(-1, 99)], outputs)


@covers("Pad")
def make_pad(request):
    for name in request.types():
        x = request.values(name, (3, 37, 5))
        value = request.values(name, (1,))[0]
        widths = ((1, 0), (0, 2), (3, 1))
        begins_and_ends = [each[0] for each in widths] + [each[1] for each in widths]
        filled = numpy.pad(x, widths, mode="constant", constant_values=value)
        if request.version < 11:
            key = "paddings" if request.version == 1 else "pads"
            attributes = {key: begins_and_ends, "value": float(value)}
            yield request.case(name, [x], [filled], **attributes)
        else:
            scalar = numpy.asarray(value, dtype=x.dtype).reshape(())
            inputs = [x, _int64(*begins_and_ends), scalar]
            yield request.case(name, inputs, [filled], constants=[1])
            if name in ("float", "complex64", "complex128", "string"):
                yield request.case(f"{name}_known", inputs, [filled], constants=[1, 2])
            # Without a value, what is added is 0, false or an empty string.
            nothing = "" if name == "string" else numpy.zeros((), x.dtype)
            if name != "float8e8m0":  # Which has no zero.
                zeros = numpy.pad(x, widths, constant_values=nothing)
                yield request.case(f"{name}_zero", inputs[:2], [zeros])
        if request.version >= 18:
            outputs = [numpy.pad(x, ((0, 0), (0, 0), (2, 4)), constant_values=value)]
            inputs = [x, _int64(2, 4), scalar, _int64(-1)]
            yield request.case(f"{name}_axes", inputs, outputs, constants=[1, 3])
        if name in ("float", "int32", "bool"):
            modes = ["reflect", "edge"] + (["wrap"] if request.version >= 19 else [])
            for mode in modes:
                outputs = [numpy.pad(x, widths, mode=mode)]
                if request.version < 11:
                    attributes = {key: begins_and_ends, "mode": mode}
                    yield request.case(f"{name}_{mode}", [x], outputs, **attributes)
                else:
                    inputs = [x, _int64(*begins_and_ends)]
                    yield request.case(f"{name}_{mode}", inputs, outputs, constants=[1], mode=mode)
    if "float" in request.types():
        x = request.values("float", (5, 37))
        outputs = [numpy.pad(x[:, 2:], ((0, 1), (0, 3)))]
        cut = [0, -2, 1, 3]
        if request.version < 11:
            yield request.case("negative", [x], outputs, **{key: cut})
        else:
            yield request.case("negative", [x, _int64(*cut)], outputs, constants=[1])


@covers("Tile")
def make_tile(request):
    for name in request.types():
        x = request.values(name, (3, 37, 2))
        if request.version == 1:  # One axis, told by numbers of the data's type.
            inputs = [x, numpy.array(3).astype(x.dtype), numpy.array(1).astype(x.dtype)]
            outputs = [numpy.tile(x, (1, 3, 1))]
            yield request.case(name, inputs, outputs, constants=[1, 2])
            yield request.case(f"{name}_run", inputs, outputs, constants=[2])
            continue
        yield request.case(name, [x, _int64(2, 1, 3)], [numpy.tile(x, (2, 1, 3))])


@covers("DepthToSpace", "SpaceToDepth")
def make_depth(request):
    size = 3
    for name in request.types("T"):
        modes = ["DCR"]
        if request.version >= (11 if request.op_type == "DepthToSpace" else 28):
            modes.append("CRD")
        for mode in modes:
            deep = request.values(name, (2, 2 * size * size, 5, 7))
            if mode == "DCR":
                split = deep.reshape(2, size, size, 2, 5, 7).transpose(0, 3, 4, 1, 5, 2)
            else:
                split = deep.reshape(2, 2, size, size, 5, 7).transpose(0, 1, 4, 2, 5, 3)
            wide = numpy.ascontiguousarray(split).reshape(2, 2, 5 * size, 7 * size)
            x, y = (deep, wide) if request.op_type == "DepthToSpace" else (wide, deep)
            attributes = {"mode": mode} if len(modes) > 1 else {}
            suffix = f"{name}_{mode.lower()}"
            yield request.case(suffix, [x], [y], blocksize=size, **attributes)


@covers("Constant")
def make_constant(request):
    for name in request.types("T"):
        value = request.values(name)
        tensor = onnx.numpy_helper.from_array(value)
        yield request.case(name, [], [value], value=tensor)
    if request.version >= 11:
        values = request.values("float", (3,), 1, 4)
        dense = numpy.zeros((5, 7), numpy.float32)
        dense[(0, 2, 4), (6, 0, 3)] = values
        sparse = helper.make_sparse_tensor(
            onnx.numpy_helper.from_array(values, "values"),
            onnx.numpy_helper.from_array(numpy.array([[0, 6], [2, 0], [4, 3]]), "indices"),
            dense.shape,
        )
        yield request.case("sparse", [], [dense], sparse_value=sparse)
    if request.version >= 12:
        floats, ints = numpy.float32([1.5, -2, 7]), _int64(3, -1, 2**40)
        yield request.case("floats", [], [floats], value_floats=floats.tolist())
        yield request.case("ints", [], [ints], value_ints=ints.tolist())
        yield request.case("one_float", [], [numpy.array(1.5, numpy.float32)], value_float=1.5)
        yield request.case("one_int", [], [numpy.array(-7, numpy.int64)], value_int=-7)
        words = numpy.array(["a", "", "bc"], dtype=object)
        yield request.case("strings", [], [words], value_strings=words.tolist())
        yield request.case("one_string", [], [numpy.array("abc", dtype=object)], value_string="abc")


@covers("ConstantOfShape")
def make_constant_of_shape(request):
    shape = _int64(3, 37, 5)
    for name in request.types("T2"):
        value = request.values(name, (1,), 1, 4)
        outputs = [numpy.full((3, 37, 5), value[0])]
        tensor = onnx.numpy_helper.from_array(value)
        yield request.case(name, [shape], outputs, value=tensor)
        yield request.case(f"{name}_constant", [shape], outputs, constants=[0], value=tensor)
    yield request.case("default", [shape], [numpy.zeros((3, 37, 5), numpy.float32)])


@covers("EyeLike")
def make_eye_like(request):
    for name in request.types("T1"):
        x = request.values(name, (5, 37))
        outputs = [narrow(numpy.eye(5, 37, 3), name)]
        yield request.case(name, [x], outputs, k=3)
        outputs = [numpy.eye(5, 37, -2, dtype=numpy.int32)]
        yield request.case(f"{name}_int32", [x], outputs, k=-2, dtype=number_of("int32"))


@covers("Upsample")
def make_upsample(request):
    for name in request.types():
        x = request.values(name, (2, 3, 5, 7))
        for mode in ("nearest", "linear" if request.version > 1 else "bilinear"):
            if mode != "nearest" and not is_float(name):
                continue
            rows, columns = 2.0, 3.0
            if mode == "nearest":
                outputs = [x.repeat(2, axis=2).repeat(3, axis=3)]
            else:
                outputs = [narrow(_stretch(_stretch(widen(x), 2, 2), 3, 3), name)]
            scales = [1.0, 1.0, rows, columns]
            suffix = f"{name}_{mode}"
            if request.version == 1:
                attributes = {"mode": mode, "height_scale": rows, "width_scale": columns}
                yield request.case(suffix, [x], outputs, **attributes)
            elif request.version == 7:
                yield request.case(suffix, [x], outputs, mode=mode, scales=scales)
            else:
                inputs = [x, numpy.float32(scales)]
                yield request.case(suffix, inputs, outputs, constants=[1], mode=mode)


def _stretch(x, axis, scale):
    """Linear between neighbours; element k of the result lies at k / scale."""
    positions = numpy.arange(x.shape[axis] * scale) / scale
    low = numpy.floor(positions).astype(int)
    high = numpy.minimum(low + 1, x.shape[axis] - 1)
    share = (positions - low).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    return x.take(low, axis) * (1 - share) + x.take(high, axis) * share


@covers("ReverseSequence")
def make_reverse_sequence(request):
    for name in request.types():
        x = request.values(name, (7, 4, 5))
        lengths = _int64(7, 1, 3, 5)
        y = x.copy()
        for batch, length in enumerate(lengths):
            y[:length, batch] = x[:length, batch][::-1]
        yield request.case(name, [x, lengths], [y])
        x = x.transpose(1, 0, 2).copy()
        yield request.case(
            f"{name}_batch", [x, lengths], [y.transpose(1, 0, 2).copy()], batch_axis=0, time_axis=1
        )


@covers("OneHot")
def make_one_hot(request):
    for name in request.types("T3"):
        indices = request.random.integers(-7, 7, (5, 37))
        values = request.values(name, (2,))
        if name != "bool":
            values = narrow([0, 1], name) if name not in ("string",) else values
        hot = numpy.mod(indices, 7)[..., None] == numpy.arange(7)
        outputs = [numpy.where(hot, values[1], values[0])]
        depth = numpy.array(7, numpy.int64)
        yield request.case(name, [indices, depth, values], outputs, constants=[1])
        outputs = [numpy.moveaxis(outputs[0], -1, 1)]
        inputs = [indices, depth, values]
        yield request.case(f"{name}_axis", inputs, outputs, constants=[1], axis=1)
    for name in ("int32", "float"):
        indices = request.random.integers(0, 5, (37,)).astype(dtype_of(name))
        outputs = [numpy.where(indices[:, None] == numpy.arange(5), 2, -1).astype(numpy.float32)]
        inputs = [indices, numpy.array([5], dtype_of(name)), numpy.float32([-1, 2])]
        yield request.case(f"indices_{name}", inputs, outputs, constants=[1])

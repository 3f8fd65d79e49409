# SPDX-License-Identifier: Apache-2.0
"""Models of the caller's: any ONNX file, with random inputs. Nothing tells what is right, so results are
compared among the engines alone."""

import numpy
import onnx
from onnx import helper

import model_set

# Positions, lengths and identifiers are mostly small.
_MOST_INTEGER = 8


class GivenModelError(Exception):
    """A model that cannot be given inputs, in a sentence."""


def find_files(paths):
    """The files, and in place of a folder those in it that end in .onnx, by name."""
    return [file for path in paths for file in (sorted(path.glob("*.onnx")) if path.is_dir() else [path])]


def name_files(paths):
    """{name: path}: a file's name, with that of its folder where two have the same."""
    stems = [path.stem for path in paths]
    return {
        path.stem if stems.count(path.stem) == 1 else f"{path.resolve().parent.name}/{path.stem}": path for path in paths
    }


def _extents_of(value, name, sizes):
    extents = []
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if dim.HasField("dim_value"):
            extents.append(dim.dim_value)
        elif dim.dim_param in sizes:
            extents.append(sizes[dim.dim_param])
        elif f"{value.name}.{axis}" in sizes:
            extents.append(sizes[f"{value.name}.{axis}"])
        else:
            symbol = f"the symbol '{dim.dim_param}'" if dim.dim_param else "no name"
            given = f"{dim.dim_param or f'{value.name}.{axis}'}=N"
            raise GivenModelError(
                f"Model '{name}' is left out: axis {axis} of input '{value.name}' has {symbol}; give --dim {given}."
            )
    return extents


def _draw(generator, element_type, extents):
    dtype = numpy.dtype(helper.tensor_dtype_to_np_dtype(element_type))
    if dtype == numpy.bool_:
        return generator.integers(0, 2, extents).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0, _MOST_INTEGER, extents).astype(dtype)
    return generator.standard_normal(extents).astype(dtype)


def load(name, path, sizes):
    """A Model with seeded inputs: floats by the normal distribution, integers from 0 to 7. `sizes`: {symbol: extent}, or
    {"input.axis": extent} of an axis without one."""
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except Exception as fault:  # protobuf's own, and the system's
        raise GivenModelError(f"Model '{name}' is left out: '{path}' cannot be read: {fault}.") from fault
    generator = numpy.random.default_rng(1)
    constants = {initializer.name for initializer in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in constants:
            continue
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type" or value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            raise GivenModelError(f"Model '{name}' is left out: input '{value.name}' is no tensor of numbers.")
        extents = _extents_of(value, name, sizes)
        inputs[value.name] = _draw(generator, value.type.tensor_type.elem_type, extents)
    return model_set.Model(name, "other", path, inputs, expected=None, oracle=None)

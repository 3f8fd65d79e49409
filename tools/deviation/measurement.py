# SPDX-License-Identifier: Apache-2.0
"""Largest and mean error of an operator, element type and engine."""

import collections

import numpy
import onnx
from onnx import helper

from deviation.engines import Refused, evaluate
from deviation.operators import draw, make_model

TYPES = {
    "float": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "bfloat16": onnx.TensorProto.BFLOAT16,
    "double": onnx.TensorProto.DOUBLE,
}

# `refusal` is empty where there are errors.
Deviation = collections.namedtuple("Deviation", "elements largest mean refusal")


def errors(actual, expected):
    """|a - b| / (|b| + rms(b)) of each element: the measure of the conformance suite's tolerances."""
    actual = actual.astype(numpy.float64)
    if actual.shape != expected.shape:
        raise Refused(f"the output has the shape {actual.shape} instead of {expected.shape}")
    finite = numpy.isfinite(expected)
    if not (numpy.isfinite(actual) == finite).all():
        return numpy.full(1, numpy.inf)
    rms = numpy.sqrt(numpy.mean(expected[finite] ** 2)) if finite.any() else 0
    scale = numpy.abs(expected[finite]) + rms
    difference = numpy.abs(actual[finite] - expected[finite])
    return numpy.divide(difference, scale, out=numpy.zeros_like(difference), where=difference > 0)


def list_problems(sample, type_name):
    """(model, inputs, what is expected) of each of the sample's shapes."""
    element = TYPES[type_name]
    dtype = helper.tensor_dtype_to_np_dtype(element)
    for shapes in sample.shapes:
        inputs = {name: value.astype(dtype) for name, value in draw(sample, shapes).items()}
        yield make_model(sample, shapes, element), inputs, evaluate(sample, shapes, inputs)


def measure(engine, problems):
    """The errors of an engine over all problems of one operator and type."""
    found = []
    for model, inputs, expected in problems:
        try:
            found.append(errors(numpy.asarray(engine.run(model, inputs)), expected))
        except Refused as refusal:
            return Deviation(0, None, None, str(refusal))
    all_errors = numpy.concatenate([part.ravel() for part in found])
    return Deviation(all_errors.size, float(all_errors.max()), float(all_errors.mean()), "")

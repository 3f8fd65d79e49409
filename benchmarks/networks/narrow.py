# SPDX-License-Identifier: Apache-2.0
"""Networks in int8 and float16, made of those in float32 by the tools of ONNX Runtime."""

import logging
import pathlib
import tempfile

import numpy
import onnx


class _Samples:
    """What the quantizer takes its ranges from: the sample inputs and two of twice and half their size."""

    def __init__(self, samples):
        self._sets = iter(
            {
                name: value * numpy.float32(factor) if value.dtype == numpy.float32 else value
                for name, value in samples.items()
            }
            for factor in (1.0, 0.5, 2.0)
        )

    def get_next(self):
        return next(self._sets, None)


def quantize(model, samples, form):
    """The model in int8, with ranges from sample inputs. `form`: "qdq", "qoperator" or "dynamic"."""
    from onnxruntime import quantization

    logging.getLogger().setLevel(logging.ERROR)  # It recommends steps that exporters' users skip.
    with tempfile.TemporaryDirectory() as place:
        source, target = (pathlib.Path(place) / name for name in ("float.onnx", "int8.onnx"))
        onnx.save(model, source)
        if form == "dynamic":
            quantization.quantize_dynamic(source, target)
        else:
            formats = quantization.QuantFormat
            quantization.quantize_static(
                source,
                target,
                _Samples(samples),
                quant_format=formats.QDQ if form == "qdq" else formats.QOperator,
                # Of operators, only those that ONNX itself has.
                op_types_to_quantize=None if form == "qdq" else ["Conv", "MatMul"],
                per_channel=True,
            )
        return onnx.load(target)


def halve(model):
    """The model in float16, with inputs and outputs in float32."""
    from onnxruntime.transformers import float16

    half = onnx.ModelProto()
    half.CopyFrom(model)
    return float16.convert_float_to_float16(half, keep_io_types=True)

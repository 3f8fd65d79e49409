# SPDX-License-Identifier: Apache-2.0
"""Blocks of operators of com.microsoft, as ONNX Runtime's optimizers and quantizers write them."""

import numpy

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.convolution import is_map
from graphs.products import is_rows
from graphs.quantization import is_plain, need, scale_and_zero
from graphs.shape import has_axes

_DOMAIN = "com.microsoft"


def is_plain_rows(value):
    return is_rows(value) and value.dtype == "float32"


@block(2, "rows")
def fused_activation(b):
    x = b.pick(is_plain_rows)
    form = b.rng.randrange(4)
    if form == 0:
        b.op("Gelu", [x], domain=_DOMAIN)
    elif form == 1:
        b.op("FastGelu", [x] + ([b.weight([x.shape[-1]])] if b.chance(0.5) else []), domain=_DOMAIN)
    elif form == 2:
        b.op("BiasGelu", [x, b.weight([x.shape[-1]])], domain=_DOMAIN)
    else:
        b.op("QuickGelu", [x], domain=_DOMAIN, alpha=b.choice([1.702, 1.0]))


@block(1, "rows")
def fused_product(b):
    x = b.pick(is_plain_rows)
    width = b.choice([1, 4, 9, 16])
    is_turned = b.chance(0.5)
    w = b.weight([width, x.shape[-1]] if is_turned else [x.shape[-1], width])
    b.op("FusedMatMul", [x, w], domain=_DOMAIN, transB=int(is_turned), alpha=b.choice([1.0, 0.25]))


@block(1, "rows")
def skip_normalization(b):
    x = b.pick(is_plain_rows, lambda v: v.rank == 3 and not v.is_empty)
    y = b.op("Tanh", [x])
    scale, shift = b.weight([x.shape[2]], "float32", 1), b.weight([x.shape[2]], "float32", 1)
    if b.chance(0.5):
        b.op("SkipLayerNormalization", [x, y, scale, shift], domain=_DOMAIN, epsilon=1e-5)
    else:
        b.op("SkipSimplifiedLayerNormalization", [x, y, scale], domain=_DOMAIN, epsilon=1e-5)


@block(1, "image")
def fused_convolution(b):
    x = b.pick(is_map, is_plain, lambda v: v.rank == 4)
    channels = b.choice([1, 2, 4, 8, 16])
    b.op("FusedConv", [x, b.weight([channels, x.shape[1], 3, 3]), b.weight([channels])], domain=_DOMAIN,
         activation=b.choice(["Relu", "Sigmoid", "Tanh"]), pads=[1] * 4)  # fmt: skip


@block(3, "quantized")
def linear_on_bytes(b):
    """Operators whose operands and results have a scale and a zero point each."""
    need(b, 10)
    x = b.pick(is_plain, has_axes)
    dtype = b.choice(["uint8", "int8"])
    scale, zero = scale_and_zero(b, x, dtype)
    q = b.op("QuantizeLinear", [x, scale, zero])
    out_scale, out_zero = b.constant(numpy.array(0.03, "float32"), True), b.constant(numpy.array(b.choice([0, 5]), dtype), True)
    form = b.rng.randrange(5)
    if form == 0:
        other = b.pick(is_plain, lambda v: v.shapes == x.shapes)
        right_scale, right_zero = scale_and_zero(b, other, dtype)
        right = b.op("QuantizeLinear", [other, right_scale, right_zero])
        y = b.op(b.choice(["QLinearAdd", "QLinearMul"]), [q, scale, zero, right, right_scale, right_zero, out_scale, out_zero], domain=_DOMAIN)
    elif form == 1:
        y = b.op(b.choice(["QLinearSigmoid", "QLinearLeakyRelu"]), [q, scale, zero, out_scale, out_zero], domain=_DOMAIN)
    elif form == 2 and is_map(x) and x.rank == 4 and not x.is_empty:
        y = b.op("QLinearGlobalAveragePool", [q, scale, zero, out_scale, out_zero], domain=_DOMAIN)
    elif form == 3:
        y = b.op("QLinearConcat", [out_scale, out_zero, q, scale, zero, q, scale, zero], domain=_DOMAIN, axis=x.rank - 1)
    else:
        raise Discard("none")
    b.op("DequantizeLinear", [y, out_scale, out_zero])


@block(1, "quantized")
def few_bits(b):
    """Rows times a matrix of 4 bits in blocks."""
    need(b, 14)
    x = b.pick(is_plain_rows, lambda v: v.shape[-1] == 16 or v.shape[-1] == 32)
    n, k = b.choice([1, 4, 9]), x.shape[-1]
    packed = b.constant(b.draw.integers(0, 256, (n, k // 16, 8)).astype("uint8"))
    scales = b.constant(b.draw.uniform(0.01, 0.1, n * (k // 16)).astype("float32"))
    b.op("MatMulNBits", [x, packed, scales], domain=_DOMAIN, K=k, N=n, bits=4, block_size=16)

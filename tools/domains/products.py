# SPDX-License-Identifier: Apache-2.0
"""Matrix products with what the optimizer moves into them, and with weights in blocks."""

import ml_dtypes
import numpy

from domains.case import covers, floats, integers, node_case, random_of, trimmed


@covers("FusedMatMul", "TransposeMatMul")
def fused_matmul():
    shapes = {
        "plain": ((3, 5, 7), (3, 7, 9), {}),
        "alpha": ((5, 7), (7, 3), {"alpha": 0.375}),
        "trans_a": ((2, 7, 5), (2, 7, 9), {"transA": 1}),
        "trans_b": ((2, 5, 7), (9, 7), {"transB": 1, "alpha": 2.5}),
        "trans_both": ((7, 5), (9, 7), {"transA": 1, "transB": 1}),
        "vector_a": ((7,), (4, 7, 3), {"transA": 1}),
        "vector_b": ((4, 3, 7), (7,), {"transB": 1, "alpha": -1.0}),
    }
    batches = {
        "batch_a": ((5, 2, 3, 7), (2, 3, 7, 9), {"transBatchA": 1}),
        "batch_b": ((2, 3, 5, 7), (7, 2, 3, 9), {"transBatchB": 1}),
        "batch_trans": ((7, 2, 5), (9, 2, 7), {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}),
    }
    for op_type, table in (("FusedMatMul", {**shapes, **batches}), ("TransposeMatMul", shapes)):
        for kind, (a, b, attributes) in table.items():
            for dtype in ("float32", "float64"):
                name = f"{op_type.lower()}_{kind}_{dtype}"
                random = random_of(name)
                inputs = [floats(random, a, dtype), floats(random, b, dtype)]
                constant = (1,) if kind.endswith("b") else ()
                if op_type == "TransposeMatMul" and dtype == "float64":
                    continue  # ONNX Runtime has no kernel for it
                yield node_case(name, op_type, inputs, attributes=attributes, constant=constant)
        name = op_type.lower() + "_symbolic"
        random = random_of(name)
        inputs = [floats(random, (2, 5, 7)), floats(random, (2, 9, 7))]
        yield node_case(name, op_type, inputs, attributes={"transB": 1, "alpha": 0.5}, symbolic=True)


@covers("MatMulBnb4", "CDist")
def four_bit_floats_and_distances():
    for quant_type in (0, 1):
        for dtype in ("float32", "float16"):
            name = f"matmulbnb4_{quant_type}_{dtype}"
            random = random_of(name)
            depth, columns, block = 48, 10, 16
            inputs = [
                floats(random, (2, 3, depth), dtype),
                integers(random, (depth * columns // 2,)),
                (random.random(depth * columns // block) + 0.1).astype(dtype),
            ]
            attributes = {"K": depth, "N": columns, "block_size": block, "quant_type": quant_type}
            reference = None
            if dtype == "float16":  # ONNX Runtime has no kernel for it on a processor
                wide = [each.astype("float32") if each.dtype == numpy.float16 else each for each in inputs]
                answer = node_case("other", "MatMulBnb4", wide, attributes=attributes).outputs[0]
                reference = lambda *_, answer=answer, **__: [answer.astype("float16")]
            yield node_case(
                name,
                "MatMulBnb4",
                inputs,
                attributes=attributes,
                constant=True,
                oracle=reference,
                rtol=1e-2 if reference else None,
            )
    random = random_of("matmulbnb4_columns")
    inputs = [floats(random, (3, 48)), integers(random, (48 * 10 // 2,)), floats(random, (48 * 10 // 16,))]
    attributes = {"K": 48, "N": 10, "block_size": 16, "quant_type": 1, "training_mode": 1, "transB": 1}
    yield node_case("matmulbnb4_training", "MatMulBnb4", inputs, attributes=attributes, constant=True)
    for metric in ("euclidean", "sqeuclidean"):
        for dtype in ("float32", "float64"):
            name = f"cdist_{metric}_{dtype}"
            random = random_of(name)
            inputs = [floats(random, (7, 5), dtype), floats(random, (4, 5), dtype)]
            yield node_case(
                name, "CDist", inputs, attributes={"metric": metric}, symbolic=metric == "euclidean"
            )


def _matmul_nbits(a, b, scales, zero_points=None, groups=None, bias=None, *, K, N, bits, block_size, **_):
    """The definition in float64, for what ONNX Runtime's kernel does not take."""
    blocks = -(-K // block_size)
    codes = numpy.concatenate(
        [(b.reshape(N, blocks, -1, 1) >> shift) & (2**bits - 1) for shift in range(0, 8, bits)], axis=3
    ).reshape(N, blocks * block_size)[:, :K]
    of_row = numpy.arange(K) // block_size if groups is None else groups[:K]
    scale = scales.astype("float64").reshape(N, blocks)[:, of_row]
    if zero_points is None:
        zero = 2.0 ** (bits - 1)
    elif zero_points.dtype == numpy.uint8:
        packed = zero_points.reshape(N, -1, 1)
        zero = numpy.concatenate([(packed >> s) & (2**bits - 1) for s in range(0, 8, bits)], axis=2)
        zero = zero.reshape(N, -1)[:, :blocks][:, of_row].astype("float64")
    else:
        zero = zero_points.astype("float64").reshape(N, blocks)[:, of_row]
    weights = (codes - zero) * scale
    return _with_bias(a.astype("float64") @ weights.T, bias, a.dtype)


def _matmul_nbits_of_bytes():
    """Level 4 permits to round A to bytes, which some devices do and others not: each element of it by a 254th of the
    largest in its block. Of random signs, they add up to less than five times
    the root of their squares as it is where all are as large as the largest."""
    for bits, block, shape, columns, zero, dtype in (
        (4, 32, (5, 64), 520, True, "float32"),
        (4, 32, (19, 417), 555, False, "float32"),
        (4, 16, (2, 9, 130), 513, True, "float32"),
        (4, 128, (8, 300), 530, True, "float32"),
        (8, 64, (13, 200), 517, False, "float32"),
        (8, 32, (33, 160), 544, True, "float32"),
        (2, 32, (12, 96), 515, False, "float32"),
        (4, 32, (17, 256), 528, False, "float16"),
    ):
        depth = shape[-1]
        name = f"matmulnbits_{bits}_bytes_{block}_{depth}" + ("_float16" if dtype == "float16" else "")
        random = random_of(name)
        blocks = -(-depth // block)
        a = floats(random, shape, dtype)
        b = integers(random, (columns, blocks, block * bits // 8))
        scales = (random.random((columns * blocks,)) * 0.1 + 0.01).astype(dtype)
        zeros = integers(random, (columns * (-(-blocks * bits // 8)),)) if zero else None
        attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
        exact = _matmul_nbits(*trimmed([a, b, scales, zeros]), **attributes)[0]
        step = numpy.abs(a).max() / 254
        weight = 0.11 * 2 ** (bits - 1)
        yield node_case(
            name,
            "MatMulNBits",
            trimmed([a, b, scales, zeros]),
            attributes={**attributes, "accuracy_level": 4},
            constant=True,
            rtol=1e-3,
            atol=float(5 * step * weight * 0.58 * numpy.sqrt(depth / 3)),
            oracle=lambda *_, exact=exact, **__: [exact],
        )


@covers("MatMulNBits")
def matmul_nbits():
    kinds = {
        "plain": {},
        "zero_points": {"zero": "packed"},
        "zero_point_rows": {"zero": "packed_rows", "depth": 96},
        "float_zero_points": {"zero": "float"},
        "bias": {"bias": True, "zero": "packed"},
        "ragged": {"depth": 83, "zero": "packed"},
        "odd_blocks": {"depth": 96, "zero": "packed", "columns": 7},
        "vector": {"a": (1, 64)},
        "batch": {"a": (2, 3, 64)},
    }
    for bits in (4, 8, 2):
        for kind, given in kinds.items():
            for block in (16, 32, 64):
                if kind not in ("plain", "ragged") and block != 32:
                    continue
                name = f"matmulnbits_{bits}_{kind}_{block}"
                random = random_of(name)
                depth, columns = given.get("depth", 64), given.get("columns", 20)
                blocks = -(-depth // block)
                a = floats(random, given.get("a", (5, depth)))
                b = integers(random, (columns, blocks, block * bits // 8))
                scales = (random.random((columns * blocks,)) * 0.1 + 0.01).astype("float32")
                zero = None
                if given.get("zero") == "packed":
                    zero = integers(random, (columns * (-(-blocks * bits // 8)),))
                elif given.get("zero") == "packed_rows":
                    zero = integers(random, (columns, -(-blocks * bits // 8)))
                elif given.get("zero") == "float":
                    zero = floats(random, (columns * blocks,), scale=3)
                bias = floats(random, (columns,)) if given.get("bias") else None
                attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
                inputs = [a, b, scales, zero, None, bias]
                inputs = trimmed(inputs)
                yield node_case(
                    name,
                    "MatMulNBits",
                    inputs,
                    attributes=attributes,
                    constant=True,
                    rtol=1e-4,
                    atol=1e-4,
                    # ONNX Runtime has no kernel for this one.
                    oracle=_matmul_nbits if bits == 8 and kind == "float_zero_points" else None,
                )
                if kind == "bias" and bits == 4:
                    yield node_case(
                        name + "_run_time", "MatMulNBits", inputs, attributes=attributes, rtol=1e-4, atol=1e-4
                    )
                if kind == "zero_points" and bits == 4:
                    yield node_case(
                        f"{name}_level_1",
                        "MatMulNBits",
                        inputs,
                        attributes={**attributes, "accuracy_level": 1},
                        constant=True,
                        rtol=1e-4,
                        atol=1e-4,
                        oracle=_matmul_nbits,
                    )
                if kind in ("plain", "zero_points") and bits == 4 and block == 32:
                    for dtype in ("float16", ml_dtypes.bfloat16):
                        narrow = [
                            each.astype(dtype) if each is not None and each.dtype == numpy.float32 else each
                            for each in inputs
                        ]
                        yield node_case(
                            f"{name}_{numpy.dtype(dtype).name}",
                            "MatMulNBits",
                            narrow,
                            attributes=attributes,
                            constant=True,
                            oracle=_matmul_nbits if dtype != "float16" else None,
                            atol=0.02,
                        )
    yield from _matmul_nbits_of_bytes()
    random = random_of("matmulnbits_groups")
    groups = random.permutation(numpy.arange(64) // 32).astype("int32")
    inputs = [floats(random, (5, 64)), integers(random, (9, 2, 16)), floats(random, (18,), scale=0.1)]
    zeros = integers(random, (9,))
    # ONNX Runtime's kernel takes the middle for the zero points that stand beside groups.
    for kind, given, more in (
        ("groups", [*inputs, zeros, groups], {"oracle": _matmul_nbits}),
        ("groups_no_zero_points", [*inputs, None, groups], {"oracle": _matmul_nbits}),
        ("symbolic", inputs, {"symbolic": True}),
    ):
        yield node_case(
            f"matmulnbits_{kind}",
            "MatMulNBits",
            given,
            attributes={"K": 64, "N": 9, "bits": 4, "block_size": 32},
            constant=True,
            rtol=1e-4,
            atol=1e-4,
            **more,
        )


def _blocks_of(scales, block, depth):
    return numpy.repeat(scales, block, 1)[:, :depth]


def _with_bias(product, bias, dtype):
    return [(product if bias is None else product + bias.astype("float64")).astype(dtype)]


def _narrow_weights(op_type, columns, usual_block, kinds, make_weights, oracle):
    """Cases of an operator whose weights are floats of 8 or 4 bits; ONNX Runtime has it on GPUs alone.

    `kinds`: name, depth, elements per block and rank of the other factor. `make_weights` gives what stands
    between that factor and the bias.
    """
    for dtype in ("float16", "bfloat16"):
        for kind, depth, block, rank in kinds:
            name = f"{op_type.lower()}_{dtype}_{kind}"
            random, kept = random_of(name), ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
            inputs = [
                floats(random, (2, 3, depth)[3 - rank :]).astype(kept),
                *make_weights(random, kind, (columns, depth), block),
                floats(random, (columns,)).astype(kept) if "bias" in kind else None,
            ]
            yield node_case(
                name,
                op_type,
                trimmed(inputs),
                attributes={} if block == usual_block else {"block_size": block},
                constant=() if kind == "run_time" else True,
                symbolic="symbolic" in kind,
                oracle=oracle,
            )


def _round8(x):
    return numpy.clip(x, -448, 448).astype("float32").astype(ml_dtypes.float8_e4m3fn).astype("float64")


@covers("MatMulBlockQuantizedFp8Weight")
def float8_weights():
    def oracle(a, b, scales, a_scale=None, bias=None, *, block_size=128):
        wide = a.astype("float64")
        if a_scale is not None:
            wide = _round8(a.astype("float32") / a_scale) * a_scale
        product = wide @ (b.astype("float64") * _blocks_of(scales, block_size, b.shape[1])).T
        return _with_bias(product, bias, a.dtype)

    def make_weights(random, kind, shape, block):
        columns, depth = shape
        return [
            floats(random, shape, scale=20).astype(ml_dtypes.float8_e4m3fn),
            random.uniform(0.002, 0.01, (columns, -(-depth // block))).astype("float32"),
            numpy.array([0.02], "float32") if "rounded" in kind else None,
        ]

    kinds = (
        ("", 256, 128, 2),
        ("row", 32, 32, 3),
        ("tail", 40, 16, 2),
        ("rounded", 64, 32, 2),
        ("bias", 64, 16, 3),
        ("rounded_bias_symbolic", 64, 32, 3),
        ("run_time", 48, 16, 2),
    )
    return _narrow_weights("MatMulBlockQuantizedFp8Weight", 24, 128, kinds, make_weights, oracle)


@covers("MatMulBlockQuantizedFp4Weight")
def float4_weights():
    sizes = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = numpy.concatenate([sizes, -sizes])

    def oracle(a, b, scales, factor, input_scale=None, bias=None, *, block_size=16):
        codes = numpy.stack([b & 15, b >> 4], -1).reshape(len(b), -1)
        wide = scales.view(ml_dtypes.float8_e4m3fn).astype("float64") * factor
        product = a.astype("float64") @ (table[codes] * _blocks_of(wide, block_size, codes.shape[1])).T
        return _with_bias(product, bias, a.dtype)

    def make_weights(random, kind, shape, block):
        columns, depth = shape
        scales = random.uniform(1, 8, (columns, -(-depth // block))).astype(ml_dtypes.float8_e4m3fn)
        is_scalar = kind in ("", "tail", "run_time")
        return [
            integers(random, (columns, depth // 2)),
            scales.view("uint8"),
            numpy.array(0.03 if is_scalar else [0.03], "float32"),
            numpy.array([0.5], "float32") if "input_scale" in kind else None,
        ]

    kinds = (
        ("", 64, 16, 2),
        ("block", 64, 32, 3),
        ("tail", 40, 16, 2),
        ("bias", 32, 16, 3),
        ("input_scale_symbolic", 32, 16, 3),
        ("run_time", 48, 16, 2),
    )
    return _narrow_weights("MatMulBlockQuantizedFp4Weight", 20, 16, kinds, make_weights, oracle)

# SPDX-License-Identifier: Apache-2.0
"""Normalizations of sums, as the transformer optimizer writes them."""

import numpy

from domains.case import covers, floats, integers, node_case, random_of, trimmed


@covers("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
def skip():
    for op_type, has_beta in (("SkipLayerNormalization", True), ("SkipSimplifiedLayerNormalization", False)):
        label = op_type.lower()
        for dtype in ("float32", "float16"):
            for kind, shape, skip_shape in (
                ("plain", (2, 5, 33), (2, 5, 33)),
                ("rows", (7, 20), (7, 20)),
                ("broadcast", (3, 4, 16), (4, 16)),
                ("one_batch", (3, 4, 16), (1, 4, 16)),
            ):
                name = f"{label}_{kind}_{dtype}"
                random = random_of(name)
                inputs = [floats(random, each, dtype) for each in (shape, skip_shape, shape[-1:])]
                beta = [floats(random, shape[-1:], dtype)] if has_beta else []
                bias = floats(random, shape[-1:], dtype)
                attributes = {"epsilon": 1e-3}
                yield node_case(
                    name,
                    op_type,
                    [*inputs, *beta, bias],
                    attributes=attributes,
                    outputs=[True, False, False, True],
                    constant=range(2, 5),
                )
                if kind == "plain":
                    yield node_case(name + "_no_bias", op_type, [*inputs, *beta], symbolic=True)
                    if has_beta:
                        yield node_case(name + "_no_beta", op_type, [*inputs, None, bias], constant=(2, 4))


@covers("SimplifiedLayerNormalization")
def simplified():
    for dtype in ("float32", "float64", "float16"):
        for axis in (-1, 1):
            name = f"simplifiedlayernormalization_{dtype}_axis{axis}".replace("-", "m")
            random = random_of(name)
            shape = (3, 5, 17)
            inputs = [floats(random, shape, dtype), floats(random, shape[axis:], dtype)]
            yield node_case(
                name,
                "SimplifiedLayerNormalization",
                inputs,
                domain="",
                constant=(1,),
                attributes={"axis": axis, "epsilon": 1e-2},
            )
    yield node_case(
        "simplifiedlayernormalization_stash",
        "SimplifiedLayerNormalization",
        [floats(random, (2, 3, 8)), floats(random, (8,))],
        domain="",
        attributes={"stash_type": 1},
    )
    yield node_case(
        "simplifiedlayernormalization_symbolic",
        "SimplifiedLayerNormalization",
        [floats(random, (2, 3, 8)), floats(random, (8,))],
        domain="",
        symbolic=True,
    )


@covers("QEmbedLayerNormalization")
def quantized_embed():
    for dtype, zero in (("uint8", 120), ("int8", 5)):
        for kind in ("whole", "no_segments"):
            name = f"qembedlayernormalization_{dtype}_{kind}"
            random = random_of(name)
            has_segments = kind == "whole"
            words = random.integers(0, 19, (3, 7)).astype("int32")
            segments = random.integers(0, 2, (3, 7)).astype("int32") if has_segments else None
            mask = (
                (numpy.arange(7)[None] < numpy.array([[7], [3], [5]])).astype("int32")
                if has_segments
                else None
            )
            tables = [integers(random, shape, dtype) for shape in ((19, 12), (9, 12), (2, 12), (12,), (12,))]
            scales = [numpy.array(0.01 + 0.004 * k, "float32") for k in range(5)]
            zeros = [numpy.array(zero + k, dtype) for k in range(5)]
            if not has_segments:
                tables[2] = scales[2] = zeros[2] = None
            inputs = [words, segments, *tables, mask, *scales, *zeros]
            yield node_case(
                name,
                "QEmbedLayerNormalization",
                inputs,
                attributes={"epsilon": 1e-3},
                outputs=2,
                constant=range(2, 18) if has_segments else [2, 3, 5, 6, *range(8, 18)],
            )


@covers("EmbedLayerNormalization")
def embed():
    for dtype in ("float32", "float16"):
        for kind in ("whole", "no_segments", "positions"):
            name = f"embedlayernormalization_{dtype}_{kind}"
            random = random_of(name)
            words = random.integers(0, 19, (3, 7)).astype("int32")
            segments = None if kind == "no_segments" else random.integers(0, 2, (3, 7)).astype("int32")
            tables = [floats(random, (rows, 12), dtype) for rows in (19, 9, 2)]
            mask = (numpy.arange(7)[None] < numpy.array([[7], [3], [5]])).astype("int32")
            inputs = [words, segments, *tables[:2], None if segments is None else tables[2]]
            inputs += [
                floats(random, (12,), dtype),
                floats(random, (12,), dtype),
                None if kind == "no_segments" else mask,
            ]
            if kind == "positions":
                inputs.append(random.integers(0, 9, (3, 7)).astype("int32"))
            inputs = trimmed(inputs)
            attributes = {"epsilon": 1e-3}
            yield node_case(
                name,
                "EmbedLayerNormalization",
                inputs,
                attributes=attributes,
                outputs=3,
                constant=range(2, 7),
            )
            if dtype == "float32":
                yield node_case(
                    name + "_mask_type",
                    "EmbedLayerNormalization",
                    inputs,
                    attributes={**attributes, "mask_index_type": 0},
                    outputs=3,
                    constant=range(2, 7),
                )
                yield node_case(
                    name + "_symbolic",
                    "EmbedLayerNormalization",
                    inputs,
                    attributes=attributes,
                    outputs=[True, False, True],
                    constant=range(2, 7),
                    symbolic=True,
                )

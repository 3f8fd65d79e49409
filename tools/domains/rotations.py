# SPDX-License-Identifier: Apache-2.0
"""Rotations of positions: RotaryEmbedding, and the tables that other operators take of them."""

import numpy

from domains.case import covers, floats, node_case, random_of


def tables(random, positions, half, dtype="float32"):
    angles = numpy.arange(positions)[:, None] * 10000.0 ** -(numpy.arange(half) / half)[None]
    return [numpy.cos(angles).astype(dtype), numpy.sin(angles).astype(dtype)]


@covers("RotaryEmbedding")
def rotary():
    for interleaved in (0, 1):
        for kind, shape, more in (
            ("rows", (2, 5, 32), {"num_heads": 0}),
            ("heads", (2, 4, 5, 8), {}),
            ("part", (2, 5, 48), {"num_heads": 3, "rotary_embedding_dim": 8}),
        ):
            for offset in (False, True):
                name = f"rotaryembedding_{kind}_{interleaved}_{'offset' if offset else 'positions'}"
                random = random_of(name)
                at = numpy.array([3], "int64") if offset else random.integers(0, 20, (2, 5)).astype("int64")
                half = 4
                inputs = [floats(random, shape), at, *tables(random, 20, half)]
                attributes = {"interleaved": interleaved, **more}
                yield node_case(
                    "ms_" + name, "RotaryEmbedding", inputs, attributes=attributes, constant=(2, 3)
                )
    # Neither attribute has an effect; a packed sequence may be longer than the tables.
    inputs = [floats(random, (1, 24, 16)), random.integers(0, 20, (1, 24)).astype("int64"), *tables(random, 20, 4)]
    for kind, attributes in (("packed", {"is_packed_batching": 1}), ("scale", {"is_packed_batching": 1, "scale": 0.5})):
        yield node_case(f"ms_rotaryembedding_{kind}", "RotaryEmbedding", inputs, attributes=attributes)
    inputs = [floats(random, (2, 5, 16), "float16"), at, *tables(random, 20, 4, "float16")]
    yield node_case("ms_rotaryembedding_float16", "RotaryEmbedding", inputs, attributes={"num_heads": 2})

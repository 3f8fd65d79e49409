# SPDX-License-Identifier: Apache-2.0
"""GroupQueryAttention with caches of integers, and with caches of the last tokens alone."""

import numpy

from domains.case import floats, integers, node_case, random_of, trimmed
from domains.rotations import tables


def output_alone(*given, **attributes):
    """The output alone, of ONNX Runtime, which wants to write the caches, too, and has zeros in rows without a token."""
    given = [*given[:3], *(numpy.nan_to_num(each, posinf=0, neginf=0) for each in given[3:5]), *given[5:]]
    return node_case("other", "GroupQueryAttention", given, attributes=attributes, outputs=3).outputs[:1]


def of_integers():
    """Caches of int8, and of two integers of four bits in a uint8."""
    batch, heads, kv, size = 2, 4, 2, 16
    kinds = {
        "first": {"sequence": 5},
        "next": {"past": 6},
        "next_in_buffer": {"past": 6, "buffer": 12},
        "window_next": {"past": 6, "local_window_size": 3},
        "ragged_next": {"past": 6, "buffer": 9, "lengths": [4, 7]},
        "rotary_next": {"past": 6, "do_rotary": 1},
        "float16_next": {"past": 6, "dtype": "float16"},
        "symbolic": {"past": 6, "symbolic": True},
    }
    for bits, held in ((8, "int8"), (4, "uint8")):
        for scales in ("per_tensor", "per_channel"):
            for kind, given in kinds.items():
                name = f"groupqueryattention_{bits}_bits_{scales}_{kind}"
                random = random_of(name)
                given = dict(given)
                sequence, past = given.pop("sequence", 1), given.pop("past", 0)
                dtype, symbolic = given.pop("dtype", "float32"), given.pop("symbolic", False)
                lengths = given.pop("lengths", [past + sequence] * batch)
                tokens = given.pop("buffer", past)
                shape = (batch, kv, tokens, size * bits // 8)
                extents = (1,) if scales == "per_tensor" else (1, kv, 1, size)
                rows = [floats(random, (batch, sequence, each * size), dtype) for each in (heads, kv, kv)]
                caches = [integers(random, shape, held) for _ in "kv"]
                for cache in caches:  # ONNX Runtime clears what lies behind the tokens
                    for sample, length in enumerate(lengths):
                        cache[sample, :, length - sequence :] = 0
                inputs = [*rows, *caches]
                inputs += [numpy.array(lengths, "int32") - 1, numpy.array(max(lengths), "int32")]
                rotary = "do_rotary" in given
                inputs += [*(tables(random, 64, size // 2, dtype) if rotary else [None] * 2), *[None] * 3]
                inputs += [
                    ((random.random(extents) + 0.5) * 2.0 ** (2 - bits)).astype("float32") for _ in "kv"
                ]
                yield node_case(
                    name,
                    "GroupQueryAttention",
                    inputs,
                    attributes={
                        "num_heads": heads,
                        "kv_num_heads": kv,
                        "k_quant_type": scales.upper(),
                        "v_quant_type": scales.upper(),
                        "kv_cache_bit_width": bits,
                        **given,
                    },
                    outputs=3,
                    constant=(12, 13),
                    symbolic=symbolic,
                )


def _kept(tokens, room, window):
    step = room - window + 1
    return tokens - step * -(-max(tokens - room, 0) // step)


def of_windows():
    """Caches of the last tokens alone. Of a cache with rows that hold none only the output is told."""
    heads, kv, size = 4, 2, 32
    for kind, given in {
        "next": {"room": 6, "window": 6, "lengths": (10, 10)},
        "next_of_few": {"room": 6, "window": 6, "lengths": (4, 4)},
        "last_that_fits": {"room": 6, "window": 6, "lengths": (6, 6)},
        "ragged": {"room": 4, "window": 4, "lengths": (5, 9)},
        "slack": {"room": 7, "window": 4, "lengths": (11, 15)},
        "slack_evicts": {"room": 7, "window": 4, "lengths": (12, 10)},
        "many": {"room": 6, "window": 3, "lengths": (10,), "sequence": 4},
        "more_than_room": {"room": 6, "window": 6, "lengths": (20,), "sequence": 9},
        "first": {"room": 8, "window": 5, "lengths": (6, 6), "sequence": 6},
        "first_longer": {"room": 5, "window": 5, "lengths": (9, 9), "sequence": 9},
        "rotary": {"room": 6, "window": 6, "lengths": (10, 10), "do_rotary": 1},
        "sink": {"room": 6, "window": 6, "lengths": (10, 10), "smooth_softmax": 1},
        "float16": {"room": 6, "window": 6, "lengths": (10, 10), "dtype": "float16"},
        "8_bits": {"room": 6, "window": 6, "lengths": (10, 10), "bits": 8},
        "4_bits": {"room": 6, "window": 6, "lengths": (10, 10), "bits": 4},
        "symbolic": {"room": 7, "window": 4, "lengths": (11, 15), "symbolic": True},
        "unspecified": {"room": 6, "window": 4, "lengths": (1, 4, 6), "behind": numpy.nan},
        "unspecified_first": {"room": 6, "window": 3, "lengths": (1, 1), "behind": numpy.nan},
        "unspecified_many": {"room": 8, "window": 3, "lengths": (10,), "sequence": 3, "behind": numpy.inf},
        "unspecified_rotary": {"room": 6, "window": 4, "lengths": (3, 7), "do_rotary": 1, "behind": -numpy.inf},
        "unspecified_sink": {"room": 6, "window": 4, "lengths": (3, 7), "smooth_softmax": 1, "behind": numpy.nan},
        "unspecified_float16": {
            "room": 6, "window": 4, "lengths": (3, 7), "dtype": "float16", "behind": numpy.nan
        },
        "unspecified_symbolic": {"room": 7, "window": 4, "lengths": (4, 9), "symbolic": True, "behind": numpy.nan},
    }.items():  # fmt: skip
        name = f"groupqueryattention_sliding_{kind}"
        random, given = random_of(name), dict(given)
        room, window, lengths = given.pop("room"), given.pop("window"), given.pop("lengths")
        sequence, dtype, bits = given.pop("sequence", 1), given.pop("dtype", "float32"), given.pop("bits", 0)
        symbolic, batch, behind = given.pop("symbolic", False), len(lengths), given.pop("behind", 0)
        rows = [floats(random, (batch, sequence, each * size), dtype) for each in (heads, kv, kv)]
        if bits:
            held = "int8" if bits == 8 else "uint8"
            caches = [integers(random, (batch, kv, room, size * bits // 8), held) for _ in "kv"]
            kinds = dict.fromkeys(("k_quant_type", "v_quant_type"), "PER_TENSOR")
            given.update(kinds, kv_cache_bit_width=bits)
        else:
            caches = [floats(random, (batch, kv, room, size), dtype) for _ in "kv"]
        for cache in caches:
            for sample, length in enumerate(lengths):
                cache[sample, :, _kept(length - sequence, room, window) :] = behind
        inputs = [*rows, *caches, numpy.array(lengths, "int32") - 1, numpy.array(max(lengths), "int32")]
        inputs += [*(tables(random, 64, size // 2, dtype) if "do_rotary" in given else [None] * 2), *[None] * 3]
        inputs += [numpy.array([2.0 ** (2 - bits)], "float32") for _ in "kv"] if bits else []
        inputs = trimmed(inputs)
        oracle = None
        if behind or any(_kept(length, room, window) != room for length in lengths):
            oracle = output_alone
        yield node_case(
            name,
            "GroupQueryAttention",
            inputs,
            attributes={
                "num_heads": heads,
                "kv_num_heads": kv,
                "sliding_window_cache": 1,
                "local_window_size": window,
                **given,
            },
            outputs=1 if oracle else 3,
            constant=(12, 13) if bits else (),
            symbolic=symbolic,
            oracle=oracle,
        )

# SPDX-License-Identifier: Apache-2.0
"""Residual streams beside each other: their mixes, norms, gates and scaled sums."""

import ml_dtypes
import numpy

from domains.case import covers, floats, node_case, random_of

# ONNX Runtime takes no numpy arrays of bfloat16: its answers to the same numbers as float32, rounded.
def _oracle(op_type, kept):
    def answer(*inputs, **attributes):
        wide = [each.astype("float32") for each in inputs]
        (made,) = node_case("wide", op_type, wide, attributes=attributes).outputs
        return [made.astype(kept)]

    return answer if kept is ml_dtypes.bfloat16 else None


_TYPES = {"float32": numpy.float32, "float16": numpy.float16, "bfloat16": ml_dtypes.bfloat16}


@covers("HyperConnectionPreMix")
def pre_mix():
    for dtype, kept in _TYPES.items():
        for kind, gates in (("each", (2, 3, 4)), ("column", (2, 3, 4, 1)), ("features", (2, 3, 4, 5))):
            for is_flat in (False, True):
                name = f"hyperconnectionpremix_{dtype}_{kind}{'_flat' if is_flat else ''}"
                random = random_of(name)
                if is_flat and kind == "features":
                    gates = (2, 3, 20)
                x = floats(random, (2, 3, 20) if is_flat else (2, 3, 4, 5))
                attributes = {"reduction_scale": 0.5, **({"num_branches": 4} if is_flat else {})}
                inputs = [x.astype(kept), floats(random, gates).astype(kept if kind == "each" else "float32")]
                yield node_case(
                    name,
                    "HyperConnectionPreMix",
                    inputs,
                    attributes=attributes,
                    symbolic=(0,) if kind == "column" and dtype == "float32" else False,
                    oracle=_oracle("HyperConnectionPreMix", kept),
                )


@covers("HyperConnectionPostMix")
def post_mix():
    for dtype, kept in _TYPES.items():
        for kind, gates in (("each", (2, 3, 4)), ("column", (2, 3, 4, 1)), ("features", (2, 3, 4, 5))):
            for is_flat in (False, True):
                for has_mix in (False, True):
                    name = f"hyperconnectionpostmix_{dtype}_{kind}{'_flat' * is_flat}{'_mixed' * has_mix}"
                    random = random_of(name)
                    inputs = [
                        floats(random, (2, 3, 20) if is_flat else (2, 3, 4, 5)).astype(kept),
                        floats(random, (2, 3, 5)).astype(kept),
                        floats(random, gates).astype("float32" if kind == "column" else kept),
                    ]
                    if has_mix:
                        inputs.append(floats(random, (2, 3, 4, 4)).astype(inputs[2].dtype))
                    yield node_case(
                        name,
                        "HyperConnectionPostMix",
                        inputs,
                        attributes={"num_branches": 4} if is_flat else {},
                        symbolic=kind == "column" and dtype == "float32",
                        oracle=_oracle("HyperConnectionPostMix", kept),
                    )


@covers("BranchwiseRMSNorm")
def branchwise_norm():
    for dtype, kept in _TYPES.items():
        for kind, scale in (("none", None), ("shared", (5,)), ("all", (20,)), ("grouped", (4, 5))):
            for is_flat in (False, True):
                name = f"branchwisermsnorm_{dtype}_{kind}{'_flat' * is_flat}"
                random = random_of(name)
                inputs = [floats(random, (2, 3, 20) if is_flat else (2, 3, 4, 5)).astype(kept)]
                if scale:
                    inputs.append(floats(random, scale).astype("float32" if is_flat else kept))
                attributes = {"epsilon": 0.01, **({"num_branches": 4} if is_flat else {})}
                yield node_case(
                    name,
                    "BranchwiseRMSNorm",
                    inputs,
                    attributes=attributes,
                    symbolic=kind in ("none", "grouped") and dtype == "float32",
                    oracle=_oracle("BranchwiseRMSNorm", kept),
                )


@covers("GatedAdd")
def gated_add():
    for dtype in ("float32", "float16"):
        for kind, shape in (("", (2, 3, 5)), ("_row", (7,))):
            name = f"gatedadd_{dtype}{kind}"
            random = random_of(name)
            shapes = (shape, shape, (*shape[:-1], 1))
            inputs = [floats(random, each, dtype) for each in shapes]
            yield node_case(name, "GatedAdd", inputs, symbolic=not kind)


@covers("ScaledSiLU")
def scaled_silu():
    for dtype, kept in _TYPES.items():
        for kind, scale in (("alpha", None), ("scale", ())):
            name = f"scaledsilu_{dtype}_{kind}"
            random = random_of(name)
            inputs = [floats(random, (3, 17), scale=3).astype(kept)]
            if scale is not None:
                inputs.append(numpy.full(scale, 0.7, kept))
            yield node_case(
                name,
                "ScaledSiLU",
                inputs,
                attributes={"alpha": 1.5},
                symbolic=kind == "alpha",
                oracle=_oracle("ScaledSiLU", kept),
            )


@covers("EngramGate")
def engram_gate():
    for dtype in ("float32", "float16"):
        for has_norm in (False, True):
            name = f"engramgate_{dtype}{'_normed' * has_norm}"
            random = random_of(name)
            shapes = [(2, 3, 4, 6), (2, 3, 4, 6), (2, 3, 6), (4, 6), (4, 6), *([(4, 6)] if has_norm else [])]
            inputs = [floats(random, each, dtype) for each in shapes]
            yield node_case(
                name,
                "EngramGate",
                inputs,
                attributes={"epsilon": 0.01},
                outputs=1 + has_norm,
                constant=range(3, len(inputs)),
                symbolic=not has_norm,
            )

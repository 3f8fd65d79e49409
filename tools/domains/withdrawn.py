# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX's own domain that only its first versions had."""

import numpy

from domains.case import covers, floats, node_case, random_of

# The last operator set in which ONNX Runtime knows them all.
OPSET = 9
# What ONNX has under the name of an experiment came before.
BEFORE_ONNX = 6


def _case(name, op_type, inputs, attributes=None, opset=OPSET, **options):
    return node_case(
        f"withdrawn_{name}", op_type, inputs, attributes=attributes, domain="", opset=opset, **options
    )


@covers("Affine", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh", "ThresholdedRelu")
def elementwise():
    x = floats(random_of("withdrawn"), (2, 3, 5, 7), scale=3)
    slope = {"alpha": 0.75, "beta": -1.5}
    for is_symbolic in (False, True):
        end = "_symbolic" if is_symbolic else ""
        bias = {"bias": [0.5, -1.0, 2.0]}
        yield _case("affine" + end, "Affine", [x], slope, symbolic=is_symbolic)
        yield _case("imagescaler" + end, "ImageScaler", [x], {"scale": 0.25, **bias}, symbolic=is_symbolic)
        yield _case("scaledtanh" + end, "ScaledTanh", [x], slope, symbolic=is_symbolic)
        yield _case("softplus" + end, "ParametricSoftplus", [x], slope, symbolic=is_symbolic)
        yield _case("scale" + end, "Scale", [x], {"scale": -2.5}, symbolic=is_symbolic)
    yield _case("affine_defaults", "Affine", [x])
    yield _case("imagescaler_defaults", "ImageScaler", [x], bias)
    yield _case("scale_defaults", "Scale", [x])
    # ONNX's own since operator set 10.
    yield _case("thresholdedrelu", "ThresholdedRelu", [x], {"alpha": 0.5})
    yield _case("thresholdedrelu_defaults", "ThresholdedRelu", [x])


@covers("Crop", "DynamicSlice")
def parts():
    x = floats(random_of("withdrawn parts"), (2, 3, 9, 8))
    for name, attributes in (
        ("borders", {"border": [1, 2, 3, 0]}),
        ("extents", {"border": [2, 1, 0, 0], "scale": [5, 4]}),
        ("all", {"border": [0, 0, 0, 0]}),
    ):
        for is_symbolic in (False, True):
            end = "_symbolic" if is_symbolic else ""
            yield _case(f"crop_{name}{end}", "Crop", [x], attributes, symbolic=is_symbolic)
    for dtype in ("int32", "int64"):
        bounds = [numpy.array(numbers, dtype) for numbers in ([1, -5], [3, 100], [1, 2])]
        yield _case(f"dynamicslice_{dtype}", "DynamicSlice", [x, *bounds], constant=True)
        yield _case(f"dynamicslice_{dtype}_run_time", "DynamicSlice", [x, *bounds])
    yield _case("dynamicslice_first_axes", "DynamicSlice", [x, *bounds[:2]], constant=True)


@covers("MeanVarianceNormalization")
def normalization():
    x = floats(random_of("withdrawn means"), (2, 3, 5, 7), scale=2)
    for across in (0, 1):
        for variance in (0, 1):
            attributes = {"across_channels": across, "normalize_variance": variance}
            yield _case(
                f"meanvariance_{across}_{variance}",
                "MeanVarianceNormalization",
                [x],
                attributes,
                opset=BEFORE_ONNX,
                symbolic=across == variance,
            )
    yield _case("meanvariance_defaults", "MeanVarianceNormalization", [x], opset=BEFORE_ONNX)

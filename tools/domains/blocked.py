# SPDX-License-Identifier: Apache-2.0
"""Operators on images with channels in blocks (com.microsoft.nchwc), between the two that turn the order.

The number of channels in a block is that of the processor, for ONNX Runtime and for the library.
"""

import functools
import pathlib
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import helper

from domains import case, declarations
from domains.case import covers, floats, random_of


@functools.cache
def block():
    """Channels of a block on this processor: what ONNX Runtime makes of a convolution to 8."""
    weights = onnx.numpy_helper.from_array(numpy.zeros((8, 3, 1, 1), "float32"), "w")
    values = [helper.make_tensor_value_info("x", 1, [1, 3, 4, 4]), helper.make_tensor_value_info("y", 1, None)]
    node = helper.make_node("Conv", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "block", values[:1], values[1:], [weights])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath = str(pathlib.Path(folder) / "model.onnx")
        options.log_severity_level = 3
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        saved = onnx.load(options.optimized_model_filepath)
    return saved.graph.initializer[0].dims[0]


def _case(name, image, nodes, channels, constants=(), *, symbolic=False, before=None, after=None):
    """`nodes`: operators with the names of their other inputs and their attributes, one after the other between
    ReorderInput (unless `before` is False) and ReorderOutput, which leaves `channels`; their attributes."""
    made, value = [], "x"
    steps = [*nodes, ("ReorderOutput", (), {"channels": channels, **(after or {})})]
    if before is not False:
        steps.insert(0, ("ReorderInput", (), before or {}))
    for k, (op_type, others, attributes) in enumerate(steps):
        result = "y" if k == len(steps) - 1 else f"value_{k}"
        made.append(
            helper.make_node(op_type, [value, *others], [result], domain=declarations.BLOCKED, **attributes)
        )
        value = result
    shape = ["n", image.shape[1], "h", "w"] if symbolic else image.shape
    inputs = [helper.make_tensor_value_info("x", 1, shape)]
    weights = [onnx.numpy_helper.from_array(array, each) for each, array in dict(constants).items()]

    def build(answer):
        output = helper.make_tensor_value_info("y", 1, None if answer is None or symbolic else answer.shape)
        graph = helper.make_graph(made, "test_nchwc_" + name, inputs, [output], weights)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(declarations.BLOCKED, 1)]
        return helper.make_model(graph, ir_version=10, opset_imports=opsets, producer_name="onnxifi")

    (answer,) = case.run_reference(build(None), {"x": image})
    return case.Case("test_nchwc_" + name, build(answer), [image], [answer], 2e-5, 2e-5)


def _keys(*names):
    return [declarations.operator_key(declarations.BLOCKED, name) for name in names]


@covers(*_keys("ReorderInput", "ReorderOutput"))
def orders():
    random, size = random_of("nchwc orders"), block()
    for channels in (4, size, size + 4, 2 * size + 8):
        image = floats(random, (2, channels, 5, 3))
        yield _case(f"order_{channels}", image, (), channels)
        yield _case(f"order_{channels}_symbolic", image, (), channels, symbolic=True)
        last = {"channels_last": 1}
        turned = numpy.ascontiguousarray(image.transpose(0, 2, 3, 1))
        yield _case(f"order_{channels}_last", turned, (), channels, before=last, after=last)


@covers(*_keys("Conv"))
def convolutions():
    size = block()
    plain, strided = {"pads": [1] * 4}, {"strides": [2, 1], "pads": [1, 0, 0, 1], "kernel_shape": [3, 3]}

    def convolution(name, inputs, outputs, attributes, *, groups=1, kernel=(3, 3), bias=True, **options):
        random = random_of("nchwc " + name)
        filters = floats(random, (outputs, inputs // groups, *kernel), scale=0.2)
        constants, others = {"w": filters}, ["w"]
        if bias:
            constants["b"], others = floats(random, (outputs,)), ["w", "b"]
        attributes = attributes if groups == 1 else {**attributes, "group": groups}
        node = ("Conv", others, attributes)
        return _case(name, floats(random, (2, inputs, 9, 7)), [node], outputs - 3, constants, **options)

    for inputs in (1, 3, size - 1):  # which stay in ONNX's order
        yield convolution(f"conv_image_{inputs}", inputs, 2 * size, plain, before=False)
    for name, attributes in (("plain", plain), ("strided", strided), ("same", {"auto_pad": "SAME_LOWER"})):
        for is_symbolic in (False, True):
            end = "_symbolic" if is_symbolic else ""
            yield convolution(f"conv_{name}{end}", 2 * size, 3 * size, attributes, symbolic=is_symbolic)
            yield convolution(
                f"conv_depthwise_{name}{end}", 2 * size, 2 * size, attributes, groups=2 * size, symbolic=is_symbolic
            )
    yield convolution("conv_pointwise", 2 * size, size, {}, kernel=(1, 1), bias=False)
    yield convolution("conv_groups", 4 * size, 2 * size, {"dilations": [2, 1]}, groups=2)
    yield convolution("conv_kernel", size, size, {}, kernel=(2, 5))
    for activation, parameters in (
        ("Relu", None),
        ("Tanh", None),
        ("Sigmoid", None),
        ("LeakyRelu", [0.2]),
        ("HardSigmoid", [0.3, 0.4]),
        ("Clip", [-0.5, 0.75]),
        ("HardSwish", None),
    ):
        attributes = {**plain, "activation": activation}
        if parameters:
            attributes["activation_params"] = parameters
        yield convolution(f"conv_{activation.lower()}", size, size, attributes)
    random = random_of("nchwc sum")
    constants = {name: floats(random, (size, size, 3, 3), scale=0.2) for name in ("w", "v")}
    nodes = [("Conv", ["w"], plain), ("Conv", ["v", "", "value_1"], {**plain, "activation": "Relu"})]
    yield _case("conv_sum", floats(random, (1, size, 6, 5)), nodes, size, constants)


@covers(*_keys("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Upsample"))
def pools():
    random, size = random_of("nchwc pools"), block()
    image = floats(random, (2, 2 * size, 9, 7))
    window = {"kernel_shape": [3, 2], "strides": [2, 1]}
    for kind in ("MaxPool", "AveragePool"):
        for name, attributes in (
            ("plain", window),
            ("pads", {**window, "pads": [1, 0, 1, 1]}),
            ("ceil", {**window, "pads": [1, 0, 1, 1], "ceil_mode": 1}),
            ("same", {**window, "auto_pad": "SAME_UPPER"}),
            ("dilations", {"kernel_shape": [2, 3], "dilations": [2, 1]}),
        ):
            node = (kind, (), attributes)
            yield _case(f"{kind.lower()}_{name}", image, [node], 2 * size - 1)
            yield _case(f"{kind.lower()}_{name}_symbolic", image, [node], 2 * size, symbolic=True)
        yield _case(f"global{kind.lower()}", image, [("Global" + kind, (), {})], 2 * size - 2)
    node = ("MaxPool", (), {**window, "storage_order": 1})
    yield _case("maxpool_storage_order", image, [node], 2 * size)
    node = ("AveragePool", (), {**window, "pads": [1, 0, 1, 1], "count_include_pad": 1})
    yield _case("averagepool_count_include_pad", image, [node], 2 * size)
    for mode, coordinates in (
        ("nearest", None),
        ("linear", "asymmetric"),
        ("linear", "align_corners"),
        ("linear", "half_pixel"),
    ):
        for scales in ([1, 1, 2, 2], [1, 1, 3, 1]):
            attributes = {"mode": mode, "scales": scales}
            if coordinates:
                attributes["coordinate_transformation_mode"] = coordinates
            name = f"upsample_{mode}_{coordinates}_{scales[2]}"
            yield _case(name, image, [("Upsample", (), attributes)], 2 * size)

# SPDX-License-Identifier: Apache-2.0
"""Whole models, as ONNX Runtime's own tools write them from small seeded networks.

The quantizer makes integers of a convolutional network, an encoder and an LSTM; the transformer optimizer
and ONNX Runtime's own optimizations fuse them; the 4-bit quantizer packs the weights of a decoder.
"""

import logging
import pathlib
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization import matmul_nbits_quantizer
from onnxruntime.transformers import optimizer

from domains import case
from domains.case import covers, floats, random_of

# The quantizers say what they do.
logging.disable(logging.WARNING)

_OPSET = 17


class _Network:
    """A graph under construction; weights are drawn by its name."""

    def __init__(self, name):
        self.random = random_of(name)
        self.name = name
        self.nodes, self.constants, self.inputs = [], [], []

    def constant(self, array):
        array = numpy.asarray(array)
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape, scale=None):
        return self.constant(floats(self.random, shape, scale=scale or shape[-1] ** -0.5))

    def add(self, op_type, *inputs, outputs=1, domain="", **attributes):
        names = [f"{op_type.lower()}_{len(self.nodes)}_{k}" for k in range(outputs)]
        node = helper.make_node(op_type, inputs, names, name=names[0], domain=domain, **attributes)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def add_skip(self, x, y, scale):
        """The normalized sum, and the sum; what lies between is omitted."""
        names = [f"skip_{len(self.nodes)}_{k}" for k in range(2)]
        self.nodes.append(
            helper.make_node(
                "SkipSimplifiedLayerNormalization",
                [x, y, scale],
                [names[0], "", "", names[1]],
                name=names[0],
                domain=case.DOMAIN,
                epsilon=1e-5,
            )
        )
        return names

    def input(self, name, dtype, shape):
        number = helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, number, shape))
        return name

    def model(self, outputs, opset=_OPSET):
        made = [helper.make_tensor_value_info(name, 1, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, made, self.constants)
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(case.DOMAIN, 1)]
        model = helper.make_model(graph, ir_version=8, opset_imports=opsets, producer_name="onnxifi")
        return onnx.shape_inference.infer_shapes(model)

    def project(self, x, fan_in, fan_out):
        product = self.add("MatMul", x, self.weights(fan_in, fan_out, scale=fan_in**-0.5))
        return self.add("Add", self.weights(fan_out, scale=0.1), product)

    def normalize(self, x, width):
        scale = self.constant(self.random.uniform(0.6, 1.4, width).astype("float32"))
        return self.add("LayerNormalization", x, scale, self.weights(width, scale=0.2), epsilon=1e-5, axis=-1)

    def extent(self, x, axis):
        return self.add("Gather", self.add("Shape", x), self.constant(numpy.array(axis)), axis=0)

    def reshape(self, x, *extents):
        parts = [
            (
                self.constant(numpy.array([extent]))
                if isinstance(extent, int)
                else self.add("Unsqueeze", extent, self.constant(numpy.array([0])))
            )
            for extent in extents
        ]
        return self.add("Reshape", x, self.add("Concat", *parts, axis=0))


def _convolutional():
    net = _Network("convolutional")
    x = net.input("image", "float32", ["batch", 3, 16, 20])
    x = net.add(
        "Relu",
        net.add(
            "Conv", x, net.weights(8, 3, 3, 3, scale=0.3), net.weights(8), kernel_shape=[3, 3], pads=[1] * 4
        ),
    )
    y = net.add(
        "Relu",
        net.add(
            "Conv", x, net.weights(8, 8, 3, 3, scale=0.15), net.weights(8), kernel_shape=[3, 3], pads=[1] * 4
        ),
    )
    x = net.add("Add", x, y)
    x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    gate = net.add(
        "Sigmoid", net.add("Conv", x, net.weights(8, 8, 1, 1), net.weights(8), kernel_shape=[1, 1])
    )
    x = net.add("Mul", x, gate)
    left = net.add(
        "LeakyRelu",
        net.add("Conv", x, net.weights(6, 8, 1, 1), net.weights(6), kernel_shape=[1, 1]),
        alpha=0.2,
    )
    right = net.add("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    x = net.add("Concat", left, right, axis=1)
    x = net.add("Flatten", net.add("GlobalAveragePool", x), axis=1)
    x = net.add("Gemm", x, net.weights(10, 14, scale=0.5), net.weights(10), transB=1)
    return net.model({x: ["batch", 10]})


def _activated():
    """A product before each activation that the optimizer moves into one, as operator set 9 has them."""
    net = _Network("activated")
    x = net.input("rows", "float32", ["batch", 12])
    for activation, attributes in (
        ("Elu", {"alpha": 0.8}),
        ("HardSigmoid", {"alpha": 0.3}),
        ("LeakyRelu", {}),
        ("ParametricSoftplus", {"alpha": 0.9, "beta": 1.25}),
        ("Relu", {}),
        ("ScaledTanh", {"alpha": 1.5, "beta": 0.5}),
        ("Selu", {}),
        ("Sigmoid", {}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("Tanh", {}),
        ("ThresholdedRelu", {"alpha": 0.1}),
    ):
        product = net.add("Gemm", x, net.weights(12, 12), net.weights(12, scale=0.3), transB=1)
        x = net.add(activation, product, **attributes)
    output = helper.make_tensor_value_info(x, 1, ["batch", 12])
    graph = helper.make_graph(net.nodes, net.name, net.inputs, [output], net.constants)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 9)], producer_name="onnxifi")


def _blocked():
    """A convolutional network of which the optimizer keeps all images in blocks of channels."""
    net = _Network("blocked")
    x = net.input("image", "float32", ["batch", 3, 16, 20])
    convolution = lambda x, outputs, inputs, size=3, groups=1: net.add(
        "Conv", x, net.weights(outputs, inputs // groups, size, size, scale=0.3 * inputs**-0.5), net.weights(outputs),
        kernel_shape=[size] * 2, pads=[size // 2] * 4, group=groups)  # fmt: skip
    x = net.add("Relu", convolution(x, 32, 3))
    y = net.add("Relu", convolution(x, 32, 32, groups=32))
    x = net.add("Relu", net.add("Add", convolution(y, 32, 32), x))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    y = convolution(x, 32, 32, 1)
    gate = net.add("Mul", y, net.add("Sigmoid", y))
    pool = net.add("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    x = net.add("Concat", gate, pool, axis=1)
    statistics = [net.constant(net.random.uniform(0.5, 1.5, 64).astype("float32")) for _ in range(4)]
    x = net.add("BatchNormalization", x, *statistics)
    x = net.add("LeakyRelu", convolution(x, 32, 64, groups=2), alpha=0.1)
    x = net.add("Resize", x, "", net.constant(numpy.array([1, 1, 2, 2], "float32")), mode="linear",
                coordinate_transformation_mode="half_pixel")  # fmt: skip
    x = net.add("GlobalAveragePool", convolution(x, 20, 32))
    return net.model({x: ["batch", 20, 1, 1]})


_HEADS, _SIZE = 2, 16
_WIDTH = _HEADS * _SIZE


def _encoder():
    """As PyTorch's exporter writes BERT."""
    net = _Network("encoder")
    tokens = net.input("input_ids", "int64", ["batch", "sequence"])
    mask = net.input("attention_mask", "int64", ["batch", "sequence"])
    positions = net.add(
        "Slice",
        net.constant(numpy.arange(32)[None]),
        net.constant(numpy.array([0])),
        net.add("Unsqueeze", net.extent(tokens, 1), net.constant(numpy.array([0]))),
        net.constant(numpy.array([1])),
    )
    x = net.add("Gather", net.weights(40, _WIDTH, scale=1.0), tokens, axis=0)
    x = net.normalize(
        net.add("Add", x, net.add("Gather", net.weights(32, _WIDTH, scale=0.5), positions, axis=0)), _WIDTH
    )
    mask = net.add(
        "Cast",
        net.add(
            "Unsqueeze",
            net.add("Unsqueeze", mask, net.constant(numpy.array([1]))),
            net.constant(numpy.array([2])),
        ),
        to=1,
    )
    mask = net.add("Sub", net.constant(numpy.float32(1)), mask)
    mask = net.add("Mul", mask, net.constant(numpy.float32(-10000)))
    for _ in range(2):
        q, k, v = (
            net.add(
                "Transpose",
                net.reshape(
                    net.project(x, _WIDTH, _WIDTH), net.extent(x, 0), net.extent(x, 1), _HEADS, _SIZE
                ),
                perm=perm,
            )
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scores = net.add("Div", net.add("MatMul", q, k), net.constant(numpy.float32(_SIZE**0.5)))
        shares = net.add("Softmax", net.add("Add", scores, mask), axis=-1)
        y = net.add("Transpose", net.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        y = net.project(net.reshape(y, net.extent(y, 0), net.extent(y, 1), _WIDTH), _WIDTH, _WIDTH)
        x = net.normalize(net.add("Add", y, x), _WIDTH)
        y = net.project(x, _WIDTH, 3 * _WIDTH)
        erf = net.add("Erf", net.add("Div", y, net.constant(numpy.float32(2**0.5))))
        y = net.add(
            "Mul",
            net.add("Mul", y, net.add("Add", erf, net.constant(numpy.float32(1)))),
            net.constant(numpy.float32(0.5)),
        )
        x = net.normalize(net.add("Add", net.project(y, 3 * _WIDTH, _WIDTH), x), _WIDTH)
    return net.model({x: ["batch", "sequence", _WIDTH]})


def _recurrent():
    net = _Network("recurrent")
    x = net.input("frames", "float32", ["steps", "batch", 12])
    hidden = 8
    y, _, _ = net.add(
        "LSTM",
        x,
        net.weights(2, 4 * hidden, 12, scale=0.2),
        net.weights(2, 4 * hidden, hidden, scale=0.2),
        net.weights(2, 8 * hidden, scale=0.1),
        outputs=3,
        hidden_size=hidden,
        direction="bidirectional",
    )
    y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), net.constant(numpy.array([0, 0, -1])))
    x = net.add("MatMul", y, net.weights(2 * hidden, 6))
    return net.model({x: ["steps", "batch", 6]})


def _decoder():
    """As the model builder writes it: a cache, rotations, gates; its weights are not packed yet."""
    net = _Network("decoder")
    kv = 1
    tokens = net.input("input_ids", "int64", ["batch", "sequence"])
    mask = net.input("attention_mask", "int64", ["batch", "total"])
    caches = [
        [
            net.input(f"past_{layer}_{part}", "float32", ["batch", kv, "past", _SIZE])
            for part in ("key", "value")
        ]
        for layer in range(2)
    ]
    one = net.constant(numpy.array([1]))
    sums = net.add("ReduceSum", mask, one, keepdims=0)
    seqlens = net.add("Cast", net.add("Sub", sums, one), to=6)
    total = net.add("Cast", net.extent(mask, 1), to=6)
    angles = numpy.arange(64)[:, None] * 100.0 ** -(numpy.arange(_SIZE // 2) / (_SIZE // 2))[None]
    tables = [net.constant(function(angles).astype("float32")) for function in (numpy.cos, numpy.sin)]
    scale = lambda: net.constant(net.random.uniform(0.6, 1.4, _WIDTH).astype("float32"))
    x = net.add("Gather", net.weights(40, _WIDTH, scale=1.0), tokens, axis=0)
    normal = net.add("SimplifiedLayerNormalization", x, scale(), axis=-1, epsilon=1e-5, stash_type=1)
    outputs = {}
    multiply = lambda value, fan_in, fan_out: net.add(
        "MatMul", value, net.weights(fan_in, fan_out, scale=fan_in**-0.5)
    )
    for layer in range(2):
        q, k, v = (
            multiply(normal, _WIDTH, _WIDTH),
            multiply(normal, _WIDTH, kv * _SIZE),
            multiply(normal, _WIDTH, kv * _SIZE),
        )
        y, key, value = net.add(
            "GroupQueryAttention",
            q,
            k,
            v,
            *caches[layer],
            seqlens,
            total,
            *tables,
            outputs=3,
            domain=case.DOMAIN,
            num_heads=_HEADS,
            kv_num_heads=kv,
            do_rotary=1,
            rotary_interleaved=0,
        )
        outputs.update({key: ["batch", kv, "total", _SIZE], value: ["batch", kv, "total", _SIZE]})
        y = multiply(y, _WIDTH, _WIDTH)
        normal, x = net.add_skip(x, y, scale())
        gate, up = multiply(normal, _WIDTH, 2 * _WIDTH), multiply(normal, _WIDTH, 2 * _WIDTH)
        y = multiply(net.add("Mul", net.add("Mul", gate, net.add("Sigmoid", gate)), up), 2 * _WIDTH, _WIDTH)
        normal, x = net.add_skip(x, y, scale())
    logits = multiply(normal, _WIDTH, 40)
    return _declare(net, {logits: ["batch", "sequence", 40], **outputs})


def _declare(net, outputs):
    made = [helper.make_tensor_value_info(name, 1, shape) for name, shape in outputs.items()]
    graph = helper.make_graph(net.nodes, net.name, net.inputs, made, net.constants)
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(case.DOMAIN, 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets, producer_name="onnxifi")


class _Samples(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self._feeds = iter(feeds)

    def get_next(self):
        return next(self._feeds, None)


def _through_files(model, write):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "source.onnx", pathlib.Path(folder) / "target.onnx"
        onnx.save(model, source)
        write(source, target)
        return onnx.load(target)


def _optimized(model, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED):
    def write(source, target):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(target)
        options.log_severity_level = 3
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return _through_files(model, write)


def _static(model, feeds, **settings):
    return _through_files(
        model,
        lambda source, target: quantization.quantize_static(source, target, _Samples(feeds), **settings),
    )


def _whole(name, model, feeds, rtol, atol, wants=()):
    """A case of the model; `wants`: operators that it has to have."""
    found = {node.op_type for node in model.graph.node}
    missing = set(wants) - found
    if missing:
        raise ValueError(f"{name} has no {', '.join(sorted(missing))}, only {', '.join(sorted(found))}.")
    answers = case.run_reference(model, feeds)
    names = [value.name for value in model.graph.input]
    return case.Case("test_whole_" + name, model, [feeds[each] for each in names], answers, rtol, atol)


@covers("whole models")
def networks():
    random = random_of("networks")
    images = [{"image": floats(random, (2, 3, 16, 20))} for _ in range(4)]
    convolutional = _convolutional()
    # A sum that lies between two integers takes either, and what follows goes on from there.
    steps = {"rtol": 0, "atol": 0.06}
    for kind, form, more in (
        ("qoperator", quantization.QuantFormat.QOperator, {}),
        (
            "qoperator_int8",
            quantization.QuantFormat.QOperator,
            {"activation_type": quantization.QuantType.QInt8},
        ),
        ("qdq", quantization.QuantFormat.QDQ, {"per_channel": True}),
    ):
        made = _static(
            convolutional,
            images,
            quant_format=form,
            weight_type=quantization.QuantType.QInt8,
            reduce_range=True,
            **more,
        )
        wants = (
            ("QLinearAdd", "QLinearMul", "QLinearConcat", "QLinearSigmoid")
            if form == quantization.QuantFormat.QOperator
            else ()
        )
        yield _whole("convolutional_" + kind, made, images[3], wants=wants, **steps)
    yield _whole("convolutional_fused", _optimized(convolutional), images[3], 1e-4, 1e-4, ("FusedConv",))

    everything = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    wants = ("ReorderOutput", "Upsample")
    yield _whole("convolutional_all", _optimized(convolutional, everything), images[3], 1e-4, 1e-4, wants[:1])
    yield _whole("blocked_all", _optimized(_blocked(), everything), images[3], 1e-4, 1e-4, wants)

    activated = _optimized(_activated())
    if {node.op_type for node in activated.graph.node} != {"FusedGemm"}:
        raise ValueError("The optimizer leaves an activation outside of a product.")
    yield _whole("activated_extended", activated, {"rows": floats(random, (5, 12))}, 1e-5, 1e-5)

    encoder = _encoder()
    words = {
        "input_ids": random.integers(0, 40, (3, 9)),
        "attention_mask": (numpy.arange(9)[None] < [[9], [4], [7]]).astype("int64"),
    }
    fused = optimizer.optimize_model(
        encoder, model_type="bert", num_heads=_HEADS, hidden_size=_WIDTH, opt_level=0
    )
    yield _whole("encoder_fused", fused.model, words, 1e-4, 1e-4, ("SkipLayerNormalization",))
    yield _whole("encoder_extended", _optimized(_encoder()), words, 1e-4, 1e-4, ("SkipLayerNormalization",))
    quantize = lambda source, target: quantization.quantize_dynamic(source, target, reduce_range=True)
    yield _whole(
        "encoder_fused_dynamic",
        _through_files(fused.model, quantize),
        words,
        0,
        0.05,
        ("QAttention", "QEmbedLayerNormalization"),
    )
    dynamic = _through_files(_encoder(), quantize)
    yield _whole("encoder_dynamic", dynamic, words, 0, 0.05, ("DynamicQuantizeLinear", "MatMulInteger"))
    yield _whole("encoder_dynamic_extended", _optimized(dynamic), words, 0, 0.05)

    frames = {"frames": floats(random, (7, 2, 12))}
    yield _whole(
        "recurrent_dynamic", _through_files(_recurrent(), quantize), frames, 0, 0.05, ("DynamicQuantizeLSTM",)
    )

    decoder = _decoder()
    batch, past, sequence = 1, 6, 1
    feeds = {
        "input_ids": random.integers(0, 40, (batch, sequence)),
        "attention_mask": numpy.ones((batch, past + sequence), "int64"),
    }
    for layer in range(2):
        for part in ("key", "value"):
            feeds[f"past_{layer}_{part}"] = floats(random, (batch, 1, past, _SIZE))
    yield _whole("decoder", decoder, feeds, 1e-4, 1e-4, ("GroupQueryAttention",))
    for bits, symmetric in ((4, True), (4, False), (8, False)):
        packed = matmul_nbits_quantizer.MatMulNBitsQuantizer(
            onnx.ModelProto.FromString(decoder.SerializeToString()),
            bits=bits,
            block_size=16,
            is_symmetric=symmetric,
        )
        packed.process()
        name = f"decoder_{bits}_bits" + ("" if symmetric else "_zero_points")
        yield _whole(name, packed.model.model, feeds, 1e-3, 1e-3, ("MatMulNBits", "GroupQueryAttention"))

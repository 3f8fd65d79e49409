# SPDX-License-Identifier: Apache-2.0
"""Convolutions as networks have them, for convolutions.py: how they are taken from models, which are chosen,
and those of well-known networks where the models have too few of a kind.

A layer that reads the network's input or makes its output stands at that edge of the model that is timed;
towards the rest of the network a convolution of 1 x 1 stands beside it, so that tensors lie as networks have
them. These neighbours are part of the time, of the operations and of the bytes, and therefore as cheap as
they can be: the one before reads 4 channels, and in front of the one behind stands a pooling to a quarter of
the pixels along each axis. Strides instead would be taken over by the layer: a peer then leaves out most of it.
"""

import dataclasses
import json
import math
import pathlib

import numpy

LIST = pathlib.Path(__file__).with_name("convolution_layers.json")
# Channels that the neighbour before a layer reads; those that the one behind makes, of how few pixels.
_BEFORE, _BEHIND, _POOLED = 4, 16, 4
# Of a kind, out of models.
_MOST = 12
_FEW_CHANNELS, _LARGE_KERNEL = 16, 5
_OPSET = 21
# Activations of one node that reads nothing but the layer's result and constants.
_ACTIVATIONS = (
    "Relu LeakyRelu Clip Sigmoid Tanh HardSwish HardSigmoid Elu Selu Softplus Mish Gelu".split()
)


@dataclasses.dataclass(frozen=True)
class Layer:
    """A convolution with constant weights; extents as ONNX has them, weights as Conv or ConvTranspose has."""

    op_type: str
    input: tuple
    weights: tuple
    strides: tuple
    pads: tuple
    dilations: tuple
    group: int = 1
    output_padding: tuple = ()
    # The node behind it: its operator, "Silu" for x * sigmoid(x), or nothing; and its numbers.
    activation: str = ""
    numbers: tuple = ()
    is_first: bool = False
    is_last: bool = False
    network: str = dataclasses.field(default="", compare=False)

    @property
    def outs(self):
        return self.weights[1] * self.group if self.is_transposed else self.weights[0]

    @property
    def is_transposed(self):
        return self.op_type == "ConvTranspose"

    @property
    def output(self):
        rank = len(self.weights) - 2
        extents = []
        for axis, (extent, kernel) in enumerate(zip(self.input[2:], self.weights[2:])):
            reach = (kernel - 1) * self.dilations[axis] + 1
            pad = self.pads[axis] + self.pads[rank + axis]
            if self.is_transposed:
                extents.append((extent - 1) * self.strides[axis] + reach - pad + self.output_padding[axis])
            else:
                extents.append((extent + pad - reach) // self.strides[axis] + 1)
        return (self.input[0], self.outs, *extents)

    @property
    def kind(self):
        kernel, ins = self.weights[2:], self.input[1]
        if self.is_transposed:
            return "transposed"
        if len(kernel) != 2:
            return {1: "along one axis", 3: "along three axes"}[len(kernel)]
        if self.group > 1:
            return "depthwise" if self.group == ins else "grouped"
        if max(self.dilations) > 1:
            return "dilated"
        if self.is_first and ins <= 4:
            return "first"
        if max(kernel) >= _LARGE_KERNEL:
            return "large kernels"
        if min(ins, self.outs) <= _FEW_CHANNELS:
            return "few channels"
        return "1 x 1" if max(kernel) == 1 else "3 x 3"

    @property
    def name(self):
        def join(extents):
            return "x".join(map(str, extents))

        def one_or_all(extents):
            return str(extents[0]) if len(set(extents)) == 1 else join(extents)

        parts = [f"{self.input[1]}>{self.outs} {join(self.input[2:])} k{join(self.weights[2:])}"]
        if max(self.strides) > 1:
            parts[0] += f"s{one_or_all(self.strides)}"
        if any(self.pads):
            parts.append(f"p{one_or_all(self.pads)}")
        if max(self.dilations) > 1:
            parts.append(f"d{one_or_all(self.dilations)}")
        if self.group > 1:
            parts.append(f"g{self.group}")
        if any(self.output_padding):
            parts.append(f"+{one_or_all(self.output_padding)}")
        if self.input[0] > 1:
            parts.append(f"batch {self.input[0]}")
        # A clip without its bounds would be another one's name.
        numbers = "".join(f" {number:g}" for number in self.numbers)
        parts += [self.activation + numbers] if self.activation else []
        parts += ["first"] * self.is_first + ["last"] * self.is_last
        return ("transposed " if self.is_transposed else "") + " ".join(parts)

    @property
    def flops(self):
        """Multiply-adds count as two; those with padding count as well, as in everybody's figures."""
        pixels = math.prod(self.input[2:]) if self.is_transposed else math.prod(self.output[2:])
        return 2 * self.input[0] * pixels * math.prod(self.weights)

    @property
    def pooling(self):
        """Of the pixels behind it, which have no strides left over."""
        return tuple(min(_POOLED, extent) for extent in self.output[2:])

    def _pixels_around(self):
        """Of the neighbours before and behind; 0 where there is no neighbour."""
        before = 0 if self.is_first else self.input[0] * math.prod(self.input[2:])
        kept = math.prod(extent // pooled for extent, pooled in zip(self.output[2:], self.pooling))
        return before, 0 if self.is_last else self.input[0] * kept

    @property
    def model_flops(self):
        before, behind = self._pixels_around()
        return self.flops + 2 * before * _BEFORE * self.input[1] + 2 * behind * self.outs * _BEHIND

    @property
    def model_bytes(self):
        """Of each tensor what is written once, and what is read once."""
        before, behind = self._pixels_around()
        ins, outs = math.prod(self.input), math.prod(self.output)
        own = ins + math.prod(self.weights) + outs * (1 + (not self.is_last))
        return 4 * (own + before * (_BEFORE + self.input[1]) + behind * (_BEHIND + 2 * self.outs))


def build_model(onnx, layer):
    """The model of a layer with its neighbours, and {name: array} of its input."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    random = numpy.random.default_rng(0)
    nodes, initializers = [], []

    def convolve(op_type, source, target, shape, fan_in, **attributes):
        weights = random.standard_normal(shape, "float32") / math.sqrt(fan_in)
        outs = shape[1] * attributes.get("group", 1) if op_type == "ConvTranspose" else shape[0]
        bias = random.standard_normal(outs, "float32")
        names = [f"weights_{target}", f"bias_{target}"]
        initializers.extend(
            numpy_helper.from_array(array.astype("float32"), name) for array, name in zip((weights, bias), names)
        )
        nodes.append(helper.make_node(op_type, [source, *names], [target], **attributes))
        return target

    rank = len(layer.weights) - 2
    ones = [1] * rank
    shape = list(layer.input)
    last = "input"
    if not layer.is_first:
        shape[1] = _BEFORE
        last = convolve("Conv", last, "before", (layer.input[1], _BEFORE, *ones), _BEFORE)
    attributes = {
        "kernel_shape": layer.weights[2:],
        "strides": layer.strides,
        "pads": layer.pads,
        "dilations": layer.dilations,
        "group": layer.group,
    }
    if layer.is_transposed:
        attributes["output_padding"] = layer.output_padding
    fan_in = layer.flops / 2 / math.prod(layer.output)
    last = convolve(layer.op_type, last, "convolved", layer.weights, fan_in, **attributes)
    if layer.activation:
        last = _activate(onnx, layer, last, nodes, initializers)
    if not layer.is_last:
        pooling = {"kernel_shape": layer.pooling, "strides": layer.pooling}
        nodes.append(helper.make_node("MaxPool", [last], ["pooled"], **pooling))
        last = convolve("Conv", "pooled", "behind", (_BEHIND, layer.outs, *ones), layer.outs)
    float_type = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("input", float_type, shape)],
        [onnx.ValueInfoProto(name=last)],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10)
    feeds = {"input": random.standard_normal(shape, "float32")}
    return onnx.shape_inference.infer_shapes(model), feeds


def _activate(onnx, layer, source, nodes, initializers):
    make = onnx.helper.make_node
    if layer.activation == "Silu":
        nodes.append(make("Sigmoid", [source], ["gate"]))
        nodes.append(make("Mul", [source, "gate"], ["activated"]))
    elif layer.activation == "Clip":
        names = [f"bound_{number}" for number in range(len(layer.numbers))]
        for name, number in zip(names, layer.numbers):
            initializers.append(onnx.numpy_helper.from_array(numpy.float32(number), name))
        nodes.append(make("Clip", [source, *names], ["activated"]))
    else:
        attributes = {"alpha": layer.numbers[0]} if layer.numbers else {}
        nodes.append(make(layer.activation, [source], ["activated"], **attributes))
    return "activated"


def take_layers(onnx, model, network):
    """The float32 convolutions with constant weights and known extents of a model, in its order."""
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = model.graph
    constants = {each.name: each for each in graph.initializer}
    ends = {each.name for each in graph.output}
    begins = {each.name for each in graph.input}
    shapes = {}
    for value in (*graph.value_info, *graph.input, *graph.output):
        if value.type.HasField("tensor_type"):
            shapes[value.name] = [each.dim_value for each in value.type.tensor_type.shape.dim]
    readers = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in graph.node:
        weights = constants.get(node.input[1]) if node.op_type in ("Conv", "ConvTranspose") else None
        extents = shapes.get(node.input[0], [])
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        # Other types are other kernels'; "auto_pad" and "output_shape" leave the padding open.
        is_told = weights is not None and weights.data_type == onnx.TensorProto.FLOAT and all(extents)
        if not is_told or not extents or attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
            continue
        if "output_shape" in attributes:
            continue
        rank = len(weights.dims) - 2
        activation, numbers, result = _find_activation(onnx, node.output[0], readers, constants)
        is_transposed = node.op_type == "ConvTranspose"
        yield Layer(
            node.op_type,
            tuple(extents),
            tuple(weights.dims),
            tuple(attributes.get("strides", [1] * rank)),
            tuple(attributes.get("pads", [0] * 2 * rank)),
            tuple(attributes.get("dilations", [1] * rank)),
            attributes.get("group", 1),
            tuple(attributes.get("output_padding", [0] * rank)) if is_transposed else (),
            activation,
            numbers,
            is_first=node.input[0] in begins,
            is_last=result in ends,
            network=network,
        )


def _find_activation(onnx, name, readers, constants):
    """The activation behind a value, its numbers, and the name of its result (else the value's own).

    A normalisation between them goes into the weights everywhere.
    """
    behind = readers.get(name, [])
    if len(behind) == 1 and behind[0].op_type == "BatchNormalization":
        name = behind[0].output[0]
        behind = readers.get(name, [])
    kinds = sorted(node.op_type for node in behind)
    if len(behind) == 1 and kinds[0] in _ACTIVATIONS:
        node = behind[0]
        numbers = []
        if node.op_type == "Clip":
            if any(each not in constants for each in node.input[1:]) or len(node.input) != 3:
                return "", (), name
            numbers = [float(onnx.numpy_helper.to_array(constants[each])) for each in node.input[1:]]
        elif node.op_type in ("LeakyRelu", "Elu"):
            numbers = [round(each.f, 6) for each in node.attribute if each.name == "alpha"]
        elif node.attribute:
            return "", (), name
        return node.op_type, tuple(numbers), node.output[0]
    if kinds in (["Mul", "Sigmoid"], ["HardSigmoid", "Mul"]):
        gate, product = sorted(behind, key=lambda node: node.op_type == "Mul")
        if set(product.input) == {name, gate.output[0]}:
            return "Silu" if gate.op_type == "Sigmoid" else "HardSwish", (), product.output[0]
    return "", (), name


def choose(layers):
    """Of each kind at most _MOST distinct layers, evenly spread over those sorted by their work, and
    list_supplement(). In the order of kinds and work.

    Another batch is no other layer: the first one counts.
    """
    distinct, kinds = {}, {}
    for layer in layers:
        distinct.setdefault(dataclasses.replace(layer, input=(1, *layer.input[1:])), layer)
    for layer in sorted(distinct.values(), key=_order):
        kinds.setdefault(layer.kind, []).append(layer)
    chosen = {}
    for own in kinds.values():
        count = min(len(own), _MOST)
        picked = [own[round(number * (len(own) - 1) / max(count - 1, 1))] for number in range(count)]
        chosen.update(dict.fromkeys(picked))
    chosen.update(dict.fromkeys(list_supplement()))
    return sorted(chosen, key=_order)


def _order(layer):
    return layer.kind, layer.flops, layer.name


def write_list(layers, path=LIST):
    lines = [json.dumps(dataclasses.asdict(layer)) for layer in layers]
    pathlib.Path(path).write_text("[\n" + ",\n".join(lines) + "\n]\n")


def read_list(path=LIST):
    def freeze(value):
        return tuple(value) if isinstance(value, list) else value

    entries = json.loads(pathlib.Path(path).read_text())
    return [Layer(**{key: freeze(value) for key, value in entry.items()}) for entry in entries]


def _layer(network, ins, outs, image, kernel, stride=1, pad=None, dilation=1, group=1, more=0, **others):
    """`more`: output padding, of a transposed one."""
    rank = len(image)

    def all_axes(value):
        return (value,) * rank if isinstance(value, int) else tuple(value)

    op_type = others.pop("op_type", "Conv")
    kernel, dilations = all_axes(kernel), all_axes(dilation)
    same = tuple((k - 1) * d // 2 for k, d in zip(kernel, dilations))
    pads = same if pad is None else all_axes(pad)
    is_transposed = op_type == "ConvTranspose"
    weights = (ins, outs // group) if is_transposed else (outs, ins // group)
    return Layer(
        op_type,
        (others.pop("batch", 1), ins, *image),
        (*weights, *kernel),
        all_axes(stride),
        pads * 2,
        dilations,
        group,
        all_axes(more) if is_transposed else (),
        network=network,
        **others,
    )


def list_supplement():
    """Layers of well-known networks, of the kinds of which few models have many."""

    def transposed(*arguments, **others):
        return _layer(*arguments, op_type="ConvTranspose", **others)

    relu = {"activation": "Relu"}
    return [
        transposed("DCGAN", 512, 256, (8, 8), 4, 2, 1, **relu),
        transposed("DCGAN", 128, 64, (32, 32), 4, 2, 1, **relu),
        transposed("DCGAN", 64, 3, (64, 64), 4, 2, 1, activation="Tanh", is_last=True),
        transposed("HiFi-GAN", 128, 64, (2048,), 4, 2, 1),
        transposed("3-D U-Net", 64, 32, (16, 16, 16), 2, 2, 0),
        transposed("CycleGAN", 128, 64, (64, 64), 3, 2, 1, more=1, **relu),
        transposed("Conv-TasNet", 512, 1, (1999,), 16, 8, 0, is_last=True),
        transposed("FCN", 21, 21, (34, 34), 4, 2, 0),
        transposed("DCGAN", 100, 512, (1, 1), 4, 1, 0, is_first=True, **relu),
        _layer("CREPE", 1024, 128, (128,), 64, 1, (31,), **relu),
        _layer("CREPE", 1, 1024, (1024,), 512, 4, (254,), is_first=True, **relu),
        _layer("Conv-TasNet", 1, 512, (16000,), 16, 8, 0, is_first=True, **relu),
        _layer("wav2vec", 512, 512, (799,), 3, 2, 0, activation="Gelu"),
        _layer("WaveNet", 64, 128, (4000,), 2, 1, 0, 64),
        _layer("C3D", 64, 128, (16, 56, 56), 3, **relu),
        _layer("3-D U-Net", 1, 32, (32, 32, 32), 3, is_first=True, **relu),
        _layer("ConvNeXt", 96, 96, (56, 56), 7, group=96),
        _layer("RepLKNet", 128, 128, (56, 56), 31, group=128),
        _layer("ResNeXt", 128, 128, (56, 56), 3, group=32, **relu),
        _layer("ResNeXt", 512, 512, (14, 14), 3, group=32, **relu),
        _layer("ResNeXt", 256, 256, (56, 56), 3, 2, group=32, **relu),
        _layer("ResNeXt", 1024, 1024, (7, 7), 3, group=32, **relu),
        _layer("RegNet", 192, 192, (28, 28), 3, group=4, **relu),
        _layer("ShuffleNet", 240, 60, (28, 28), 1, group=3, **relu),
        _layer("AlexNet", 96, 256, (27, 27), 5, group=2, **relu),
        _layer("RegNet", 168, 168, (14, 14), 3, group=7, **relu),
        _layer("AlexNet", 384, 256, (13, 13), 3, group=2, **relu),
        _layer("DeepLab", 512, 256, (33, 33), 3, dilation=6, pad=6, **relu),
        _layer("DeepLab", 512, 256, (33, 33), 3, dilation=12, pad=12, **relu),
        _layer("DeepLab", 512, 256, (33, 33), 3, dilation=18, pad=18, **relu),
        _layer("dilated ResNet", 256, 256, (28, 28), 3, dilation=2, pad=2, **relu),
        _layer("dilated ResNet", 512, 512, (28, 28), 3, dilation=4, pad=4, **relu),
        _layer("CSRNet", 512, 256, (32, 32), 3, dilation=2, pad=2, **relu),
        _layer("CSRNet", 128, 64, (32, 32), 3, dilation=2, pad=2, **relu),
        _layer("ENet", 32, 32, (64, 64), 3, dilation=4, pad=4, **relu),
        _layer("WDSR", 3, 64, (64, 64), 3, is_first=True),
        _layer("AlexNet", 3, 64, (224, 224), 11, 4, 2, is_first=True, **relu),
        _layer("ResNet", 3, 64, (224, 224), 7, 2, 3, is_first=True, **relu),
        _layer("VGG", 3, 64, (224, 224), 3, is_first=True, **relu),
        _layer("vision transformer", 3, 768, (224, 224), 16, 16, 0, is_first=True),
        _layer("ConvNeXt", 3, 96, (224, 224), 4, 4, 0, is_first=True),
        _layer("MobileNet", 3, 32, (224, 224), 3, 2, 1, is_first=True, activation="HardSwish"),
        _layer("LeNet", 1, 6, (28, 28), 5, 1, 2, is_first=True, **relu),
        _layer("SRCNN", 1, 64, (128, 128), 9, is_first=True, **relu),
        _layer("EfficientNet", 3, 32, (240, 240), 3, 2, 1, is_first=True, activation="Silu"),
        _layer("Inception", 192, 192, (17, 17), (1, 7), **relu),
        _layer("Inception", 192, 192, (17, 17), (7, 1), **relu),
        _layer("Inception", 48, 64, (35, 35), 5, **relu),
        _layer("AlexNet", 64, 192, (27, 27), 5, **relu),
        _layer("SRGAN", 64, 3, (96, 96), 9, activation="Tanh", is_last=True),
        _layer("SRCNN", 64, 32, (128, 128), 5, **relu),
        _layer("OpenPose", 128, 128, (46, 46), 7, **relu),
        _layer("LeNet", 6, 16, (14, 14), 5, 1, 0, **relu),
        _layer("YOLO with focus", 32, 64, (80, 80), 5, 2, 2, activation="Silu"),
        _layer("GCN", 256, 21, (16, 16), (15, 1)),
        _layer("ESPCN", 32, 9, (64, 64), 3, is_last=True),
        _layer("U-Net", 64, 2, (128, 128), 1, is_last=True),
        _layer("CIFAR ResNet", 16, 16, (32, 32), 3, **relu),
        _layer("CIFAR ResNet", 16, 32, (32, 32), 3, 2, 1, **relu),
        _layer("narrow", 8, 4, (64, 64), 3, 2, 1, **relu),
        _layer("autoencoder", 64, 3, (64, 64), 3, is_last=True, activation="Sigmoid"),
        _layer("SqueezeNet", 64, 16, (55, 55), 1, **relu),
        _layer("SqueezeNet", 16, 64, (55, 55), 3, **relu),
        _layer("DenseNet", 128, 12, (32, 32), 3),
    ]

# SPDX-License-Identifier: Apache-2.0
"""Single operators for operators.py: the shapes, types and attributes that networks and their
neighbours have, beside those that whole models of the other benchmarks happen to contain."""

import dataclasses

import numpy

_RANDOM = numpy.random.default_rng(0)


@dataclasses.dataclass
class Case:
    """A node, what it reads, and what follows it."""

    name: str
    op_type: str
    inputs: list  # arrays; None: omitted
    constants: tuple = ()  # which of them are initializers
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int = 1
    opset: int = 21
    behind: object = None  # an activation: (operator, attributes, constants)


def _floats(*shape):
    return _RANDOM.standard_normal(shape).astype("float32")


def _integers(end, *shape, dtype="int64"):
    return _RANDOM.integers(0, end, shape).astype(dtype)


def _ints(*numbers):
    return numpy.array(numbers, "int64")


def _case(name, op_type, inputs, constants=(), outputs=1, opset=21, behind=None, **attributes):
    return Case(name, op_type, inputs, tuple(constants), attributes, outputs, opset, behind)


_ACTIVATIONS = [
    (name, {}, [])
    for name in (
        "Relu Tanh Sigmoid Elu HardSwish Softplus Mish Selu Softsign Gelu Abs HardSigmoid Exp Erf Neg Sin".split()
    )
] + [
    ("LeakyRelu", {"alpha": 0.1}, []),
    ("Clip", {}, [numpy.float32(0), numpy.float32(6)]),
    ("PRelu", {}, [_floats(32, 1, 1)]),
]


def _conv(name, batch, ins, outs, image, kernel, stride=1, pads=None, group=1, dilation=1, behind=None):
    rank = len(image)
    kernel = [kernel] * rank if isinstance(kernel, int) else list(kernel)
    stride = [stride] * rank if isinstance(stride, int) else list(stride)
    pads = [(k - 1) // 2 * dilation for k in kernel] * 2 if pads is None else pads
    weights = [_floats(outs, ins // group, *kernel) * 0.1, _floats(outs)]
    return _case(
        f"conv {name}",
        "Conv",
        [_floats(batch, ins, *image), *weights],
        (1, 2),
        behind=behind,
        strides=stride,
        pads=pads,
        group=group,
        kernel_shape=kernel,
        dilations=[dilation] * rank,
    )


def convolutions():
    for activation in _ACTIVATIONS:
        yield _conv(f"32>32 56 k3 {activation[0]}", 1, 32, 32, (56, 56), 3, behind=activation)
    for name in ("Tanh", "Mish", "Elu"):
        yield _conv(f"64>128 28 k1 {name}", 1, 64, 128, (28, 28), 1, behind=(name, {}, []))
        yield _conv(f"depthwise 64 28 k3 {name}", 1, 64, 64, (28, 28), 3, group=64, behind=(name, {}, []))
    for outs in (1, 2, 3, 4, 6, 10, 21):
        yield _conv(f"32>{outs} 64 k3", 1, 32, outs, (64, 64), 3)
        yield _conv(f"64>{outs} 64 k1", 1, 64, outs, (64, 64), 1)
    for ins in (1, 2, 4, 5):
        yield _conv(f"{ins}>32 64 k3", 1, ins, 32, (64, 64), 3)
    yield _conv("64>3 64 k9", 1, 64, 3, (64, 64), 9)
    yield _conv("3>64 64 k9", 1, 3, 64, (64, 64), 9)
    yield _conv("1>16 128 k5s2", 1, 1, 16, (128, 128), 5, 2)
    yield _conv("3>96 224 k4s4", 1, 3, 96, (224, 224), 4, 4, [0] * 4)
    yield _conv("3>768 224 k16s16", 1, 3, 768, (224, 224), 16, 16, [0] * 4)
    yield _conv("1d 80>256 100 k5", 1, 80, 256, (100,), 5)
    yield _conv("1d 256>256 400 k3 dilation 4", 1, 256, 256, (400,), 3, dilation=4)
    yield _conv("1d 1>64 16000 k10s5", 1, 1, 64, (16000,), 10, 5, [0, 0])
    yield _conv("1d 512>512 799 k3s2", 1, 512, 512, (799,), 3, 2, [0, 0])
    yield _conv("1d depthwise 256 200 k31", 1, 256, 256, (200,), 31, group=256)
    yield _conv("1d 64>1 4000 k7 Tanh", 1, 64, 1, (4000,), 7, behind=("Tanh", {}, []))
    yield _conv("1d 4>8 128 k3 batch 16", 16, 4, 8, (128,), 3)
    yield _conv("3d 1>8 8x12x10 k3", 1, 1, 8, (8, 12, 10), 3)
    yield _conv("3d 16>32 16 k3", 1, 16, 32, (16, 16, 16), 3)
    yield _conv("3d 3>64 8x56x56 k3x7x7s2", 1, 3, 64, (8, 56, 56), (3, 7, 7), 2)
    yield _conv("3d 64>64 4x14x14 k3x1x1", 1, 64, 64, (4, 14, 14), (3, 1, 1))
    yield _conv("3d depthwise 32 8x14x14", 1, 32, 32, (8, 14, 14), 3, group=32)
    yield _conv("3d 3>24 16x112x112 k3x7x7s1x2x2", 1, 3, 24, (16, 112, 112), (3, 7, 7), (1, 2, 2))
    for channels in (3, 8, 16, 24, 32, 48, 96):
        yield _conv(f"3d {channels}>{channels} 8x28x28 k3", 1, channels, channels, (8, 28, 28), 3)
    yield _conv("3d 24>48 16x56x56 k3s2", 1, 24, 48, (16, 56, 56), 3, 2)
    yield _conv("3d 96>192 4x14x14 k3s2", 1, 96, 192, (4, 14, 14), 3, 2)
    yield _conv("3d 192>192 2x7x7 k3", 1, 192, 192, (2, 7, 7), 3)
    for kernel in ((1, 3, 3), (3, 1, 1), (1, 1, 1), (3, 1, 3), (5, 5, 5)):
        name = "x".join(map(str, kernel))
        yield _conv(f"3d 24>24 16x56x56 k{name}", 1, 24, 24, (16, 56, 56), kernel)
    yield _conv("3d 24>48 16x56x56 k1x3x3s1x2x2", 1, 24, 48, (16, 56, 56), (1, 3, 3), (1, 2, 2))
    yield _conv("3d 24>48 16x56x56 k1s2", 1, 24, 48, (16, 56, 56), 1, 2)
    yield _conv("3d 48>48 16x28x28 k3x1x1s2x1x1", 1, 48, 48, (16, 28, 28), (3, 1, 1), (2, 1, 1))
    yield _conv("3d 24>24 8x28x28 k3 dilation 2", 1, 24, 24, (8, 28, 28), 3, dilation=2)
    yield _conv("3d 24>24 8x28x28 k3 batch 2", 2, 24, 24, (8, 28, 28), 3)
    yield _conv("3d 2 groups of 48 8x28x28 k3", 1, 48, 48, (8, 28, 28), 3, group=2)
    for group, channels, image in ((2, 64, 28), (8, 64, 28), (32, 256, 14)):
        yield _conv(
            f"{group} groups of {channels} {image} k3", 1, channels, channels, (image, image), 3, group=group
        )
    yield _conv("16 groups of 64 28 k1", 1, 64, 64, (28, 28), 1, group=16)
    yield _conv("k7 32 56", 1, 32, 32, (56, 56), 7)
    yield _conv("k1x7 64 17", 1, 64, 64, (17, 17), (1, 7))
    yield _conv("k7x1 64 17", 1, 64, 64, (17, 17), (7, 1))
    yield _conv("k2 32 28 without padding", 1, 32, 32, (28, 28), 2, 1, [0] * 4)
    yield _conv("k5s2 32>64 56", 1, 32, 64, (56, 56), 5, 2)
    yield _conv("k3 64 28 dilation 2", 1, 64, 64, (28, 28), 3, dilation=2)
    yield _conv("k3 64 33 dilation 12", 1, 64, 64, (33, 33), 3, dilation=12)
    yield _conv("k1s2 128>256 28", 1, 128, 256, (28, 28), 1, 2)
    for channels, image in ((512, 7), (512, 4), (256, 2)):
        yield _conv(f"k3 {channels} {image}", 1, channels, channels, (image, image), 3)
    yield _conv("k3 64 3 batch 8", 8, 64, 64, (3, 3), 3)
    yield _conv("depthwise k7 96 56", 1, 96, 96, (56, 56), 7, group=96)
    yield _conv("depthwise k5s2 72 56", 1, 72, 72, (56, 56), 5, 2, group=72)
    yield _conv("depthwise 32>64 28", 1, 32, 64, (28, 28), 3, group=32)
    yield _conv("8>8 8 batch 32", 32, 8, 8, (8, 8), 3)
    yield _conv("1000>1000 1 k1", 1, 1000, 1000, (1, 1), 1)


def _transposed(name, batch, ins, outs, image, kernel, stride, pad=0, group=1, more=0, behind=None):
    rank = len(image)
    return _case(
        f"transposed {name}",
        "ConvTranspose",
        [_floats(batch, ins, *image), _floats(ins, outs // group, *[kernel] * rank) * 0.1, _floats(outs)],
        (1, 2),
        behind=behind,
        strides=[stride] * rank,
        pads=[pad] * 2 * rank,
        group=group,
        kernel_shape=[kernel] * rank,
        output_padding=[more] * rank,
    )


def transposed_convolutions():
    yield _transposed("128>64 28 k2s2", 1, 128, 64, (28, 28), 2, 2)
    yield _transposed("64>32 56 k2s2", 1, 64, 32, (56, 56), 2, 2)
    yield _transposed("32>16 64 k3s2", 1, 32, 16, (64, 64), 3, 2, 1, more=1)
    yield _transposed("256>128 8 k4s2 Relu", 1, 256, 128, (8, 8), 4, 2, 1, behind=("Relu", {}, []))
    yield _transposed("100>256 1 k4", 1, 100, 256, (1, 1), 4, 1)
    yield _transposed("32>3 32 k4s2 Tanh", 1, 32, 3, (32, 32), 4, 2, 1, behind=("Tanh", {}, []))
    yield _transposed("16>8 16 k4s2 batch 8", 8, 16, 8, (16, 16), 4, 2, 1)
    yield _transposed("256>256 14 k2s2 batch 10", 10, 256, 256, (14, 14), 2, 2)
    yield _transposed("1d 256>128 100 k16s8", 1, 256, 128, (100,), 16, 8, 4)
    yield _transposed("1d 64>32 1600 k4s2", 1, 64, 32, (1600,), 4, 2, 1)
    yield _transposed("depthwise 64 32 k4s2", 1, 64, 64, (32, 32), 4, 2, 1, group=64)
    yield _transposed("4 groups of 64 16 k3", 1, 64, 64, (16, 16), 3, 1, 1, group=4)
    yield _transposed("3d 16>8 8 k2s2", 1, 16, 8, (8, 8, 8), 2, 2)
    yield _transposed("3d 32>16 6x10x10 k3s2", 1, 32, 16, (6, 10, 10), 3, 2, 1, more=1)


def moves():
    x = _floats(1, 32, 56, 56)
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield _case(f"pad {mode}", "Pad", [x, _ints(0, 0, 1, 2, 0, 0, 3, 1)], (1,), mode=mode)
    yield _case(
        "pad reflect 3 channels",
        "Pad",
        [_floats(3, 3, 32, 32), _ints(0, 0, 2, 2, 0, 0, 2, 2)],
        (1,),
        mode="reflect",
    )
    yield _case(
        "pad reflect 1d", "Pad", [_floats(1, 1, 16000), _ints(0, 0, 200, 0, 0, 200)], (1,), mode="reflect"
    )
    for perm in ((0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0), (1, 0, 2, 3), (0, 1, 3, 2), (2, 0, 1, 3)):
        yield _case(f"transpose {perm}", "Transpose", [x], perm=perm)
    yield _case("transpose heads", "Transpose", [_floats(1, 128, 12, 64)], perm=(0, 2, 1, 3))
    yield _case("transpose windows", "Transpose", [_floats(1, 8, 2, 14, 2, 14)], perm=(0, 1, 3, 5, 2, 4))
    yield _case("transpose int64", "Transpose", [_integers(9, 64, 300)], perm=(1, 0))
    yield _case(
        "transpose uint8", "Transpose", [_integers(255, 1, 224, 224, 3, dtype="uint8")], perm=(0, 3, 1, 2)
    )
    yield _case(
        "transpose float16", "Transpose", [_floats(1, 224, 224, 3).astype("float16")], perm=(0, 3, 1, 2)
    )
    yield _case("transpose bool", "Transpose", [_floats(300, 300) > 0], perm=(1, 0))
    types = {"float": 1, "uint8": 2, "int64": 7, "bool": 9, "float16": 10}
    for source, target in (
        ("uint8", "float"),
        ("float32", "int64"),
        ("float32", "float16"),
        ("int64", "float"),
        ("float64", "float"),
        ("int32", "int64"),
        ("float32", "bool"),
        ("float32", "uint8"),
        ("int64", "float16"),
        ("float16", "int64"),
        ("float64", "float16"),
        ("bool", "float16"),
    ):
        numbers = numpy.abs(_floats(100000) * 50).astype(source)
        yield _case(f"cast {source} to {target}", "Cast", [numbers], to=types[target])
    yield _case(
        "slice with a step", "Slice", [x, _ints(0, 0), _ints(56, 56), _ints(2, 3), _ints(2, 2)], (1, 2, 3, 4)
    )
    yield _case("slice backwards", "Slice", [x, _ints(-1), _ints(-99), _ints(3), _ints(-1)], (1, 2, 3, 4))
    yield _case("slice channels", "Slice", [x, _ints(4), _ints(20), _ints(1)], (1, 2, 3))
    yield _case("concat channels", "Concat", [x, x], axis=1)
    yield _case("concat last", "Concat", [x, x], axis=3)
    yield _case("concat 8", "Concat", [_floats(100, 32) for _ in range(8)], axis=1)
    yield _case("split last", "Split", [_floats(1, 128, 2304), _ints(768, 768, 768)], (1,), outputs=3, axis=2)
    yield _case("tile", "Tile", [_floats(1, 64, 64), _ints(4, 2, 2)], (1,))
    yield _case("expand", "Expand", [_floats(1, 64, 1, 1), _ints(4, 64, 28, 28)], (1,))
    yield _case("depth to space", "DepthToSpace", [_floats(1, 64, 56, 56)], blocksize=2)
    yield _case("space to depth", "SpaceToDepth", [_floats(1, 3, 256, 256)], blocksize=2)
    yield _case(
        "col2im 3x3s2",
        "Col2Im",
        [_floats(1, 144, 1024), _ints(64, 64), _ints(3, 3)],
        (1, 2),
        pads=[1] * 4,
        strides=[2, 2],
    )
    yield _case("trilu", "Trilu", [_floats(12, 128, 128)], upper=0)
    yield _case("where", "Where", [_floats(12, 128, 128) > 0, _floats(12, 128, 128), _floats(12, 128, 128)])
    yield _case(
        "where row", "Where", [_floats(1, 1, 128) > 0, _floats(12, 128, 128), numpy.float32(-9)], (2,)
    )


def indices():
    yield _case("gather rows", "Gather", [_floats(30000, 256), _integers(30000, 128)], (0,))
    yield _case("gather middle", "Gather", [_floats(64, 500, 16), _integers(500, 128)], axis=1)
    yield _case("gather last", "Gather", [_floats(2000, 64), _integers(64, 32)], axis=1)
    yield _case("gather nd", "GatherND", [_floats(64, 64, 32), _integers(64, 500, 2)])
    yield _case("gather elements", "GatherElements", [_floats(500, 64), _integers(500, 500, 64)], axis=0)
    yield _case("gather elements last", "GatherElements", [_floats(500, 640), _integers(640, 500, 640)], axis=1)
    yield _case(
        "scatter elements",
        "ScatterElements",
        [_floats(500, 64), _integers(500, 200, 64), _floats(200, 64)],
        axis=0,
    )
    yield _case(
        "scatter elements add",
        "ScatterElements",
        [_floats(500, 64), _integers(500, 2000, 64), _floats(2000, 64)],
        axis=0,
        reduction="add",
    )
    yield _case("scatter nd", "ScatterND", [_floats(500, 64), _integers(500, 300, 1), _floats(300, 64)])
    yield _case(
        "scatter nd add",
        "ScatterND",
        [_floats(500, 64), _integers(500, 3000, 1), _floats(3000, 64)],
        reduction="add",
    )
    yield _case(
        "one hot", "OneHot", [_integers(1000, 256), _ints(1000), numpy.array([0, 1], "float32")], (1, 2)
    )
    yield _case("cumulative sum last", "CumSum", [_floats(256, 500), numpy.int64(1)], (1,))
    yield _case("cumulative sum first", "CumSum", [_floats(500, 256), numpy.int64(0)], (1,))
    yield _case("cumulative sum int64", "CumSum", [_integers(2, 8, 512), numpy.int64(1)], (1,))
    yield _case("top 10 of 1000", "TopK", [_floats(32, 1000), _ints(10)], (1,), outputs=2)
    yield _case("top 300 of 8400", "TopK", [_floats(1, 8400), _ints(300)], (1,), outputs=2)
    yield _case("top 5 along the first axis", "TopK", [_floats(1000, 32), _ints(5)], (1,), outputs=2, axis=0)
    yield _case("sort 2000", "TopK", [_floats(16, 2000), _ints(2000)], (1,), outputs=2)
    yield _case("argmax last", "ArgMax", [_floats(100, 1000)], axis=1)
    yield _case("argmax channels", "ArgMax", [_floats(1, 21, 256, 256)], axis=1, keepdims=0)
    yield _case("argmax int64", "ArgMax", [_integers(1000, 100, 1000)], axis=1)
    yield _case("gather of bool", "Gather", [_floats(300, 1000) > 0, _integers(300, 200)], axis=0)
    yield _case("argmin first", "ArgMin", [_floats(1000, 100)], axis=0)
    yield _case(
        "reverse sequence",
        "ReverseSequence",
        [_floats(100, 8, 64), numpy.full(8, 50, "int64")],
        time_axis=0,
        batch_axis=1,
    )


def rows():
    for axis in (-1, 1, 2):
        yield _case(f"softmax axis {axis}", "Softmax", [_floats(8, 64, 300)], axis=axis)
    for name, shape in (("attention", (12, 128, 128)), ("10", (1000, 10)), ("vocabulary", (4, 50000))):
        yield _case(f"softmax {name}", "Softmax", [_floats(*shape)], axis=-1)
    yield _case("log softmax", "LogSoftmax", [_floats(100, 1000)], axis=-1)
    yield _case("log softmax channels", "LogSoftmax", [_floats(1, 21, 128, 128)], axis=1)
    yield _case("hardmax", "Hardmax", [_floats(100, 1000)], axis=-1)
    yield _case("hardmax first axis", "Hardmax", [_floats(1000, 100)], axis=0)
    for length, count in ((768, 128), (96, 3136)):
        yield _case(
            f"layer normalization {length}",
            "LayerNormalization",
            [_floats(1, count, length), _floats(length), _floats(length)],
            (1, 2),
        )
    yield _case("rms normalization", "RMSNormalization", [_floats(1, 128, 768), _floats(768)], (1,), opset=23)
    yield _case(
        "group normalization",
        "GroupNormalization",
        [_floats(1, 64, 56, 56), _floats(64), _floats(64)],
        (1, 2),
        num_groups=32,
    )
    yield _case(
        "instance normalization",
        "InstanceNormalization",
        [_floats(1, 64, 56, 56), _floats(64), _floats(64)],
        (1, 2),
    )
    channels = [_floats(64), _floats(64), _floats(64), numpy.abs(_floats(64)) + 1]
    yield _case(
        "batch normalization", "BatchNormalization", [_floats(1, 64, 56, 56), *channels], (1, 2, 3, 4)
    )
    yield _case("local response", "LRN", [_floats(1, 64, 28, 28)], size=5)
    yield _case("mean variance", "MeanVarianceNormalization", [_floats(2, 16, 28, 28)])
    yield _case("norm", "LpNormalization", [_floats(100, 512)], axis=1, p=2)
    for name in "Sum Mean Max Min Prod L1 L2 LogSumExp SumSquare LogSum".split():
        yield _case(f"reduce {name} last", f"Reduce{name}", [numpy.abs(_floats(200, 1000)), _ints(1)], (1,))
    for axes in ((0,), (1,), (0, 2), (2, 3), (1, 2, 3), (0, 1, 2, 3)):
        yield _case(f"reduce Mean {axes}", "ReduceMean", [_floats(4, 32, 28, 28), _ints(*axes)], (1,))
    for name in "Mean Max LogSumExp".split():
        yield _case(f"reduce {name} tokens", f"Reduce{name}", [_floats(8, 128, 768), _ints(1)], (1,))
    yield _case("reduce Sum int64", "ReduceSum", [_integers(9, 200, 1000), _ints(1)], (1,))
    yield _case("reduce Sum float64", "ReduceSum", [_floats(200, 1000).astype("float64"), _ints(1)], (1,))
    yield _case("dynamic quantization", "DynamicQuantizeLinear", [_floats(128, 768)], outputs=3)
    yield _case("reduce max of bytes", "ReduceMax", [_integers(255, 1000, 999, dtype="uint8"), _ints(1)], (1,))
    yield _case("reduce sum of squares", "ReduceSumSquare", [_floats(999, 1001), _ints(0, 1)], (1,))


def windows():
    for kernel, stride in ((2, 2), (3, 2), (3, 1), (5, 1), (13, 1)):
        pads = [0] * 4 if kernel == 2 else [(kernel - 1) // 2] * 4
        for op_type in ("MaxPool", "AveragePool"):
            yield _case(
                f"{op_type} k{kernel}s{stride}",
                op_type,
                [_floats(1, 64, 56, 56)],
                kernel_shape=[kernel] * 2,
                strides=[stride] * 2,
                pads=pads,
            )
    yield _case(
        "MaxPool with positions",
        "MaxPool",
        [_floats(1, 64, 56, 56)],
        outputs=2,
        kernel_shape=[2, 2],
        strides=[2, 2],
    )
    yield _case("MaxPool 1d", "MaxPool", [_floats(1, 64, 2000)], kernel_shape=[3], strides=[2])
    for op_type in ("MaxPool", "AveragePool"):
        yield _case(
            f"{op_type} 3d", op_type, [_floats(1, 16, 8, 28, 28)], kernel_shape=[2] * 3, strides=[2] * 3
        )
    yield _case(
        "MaxPool 3d k3s2",
        "MaxPool",
        [_floats(1, 16, 8, 28, 28)],
        kernel_shape=[3] * 3,
        strides=[2] * 3,
        pads=[1] * 6,
    )
    yield _case("LpPool", "LpPool", [_floats(1, 32, 28, 28)], kernel_shape=[2, 2], strides=[2, 2])
    yield _case("global average", "GlobalAveragePool", [_floats(1, 512, 7, 7)])
    yield _case("global maximum", "GlobalMaxPool", [_floats(1, 512, 7, 7)])
    yield _case("global maximum of 57 x 59", "GlobalMaxPool", [_floats(4, 65, 57, 59)])
    twice = numpy.array([1, 1, 2, 2], "float32")
    for mode, coordinates in (
        ("nearest", "asymmetric"),
        ("nearest", "half_pixel"),
        ("linear", "half_pixel"),
        ("linear", "align_corners"),
        ("cubic", "half_pixel"),
    ):
        yield _case(
            f"resize {mode} {coordinates}",
            "Resize",
            [_floats(1, 32, 28, 28), None, twice],
            (2,),
            mode=mode,
            coordinate_transformation_mode=coordinates,
        )
    for name, shape, scales in (
        ("1.7", (1, 16, 33, 33), (1, 1, 1.7, 1.7)),
        ("3d", (1, 8, 8, 14, 14), (1, 1, 2, 2, 2)),
        ("1d", (1, 64, 200), (1, 1, 4)),
        ("channels last", (1, 64, 64, 3), (1, 2, 2, 1)),
    ):
        yield _case(
            f"resize linear {name}",
            "Resize",
            [_floats(*shape), None, numpy.array(scales, "float32")],
            (2,),
            mode="linear",
        )
    grid = _RANDOM.uniform(-1.1, 1.1, (1, 56, 56, 2)).astype("float32")
    for mode in ("linear", "nearest", "cubic"):
        yield _case(f"grid sample {mode}", "GridSample", [_floats(1, 32, 56, 56), grid], mode=mode)
    yield _case("affine grid", "AffineGrid", [_floats(4, 2, 3), _ints(4, 3, 112, 112)], (1,), opset=20)
    boxes = numpy.sort(_RANDOM.uniform(0, 50, (100, 2, 2)), 1).reshape(100, 4).astype("float32")
    yield _case(
        "roi align",
        "RoiAlign",
        [_floats(1, 64, 50, 50), boxes, numpy.zeros(100, "int64")],
        output_height=7,
        output_width=7,
        sampling_ratio=2,
    )
    yield _case(
        "roi align of maxima",
        "RoiAlign",
        [_floats(1, 64, 50, 50), boxes, numpy.zeros(100, "int64")],
        output_height=7,
        output_width=7,
        sampling_ratio=2,
        mode="max",
    )
    regions = numpy.concatenate([numpy.zeros((100, 1), "float32"), boxes], 1)
    yield _case("max roi pool", "MaxRoiPool", [_floats(1, 64, 50, 50), regions], pooled_shape=[7, 7])


def products():
    def matmul(name, a, b, constants=(1,)):
        return _case(f"matmul {name}", "MatMul", [a, b], constants)

    for rows_of_a in (1, 2, 3, 4, 5, 6, 8, 9, 12, 128):
        yield matmul(f"{rows_of_a} x 768 x 768", _floats(rows_of_a, 768), _floats(768, 768))
        yield matmul(f"{rows_of_a} x 768 x 3072", _floats(rows_of_a, 768), _floats(768, 3072))
    yield matmul("1 x 4096 x 4096", _floats(1, 4096), _floats(4096, 4096))
    yield matmul("7 x 13 x 5", _floats(7, 13), _floats(13, 5))
    yield matmul("1000 x 3 x 3", _floats(1000, 3), _floats(3, 3))
    yield matmul("1000 x 64 x 1", _floats(1000, 64), _floats(64, 1))
    yield matmul("64 x 64 x 64 of inputs", _floats(64, 64), _floats(64, 64), ())
    yield matmul("12 of 128 x 64 x 128", _floats(1, 12, 128, 64), _floats(1, 12, 64, 128), ())
    yield matmul("1000 of 3 x 3 x 3", _floats(1000, 3, 3), _floats(1000, 3, 3), ())
    yield matmul("200 of 4 x 4 x 1", _floats(200, 4, 4), _floats(200, 4, 1), ())
    yield matmul("dot of 4096", _floats(1, 4096), _floats(4096, 1), ())
    yield matmul("outer of 500", _floats(500, 1), _floats(1, 500), ())
    yield matmul("broadcast", _floats(8, 1, 32, 64), _floats(1, 4, 64, 32), ())
    yield matmul("float64", _floats(100, 100).astype("float64"), _floats(100, 100).astype("float64"), ())
    yield matmul("float16", _floats(64, 256).astype("float16"), _floats(256, 256).astype("float16"))
    yield matmul("int64", _integers(9, 64, 64), _integers(9, 64, 64), ())
    for name in ("Relu", "Tanh", "Elu", "Mish"):
        yield _case(
            f"gemm {name}",
            "Gemm",
            [_floats(64, 256), _floats(256, 128), _floats(128)],
            (1, 2),
            behind=(name, {}, []),
        )
    yield _case(
        "gemm transposed",
        "Gemm",
        [_floats(256, 64), _floats(128, 256), _floats(128)],
        (1, 2),
        transA=1,
        transB=1,
        alpha=0.5,
    )
    for equation, a, b in (
        ("bij,bjk->bik", (8, 32, 64), (8, 64, 32)),
        ("bhid,bhjd->bhij", (1, 8, 64, 32), (1, 8, 64, 32)),
        ("nchw,cd->ndhw", (1, 32, 28, 28), (32, 16)),
        ("ij,ij->i", (500, 64), (500, 64)),
    ):
        yield _case(f"einsum {equation}", "Einsum", [_floats(*a), _floats(*b)], equation=equation)
    # ONNX Runtime sums pairs of products in 16 bits where a processor has no VNNI: larger bytes saturate there.
    yield _case(
        "matmul integer",
        "MatMulInteger",
        [_integers(127, 64, 256, dtype="uint8"), _integers(99, 256, 128, dtype="int8")],
        (1,),
    )
    for op_type, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for name, batch, steps, ins, hidden, ways in (
            ("50 steps of 64", 1, 50, 64, 64, 1),
            ("20 steps of 128, both ways, batch 8", 8, 20, 128, 128, 2),
            ("a step of 256", 1, 1, 256, 256, 1),
        ):
            weights = [_floats(ways, gates * hidden, ins) * 0.1, _floats(ways, gates * hidden, hidden) * 0.1]
            yield _case(
                f"{op_type} {name}",
                op_type,
                [_floats(steps, batch, ins), *weights, _floats(ways, 2 * gates * hidden) * 0.1],
                (1, 2, 3),
                hidden_size=hidden,
                direction="bidirectional" if ways == 2 else "forward",
            )
    yield _case("determinants of 16 x 16", "Det", [_floats(200, 16, 16)])
    yield _case("dft 512", "DFT", [_floats(1, 512, 1)], opset=20, onesided=1)
    yield _case(
        "stft",
        "STFT",
        [_floats(1, 16000), numpy.int64(160), _floats(400), numpy.int64(400)],
        (1, 2, 3),
        opset=17,
    )


def elements():
    x = _floats(1, 64, 56, 56)
    for op_type in (
        "Relu Sigmoid Tanh Exp Log Sqrt Erf Sin Cos Abs Neg Floor Round Softplus Elu Selu HardSwish HardSigmoid "
        "Mish Gelu Reciprocal Sign IsNaN Atan Acos Sinh Asinh Tan Celu ThresholdedRelu Softsign Shrink"
    ).split():
        yield _case(
            f"unary {op_type}", op_type, [numpy.abs(x) * 0.2 if op_type in ("Log", "Sqrt", "Acos") else x]
        )
    for op_type in "Add Mul Div Pow Max Mod PRelu Greater Equal".split():
        left = numpy.abs(x) if op_type == "Pow" else x
        attributes = {"fmod": 1} if op_type == "Mod" else {}
        for name, right, constants in (
            ("", _floats(1, 64, 56, 56), ()),
            (" scalar", numpy.float32(2), (1,)),
            (" channel", numpy.abs(_floats(64, 1, 1)), (1,)),
            (" row", numpy.abs(_floats(56)), (1,)),
        ):
            yield _case(f"binary {op_type}{name}", op_type, [left, right], constants, **attributes)
    for dtype in ("int64", "int32"):
        for op_type in ("Add", "Mul", "Div", "Mod", "Less"):
            yield _case(
                f"{dtype} {op_type}",
                op_type,
                [_integers(99, 200000, dtype=dtype), _integers(98, 200000, dtype=dtype) + 1],
            )
    yield _case("float64 Add", "Add", [_floats(100000).astype("float64")] * 2)
    yield _case("float16 Gelu", "Gelu", [_floats(100000).astype("float16")])
    yield _case("Not", "Not", [x > 0])
    yield _case("And", "And", [x > 0, x > 1])
    yield _case(
        "BitShift",
        "BitShift",
        [_integers(99, 100000, dtype="uint32"), _integers(9, 100000, dtype="uint32")],
        direction="LEFT",
    )
    yield _case("Sum of 4", "Sum", [x] * 4)
    yield _case("Clip", "Clip", [x, numpy.float32(-1), numpy.float32(1)], (1, 2))
    yield _case("quantize", "QuantizeLinear", [x, numpy.float32(0.03), numpy.uint8(128)], (1, 2))
    scales = numpy.abs(_floats(x.shape[1])) + 0.01
    zeros = numpy.zeros(x.shape[1], "uint8")
    yield _case("quantize by channels", "QuantizeLinear", [x, scales, zeros], (1, 2), axis=1)
    yield _case(
        "dequantize",
        "DequantizeLinear",
        [_integers(255, 1, 64, 56, 56, dtype="uint8"), numpy.float32(0.03), numpy.uint8(128)],
        (1, 2),
    )


def list_cases():
    """All of them, by group."""
    groups = (convolutions, transposed_convolutions, moves, indices, rows, windows, products, elements)
    return {group.__name__: list(group()) for group in groups}

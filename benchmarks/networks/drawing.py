# SPDX-License-Identifier: Apache-2.0
"""Draws a network as exporters write it: nodes in order, seeded weights.

Nothing is evaluated while drawing. Weights are scaled by their fan-in; statistics.py sets those of batch
normalisations once the network is finished.
"""

import math
import zlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from networks import statistics

_IR_VERSION = 9
_VERSIONS = {"ai.onnx.ml": 3, "com.microsoft": 1}  # of domains beside ONNX's own


class Drawing:
    """One graph under construction; values are named by strings, as in ONNX."""

    def __init__(self, name, opset=18):
        self.generator = numpy.random.default_rng(zlib.crc32(name.encode()))
        self._name = name
        self._opset = opset
        self._nodes, self._inputs, self._outputs, self._initializers = [], [], [], []
        self._domains = set()
        self._output_names = {}  # by the name under which it was drawn
        self.samples = {}

    def add_input(self, name, sample, dims=None):
        """Declares an input and the array that the comparison runs it on; a dimension given as text
        in `dims` is symbolic."""
        elem_type = helper.np_dtype_to_tensor_dtype(sample.dtype)
        self._inputs.append(helper.make_tensor_value_info(name, elem_type, dims or sample.shape))
        self.samples[name] = numpy.ascontiguousarray(sample)
        return name

    def add_normal_input(self, name, shape, dims=None):
        sample = self.generator.standard_normal(shape, dtype=numpy.float32)
        return self.add_input(name, sample, dims)

    def add_image(self, name, shape, dims=None):
        """Noise at several scales, as photographs have."""
        height, width = shape[-2:]
        image = numpy.zeros(shape)
        for cell in (1, 4, 16):
            cells = (*shape[:-2], -(-height // cell), -(-width // cell))
            noise = self.generator.standard_normal(cells).repeat(cell, -2).repeat(cell, -1)
            image += noise[..., :height, :width]
        return self.add_input(name, (image / math.sqrt(3)).astype(numpy.float32), dims)

    def add_output(self, value, name, elem_type=TensorProto.FLOAT, dims=None):
        """Gives a value its name as an output. Without `dims` they are those that ONNX infers."""
        self._output_names[value] = name
        self._outputs.append(helper.make_tensor_value_info(name, elem_type, dims))

    def add_constant(self, value):
        """An initializer; floating point becomes float32, integers int64."""
        value = numpy.asarray(value)
        value = value.astype(
            numpy.float32 if value.dtype.kind == "f" else bool if value.dtype.kind == "b" else numpy.int64
        )
        name = f"constant_{len(self._initializers)}"
        self._initializers.append(numpy_helper.from_array(value, name))
        return name

    def draw_weight(self, shape, deviation):
        value = self.generator.standard_normal(shape, dtype=numpy.float32)
        return self.add_constant(value * numpy.float32(deviation))

    def add_node(self, op_type, *inputs, output=None, domain="", **attributes):
        return self.add_split_node(
            op_type, *inputs, outputs=[output], domain=domain, **attributes
        )[0]

    def add_split_node(self, op_type, *inputs, outputs, domain="", **attributes):
        """A node with several outputs: a number of them, or their names, of which None is made up and ""
        left out."""
        names = [None] * outputs if isinstance(outputs, int) else outputs
        label = f"{op_type}_{len(self._nodes)}"
        names = [f"{label}_{at}" if name is None else name for at, name in enumerate(names)]
        self._nodes.append(
            helper.make_node(op_type, inputs, names, label, domain=domain, **attributes)
        )
        if domain:
            self._domains.add(domain)
        return names

    def reshape(self, x, *extents):
        return self.add_node("Reshape", x, self.add_constant(numpy.array(extents)))

    def transpose(self, x, *perm):
        return self.add_node("Transpose", x, perm=perm)

    def add_scalar(self, op_type, x, value):
        """x op value."""
        return self.add_node(op_type, x, self.add_constant(float(value)))

    def slice(self, x, axis, start, end):
        constants = [self.add_constant([number]) for number in (start, end, axis)]
        return self.add_node("Slice", x, *constants)

    # --- layers of image networks -----------------------------------------------------------------

    def convolve(self, x, fan_in, channels, kernel=3, stride=1, group=1, dilation=1, bias=True, axes=2):
        """Conv that keeps the extents but for the stride; `kernel` is a number or one per axis, `bias`
        whether there is one, or its values."""
        kernel = [kernel] * axes if isinstance(kernel, int) else list(kernel)
        stride = [stride] * axes if isinstance(stride, int) else list(stride)
        shape = (channels, fan_in // group, *kernel)
        weights = self.draw_weight(shape, math.sqrt(2 / math.prod(shape[1:])))
        operands = [x, weights]
        if bias is not False:
            drawn = bias is True
            operands.append(self.draw_weight(channels, 0.1) if drawn else self.add_constant(bias))
        pads = [dilation * (extent - 1) // 2 for extent in kernel] * 2
        return self.add_node(
            "Conv",
            *operands,
            kernel_shape=kernel,
            strides=stride,
            pads=pads,
            group=group,
            dilations=[dilation] * len(kernel),
        )

    def normalize(self, x, channels):
        """BatchNormalization; its statistics are set when the network is finished."""
        draw = self.generator
        values = [draw.uniform(0.6, 1.4, channels), 0.3 * draw.standard_normal(channels)]
        values += [numpy.zeros(channels), numpy.ones(channels)]
        return self.add_node("BatchNormalization", x, *map(self.add_constant, values))

    def activate(self, x, name):
        """An activation as exporters write it."""
        if name == "silu":
            return self.add_node("Mul", x, self.add_node("Sigmoid", x))
        if name == "gelu":
            y = self.add_node("Erf", self.add_scalar("Div", x, math.sqrt(2)))
            return self.add_scalar("Mul", self.add_node("Mul", x, self.add_scalar("Add", y, 1)), 0.5)
        return self.add_node(name, x) if name else x

    def convolve_block(self, x, fan_in, channels, kernel=3, activation="Relu", **options):
        x = self.convolve(x, fan_in, channels, kernel, bias=False, **options)
        return self.activate(self.normalize(x, channels), activation)

    def resize(self, x, mode, scales=None, sizes=None, coordinates="half_pixel", **attributes):
        operands = ["", self.add_constant(numpy.array(scales, float))] if scales else ["", ""]
        operands += [self.add_constant(numpy.array(sizes))] if sizes else []
        attributes["coordinate_transformation_mode"] = coordinates
        return self.add_node("Resize", x, *operands, mode=mode, **attributes)

    def pool_all(self, x, axes=(2, 3)):
        return self.add_node("ReduceMean", x, self.add_constant(list(axes)), keepdims=1)

    def connect(self, x, fan_in, width):
        """Gemm with weights stored transposed, as exporters store them."""
        weights = self.draw_weight((width, fan_in), math.sqrt(1 / fan_in))
        return self.add_node("Gemm", x, weights, self.draw_weight(width, 0.1), transB=1)

    # --- layers of transformers -------------------------------------------------------------------

    def project(self, x, fan_in, width, gain=1.0, bias=True):
        """x * weights + bias over the last axis."""
        y = self.add_node("MatMul", x, self.draw_weight((fan_in, width), gain / math.sqrt(fan_in)))
        return self.add_node("Add", y, self.draw_weight(width, 0.1)) if bias else y

    def normalize_row(self, x, width):
        scale = self.add_constant(self.generator.uniform(0.6, 1.4, width))
        return self.add_node("LayerNormalization", x, scale, self.draw_weight(width, 0.1), axis=-1)

    def normalize_rms(self, x, width):
        """x / sqrt(mean(x^2)) * scale, in the steps that exporters write."""
        square = self.add_scalar("Pow", x, 2)
        mean = self.add_node("ReduceMean", square, self.add_constant([-1]), keepdims=1)
        root = self.add_node("Sqrt", self.add_scalar("Add", mean, 1e-6))
        scale = self.add_constant(self.generator.uniform(0.6, 1.4, width))
        return self.add_node("Mul", self.add_node("Div", x, root), scale)

    def normalize_groups(self, x, groups, channels, spatial):
        """GroupNorm as exporters write it: InstanceNormalization over groups."""
        ones, zeros = numpy.ones(groups), numpy.zeros(groups)
        y = self.reshape(x, 0, groups, -1)
        constants = [self.add_constant(ones), self.add_constant(zeros)]
        y = self.add_node("InstanceNormalization", y, *constants, epsilon=1e-5)
        y = self.reshape(y, 1, channels, *spatial)
        scale = self.add_constant(self.generator.uniform(0.6, 1.4, (channels, 1, 1)))
        shift = self.draw_weight((channels, 1, 1), 0.1)
        return self.add_node("Add", self.add_node("Mul", y, scale), shift)

    def split_heads(self, x, heads, width, perm=(0, 2, 1, 3)):
        return self.transpose(self.reshape(x, 0, -1, heads, width), *perm)

    def attend(self, x, other, width, heads, mask=None, gain=1.4):
        """Attention of x[batch, length, width] to `other`, written out."""
        size = width // heads
        query = self.split_heads(self.project(x, width, width, gain), heads, size)
        key = self.split_heads(self.project(other, width, width, gain), heads, size, (0, 2, 3, 1))
        value = self.split_heads(self.project(other, width, width), heads, size)
        return self.project(self.mix(query, key, value, width, mask), width, width)

    def mix(self, query, key, value, width, mask=None):
        """softmax(query * key / sqrt(size) + mask) * value, heads joined again."""
        size = 64 if width % 64 == 0 else 32
        scores = self.add_scalar("Mul", self.add_node("MatMul", query, key), 1 / math.sqrt(size))
        if mask is not None:
            scores = self.add_node("Add", scores, mask)
        y = self.add_node("MatMul", self.add_node("Softmax", scores, axis=-1), value)
        return self.reshape(self.transpose(y, 0, 2, 1, 3), 0, -1, width)

    def feed_forward(self, x, width, inner, activation="gelu"):
        y = self.activate(self.project(x, width, inner), activation)
        return self.project(y, inner, width)

    def finish(self):
        """Returns the checked model."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [self._output_names.get(name, name) for name in names]
        graph = helper.make_graph(
            self._nodes, self._name, self._inputs, self._outputs, self._initializers
        )
        opsets = [helper.make_opsetid("", self._opset)]
        opsets += [helper.make_opsetid(domain, _VERSIONS[domain]) for domain in sorted(self._domains)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="population"
        )
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        onnx.checker.check_model(model)
        statistics.set_statistics(model, self.samples, self.generator)
        del model.graph.value_info[:]
        return model

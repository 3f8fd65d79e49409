# SPDX-License-Identifier: Apache-2.0
"""What nodes compute: ONNX Runtime without optimization, one node at a time, on exact and on disturbed values.

A value has an array for each run of the graph and each of a few tracks. Track 0 holds what ONNX Runtime computes. In
the others every node that rounds has its result moved by a few units in the last place, up in one track where it is
moved down in the next. How far the tracks lie apart is how much a graph amplifies roundings, and an integer that
differs between tracks stands on a step of its function, where no answer is right.
"""

import numpy
import onnxruntime
from onnx import helper

DISTURBED_TRACKS = 2
_UNITS = 4
# What rounds nothing: results are elements of operands, or whole numbers.
_EXACT = frozenset(
    "Abs ArgMax ArgMin Cast CastLike Ceil Clip Compress Concat ConstantOfShape DepthToSpace DequantizeLinear Dropout "
    "Expand EyeLike Flatten Floor Gather GatherElements GatherND GlobalMaxPool Hardmax Identity If Max MaxPool "
    "MaxUnpool Min Neg NonZero OneHot Pad Range ReduceMax ReduceMin Relu Reshape ReverseSequence Round "
    "ScatterElements ScatterND Sign Size Shape Slice SpaceToDepth Split Squeeze Tile TopK Transpose Trilu "
    "Unique Unsqueeze Where SequenceAt SequenceConstruct ConcatFromSequence SplitToSequence SequenceInsert".split()
)

# What may compute in float32 whatever the type of its operands, or multiplies by an attribute or a constant of float32.
_IN_FLOAT32 = frozenset(
    "Attention Celu Elu Gelu GroupNormalization HardSigmoid HardSwish InstanceNormalization LayerNormalization LeakyRelu "
    "RMSNormalization RotaryEmbedding Selu Shrink Swish ThresholdedRelu".split()
)

onnxruntime.set_default_logger_severity(4)


class Refused(Exception):
    """ONNX Runtime does not compute a node; the text is its first line."""


def disturb(array, draw, sign, units, eps):
    """The array with every element moved by at most so many eps of itself."""
    if array.dtype.kind != "f" or array.size == 0:
        return array
    steps = units * eps * draw.uniform(0.5, 1, array.shape) * draw.choice([-1, 1], array.shape)
    with numpy.errstate(all="ignore"):
        return numpy.asarray(array * (1 + sign * steps)).astype(array.dtype)


def open_session(model):
    """A session of ONNX Runtime that changes nothing in the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as fault:  # its exceptions have no common base but this
        raise Refused(str(fault).splitlines()[0]) from fault


def captured_names(node):
    """Names that a node reads: its inputs, and what its subgraphs take from outside."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            for inner in graph.node:
                names |= captured_names(inner) - made
                made |= set(inner.output)
            names |= {value.name for value in graph.output} - made
    return names


def element_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def has_one_rank(arrays):
    """Whether a value, as [run][track] arrays, has as many axes in each run."""
    return len({tracks[0].ndim for tracks in arrays}) == 1


def declare(name, value, shape=None):
    """A value of a graph with the type of an array or of a list of arrays."""
    if isinstance(value, numpy.ndarray):
        return helper.make_tensor_value_info(name, element_type(value), shape)
    return helper.make_tensor_sequence_value_info(name, element_type(value[0]), shape)


class Evaluator:
    """Computes nodes of one model. `functions` are those of the model, and may grow."""

    def __init__(self, opset, seed, functions=(), tracks=DISTURBED_TRACKS, units=_UNITS):
        self._opset, self._functions, self._units = opset, functions, units
        self._draw = numpy.random.default_rng(seed)
        self.track_count = 1 + tracks

    def _make_model(self, node, inputs):
        graph = helper.make_graph(
            [node],
            "node",
            [declare(name, tracks[0][0]) for name, tracks in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        domains = {"": self._opset, **{function.domain: 1 for function in self._functions}, "com.microsoft": 1}
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in domains.items()],
            functions=[f for f in self._functions if f.domain == node.domain],
            ir_version=10,
        )

    def evaluate(self, node, values, run_count):
        """{output: [run][track] arrays} of a node, for {name: [run][track] arrays} of at least what it reads."""
        inputs = {name: values[name] for name in sorted(captured_names(node))}
        session = open_session(self._make_model(node, inputs))
        names = [name for name in node.output if name]
        results = {name: [] for name in names}
        for run in range(run_count):
            tracks = []
            for track in range(self.track_count):
                feeds = {name: arrays[run][track] for name, arrays in inputs.items()}
                if track and all(feeds[name] is arrays[run][0] for name, arrays in inputs.items()):
                    tracks.append(tracks[0])  # nothing is disturbed yet
                    continue
                try:
                    tracks.append(session.run(names, feeds))
                except Exception as fault:  # as above
                    raise Refused(str(fault).splitlines()[0]) from fault
            for position, name in enumerate(names):
                results[name].append(self._disturb(node, [answers[position] for answers in tracks]))
        return results

    def _disturb(self, node, arrays):
        if not isinstance(arrays[0], numpy.ndarray) or node.op_type in _EXACT or arrays[0].dtype.kind != "f":
            return arrays
        if len({array.shape for array in arrays}) > 1:
            return arrays
        eps = numpy.finfo(arrays[0].dtype).eps
        if node.op_type in _IN_FLOAT32:
            eps = max(eps, numpy.finfo("float32").eps)
        disturbed = [arrays[0]]
        seed = int(self._draw.integers(1 << 32))
        for track in range(1, len(arrays)):
            draw = numpy.random.default_rng(seed + (track - 1) // 2)
            disturbed.append(disturb(arrays[track], draw, 1 if track % 2 else -1, self._units, eps))
        return disturbed

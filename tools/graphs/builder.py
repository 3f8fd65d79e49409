# SPDX-License-Identifier: Apache-2.0
"""Builder: a graph that grows node by node, with what each value holds in each run.

Blocks add nodes to it. Every node is evaluated when it is added (evaluation.py), so that a block knows types and
extents, and one that ONNX Runtime does not compute, or whose values tell no faults, is taken back as a whole.
"""

import contextlib
import dataclasses
import math

import numpy
from onnx import helper, numpy_helper

from graphs import agreement
from graphs.evaluation import Evaluator, Refused, has_one_rank

FLOATS = ("float32", "float64", "float16")
_MOST_ELEMENTS = 1 << 15
_MOST_VALUE = 1e4


class Discard(Exception):
    """A block cannot be added."""


@dataclasses.dataclass(eq=False)
class Value:
    name: str
    arrays: list  # [run][track]
    is_constant: bool = False

    @property
    def is_sequence(self):
        return not isinstance(self.arrays[0][0], numpy.ndarray)

    @property
    def dtype(self):
        return self.arrays[0][0].dtype.name

    @property
    def rank(self):
        return self.arrays[0][0].ndim

    @property
    def shape(self):
        """Of the first run."""
        return self.arrays[0][0].shape

    @property
    def shapes(self):
        return [tracks[0].shape for tracks in self.arrays]

    @property
    def size(self):
        return max(tracks[0].size for tracks in self.arrays)

    @property
    def is_float(self):
        return self.dtype in FLOATS

    @property
    def is_empty(self):
        return any(0 in shape for shape in self.shapes)

    def has_fixed(self, axis):
        """Whether the extent is the same in all runs."""
        return len({shape[axis] for shape in self.shapes}) == 1

    @property
    def is_fixed(self):
        return len(set(self.shapes)) == 1


class Builder:
    def __init__(self, rng, opset, extents):
        """`extents`: {symbol: extent} for each run."""
        self.rng, self.opset, self.extents = rng, opset, extents
        self.nodes, self.initializers, self.inputs, self.functions = [], [], [], []
        self.values = []  # what blocks may read
        self.known = {}  # {name: [run][track]} of everything
        self.weights = []  # what other nodes may share
        self.is_in_function = self.is_in_scope = False
        self.draw = numpy.random.default_rng(rng.getrandbits(32))
        self._evaluator = Evaluator(opset, rng.getrandbits(32), self.functions)
        self._count = 0
        self.declared = {}  # {input: dims}
        self.most_elements = _MOST_ELEMENTS

    # ---- names and draws ----

    def name(self, stem="v"):
        self._count += 1
        return f"{stem}{self._count}"

    def chance(self, share):
        return self.rng.random() < share

    def choice(self, options):
        if not options:
            raise Discard("nothing to choose from")
        return self.rng.choice(list(options))

    def pick(self, *conditions, recent=0.6):
        """A value of which all conditions hold, rather a recent one."""
        found = [value for value in self.values if all(condition(value) for condition in conditions)]
        if not found:
            raise Discard("no such value")
        return found[-1] if self.chance(recent) else self.rng.choice(found)

    # ---- values ----

    def numbers(self, shape, dtype, scale=1.0):
        """Random numbers of a type."""
        if dtype == "bool":
            return self.draw.integers(0, 2, shape).astype(bool)
        if dtype in FLOATS:
            return (self.draw.standard_normal(shape) * scale).astype(dtype)
        kind = numpy.iinfo(dtype)
        low, high = (0, 9) if self.chance(0.5) else (max(-9, kind.min), min(kind.max, 120) + 1)
        if kind.bits == 8 and self.chance(0.5):
            low, high = kind.min, kind.max + 1
        return self.draw.integers(low, high, shape).astype(dtype)

    def input(self, dtype, dims, make=None):
        """A new input; dims are numbers and symbols. `make(shape)` draws what a run is given."""
        arrays = []
        for extents in self.extents:
            shape = tuple(extents[dim] if isinstance(dim, str) else dim for dim in dims)
            array = numpy.asarray(make(shape) if make else self.numbers(shape, dtype)).astype(dtype)
            if array.size > self.most_elements:
                raise Discard("too large")
            arrays.append([array] * self._evaluator.track_count)
        value = Value(self.name("x"), arrays)
        self.known[value.name] = arrays
        self.inputs.append(value)
        self.declared[value.name] = list(dims)
        self.values.append(value)
        return value

    def constant(self, array, is_structural=False):
        """A value that is the same in all runs, in one of the forms that models have for one."""
        array = numpy.asarray(array)
        form = self.rng.random()
        value = Value(self.name("w"), [[array] * self._evaluator.track_count for _ in self.extents], True)
        self.known[value.name] = value.arrays
        if self.is_in_function or form < 0.25:
            self.nodes.append(self._constant_node(array, value.name))
        elif form < (0.98 if is_structural else 0.85) or self.is_in_scope:
            self.initializers.append(numpy_helper.from_array(array, value.name))
        elif form < 0.9 and not is_structural:
            self.initializers.append(numpy_helper.from_array(array, value.name))
            self.known[value.name] = value.arrays
            value = self.op("Identity", [value], keep=False)
        else:
            value.is_constant = False
            self.inputs.append(value)
            self.declared[value.name] = list(array.shape)
        return value

    def _constant_node(self, array, name):
        if self.opset >= 12 and array.dtype == numpy.int64 and array.ndim < 2 and self.chance(0.5):
            key = "value_int" if array.ndim == 0 else "value_ints"
            if array.size:
                return helper.make_node("Constant", [], [name], **{key: array.tolist()})
        return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))

    def weight(self, shape, dtype="float32", scale=None, positive=False):
        """Random weights, sometimes those that another node has."""
        shape = tuple(shape)
        if self.chance(0.15):
            shared = [v for v in self.weights if v.shape == shape and v.dtype == dtype]
            if positive:
                shared = [v for v in shared if (v.arrays[0][0] > 0).all()]
            if shared:
                return self.choice(shared)
        fan = math.prod(shape[1:]) if len(shape) > 1 else 4
        array = self.numbers(shape, dtype, scale or 1 / math.sqrt(max(fan, 1)))
        if positive:
            array = (numpy.abs(array) + 0.25).astype(dtype)
        value = self.constant(array)
        if not self.is_in_function and not self.is_in_scope:
            self.weights.append(value)
        return value

    def ints(self, numbers, dtype=numpy.int64):
        return self.constant(numpy.array(numbers, dtype), is_structural=True)

    def scalar(self, number, dtype):
        return self.constant(numpy.array([number] if self.chance(0.2) else number, dtype))

    # ---- nodes ----

    def op(self, op_type, inputs, outputs=1, domain="", keep=True, leaves_out=(), **attributes):
        """Adds a node; the Value, or a list of them for several outputs. None stands for an input that is left out;
        `leaves_out` is empty or the position of an output without a name, which is then None."""
        if op_type == "Concat" and any(value.is_empty for value in inputs):
            self._check_concat(inputs, attributes["axis"])
        names = [value.name if value is not None else "" for value in inputs]
        while names and not names[-1]:
            names.pop()
        made = [self.name() for _ in range(outputs)]
        if leaves_out:
            made[leaves_out[0]] = ""
        node = helper.make_node(op_type, names, made, self.name("n"), domain=domain, **attributes)
        return self.add(node, keep)

    @staticmethod
    def _check_concat(inputs, axis):
        """ONNX Runtime looks at no extent of what is empty."""
        for shapes in zip(*(value.shapes for value in inputs)):
            if len({shape[: axis % len(shape)] + shape[axis % len(shape) + 1:] for shape in shapes}) > 1:
                raise Discard("extents differ")

    def add(self, node, keep=True):
        try:
            results = self._evaluator.evaluate(node, self.known, len(self.extents))
        except Refused as refused:
            raise Discard(f"{node.op_type}: {refused}") from refused
        made = []
        for name in node.output:
            if not name:
                made.append(None)
                continue
            value = Value(name, results[name])
            self._check(value, keep)
            self.known[name] = value.arrays
            made.append(value)
        self.nodes.append(node)
        if keep:
            self.values.extend(value for value in made if value is not None and not value.is_sequence)
        return made[0] if len(made) == 1 else made


    def _check(self, value, is_bounded):
        """`is_bounded`: other blocks may read it."""
        for tracks in value.arrays:
            array = tracks[0]
            if value.is_sequence:
                if not array:
                    raise Discard("an empty sequence has no type here")
                continue
            if array.size > self.most_elements:
                raise Discard("too large")
            if array.ndim > 6 or (is_bounded and not has_one_rank(value.arrays)):
                raise Discard("rank")
            if not agreement.is_stable(tracks):
                raise Discard("unstable")
            if array.dtype.kind == "f" and array.size:
                if not numpy.isfinite(array).all() and not self.chance(0.02):
                    raise Discard("not finite")
                if is_bounded and numpy.abs(array[numpy.isfinite(array)], dtype=array.dtype).max(initial=0) > _MOST_VALUE:
                    raise Discard("too large")

    # ---- scopes ----

    @contextlib.contextmanager
    def attempt(self):
        """Takes back what a block has added if it raises Discard."""
        marks = [(items, len(items)) for items in (self.nodes, self.initializers, self.inputs, self.functions,
                                                   self.values, self.weights)]  # fmt: skip
        try:
            yield
        except Discard:
            for items, length in marks:
                del items[length:]
            raise

    @contextlib.contextmanager
    def scope(self, is_function=False):
        """A list that nodes go into meanwhile: the body of a subgraph or a function."""
        outer, values = self.nodes, list(self.values)
        was = self.is_in_scope, self.is_in_function
        self.nodes, self.is_in_scope = [], True
        self.is_in_function = is_function or was[1]
        if is_function:
            self.values.clear()
        try:
            yield self.nodes
        finally:
            self.nodes = outer
            self.values[:] = values
            self.is_in_scope, self.is_in_function = was

    def formal(self, array):
        """A formal input that holds an array in the first round of a loop."""
        return self.alias(Value("", [[array] * self._evaluator.track_count for _ in self.extents]))

    def dims_of(self, value):
        """Numbers and symbols that give the extents of a value in each run; None where no symbol does."""
        dims = []
        for extents in zip(*value.shapes):
            symbols = [s for s in self.extents[0] if all(e[s] == d for e, d in zip(self.extents, extents))]
            if len(set(extents)) > 1 and not symbols:
                raise Discard("no symbol")
            dims.append(self.rng.choice(symbols) if len(set(extents)) > 1 else extents[0])
        return dims

    def alias(self, value):
        """A formal input that holds what the value holds."""
        formal = Value(self.name("f"), value.arrays)
        self.known[formal.name] = formal.arrays
        self.values.append(formal)
        return formal

    def function_domain(self):
        return f"local{len(self.functions)}"

    # ---- helpers that hide what changed between versions ----

    def reshape(self, x, shape):
        return self.op("Reshape", [x, self.ints(shape)])

    def transpose(self, x, order):
        return self.op("Transpose", [x], perm=order)

    def squeeze(self, x, axes):
        if axes is None:
            return self.op("Squeeze", [x])
        if self.opset < 13:
            return self.op("Squeeze", [x], axes=axes)
        return self.op("Squeeze", [x, self.ints(axes)])

    def unsqueeze(self, x, axes):
        if self.opset < 13:
            return self.op("Unsqueeze", [x], axes=axes)
        return self.op("Unsqueeze", [x, self.ints(axes)])

    def reduce(self, op_type, x, axes, keepdims):
        if x.is_empty:
            raise Discard("ONNX Runtime keeps extents")
        since = 13 if op_type == "ReduceSum" else 18
        if self.opset < since:
            attributes = {} if axes is None else {"axes": axes}
            return self.op(op_type, [x], keepdims=keepdims, **attributes)
        return self.op(op_type, [x] if axes is None else [x, self.ints(axes)], keepdims=keepdims)

    def slice(self, x, starts, ends, axes, steps=None):
        if self.opset < 10:
            if steps and any(step != 1 for step in steps):
                raise Discard("Slice has no steps yet")
            return self.op("Slice", [x], starts=starts, ends=ends, axes=axes)
        is_small = all(abs(number) < 1 << 31 for number in starts + ends)
        dtype = numpy.int32 if is_small and self.chance(0.2) else numpy.int64
        operands = [x, self.ints(starts, dtype), self.ints(ends, dtype), self.ints(axes, dtype)]
        return self.op("Slice", operands + ([self.ints(steps, dtype)] if steps else []))

    def clip(self, x, low, high):
        if self.opset < 11:
            return self.op("Clip", [x], min=float(low), max=float(high))
        bounds = [self.constant(numpy.array(bound, x.dtype)) for bound in (low, high)]
        return self.op("Clip", [x, *bounds])

    def pad(self, x, pads, mode, value):
        if self.opset < 11:
            return self.op("Pad", [x], pads=pads, mode=mode, value=float(value))
        operands = [x, self.ints(pads)]
        if mode == "constant" and self.chance(0.7):
            operands.append(self.constant(numpy.array(value, x.dtype)))
        return self.op("Pad", operands, mode=mode)

    def split(self, x, sizes, axis):
        if self.opset < 13:
            return self.op("Split", [x], outputs=len(sizes), split=sizes, axis=axis)
        return self.op("Split", [x, self.ints(sizes)], outputs=len(sizes), axis=axis)

    def to(self, x, dtype, keep=True):
        number = helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))
        return x if x.dtype == dtype else self.op("Cast", [x], keep=keep, to=number)

# SPDX-License-Identifier: Apache-2.0
"""A step as step_fuzz wrote it: its buffers, what it loads through views, and its expression at given coordinates."""

import numpy as np

from steps.cast import cast
from steps.float_arithmetic import float_binary, float_unary
from steps.integer_arithmetic import integer_operation, random_uniform
from steps.number_format import BOOL, decode, element_bits, is_float
from steps.value import Value, constant


class Step:
    """A line that step_fuzz wrote, and its buffers before and after."""

    def __init__(self, record, data):
        self.record = record
        self.domain = tuple(record["domain"])
        self.body = record["body"]
        self.nodes = record["nodes"]
        self.kind_of = {node[0]: node[2] for node in self.nodes}
        self.before = [self.buffer(entry, data) for entry in record["buffers"]]
        self.after = [self.buffer(entry, data) for entry in record["results"]]

    @staticmethod
    def buffer(entry, data):
        kind, count, position = entry
        return decode(kind, data[position : position + (count * element_bits(kind) + 7) // 8], count)

    def linear(self, offset, coefficients, coordinates, shape):
        total = np.full(shape, offset, np.int64)
        for coefficient, coordinate in zip(coefficients, coordinates):
            total = total + coefficient * coordinate
        return total

    def load(self, read, coordinates, shape):
        view = self.record["reads"][read]
        coordinates = coordinates[: len(view["strides"])]
        inside = np.ones(shape, bool)
        for coefficients, offset, extent in view["guards"]:
            value = self.linear(offset, coefficients, coordinates, shape)
            inside &= (value >= 0) & (value < extent)
        elements = self.linear(view["offset"], view["strides"], coordinates, shape)
        buffer = self.before[view["buffer"]]
        fill = constant(view["type"], view["fill"], shape).v
        if buffer.size == 0 or not inside.any():
            return Value(np.array(fill))
        if (elements[inside] < 0).any() or (elements[inside] >= buffer.size).any():
            raise ValueError("read %d leaves its buffer" % read)
        return Value(np.where(inside, buffer[np.where(inside, elements, 0)], fill))

    def coordinates(self, extents):
        return list(np.meshgrid(*[np.arange(n) for n in extents], indexing="ij")) if extents else []

    def evaluate(self, roots, coordinates, shape, outside=None, unordered=False):
        """Values of `roots` at `coordinates` (an array of `shape` per axis). `outside` gives states and row results."""
        wanted, pending = set(), [root for root in roots if root >= 0]
        operands_of = {node[0]: node[5] for node in self.nodes}
        while pending:
            node = pending.pop()
            if node not in wanted:
                wanted.add(node)
                pending.extend(operands_of[node])
        values, carried = {}, {}
        for number, op, kind, payload, dim, operands in self.nodes:
            if number not in wanted:
                continue
            inputs = [values[operand] for operand in operands]
            carried[number] = op in ("state", "other") or any(carried[o] for o in operands)
            values[number] = self.node(
                op, kind, payload, dim, operands, inputs, coordinates, shape, outside,
                not (unordered and carried[number]),
            )
        return [values[root] if root >= 0 else None for root in roots]

    def node(self, op, kind, payload, dim, operands, inputs, coordinates, shape, outside, ordered):
        if op == "constant":
            return constant(kind, payload, shape)
        if op == "dim":
            return Value(np.full(shape, dim, np.int64))
        if op == "index":
            return Value(np.broadcast_to(coordinates[payload], shape).astype(np.int64))
        if op == "load":
            if not inputs:
                return self.load(payload, coordinates, shape)
            loaded = self.load(payload, [value.v for value in inputs], shape)
            unknown = loaded.u
            for value in inputs:
                unknown = unknown | value.u
            return Value(loaded.v, None, unknown)
        if op == "accumulator":
            return outside[op]
        if op in ("state", "row"):
            return outside[(op, payload)]
        if op == "random":
            return Value(random_uniform(payload, inputs[0].v), None, inputs[0].u)
        if op == "select":
            choose, a, b = inputs
            return Value(
                np.where(choose.v, a.v, b.v),
                np.where(choose.v, a.e, b.e),
                choose.u | np.where(choose.v, a.u, b.u),
            )
        from_kind = self.kind_of[operands[0]]
        if op == "cast":
            return cast(kind, from_kind, inputs[0])
        if op == "not":
            return Value(~inputs[0].v, None, inputs[0].u)
        if is_float(from_kind):
            if len(inputs) == 1:
                return float_unary(op, kind, inputs[0])
            return float_binary(op, kind, inputs[0], inputs[1], ordered)
        a = inputs[0].v
        b = inputs[1].v if len(inputs) > 1 else None
        unknown = inputs[0].u | (inputs[1].u if b is not None else False)
        if op in ("equal", "less", "less_equal"):
            return Value({"equal": a == b, "less": a < b, "less_equal": a <= b}[op], None, unknown)
        if from_kind == BOOL:
            return Value({"and": a & b, "or": a | b, "xor": a ^ b}[op], None, unknown)
        return Value(integer_operation(op, kind, a, b), None, unknown)

# SPDX-License-Identifier: Apache-2.0
"""Blocks with bodies: branches, loops, scans, functions, sequences."""

import numpy
from onnx import helper

from graphs.builder import Discard
from graphs.catalogue import block
from graphs.elementwise import activation, is_float, is_number, partner
from graphs.evaluation import captured_names, declare
from graphs.shape import axis_of, extent, has_axes


def _some_nodes(b, x):
    """A few nodes over x that keep its type and its extents."""
    y = x
    for _ in range(b.rng.randint(1, 3)):
        form = b.rng.randrange(4)
        if form == 0 and y.is_float:
            y = activation(b, y, b.choice(["Relu", "Sigmoid", "Tanh", "LeakyRelu"]))
        elif form == 1:
            y = b.op(b.choice(["Add", "Sub"]), [y, b.constant(b.numbers((), x.dtype))])
        elif form == 2:
            # Read from the outer scope.
            other = b.pick(lambda v: v.dtype == x.dtype, recent=0.3)
            z = b.op("Add", [y, other])
            y = z if z.shapes == y.shapes else y
        else:
            y = b.op("Mul", [y, y]) if b.chance(0.3) else b.op("Add", [x, y])
    return y


def _body(b, name, nodes, inputs, outputs):
    """Of its values a body says types and ranks; the extents are another round's in the next."""
    inputs, outputs = (
        [declare(value.name, value.arrays[0][0], [None] * value.rank) for value in values] for values in (inputs, outputs)
    )
    body = helper.make_graph(list(nodes), name, inputs, outputs)
    if b.chance(0.4) and not any(a.type == a.GRAPH for node in nodes for a in node.attribute):
        _name_as_others(body)
    return body


def _name_as_others(body):
    """Values of a body get names that other bodies have for values of their own."""
    made = [value.name for value in body.input] + [name for node in body.node for name in node.output if name]
    names = {name: f"inner{k}" for k, name in enumerate(made)}
    for node in body.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in [*body.input, *body.output]:
        value.name = names.get(value.name, value.name)


def _condition(b):
    """A truth that shapes, data or constants tell."""
    form = b.rng.randrange(4)
    if form == 0:
        x = b.pick(has_axes)
        length = b.squeeze(extent(b, x, axis_of(b, x)), [0])
        return b.op("Greater" if b.opset >= 9 else "Equal", [length, b.constant(numpy.array(b.choice([0, 1, 3])))])
    if form == 1:
        x = b.pick(is_float, lambda v: not v.is_empty)
        return b.op("Greater", [b.reduce("ReduceMean", x, None, 0), b.constant(numpy.array(0, x.dtype))])
    if form == 2:
        return b.constant(numpy.array(b.chance(0.5)))
    return b.input("bool", [])


@block(2, "control")
def branch(b):
    x = b.pick(is_number)
    condition = _condition(b)
    bodies = []
    for name in ("then", "else"):
        with b.scope() as nodes:
            if name == "else" and b.chance(0.3) and b.opset >= 11:
                y = b.op("Identity", [x])
            else:
                y = _some_nodes(b, x)
                if name == "else" and b.chance(0.15) and x.rank:
                    y = b.op("Concat", [y, y], axis=0)
            if y is x or y.name == x.name or not nodes or y.name not in {o for n in nodes for o in n.output}:
                y = b.op("Identity", [y])
            bodies.append(_body(b, name, nodes, [], [y]))
    b.op("If", [condition], then_branch=bodies[0], else_branch=bodies[1])


@block(2, "control")
def loop(b):
    """Carries a value, collects another, reads outer values."""
    if b.opset < 11:
        raise Discard("bodies are read as of 11")
    x = b.pick(is_number, lambda v: v.size <= 4096)
    with b.scope() as nodes:
        # What is carried changes from round to round: the values that the builder follows are the first round's.
        step = b.formal(numpy.array(0))
        going = b.formal(numpy.array(True))
        carried = b.alias(x)
        y = _some_nodes(b, carried)
        if b.chance(0.5):
            y = b.op("Add", [y, b.to(step, x.dtype)])
        if y.is_float:
            y = b.op("Tanh", [y])
        else:
            y = b.op("Identity", [y])
        outputs = [b.op("Identity", [going]), y]
        if b.chance(0.6):
            collected = b.op("Identity", [y]) if b.chance(0.5) else b.reduce("ReduceMax", y, None, b.rng.randrange(2)) if y.is_float else b.op("Identity", [step])
            outputs.append(collected)
        body = _body(b, "body", nodes, [step, going, carried], outputs)
    form = b.rng.randrange(3)
    # What no round collects has no extents that ONNX names.
    least = int(len(outputs) > 2)
    if form == 0:
        rounds = b.constant(numpy.array(b.rng.randint(least, 4)), True)
    elif form == 1:
        z = b.pick(has_axes, lambda v: all(least <= extent < 20 for shape in v.shapes for extent in shape))
        rounds = b.squeeze(extent(b, z, axis_of(b, z)), [0])
    else:
        rounds = b.input("int64", [], lambda _: b.rng.randint(least, 5))
    going = b.constant(numpy.array(True)) if b.chance(0.6) else None
    b.op("Loop", [rounds, going, x], outputs=len(outputs) - 1, body=body)


@block(2, "control")
def scan(b):
    if b.opset < 9:
        raise Discard("other inputs")
    x = b.pick(is_float, lambda v: v.rank >= 2 and not v.is_empty)
    first = b.op("Gather", [x, b.constant(numpy.array(0), True)], axis=0, keep=False)
    with b.scope() as nodes:
        state, row = b.alias(first), b.alias(first)
        mixed = b.op("Add", [state, row])
        if b.chance(0.5):
            mixed = b.op("Tanh", [mixed])
        else:
            mixed = b.op("Mul", [mixed, b.scalar(0.5, x.dtype)])
        out = activation(b, mixed, "Sigmoid") if b.chance(0.5) else b.op("Identity", [mixed])
        body = _body(b, "body", nodes, [state, row], [mixed, out])
    attributes = {"scan_input_directions": [b.rng.randrange(2)]} if b.chance(0.5) else {}
    if b.chance(0.3):
        attributes["scan_output_directions"] = [1]
    b.op("Scan", [first, x], outputs=2, num_scan_inputs=1, body=body, **attributes)


@block(2, "control")
def function(b):
    """A function of the model, called once or twice."""
    if b.opset < 11:
        raise Discard("old")
    x = b.pick(is_float)
    domain = b.function_domain()
    with b.scope(is_function=True) as nodes:
        formal = b.alias(x)
        y = _some_nodes(b, formal)
        if not nodes or y is formal:
            y = b.op("Identity", [y])
        produced = {name for node in nodes for name in node.output}
        if any(captured_names(node) - produced - {formal.name} for node in nodes):
            raise Discard("captures")
        made = helper.make_function(
            domain, "Block", [formal.name], [y.name], list(nodes), [helper.make_opsetid("", b.opset)]
        )
    b.functions.append(made)
    z = b.op("Block", [x], domain=domain)
    if b.chance(0.5):
        b.op("Block", [z], domain=domain)


@block(1, "control")
def sequence(b):
    if b.opset < 11:
        raise Discard("not yet")
    x = b.pick(has_axes, is_number)
    if b.chance(0.5):
        items = [x, b.op("Add", [x, partner(b, x)])] + ([x] if b.chance(0.5) else [])
        made = b.op("SequenceConstruct", items)
        if b.chance(0.5):
            b.op("ConcatFromSequence", [made], axis=axis_of(b, x), new_axis=0)
        else:
            b.op("SequenceAt", [made, b.constant(numpy.array(b.choice([0, -1, 1])), True)])
    else:
        axis = axis_of(b, x, True)
        # ONNX Runtime does not ignore keepdims where lengths are given.
        if b.chance(0.5):
            made = b.op("SplitToSequence", [x, b.constant(numpy.array(1), True)], axis=axis)
        else:
            made = b.op("SplitToSequence", [x], axis=axis, keepdims=b.rng.randrange(2))
        b.op("SequenceAt", [made, b.constant(numpy.array(0), True)])
        if b.chance(0.4):
            b.op("SequenceLength", [made])


@block(1, "control")
def growing_loop(b):
    """Carries a value that grows by a row each round."""
    if b.opset < 13:
        raise Discard("old")
    x = b.pick(is_number, lambda v: v.rank >= 1 and v.size <= 1024 and not v.is_empty)
    row = b.slice(x, [0], [1], [0])
    with b.scope() as nodes:
        step, going, carried = b.formal(numpy.array(0)), b.formal(numpy.array(True)), b.alias(x)
        last = b.slice(carried, [-1], [1 << 62], [0])
        y = b.op("Concat", [carried, b.op("Add", [last, row]) if x.is_float else row], axis=0)
        outputs = [b.op("Less", [step, b.constant(numpy.array(b.rng.randint(0, 3)))]), y]
        if b.chance(0.5):
            outputs.append(b.op("Shape", [y]))
        body = _body(b, "body", nodes, [step, going, carried], outputs)
    b.op("Loop", [b.constant(numpy.array(b.rng.randint(1, 5)), True), None if b.chance(0.3) else b.constant(numpy.array(True)), x],
         outputs=len(outputs) - 1, body=body)  # fmt: skip


@block(1, "control")
def branch_of_other_extents(b):
    """One branch keeps a value, the other cuts, turns or reduces it."""
    if b.opset < 13:
        raise Discard("old")
    x = b.pick(is_float, has_axes, lambda v: not v.is_empty)
    condition, bodies = _condition(b), []
    for name in ("then", "else"):
        with b.scope() as nodes:
            form = b.rng.randrange(4)
            if form == 0:
                y = b.slice(x, [0], [1], [axis_of(b, x)])
            elif form == 1:
                y = b.transpose(x, list(range(x.rank))[::-1])
            elif form == 2:
                y = b.reduce("ReduceSum", x, [axis_of(b, x)], 1)
            else:
                y = b.op("Identity", [x])
            bodies.append(_body(b, name, nodes, [], [y]))
    y = b.op("If", [condition], then_branch=bodies[0], else_branch=bodies[1])
    b.op("Relu", [y])


@block(1, "control")
def branch_of_other_rank(b):
    """Data choose how many axes a value has, or how many numbers a list; what reads it gives one rank."""
    if b.opset < 13:
        raise Discard("old")
    x = b.pick(is_float, lambda v: not v.is_empty and v.size <= 4096)
    condition, bodies, is_list = _condition(b), [], b.chance(0.4)
    for name in ("then", "else"):
        with b.scope() as nodes:
            if is_list:
                y = b.op("Identity", [b.constant(numpy.array([-1] if name == "then" else [1, -1, 1]))])
            elif name == "then":
                y = b.op("Reshape", [x, b.constant(numpy.array([-1]))])
            else:
                y = b.op("Unsqueeze", [x, b.constant(numpy.array([0]))])
            bodies.append(_body(b, name, nodes, [], [y]))
    # Not kept: it may have another rank in each run.
    y = b.op("If", [condition], keep=False, then_branch=bodies[0], else_branch=bodies[1])
    if is_list:
        y = b.op("Reshape", [x, y], keep=False)
    if b.chance(0.5):
        y = b.op("Softmax", [y], keep=False, axis=-1)
    y = b.op(b.choice(["Relu", "Sigmoid", "Tanh"]), [y], keep=False)
    b.reduce(b.choice(["ReduceSum", "ReduceMax", "ReduceMean"]), y, None, 0)


@block(1, "control")
def branch_in_loop(b):
    if b.opset < 13:
        raise Discard("old")
    x = b.pick(is_float, lambda v: v.size <= 1024)
    with b.scope() as nodes:
        step, going, carried = b.formal(numpy.array(0)), b.formal(numpy.array(True)), b.alias(x)
        is_odd = b.op("Equal", [b.op("Mod", [step, b.constant(numpy.array(2))]), b.constant(numpy.array(1))])
        bodies = []
        for name in ("then", "else"):
            with b.scope() as inner:
                y = b.op("Mul", [carried, b.scalar(0.5, x.dtype)]) if name == "then" else b.op("Sub", [carried, x])
                bodies.append(_body(b, name, inner, [], [y]))
        y = b.op("If", [is_odd], then_branch=bodies[0], else_branch=bodies[1])
        outputs = [b.op("Identity", [going]), b.op("Tanh", [y]), b.op("Add", [y, carried])]
        body = _body(b, "body", nodes, [step, going, carried], outputs)
    b.op("Loop", [b.constant(numpy.array(b.rng.randint(1, 5)), True), None, x], outputs=2, body=body)

# SPDX-License-Identifier: Apache-2.0
"""Control flow and optional values."""

import numpy
from onnx import helper

from opsets.case import covers, value_info


def _body(nodes, inputs, outputs):
    return helper.make_graph(
        nodes,
        "body",
        [value_info(name, value) for name, value in inputs],
        [value_info(name, value) for name, value in outputs],
    )


@covers("If")
def make_if(request):
    for name in request.types("V"):
        x, y = request.values(name, (3, 37)), request.values(name, (3, 37))
        branches = [
            _body([helper.make_node("Identity", [each], [f"z{each}"])], [], [(f"z{each}", x)])
            for each in "xy"
        ]
        node = helper.make_node(
            "If", ["condition"], ["z"], then_branch=branches[0], else_branch=branches[1]
        )
        for condition in (True, False):
            inputs = {"condition": numpy.array(condition), "x": x, "y": y}
            outputs = {"z": x if condition else y}
            yield request.graph_case(f"{name}_{condition}".lower(), [node], inputs, outputs)


@covers("Loop")
def make_loop(request):
    flag = numpy.array(True)
    for name in request.types("V"):
        x, y = request.values(name, (3, 5)), request.values(name, (3, 5))
        # The value carried is x in the first iteration, y in those that follow.
        body = _body(
            [
                helper.make_node("Identity", ["go_on"], ["going"]),
                helper.make_node("Identity", ["y"], ["next"]),
                helper.make_node("Identity", ["carried"], ["scanned"]),
            ],
            [("number", numpy.array(0)), ("go_on", flag), ("carried", x)],
            [("going", flag), ("next", x), ("scanned", x)],
        )
        node = helper.make_node("Loop", ["count", "condition", "x"], ["last", "all"], body=body)
        inputs = {"count": numpy.array(4), "condition": flag, "x": x, "y": y}
        outputs = {"last": y, "all": numpy.stack([x, y, y, y])}
        yield request.graph_case(name, [node], inputs, outputs)
        yield request.graph_case(f"{name}_constant", [node], inputs, outputs, constants=["count"])
        outputs = {"last": x, "all": numpy.zeros((0, 3, 5), x.dtype)}
        inputs = inputs | {"condition": numpy.array(False)}
        yield request.graph_case(f"{name}_none", [node], inputs, outputs)


@covers("Scan")
def make_scan(request):
    for name in request.types("V"):
        shape = (2, 4, 3) if request.version == 8 else (4, 3)
        state, x = request.values(name, (*shape[:-2], 3)), request.values(name, shape)
        # What is read becomes the state, and the state is written.
        body = _body(
            [
                helper.make_node("Identity", ["read"], ["next"]),
                helper.make_node("Identity", ["state"], ["written"]),
            ],
            [("state", x[..., 0, :].reshape(-1)[:3]), ("read", x[..., 0, :].reshape(-1)[:3])],
            [("next", x[..., 0, :].reshape(-1)[:3]), ("written", x[..., 0, :].reshape(-1)[:3])],
        )
        attributes = {"body": body, "num_scan_inputs": 1}
        if request.version == 8:
            yield from _scans_of_batches(request, name, attributes, state, x)
            continue
        node = helper.make_node("Scan", ["s", "x"], ["t", "y"], **attributes)
        outputs = {"t": x[-1], "y": numpy.concatenate([state[None], x[:-1]])}
        yield request.graph_case(name, [node], {"s": state, "x": x}, outputs)
        options = {
            "scan_input_axes": [1],
            "scan_input_directions": [1],
            "scan_output_axes": [1],
            "scan_output_directions": [1],
        }
        node = helper.make_node("Scan", ["s", "x"], ["t", "y"], **attributes, **options)
        turned = numpy.ascontiguousarray(x.T)
        written = numpy.concatenate([state[None], x[:0:-1]])[::-1]
        outputs = {"t": x[0], "y": numpy.ascontiguousarray(written.T)}
        yield request.graph_case(f"{name}_reverse", [node], {"s": state, "x": turned}, outputs)


def _scans_of_batches(request, name, attributes, state, x):
    """Version 8: the first axis is the batch, the second is scanned; each entry has its length."""
    node = helper.make_node("Scan", ["", "s", "x"], ["t", "y"], **attributes)
    y = numpy.concatenate([state[:, None], x[:, :-1]], axis=1)
    yield request.graph_case(name, [node], {"s": state, "x": x}, {"t": x[:, -1], "y": y})
    node = helper.make_node("Scan", ["", "s", "x"], ["t", "y"], directions=[1], **attributes)
    y = numpy.concatenate([state[:, None], x[:, :0:-1]], axis=1)
    yield request.graph_case(
        f"{name}_reverse", [node], {"s": state, "x": x}, {"t": x[:, 0], "y": y}
    )
    # Entries of their own lengths: behind a shorter sequence the results are 0.
    if name in ("bool", "string"):
        return
    lengths = numpy.array([4, 2])
    for suffix, options in (("lengths", {}), ("lengths_reverse", {"directions": [1]})):
        node = helper.make_node("Scan", ["n", "s", "x"], ["t", "y"], **attributes, **options)
        t, y = numpy.zeros_like(state), numpy.zeros_like(x)
        for entry, length in enumerate(lengths):
            read = x[entry, :length][:: -1 if options else 1]
            t[entry] = read[-1]
            y[entry, :length] = numpy.concatenate([state[entry : entry + 1], read[:-1]])
        inputs = {"n": lengths, "s": state, "x": x}
        yield request.graph_case(f"{name}_{suffix}", [node], inputs, {"t": t, "y": y})


@covers("Optional", "OptionalGetElement", "OptionalHasElement")
def make_optional(request):
    names = (
        request.types("O" if request.op_type != "Optional" else "V") if request.version > 15 else []
    )
    for name in names or ["float", "int64"]:
        x = request.values(name, (3, 37))
        nodes = [
            helper.make_node("Optional", ["x"], ["wrapped"]),
            helper.make_node("OptionalGetElement", ["wrapped"], ["y"]),
            helper.make_node("OptionalHasElement", ["wrapped"], ["z"]),
        ]
        outputs = {"y": x, "z": numpy.array(True)}
        yield request.graph_case(name, nodes, {"x": x}, outputs)
    if request.version < 18 or request.op_type == "Optional":
        return
    for name in names:
        x = request.values(name, (3, 37))
        node = helper.make_node(request.op_type, ["x"], ["y"])
        outputs = {"y": x if request.op_type == "OptionalGetElement" else numpy.array(True)}
        yield request.graph_case(f"{name}_tensor", [node], {"x": x}, outputs)
    if request.op_type == "OptionalHasElement":
        node = helper.make_node("OptionalHasElement", [], ["y"])
        yield request.graph_case("nothing", [node], {}, {"y": numpy.array(False)})

# SPDX-License-Identifier: Apache-2.0
"""A random graph of a seed: its model, what runs are given, and what they are to answer."""

import dataclasses
import random

import onnx
from onnx import helper

from graphs import (
    aliases,
    caches,
    control,
    convolution,
    elementwise,
    groups,
    indexing,
    microsoft,
    products,
    quantization,
    recurrent,
    reduction,
    shape,
    vision,
)
from graphs.builder import Builder, Discard
from graphs.catalogue import BLOCKS
from graphs.evaluation import captured_names, declare, has_one_rank

NEWEST_OPSET = 26
# Imported for their blocks.
_FAMILIES = (aliases, caches, control, convolution, elementwise, groups, indexing, microsoft, products, quantization,
             recurrent, reduction, shape, vision)  # fmt: skip
_EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17)
_LARGE_EXTENTS = (1, 8, 12, 16, 19, 24, 28, 31, 32, 33, 40, 48, 56, 64)
_MOST_ELEMENTS_IN_LARGE = 1 << 18
_FAVOURED = 5


@dataclasses.dataclass(frozen=True)
class Manner:
    """How a device is asked for the runs, beside one after the other."""

    has_fast_algorithms: bool = True
    weights: tuple = ()  # inputs that a session is given when it is opened
    is_side_by_side: bool = False
    stays_bound: bool = False


@dataclasses.dataclass
class Case:
    model: onnx.ModelProto
    runs: list  # {input: array} each
    values: dict  # {name: [run][track]} of outputs
    extents: list  # {symbol: extent} of each run
    manner: Manner = Manner()



def _draw_extents(rng, is_large):
    """The extents of symbols in each run, and how inputs declare them."""
    extents_of = _LARGE_EXTENTS if is_large else _EXTENTS
    first = {symbol: rng.choice(extents_of) for symbol in "NLHWK"}
    first["N"] = rng.choice([1, 2, 3, 4, 5])
    way = rng.choices(["fixed", "symbols", "unknown"], [7, 9, 4])[0]
    if rng.random() < 0.04:
        first[rng.choice("NLHWK")] = 0
    if way == "fixed":
        return [first, dict(first)], way
    alone = dict(first, N=1)
    last = {symbol: rng.choice(extents_of) for symbol in first}
    if rng.random() < 0.3:
        last = dict(alone, **{rng.choice("LHWK"): 1})
    if rng.random() < 0.08:
        last[rng.choice("NLHWK")] = 0
    runs = [first, alone, dict(first), last]
    if rng.random() < 0.3:
        runs[:2] = runs[1::-1]
    return runs, way


def _dim(b, symbol):
    """A symbol, or the number that it has in the first run."""
    return symbol if b.chance(0.7) else b.choice(_EXTENTS)


def _add_inputs(b, kinds):
    dtype = b.rng.choices(["float32", "float64", "float16"], [84, 9, 7])[0]
    for kind in kinds:
        if kind == "image":
            space = b.rng.choices([1, 2, 3], [1, 5, 1])[0]
            dims = [_dim(b, "N"), b.choice((1, 2, 3, 4, 8, 12, 16)), *(_dim(b, s) for s in "HWK"[:space])]
        elif kind == "rows":
            dims = [_dim(b, "N"), _dim(b, "L"), b.choice((1, 2, 4, 6, 8, 12, 16, 24))]
            if b.chance(0.25):
                del dims[1]
        elif kind == "tokens":
            tokens = b.choice(["int64", "int64", "int32"])
            b.input(tokens, [_dim(b, "N"), _dim(b, "L")], lambda s: b.draw.integers(0, 11, s))
            continue
        else:
            dims = [_dim(b, b.choice("NLHWK")) if b.chance(0.7) else 1 for _ in range(b.rng.randint(0, 5))]
            if b.chance(0.3):
                dtype = b.choice(["float32", "int64", "int32", "uint8", "int8", "bool", "float64", "float16"])
        b.input(dtype, dims)


def _add_blocks(b, count, favoured):
    blocks = [(f, w * (_FAVOURED if kind in favoured else 1)) for f, w, kind in BLOCKS]
    added, attempts = [], 0
    while len(b.nodes) < count and attempts < 12 * count:
        attempts += 1
        function = b.rng.choices([f for f, _ in blocks], [w for _, w in blocks])[0]
        nodes = len(b.nodes)
        try:
            with b.attempt():
                function(b)
                if len(b.nodes) > nodes + 60:
                    raise Discard("long")
        except Discard:
            continue
        added.append(function.__name__)
    return added


def _choose_outputs(b):
    made = [name for node in b.nodes for name in node.output if name and not isinstance(b.known[name][0][0], list)]
    made = [name for name in made if has_one_rank(b.known[name])]
    read = set().union(*(captured_names(node) for node in b.nodes))
    constants = {node.output[0] for node in b.nodes if node.op_type == "Constant"}
    ends = [name for name in made if name not in read and name not in constants]
    inner = [name for name in made if name in read and name not in constants]
    chosen = [name for name in ends if b.chance(0.9)] or ends
    if b.chance(0.4) and inner:
        chosen += b.rng.sample(inner, min(len(inner), b.rng.randint(1, 3)))
    if not chosen:
        raise Discard("no output")
    if b.chance(0.04) and b.opset >= 13:
        # What a run is given, or a weight, is a result as it is.
        chosen.append(b.choice([v.name for v in b.inputs] + [t.name for t in b.initializers]))
    if b.chance(0.3):
        b.rng.shuffle(chosen)
    return chosen


def _declare_output(b, name):
    arrays = b.known[name]
    form = b.rng.random()
    if form < 0.4:
        return declare(name, arrays[0][0])
    dims = []
    for number, extents in enumerate(zip(*(tracks[0].shape for tracks in arrays))):
        is_fixed = len(set(extents)) == 1 and len(set(map(str, b.extents))) > 1
        dims.append(extents[0] if is_fixed and form < 0.7 else f"{name}_{number}" if form < 0.85 else None)
    return declare(name, arrays[0][0], dims)


def _reorder(b):
    """Another order of nodes in which each still comes after what it reads."""
    left, placed, order = list(b.nodes), {v.name for v in b.inputs} | {t.name for t in b.initializers}, []
    while left:
        ready = [node for node in left if captured_names(node) <= placed]
        node = b.rng.choice(ready)
        order.append(node)
        left.remove(node)
        placed |= set(node.output)
    return order


def _draw_manner(rng, runs):
    same = [name for name in runs[0] if name.startswith("w")] if rng.random() < 0.5 else []
    return Manner(rng.random() < 0.9, tuple(same), rng.random() < 0.15, rng.random() < 0.2)


def generate(seed, most_nodes=25):
    """A Case; None where the seed gives no graph."""
    rng = random.Random(seed)
    is_large = rng.random() < 0.12
    extents, way = _draw_extents(rng, is_large)
    opset = rng.choices([rng.randint(7, 12), rng.randint(13, 18), rng.randint(19, NEWEST_OPSET)], [2, 4, 4])[0]
    b = Builder(rng, opset, extents)
    if is_large:
        b.most_elements = _MOST_ELEMENTS_IN_LARGE
    favoured = rng.choice([("image",), ("rows",), ("any",), ("quantized", "image"), ("quantized", "rows"), ("control",), ()])
    kinds = {"image": ["image"], "rows": ["rows", "tokens"], "quantized": ["image", "rows"], "control": ["rows", "any"]}
    chosen = [kind for family in favoured for kind in kinds.get(family, ["any", "any"])] or ["any", "rows", "image"]
    if rng.random() < 0.3:
        chosen.append(rng.choice(["any", "any", "tokens", "image", "rows"]))
    try:
        _add_inputs(b, chosen)
        _add_blocks(b, rng.choice([3, 5, 8, 12, 16, most_nodes]), favoured)
        if not b.nodes:
            return None
        outputs = _choose_outputs(b)
    except Discard:
        return None
    nodes = _reorder(b) if rng.random() < 0.2 else b.nodes
    used = set().union(*(captured_names(node) for node in nodes)) | set(outputs)
    inputs = [value for value in b.inputs if value.name in used or rng.random() < 0.2]
    initializers = [tensor for tensor in b.initializers if tensor.name in used]
    # Files of the first versions list all weights among the inputs, later ones those that callers may replace.
    is_old = opset < 9 and rng.random() < 0.3
    replaceable = initializers if is_old else [t for t in initializers if rng.random() < 0.1] if rng.random() < 0.1 else []
    graph = helper.make_graph(
        nodes,
        f"seed{seed}",
        [declare(v.name, v.arrays[0][0], _dims(b, v, way)) for v in inputs]
        + [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in replaceable],
        [_declare_output(b, name) for name in outputs],
        initializers,
    )
    called = {node.domain for node in nodes}
    functions = [f for f in b.functions if f.domain in called]
    domains = {"": opset, **{domain: 1 for domain in called if domain}}
    opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=3 if is_old and not functions else rng.choice([8, 10]))
    if rng.random() < 0.15:
        try:
            model = onnx.shape_inference.infer_shapes(model)
        except onnx.shape_inference.InferenceError:
            pass
    runs = [{v.name: v.arrays[run][0] for v in inputs} for run in range(len(extents))]
    return Case(model, runs, {name: b.known[name] for name in outputs}, extents, _draw_manner(rng, runs))


def _dims(b, value, way):
    dims = b.declared[value.name]
    if way == "fixed":
        return [b.extents[0][dim] if isinstance(dim, str) else dim for dim in dims]
    return [None if way == "unknown" and isinstance(dim, str) else dim for dim in dims]



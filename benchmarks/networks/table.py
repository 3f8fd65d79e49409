# SPDX-License-Identifier: Apache-2.0
"""Networks over rows of a table: recommendation, trees, linear models, support vectors, small MLPs."""

import math

import numpy

from networks.drawing import Drawing

_ML = "ai.onnx.ml"


def _stack(net, x, widths, activation="Relu"):
    for fan_in, width in zip(widths, widths[1:]):
        x = net.connect(x, fan_in, width)
        x = net.activate(x, activation) if width != widths[-1] else x
    return x


def make_perceptron(name, widths=(32, 64, 64, 8), rows=1, activation="Relu"):
    net = Drawing(name)
    x = net.add_normal_input("rows", (rows, widths[0]))
    net.add_output(_stack(net, x, widths, activation), "scores")
    return net


def make_recommendation(name, rows=32, tables=8, entries=20000, width=32, bag=16):
    """Bags of embeddings, their products with one another and with the numbers, wide layers."""
    net = Drawing(name)
    dense = net.add_normal_input("numbers", (rows, 13))
    parts = [net.add_node("Relu", _stack(net, dense, (13, 256, width)))]
    for table in range(tables):
        chosen = net.generator.integers(0, entries, (rows, bag))
        chosen = net.add_input(f"ids_{table}", chosen)
        x = net.add_node("Gather", net.draw_weight((entries, width), 0.3), chosen, axis=0)
        parts.append(net.add_node("ReduceSum", x, net.add_constant([1]), keepdims=0))
    stacked = net.add_node(
        "Concat", *(net.reshape(part, rows, 1, width) for part in parts), axis=1
    )
    products = net.add_node("MatMul", stacked, net.transpose(stacked, 0, 2, 1))
    count = tables + 1
    flat = net.reshape(products, rows, count * count)
    pairs = numpy.stack(numpy.tril_indices(count, -1))
    flat = net.add_node("Gather", flat, net.add_constant(pairs[0] * count + pairs[1]), axis=1)
    x = net.add_node("Concat", parts[0], flat, axis=1)
    x = _stack(net, x, (width + len(pairs[0]), 512, 256, 1))
    net.add_output(net.add_node("Sigmoid", x), "chance")
    return net


def make_two_towers(name, items=4096, width=128):
    """A user against many items: a wide product and the best twenty."""
    net = Drawing(name)
    user = _stack(net, net.add_normal_input("user", (1, 256)), (256, 512, width))
    length = net.add_node("ReduceL2", user, net.add_constant([1]), keepdims=1)
    user = net.add_node("Div", user, length)
    scores = net.add_node("MatMul", user, net.draw_weight((width, items), 1 / math.sqrt(width)))
    best, at = net.add_split_node("TopK", scores, net.add_constant([20]), outputs=2)
    net.add_output(best, "scores")
    net.add_output(at, "items", 7)
    return net


def make_trees(name, rows=1, trees=100, depth=6, features=20, targets=1):
    """Full trees that ask about drawn features; leaves add to drawn targets."""
    net = Drawing(name)
    draw = net.generator
    inner, count = 2**depth - 1, 2 ** (depth + 1) - 1
    ids = numpy.tile(numpy.arange(count), trees)
    is_leaf = ids >= inner
    leaves = trees * (count - inner)
    x = net.add_normal_input("rows", (rows, features))
    x = net.add_node(
        "TreeEnsembleRegressor",
        x,
        domain=_ML,
        n_targets=targets,
        nodes_treeids=numpy.repeat(numpy.arange(trees), count).tolist(),
        nodes_nodeids=ids.tolist(),
        nodes_featureids=numpy.where(is_leaf, 0, draw.integers(0, features, len(ids))).tolist(),
        nodes_values=numpy.where(is_leaf, 0, draw.standard_normal(len(ids))).tolist(),
        nodes_modes=[("LEAF" if leaf else "BRANCH_LEQ") for leaf in is_leaf],
        nodes_truenodeids=numpy.where(is_leaf, 0, 2 * ids + 1).tolist(),
        nodes_falsenodeids=numpy.where(is_leaf, 0, 2 * ids + 2).tolist(),
        target_treeids=numpy.repeat(numpy.arange(trees), count - inner).tolist(),
        target_nodeids=ids[is_leaf].tolist(),
        target_ids=draw.integers(0, targets, leaves).tolist(),
        target_weights=draw.standard_normal(leaves).tolist(),
    )
    net.add_output(x, "values")
    return net


def make_linear(name, rows=64, features=50, classes=5):
    """A scaler and a linear classifier."""
    net = Drawing(name)
    draw = net.generator
    x = net.add_normal_input("rows", (rows, features))
    x = net.add_node(
        "Scaler",
        x,
        domain=_ML,
        offset=draw.standard_normal(features).tolist(),
        scale=draw.uniform(0.5, 2, features).tolist(),
    )
    label, scores = net.add_split_node(
        "LinearClassifier",
        x,
        outputs=2,
        domain=_ML,
        coefficients=(draw.standard_normal(classes * features) / 8).tolist(),
        intercepts=draw.standard_normal(classes).tolist(),
        classlabels_ints=list(range(classes)),
        post_transform="SOFTMAX",
        multi_class=1,
    )
    net.add_output(label, "labels", 7)
    net.add_output(scores, "scores")
    return net


def make_support_vectors(name, rows=64, features=20, vectors=400):
    net = Drawing(name)
    draw = net.generator
    x = net.add_node(
        "SVMRegressor",
        net.add_normal_input("rows", (rows, features)),
        domain=_ML,
        kernel_type="RBF",
        kernel_params=[0.05, 0.0, 3.0],
        n_supports=vectors,
        support_vectors=draw.standard_normal(vectors * features).tolist(),
        coefficients=draw.standard_normal(vectors).tolist(),
        rho=[0.3],
    )
    net.add_output(x, "values", dims=[rows, 1])
    return net

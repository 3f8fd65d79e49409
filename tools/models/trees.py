# SPDX-License-Identifier: Apache-2.0
"""An ensemble of 500 regression trees, as boosting libraries export them: trees of different depths,
branches on either comparison, and leaves that add to two targets."""

import numpy

from models import builder

_TREES = 500
_FEATURES = 14
_DEEPEST = 6
_TARGETS = 2
_ROWS = (33, 5)


def _grow(generator, rows, tree, depth):
    """Appends the nodes of a subtree to `rows`; returns the number of its root."""
    number = sum(1 for row in rows if row["nodes_treeids"] == tree)
    row = {"nodes_treeids": tree, "nodes_nodeids": number, "nodes_modes": "LEAF", "nodes_featureids": 0}
    row |= {"nodes_values": 0.0, "nodes_truenodeids": 0, "nodes_falsenodeids": 0}
    rows.append(row)
    if depth < _DEEPEST and (depth < 2 or generator.random() < 0.6):
        row["nodes_modes"] = "BRANCH_LEQ" if tree % 2 else "BRANCH_LT"
        row["nodes_featureids"] = int(generator.integers(_FEATURES))
        row["nodes_values"] = float(numpy.float32(generator.standard_normal()))
        row["nodes_truenodeids"] = _grow(generator, rows, tree, depth + 1)
        row["nodes_falsenodeids"] = _grow(generator, rows, tree, depth + 1)
    return number


def make_trees():
    net = builder.Builder("trees_500", opset=17)
    net.use_domain("ai.onnx.ml", 3)
    sets = [
        {"rows": net.generator.standard_normal((count, _FEATURES)).astype(numpy.float32)}
        for count in _ROWS
    ]
    rows = []
    for tree in range(_TREES):
        own = []
        _grow(net.generator, own, tree, 0)
        rows += own
    leaves = [row for row in rows if row["nodes_modes"] == "LEAF"]
    weights = net.generator.standard_normal(len(leaves)) / numpy.sqrt(_TREES)
    values = net.add_node(
        "TreeEnsembleRegressor",
        net.add_input("rows", ["rows", _FEATURES], sets[0]["rows"]),
        output="values",
        domain="ai.onnx.ml",
        n_targets=_TARGETS,
        target_treeids=[row["nodes_treeids"] for row in leaves],
        target_nodeids=[row["nodes_nodeids"] for row in leaves],
        target_ids=net.generator.integers(0, _TARGETS, len(leaves)).tolist(),
        target_weights=weights.astype(numpy.float32).tolist(),
        **{name: [row[name] for row in rows] for name in rows[0]},
    )
    net.add_output(values, ["rows", _TARGETS])
    return [builder.Case("trees_500", net.serialize(), sets)]

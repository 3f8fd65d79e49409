# SPDX-License-Identifier: Apache-2.0
"""Faults that are no faults of the library, each with the reason."""

import re

# (kind, operators of which the shrunk graph has one, what the sentence says, reason).
_KNOWN = [
    ("refused", set(), "gives extents and must have one axis of a known extent",
     "how many axes a value has is data, which only a run tells"),
    ("refused", {"Squeeze"}, "A Squeeze without axes before it keeps all symbols",
     "which axes Squeeze removes is open until a run, and the nodes behind it need to know"),
    ("refused", {"Reshape", "Unsqueeze"}, "Squeeze: Extent select",
     "which axes Squeeze removes is data, where a run gives what Reshape or Unsqueeze is to make"),
    ("refused", {"Squeeze"}, r"Squeeze: Extent [A-Z][A-Za-z]+\d+_\d+ of axis \d+ is 1",
     "which axes Squeeze removes is data: the extent is named after the operator that gives it"),
    ("refused", {"If"}, r"axes or fewer, by the branch of an If that runs; a known number is needed\.$",
     "an output of the graph, which no node needs, has one rank"),
    ("refused", {"Loop"}, "axes or fewer, by the branch of an If that runs",
     "what a Loop carries keeps its rank, and what it collects has one"),
]  # fmt: skip


def reason_of(kind, sentence, case):
    """Why the fault is none; empty where nothing says so."""
    operators = {node.op_type for node in case.model.graph.node}
    for known_kind, wanted, said, reason in _KNOWN:
        if kind == known_kind and (not wanted or operators & wanted) and re.search(said, sentence):
            return reason
    return ""

# SPDX-License-Identifier: Apache-2.0
"""The list of blocks, each with how often it is drawn, and in which kind of network more often."""

BLOCKS = []


def block(weight, kind="any"):
    """Enters a function of a Builder that adds a few nodes or raises Discard."""

    def enter(function):
        BLOCKS.append((function, weight, kind))
        return function

    return enter

# SPDX-License-Identifier: Apache-2.0
"""Map: an expression per write, at every coordinate of the domain."""


def run_map(step):
    at = step.coordinates(step.domain)
    return [(k, at, v) for k, v in enumerate(step.evaluate(step.body["roots"], at, step.domain))]

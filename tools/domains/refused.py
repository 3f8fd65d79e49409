# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime's domain that the kit does not have, each with the rule that keeps it out, as the library
tells it: the table is that of backends/core/domains.

`declarations_test.py` holds it against ONNX Runtime's schemas; docs/operators.md prints it.
"""

import re

from domains import declarations


def _read_reasons():
    """Operators by reason, reasons in the order of the source."""
    text = (declarations.FOLDER / "microsoft" / "refused.cc").read_text()
    sentences = {}
    for name, literals in re.findall(r"string_view (k\w+) =((?:\s*\"[^\"]*\")+);", text):
        sentences[name] = "".join(re.findall(r'"([^"]*)"', literals))
    reasons = {sentence: [] for sentence in sentences.values()}
    rows = re.findall(r'\{"(\w+)", (k\w+)\}', text)
    for operator, name in rows:
        reasons[sentences[name]].append(operator)
    if not rows or not all(reasons.values()):
        raise ValueError("refused.cc has a reason without operators, or no operator.")
    return {reason: tuple(names) for reason, names in reasons.items()}


REASONS = _read_reasons()
REFUSED = {name: reason for reason, names in REASONS.items() for name in names}

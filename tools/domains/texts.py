# SPDX-License-Identifier: Apache-2.0
"""Operators on text."""

import numpy

from domains.case import covers, node_case

_LINES = [
    "the quick brown fox",
    "",
    "a  b, c;d -- e",
    "Grüße aus Köln, 東京 and Zürich",
    "x1 y22 z333, aaa",
    "\ttabs\nand lines ",
]

_RULES = {
    "words": {"tokenexp": "[a-zA-Z0-9_]+"},
    "words_of_three": {"tokenexp": r"\b\w\w+\b", "mincharnum": 3},
    "overlapping": {"tokenexp": "a|aa|b c|[A-Z]?[a-z]"},
    "maybe_nothing": {"tokenexp": "[0-9]*"},
    "not_ascii": {"tokenexp": r"[^\x00-\x7F]+"},
    "greedy": {"tokenexp": "the|the quick|q.*?k"},
    "ends": {"tokenexp": "^[a-z]+|[a-z]+$"},
    "nowhere": {"tokenexp": "ZZZ", "mark": 1},
    "any_character": {"tokenexp": "."},
    "empty_separator": {"separators": [""], "mark": 1},
    "spaces": {"separators": [" "]},
    "one_by_one": {"separators": [" ", ",", "--"], "mark": 1, "pad_value": "#"},
    "long_parts": {"separators": [r"[\s,;]+", "r"], "mincharnum": 3},
    "matching_nothing": {"separators": ["[a-m]*"]},
    "at_borders": {"separators": [r"\b"], "mincharnum": 2},
}


@covers("Tokenizer")
def tokens():
    for name, rule in _RULES.items():
        attributes = {"mark": 0, "pad_value": "", "mincharnum": 1} | rule
        for shape in ((len(_LINES),), (2, len(_LINES) // 2), (len(_LINES), 1)):
            yield node_case(
                f"tokenizer_{name}_{'x'.join(map(str, shape))}",
                "Tokenizer",
                [numpy.array(_LINES, object).reshape(shape)],
                attributes=attributes,
                symbolic=len(shape) == 2 and shape[1] == 1,
            )
    for name, texts in (("all_empty", ["", ""]), ("one", ["one text"]), ("same", ["a b", "c d", "e f"])):
        for rule in ("words", "any_character", "one_by_one"):
            attributes = {"mark": 0, "pad_value": "padding", "mincharnum": 1} | _RULES[rule]
            yield node_case(
                f"tokenizer_{rule}_{name}", "Tokenizer", [numpy.array(texts, object)], attributes=attributes
            )

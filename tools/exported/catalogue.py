# SPDX-License-Identifier: Apache-2.0
"""All cases of exported_models.py, by source."""

import importlib

_SOURCES = (
    "rewritten_files",
    "boosted_trees",
    "sklearn_text",
    "sklearn_models",
    "torch_networks",
    "torch_layers",
    "transformers_text",
    "transformers_families",
    "transformers_vision",
    "transformers_pictures",
    "transformers_sounds",
    "transformers_pairs",
    "torchvision_models",
    "timm_models",
    "keras_models",
    "quantized_models",
    "quantized_options",
    "genai_models",
    "genai_whisper",
)


def list_cases():
    """The cases, in the order of the sources; nothing is made by listing them."""
    return [
        case
        for source in _SOURCES
        for case in importlib.import_module(f"exported.{source}").list_cases()
    ]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the real topologies and expected values for `onnxifi_conformance --suite models`.

Each network of models/ is drawn with seeded weights, serialized, read back and evaluated in
float64; what ONNX Runtime's quantizers write has ONNX Runtime's answers. A case whose answer would check nothing is refused and nothing is written.

The last line printed is the folder written. case_store.py describes the layout, without a group:
DIR/<model>/. In case.json, "tolerance": "rms" stands for |a-b| <= rms_factor * (|b| + rms(b)), with
"rms_factor" 1e-4 where it is not written, "each" for "rtol" and "atol", "lengths"
for the number of different lengths among the data sets, "float32_share" for the share of the
tolerance that plain float32 arithmetic in numpy uses up.
"""

import argparse
import pathlib

import numpy
import onnx
import onnxruntime
from onnx import helper

import case_store
from models import (
    alexnet,
    convnext,
    densenet,
    detection,
    diffusion,
    efficientnet,
    inception,
    mobilenet,
    narrow,
    output_check,
    quantized,
    recurrent_network,
    resnet,
    shufflenet,
    squeezenet,
    transformer_decoder,
    transformer_encoder,
    trees,
    vgg,
    yolo,
)
from models.evaluator import Evaluator

# Smallest files first, so that a fault shows early.
_NETWORKS = {
    "recurrent": recurrent_network.make_recurrent,
    "diffusion": diffusion.make_diffusion,
    "narrow": narrow.make_narrow,
    "quantized": quantized.make_quantized,
    "detection": detection.make_detectors,
    "trees": trees.make_trees,
    "squeezenet": squeezenet.make_squeezenet,
    "shufflenet": shufflenet.make_shufflenet,
    "mobilenet": mobilenet.make_mobilenet,
    "yolo": yolo.make_yolo,
    "efficientnet": efficientnet.make_efficientnet,
    "inception_v1": inception.make_inception_v1,
    "inception_v2": inception.make_inception_v2,
    "densenet121": densenet.make_densenet121,
    "convnext": convnext.make_convnext,
    "resnet50": resnet.make_resnet50,
    "alexnet": alexnet.make_alexnet,
    "zfnet": alexnet.make_zfnet,
    "vgg19": vgg.make_vgg19,
    "transformer_encoder": transformer_encoder.make_encoder,
    "transformer_decoder": transformer_decoder.make_decoder,
}


def _evaluate(case, model):
    """(Expected outputs in float64, those of plain float32 arithmetic), per data set."""
    if case.expected_sets is not None:
        return case.expected_sets, case.expected_sets
    reference = case.reference or model
    exact, plain = Evaluator(reference), Evaluator(reference, numpy.float32)
    return tuple([each.run(inputs) for inputs in case.input_sets] for each in (exact, plain))


def write_case(folder, case):
    """Evaluates and writes one case; returns its entry for the index."""
    model = onnx.load_from_string(case.content)
    names = [value.name for value in model.graph.output]
    expected_sets, float32_sets = _evaluate(case, model)
    try:
        share = output_check.check_outputs(names, expected_sets, float32_sets)
    except ValueError as fault:
        raise SystemExit(f"Model '{case.name}' is refused: {fault}") from fault

    case_folder = folder / case.name
    case_folder.mkdir()
    (case_folder / "model.onnx").write_bytes(case.content)
    for number, (inputs, outputs) in enumerate(zip(case.input_sets, expected_sets)):
        types = [value.type.tensor_type.elem_type for value in model.graph.output]
        stored = [
            value.astype(helper.tensor_dtype_to_np_dtype(elem_type))
            for value, elem_type in zip(outputs, types)
        ]
        in_order = [inputs[value.name] for value in case_store.list_runtime_inputs(model)]
        case_store.write_data_set(case_folder, number, model, in_order, stored)
    measured = {} if case.expected_sets is not None else {"float32_share": round(share, 4)}
    entry = case_store.write_description(
        case_folder,
        model,
        "model",
        len(case.input_sets),
        **{"tolerance": "rms", **measured, **case.facts},
    )
    return {**entry, "path": case.name, **measured}


def print_models(index):
    for case in index["cases"]:
        share = case.get("float32_share")
        print(
            f"{case['name']}: "
            + ("ONNX Runtime's answers" if share is None else f"float32 uses {share:.1%} of the tolerance")
        )
    print(f"total: {len(index['cases'])} models")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, help="folder (default: in the cache)")
    parser.add_argument("--only", metavar="NAME,...", help=", ".join(_NETWORKS))
    arguments = parser.parse_args()
    if arguments.only and not arguments.output:
        parser.error("--only needs --output: the cache holds complete sets of models only.")

    wanted = arguments.only.split(",") if arguments.only else list(_NETWORKS)
    for name in wanted:
        if name not in _NETWORKS:
            parser.error(f"Model '{name}' is unknown; there are {', '.join(_NETWORKS)}.")
    facts = {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__, "numpy": numpy.__version__, "only": sorted(wanted)}
    here = pathlib.Path(__file__).resolve()
    sources = [here, case_store.__file__, *(here.parent / "models").glob("*.py")]
    sources += [here.parent / "domains" / name for name in ("case.py", "networks.py")]
    stamp = case_store.make_stamp(sources, facts)
    cache = case_store.find_cache_root() / "models"
    folder = (arguments.output or cache / stamp).absolute()

    index = case_store.read_index(folder, stamp)
    if index is None:
        progress = case_store.Progress("models", len(wanted))
        with case_store.replace_folder(folder) as fresh:
            entries = []
            for name in wanted:
                entries += [write_case(fresh, case) for case in _NETWORKS[name]()]
                progress.advance(name)
            index = case_store.write_index(fresh, stamp, facts, entries)
        case_store.prune_unused(cache, keep=folder)
    print_models(index)
    print(folder)


if __name__ == "__main__":
    main()

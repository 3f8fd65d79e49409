#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A population of networks that nobody tuned for: what compare.py --population runs.

The networks are drawn by networks/ with seeded weights and measured statistics, in the nodes that
exporters write. A third of them, chosen by a hash of their names, is held out: it is run for the
closing note of a change only.

Run by itself it makes the models that are not there yet and prints their folder. Each is run once by
ONNX Runtime then; a network whose answers are constant or not finite is refused.

Expected values are those of the network in float32, computed in float64; of matrices of 4 bits, with the
numbers that these say. Of operators that nothing computes in float64 they are ONNX Runtime's in float32: of the
model whose products round no operands. A network of narrow numbers may lie as far from them as ONNX Runtime's
answers to the same model do, and a quarter more.
"""

import argparse
import dataclasses
import functools
import hashlib
import inspect
import json
import pathlib
import sys

import numpy
import onnx

_TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(_TREE / "tools"))

import agreement  # noqa: E402 (beside it lies what is in tools/)
import case_store  # noqa: E402
from networks import dense, detection, float64, image, narrow, sequence, table  # noqa: E402

# What has the expected values: float64.evaluate, or ONNX Runtime with operands in float32.
FLOAT64, FLOAT32 = "float64", "ONNX Runtime in float32"
# Of the distance of ONNX Runtime's answers.
_NARROW_ALLOWANCE = 1.25


class PopulationError(Exception):
    """A network that cannot be compared, in a sentence."""


@dataclasses.dataclass(frozen=True)
class Entry:
    name: str
    kind: str
    draw: object  # a function of the name that returns a networks.drawing.Drawing
    # "float32", "float16", "bfloat16", or a form of networks.narrow.quantize.
    precision: str = "float32"
    # Differences beyond so many tolerances of compare.py are faults. Nothing: _NARROW_ALLOWANCE.
    allowed: float | None = 1.0
    # None where float64 chooses other elements than float32, as among almost equal scores; such a
    # network is compared with ONNX Runtime.
    oracle: str | None = FLOAT64


@dataclasses.dataclass(frozen=True)
class Network:
    """A network that has been made."""

    path: pathlib.Path
    inputs: dict
    expected: dict | None
    oracle: str | None
    allowed: float


def _list_entries():
    entries = []

    def add(
        kind, name, draw, *arguments, precision="float32", allowed=1.0, oracle=FLOAT64, **options
    ):
        draw = functools.partial(draw, name, *arguments, **options)
        entries.append(Entry(name, kind, draw, precision, allowed, oracle))

    add("classification", "residual_18", image.make_residual)
    add("classification", "residual_narrow", image.make_residual, width=24, repeats=(1, 2, 2, 1))
    add("classification", "grouped", image.make_grouped)
    add("classification", "depthwise_hard", image.make_depthwise)
    add("classification", "depthwise_silu", image.make_depthwise, activation="silu", kernel=3)
    add("classification", "vision_transformer", image.make_vision_transformer)
    add("classification", "vision_transformer_8", image.make_vision_transformer, patch=8, layers=3)
    add("classification", "hybrid", image.make_hybrid)
    add("detection", "one_stage_rows", detection.make_one_stage, suppresses=False)
    add("detection", "one_stage", detection.make_one_stage)
    add("detection", "one_stage_wide", detection.make_one_stage, size=416, classes=80)
    # How many points a bin has is a step of its extents.
    steps = {"allowed": 100.0}
    add("detection", "two_stage", detection.make_two_stage, **steps)
    add(
        "detection",
        "two_stage_adaptive",
        detection.make_two_stage,
        sampling_ratio=0,
        oracle=None,
        **steps,
    )
    add("segmentation", "segmentation_dilated", dense.make_dilated_segmentation)
    add("segmentation", "segmentation_pyramid", dense.make_pyramid_segmentation)
    add("segmentation", "unet_transposed", dense.make_unet, mode="transposed")
    add("segmentation", "unet_linear", dense.make_unet)
    add("segmentation", "unet_nearest", dense.make_unet, mode="nearest")
    add("segmentation", "unet_symbolic", dense.make_unet, is_symbolic=True)
    add("super-resolution", "enlarge_shuffle", dense.make_super_resolution)
    add("super-resolution", "enlarge_linear", dense.make_super_resolution, way="linear")
    add("super-resolution", "enlarge_cubic", dense.make_super_resolution, way="cubic", size=96)
    add("video", "video", image.make_video)
    add("video", "video_factored", image.make_video, is_factored=True)
    add("pose", "pose", dense.make_pose)
    add("registration", "registration", dense.make_registration)
    add("registration", "registration_border", dense.make_registration, channels=3, padding="border")
    add("diffusion", "noise_predictor", dense.make_diffusion)
    add("diffusion", "image_decoder", dense.make_image_decoder)
    for length in (16, 128, 512, 2048):
        layers = 1 if length == 2048 else 4
        add("encoder", f"encoder_{length}", sequence.make_encoder, length, layers=layers)
    add("encoder", "encoder_symbolic", sequence.make_encoder, 96, is_symbolic=True)
    add("decoder", "decoder", sequence.make_decoder)
    add("decoder", "decoder_long", sequence.make_decoder, past=1024, layers=2)
    add("decoder", "decoder_fixed", sequence.make_decoder, is_symbolic=False)
    add("decoder", "decoder_prompt", sequence.make_decoder, prompt=128)
    add("decoder", "encoder_decoder", sequence.make_encoder_decoder)
    add("speech", "speech_lstm", sequence.make_recurrent_speech)
    add("speech", "speech_gru", sequence.make_recurrent_speech, op_type="GRU", directions=1)
    add("speech", "speech_convolved", sequence.make_convolved_speech)
    add("speech", "speech_waves", sequence.make_waves)
    add("recommendation", "recommendation", table.make_recommendation)
    add("recommendation", "recommendation_one", table.make_recommendation, rows=1)
    add("recommendation", "two_towers", table.make_two_towers)
    add("tabular", "trees_one", table.make_trees)
    add("tabular", "trees_1000", table.make_trees, rows=1000)
    add("tabular", "trees_wide", table.make_trees, rows=100, trees=300, depth=8, targets=3)
    add("tabular", "linear", table.make_linear)
    add("tabular", "support_vectors", table.make_support_vectors)
    add("small", "perceptron", table.make_perceptron)
    add("small", "perceptron_64", table.make_perceptron, rows=64, activation="Sigmoid")
    add("small", "perceptron_deep", table.make_perceptron, widths=(16, *[48] * 8, 4))
    small = {"width": 32, "repeats": (1, 1, 1, 1)}
    int8 = {"allowed": None}
    add("int8", "residual_qdq", image.make_residual, precision="qdq", **small, **int8)
    add("int8", "residual_qoperator", image.make_residual, precision="qoperator", **small, **int8)
    add("int8", "depthwise_qdq", image.make_depthwise, precision="qdq", activation="Relu", **int8)
    add("int8", "encoder_dynamic", sequence.make_encoder, 128, precision="dynamic", **int8)
    add("int8", "speech_dynamic", sequence.make_encoder_decoder, precision="dynamic", **int8)
    half = {"allowed": None, "precision": "float16"}
    add("float16", "encoder_half", sequence.make_encoder, 128, **half)
    add("float16", "residual_half", image.make_residual, **small, **half)
    add("float16", "decoder_prompt_half", sequence.make_decoder, prompt=128, **half)
    bfloat16 = {"allowed": None, "precision": "bfloat16"}
    add("bfloat16", "encoder_bfloat16", sequence.make_encoder, 128, **bfloat16)
    add("bfloat16", "residual_bfloat16", image.make_residual, **small, **bfloat16)
    # The weights are more than caches hold.
    packed = {"precision": "4bit", "width": 1024, "heads": 16, "shared": 4, "layers": 8, "allowed": None}
    add("4-bit", "decoder_4bit", sequence.make_decoder, **packed)
    add("4-bit", "decoder_4bit_fused", sequence.make_fused_decoder, **packed, oracle=FLOAT32)
    add("4-bit", "decoder_4bit_prompt", sequence.make_fused_decoder, past=0, length=128, **packed, oracle=FLOAT32)
    add("4-bit", "decoder_4bit_turn", sequence.make_fused_decoder, length=16, **packed, oracle=FLOAT32)
    return entries


ENTRIES = {entry.name: entry for entry in _list_entries()}


def is_held_out(name):
    """Whether a network belongs to the third that only closing notes run."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def list_names(is_held=False, shard=None):
    """The names outside the held-out third, or inside it, in order; of `shard` (i, n) every n-th."""
    names = [name for name in ENTRIES if is_held_out(name) == is_held]
    return names[shard[0] - 1 :: shard[1]] if shard else names


def takes_batches(name):
    """Whether a network is drawn for batches of more than 1, too."""
    return "batch" in inspect.signature(ENTRIES[name].draw.func).parameters


def _check_answers(name, path, inputs):
    """Returns the answers of ONNX Runtime."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    answers = dict(zip(names, session.run(names, inputs)))
    for output, value in answers.items():
        if value.size == 0:
            raise PopulationError(f"Network '{name}' is refused: '{output}' is empty.")
        if value.dtype.kind != "f":
            continue
        if not numpy.isfinite(value).all():
            raise PopulationError(f"Network '{name}' is refused: '{output}' is not finite.")
        if value.size > 1 and value.std() <= 1e-4 * numpy.abs(value).max():
            raise PopulationError(f"Network '{name}' is refused: '{output}' is constant.")
    return answers


def _make_folder():
    """The folder of the population as these files draw it."""
    here = pathlib.Path(__file__).resolve()
    sources = [here, *sorted((here.parent / "networks").glob("*.py"))]
    stamp = case_store.make_stamp(sources, {"onnx": onnx.__version__, "numpy": numpy.__version__})
    return case_store.find_cache_root() / "population" / stamp


def _draw(entry, batch, folder):
    """Writes a network into its folder: the model, inputs, expected values, the allowed difference."""
    path = asked = folder / "model.onnx"
    net = entry.draw() if batch == 1 else entry.draw(batch=batch)
    wide = net.finish()
    if entry.precision == "float32":
        onnx.save(wide, path)
    elif entry.precision == "float16":
        onnx.save(narrow.halve(wide), path)
    elif entry.precision == "bfloat16":
        onnx.save(narrow.make_bfloat16(wide), path)
        # ONNX Runtime multiplies no bfloat16 on processors.
        asked = folder / "rounded.onnx"
        onnx.save(narrow.round_to_bfloat16(wide), asked)
    else:
        narrowed = narrow.quantize(wide, net.samples, entry.precision)
        onnx.save(narrowed, path)
        if entry.precision == "4bit" and entry.oracle == FLOAT64:
            wide = narrow.unpack(narrowed)
        elif entry.oracle == FLOAT32:
            wide = narrow.keep_operands(narrowed)
    answers = _check_answers(entry.name, asked, net.samples)
    allowed = entry.allowed
    if entry.oracle is not None:
        if entry.oracle == FLOAT64:
            expected = float64.evaluate(wide, net.samples)
        else:
            exact = folder / "exact.onnx"
            onnx.save(wide, exact)
            expected = _check_answers(entry.name, exact, net.samples)
        numpy.savez(folder / "expected.npz", **expected)
        distance = agreement.measure_outputs(answers, expected)
        if allowed is None:
            allowed = _NARROW_ALLOWANCE * distance
        elif distance > allowed:
            raise PopulationError(
                f"Network '{entry.name}' is refused: ONNX Runtime's answers lie {distance:.3g} tolerances "
                f"from float64's, more than {allowed:g}."
            )
    (folder / "allowed.json").write_text(json.dumps(allowed))
    numpy.savez(folder / "inputs.npz", **net.samples)


def _read_arrays(path):
    with numpy.load(path) as file:
        return {key: file[key] for key in file.files}


def make(name, batch=1):
    """Returns a Network, of `batch` images or sequences; draws it where it is not there yet."""
    entry, folder = ENTRIES[name], _make_folder() / (name if batch == 1 else f"{name}_of_{batch}")
    # The last file that is written.
    if not (folder / "inputs.npz").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _draw(entry, batch, folder)
    return Network(
        folder / "model.onnx",
        _read_arrays(folder / "inputs.npz"),
        None if entry.oracle is None else _read_arrays(folder / "expected.npz"),
        entry.oracle,
        json.loads((folder / "allowed.json").read_text()),
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAME,...", help="only these (default: all, held-out too)")
    parser.add_argument("--list", action="store_true", help="print names, classes and who is held out")
    arguments = parser.parse_args()
    if arguments.list:
        for entry in ENTRIES.values():
            print(f"{entry.name} {entry.kind}{' held-out' * is_held_out(entry.name)}")
        return 0
    names = arguments.only.split(",") if arguments.only else list(ENTRIES)
    for number, name in enumerate(names, start=1):
        if name not in ENTRIES:
            parser.error(f"Network '{name}' is unknown; there are {', '.join(ENTRIES)}.")
        network = make(name)
        size_mib = network.path.stat().st_size / 2**20
        text = f"{name}, {size_mib:.1f} MiB, {network.allowed:.3g} tolerances allowed"
        print(f"population: {number}/{len(names)} {text}", file=sys.stderr)
    print(_make_folder())
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Models after ONNX Runtime's quantizers, float16 converter and graph optimizer. The float models come
from torch; what the quantized file has to answer, its own runtime says."""

import contextlib
import io
import logging

from exported import (
    torch_layers,
    torch_networks,
    torchvision_models,
    transformers_pictures,
    transformers_sounds,
    transformers_text,
    transformers_vision,
)
from exported.exported_case import Case, Exported

# Scores of a network with steps of 8 bits in between: one rounding that falls the other way moves
# what follows by a step. Two engines agree within so much of the root mean square.
STEPS = 5e-2
# Of a network of random weights that is deep enough to make much of such a step.
DEEP_STEPS = 2e-1
_EXPORTER = "onnxruntime quantizer"


def _source(name):
    """The case of a short name, or of "name [exporter]"."""
    sources = {
        "resnet18": ("torchvision/resnet18", torchvision_models),
        "mobilenet_v2": ("torchvision/mobilenet_v2", torchvision_models),
        "shufflenet": ("torchvision/shufflenet_v2_x0_5", torchvision_models),
        "bert": ("transformers/bert", transformers_text),
        "gpt2": ("transformers/gpt2", transformers_text),
        "llama": ("transformers/llama", transformers_text),
        "lstm": ("torch/lstm", torch_networks),
        "unet": ("torch/unet", torch_networks),
        "activations": ("torch/activations", torch_layers),
    }
    if name not in sources:
        modules = (torch_networks, torchvision_models, transformers_text, transformers_vision,
                   transformers_pictures, transformers_sounds)  # fmt: skip
        return next(case for module in modules for case in module.list_cases() if case.key == name)
    key, module = sources[name]
    return next(
        case for case in module.list_cases() if case.name == key and case.exporter == "torch script"
    )


class _Reader:
    """Calibration data: the runs of the float model."""

    def __init__(self, runs):
        self._left = iter([inputs for inputs, _ in runs])

    def get_next(self):
        return next(self._left, None)


def quantized(name, source, convert, tolerance=STEPS, is_own=False, peer_refusal=""):
    """`is_own` where the float model's own answers are what counts, because little is rounded."""

    def make(folder):
        before = folder / "float"
        before.mkdir()
        exported = _source(source).make(before)
        after = folder / "model.onnx"
        logging.disable(logging.WARNING)
        with contextlib.redirect_stdout(io.StringIO()):
            convert(exported, after)
        logging.disable(logging.NOTSET)
        runs = exported.runs if is_own else [(inputs, None) for inputs, _ in exported.runs]
        return Exported(after, runs, tolerance, peer_refusal=peer_refusal)

    return Case(f"onnxruntime/{name}", _EXPORTER, make)


def static(**settings):
    def convert(exported, path):
        from onnxruntime import quantization

        prepared = path.with_name("prepared.onnx")
        with contextlib.chdir(path.parent):  # where it leaves a file
            quantization.shape_inference.quant_pre_process(str(exported.path), str(prepared))
        kinds = {key: getattr(quantization.QuantType, settings.pop(key))
                 for key in ("activation_type", "weight_type") if key in settings}  # fmt: skip
        form = getattr(quantization.QuantFormat, settings.pop("form"))
        method = getattr(quantization.CalibrationMethod, settings.pop("method", "MinMax"))
        quantization.quantize_static(
            str(prepared), str(path), _Reader(exported.runs[:1] * 2), quant_format=form,
            calibrate_method=method, **kinds, **settings)  # fmt: skip

    return convert


def dynamic(**settings):
    def convert(exported, path):
        from onnxruntime import quantization

        kind = getattr(quantization.QuantType, settings.get("weight_type", "QInt8"))
        options = {key: value for key, value in settings.items() if key != "weight_type"}
        quantization.quantize_dynamic(str(exported.path), str(path), weight_type=kind, **options)

    return convert


def four_bits(form, **settings):
    def convert(exported, path):
        import onnx
        from onnxruntime.quantization import QuantFormat, matmul_nbits_quantizer

        quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
            onnx.load(str(exported.path)), block_size=16, quant_format=getattr(QuantFormat, form),
            **settings)  # fmt: skip
        quantizer.process()
        onnx.save(quantizer.model.model, str(path))

    return convert


def half(exported, path):
    import onnx
    from onnxruntime.transformers import float16

    model = float16.convert_float_to_float16(onnx.load(str(exported.path)), keep_io_types=True)
    onnx.save(model, str(path))


def optimized(kind, heads, width):
    def convert(exported, path):
        from onnxruntime.transformers import optimizer

        model = optimizer.optimize_model(str(exported.path), kind, heads, width, opt_level=0)
        model.save_model_to_file(str(path))

    return convert


def _graph_level(level):
    """ONNX Runtime's own graph passes, as it saves an optimized model."""

    def convert(exported, path):
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        settings.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(str(exported.path), settings, ["CPUExecutionProvider"])

    return convert


def list_cases():
    uint8 = {"activation_type": "QUInt8", "weight_type": "QInt8"}
    int8 = {"activation_type": "QInt8", "weight_type": "QInt8"}
    yield quantized("resnet18_qdq", "resnet18", static(
        form="QDQ", per_channel=True, **int8), DEEP_STEPS)  # fmt: skip
    yield quantized("resnet18_qoperator", "resnet18", static(form="QOperator", **uint8))
    yield quantized("mobilenet_v2_qdq", "mobilenet_v2", static(
        form="QDQ", method="Percentile", **uint8))  # fmt: skip
    yield quantized("mobilenet_v2_symmetric", "mobilenet_v2", static(
        form="QDQ", extra_options={"ActivationSymmetric": True}, **int8), DEEP_STEPS)  # fmt: skip
    yield quantized("shufflenet_qoperator", "shufflenet", static(
        form="QOperator", per_channel=True, **uint8))  # fmt: skip
    yield quantized("unet_16_bits", "unet", static(
        form="QDQ", activation_type="QUInt16", weight_type="QInt8"), 1e-2)  # fmt: skip
    yield quantized("unet_qdq", "unet", static(form="QDQ", **uint8))
    yield quantized("bert_qdq", "bert", static(form="QDQ", **int8))
    yield quantized("bert_dynamic", "bert", dynamic())
    yield quantized("bert_dynamic_channels", "bert", dynamic(per_channel=True, reduce_range=True))
    yield quantized("gpt2_dynamic", "gpt2", dynamic(weight_type="QUInt8"))
    yield quantized("resnet18_dynamic", "resnet18", dynamic(weight_type="QUInt8"))
    yield quantized("lstm_dynamic", "lstm", dynamic())
    yield quantized("llama_4_bits_qdq", "llama", four_bits("QDQ", is_symmetric=True), 1e-3)
    yield quantized("llama_4_bits_zero_points", "llama", four_bits("QDQ", is_symmetric=False), 1e-3)
    yield quantized("gpt2_4_bits", "gpt2", four_bits("QOperator", is_symmetric=True), 1e-3)
    yield quantized("llama_8_bits", "llama", four_bits("QOperator", bits=8, is_symmetric=False), 1e-3)
    yield quantized("bert_float16", "bert", half, 2e-2, is_own=True)
    yield quantized("resnet18_float16", "resnet18", half, 2e-2, is_own=True)
    yield quantized("lstm_float16", "lstm", half, 2e-2, is_own=True,
                     peer_refusal="a segmentation fault")  # fmt: skip
    yield quantized("bert_fused", "bert", optimized("bert", 4, 32), 1e-3, is_own=True)
    yield quantized("gpt2_fused", "gpt2", optimized("gpt2", 4, 32), 1e-3, is_own=True)
    yield quantized("unet_channels_last", "unet", optimized("unet", 4, 32), 1e-3, is_own=True)
    for name in ("resnet18", "bert", "gpt2", "lstm", "shufflenet", "activations"):
        yield quantized(f"{name}_basic", name, _graph_level("ORT_ENABLE_BASIC"), 1e-3, is_own=True)
        yield quantized(f"{name}_extended", name, _graph_level("ORT_ENABLE_EXTENDED"), 1e-3, is_own=True)
    # With channels in the blocks of this processor.
    for name in ("resnet18", "mobilenet_v2", "shufflenet", "unet", "bert"):
        yield quantized(f"{name}_all", name, _graph_level("ORT_ENABLE_ALL"), 1e-3, is_own=True)

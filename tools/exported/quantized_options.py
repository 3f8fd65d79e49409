# SPDX-License-Identifier: Apache-2.0
"""Models after ONNX Runtime's quantizers, float16 converter and transformer optimizer with options that
quantized_models.py leaves alone: other types, calibrations and placements of scales, weights of 4 bits
in other forms, blocked operators, fusions of each type of model."""

from exported.quantized_models import (
    DEEP_STEPS,
    STEPS,
    dynamic,
    four_bits,
    half,
    optimized,
    quantized,
    static,
)

_DYNAMO, _SCRIPT = "[torch dynamo]", "[torch script]"
_EFFICIENT = f"torchvision/efficientnet_b0 {_SCRIPT}"
_SQUEEZE = f"torchvision/squeezenet1_1 {_SCRIPT}"


def _narrow_weights(algorithm, **settings):
    """Weights of 4 bits by an algorithm's own configuration."""

    def convert(exported, path):
        import onnx
        from onnxruntime.quantization import matmul_nbits_quantizer as nbits

        config = getattr(nbits, algorithm)(**settings)
        quantizer = nbits.MatMulNBitsQuantizer(onnx.load(str(exported.path)), algo_config=config)
        quantizer.process()
        onnx.save(quantizer.model.model, str(path))

    return convert


def _table_of_four_bits(kind):
    """Weights as positions in a table of 16 numbers: FP4 or NF4."""

    def convert(exported, path):
        import onnx
        from onnxruntime.quantization import matmul_bnb4_quantizer

        model = onnx.load(str(exported.path))
        quantizer = matmul_bnb4_quantizer.MatMulBnb4Quantizer(model, kind, 16)
        quantizer.process()
        onnx.save(quantizer.model.model, str(path))

    return convert


def _half_but(**settings):
    def convert(exported, path):
        import onnx
        from onnxruntime.transformers import float16

        model = float16.convert_float_to_float16(onnx.load(str(exported.path)), **settings)
        onnx.save(model, str(path))

    return convert


def _optimized_half(kind, heads, width):
    def convert(exported, path):
        from onnxruntime.transformers import optimizer

        model = optimizer.optimize_model(str(exported.path), kind, heads, width, opt_level=0)
        model.convert_float_to_float16(keep_io_types=True)
        model.save_model_to_file(str(path))

    return convert


def _list_static():
    bytes8 = {"activation_type": "QUInt8", "weight_type": "QInt8"}
    signed = {"activation_type": "QInt8", "weight_type": "QInt8"}
    yield quantized("resnet18_reduced", "resnet18", static(
        form="QOperator", per_channel=True, reduce_range=True, **bytes8), DEEP_STEPS)
    yield quantized("resnet18_unsigned_weights", "resnet18", static(
        form="QDQ", activation_type="QUInt8", weight_type="QUInt8"), DEEP_STEPS)
    yield quantized("resnet18_entropy", "resnet18", static(
        form="QDQ", method="Entropy", **bytes8), DEEP_STEPS)
    yield quantized("resnet18_int16", "resnet18", static(
        form="QDQ", activation_type="QInt16", weight_type="QInt16",
        extra_options={"UseQDQContribOps": True}), 1e-2)
    yield quantized("resnet18_4_bits", "resnet18", static(
        form="QDQ", activation_type="QUInt16", weight_type="QInt4", per_channel=True,
        extra_options={"UseQDQContribOps": True}), 1e-2)
    yield quantized("resnet18_placed", "resnet18", static(
        form="QDQ", extra_options={"AddQDQPairToWeight": True, "DedicatedQDQPair": True,
                                   "WeightSymmetric": False, "QuantizeBias": False}, **bytes8), DEEP_STEPS)
    yield quantized("squeezenet_qdq", _SQUEEZE, static(
        form="QDQ", extra_options={"QDQKeepRemovableActivations": True}, **bytes8), DEEP_STEPS)
    yield quantized("squeezenet_qoperator", _SQUEEZE, static(form="QOperator", **bytes8), DEEP_STEPS)
    yield quantized("efficientnet_qdq", _EFFICIENT, static(form="QDQ", per_channel=True, **signed), DEEP_STEPS)
    yield quantized("efficientnet_qoperator", _EFFICIENT, static(form="QOperator", **bytes8), DEEP_STEPS)
    yield quantized("lstm_qdq", "lstm", static(form="QDQ", **signed), DEEP_STEPS)
    yield quantized("vit_qdq", f"transformers/vit {_DYNAMO}", static(form="QDQ", **bytes8), DEEP_STEPS)
    yield quantized("vit_qoperator", f"transformers/vit {_DYNAMO}", static(form="QOperator", **bytes8), DEEP_STEPS)
    yield quantized("swin_qdq", f"transformers/swin {_DYNAMO}", static(form="QDQ", **bytes8), DEEP_STEPS)


def _list_dynamic():
    yield quantized("bert_dynamic_products", "bert", dynamic(
        extra_options={"MatMulConstBOnly": False}))
    yield quantized("bert_dynamic_gather", "bert", dynamic(
        weight_type="QUInt8", op_types_to_quantize=["Gather", "MatMul", "EmbedLayerNormalization"]))
    yield quantized("lstm_dynamic_channels", "lstm", dynamic(per_channel=True, weight_type="QInt8"))
    yield quantized("whisper_dynamic", f"transformers/whisper {_DYNAMO}", dynamic())
    yield quantized("t5_dynamic", f"transformers/t5 {_SCRIPT}", dynamic(
        extra_options={"EnableSubgraph": True}), DEEP_STEPS)
    yield quantized("wav2vec2_dynamic", f"transformers/wav2vec2 {_DYNAMO}", dynamic())


def _list_four_bits():
    yield quantized("llama_fp4", "llama", _table_of_four_bits(0), 1e-3)
    yield quantized("llama_nf4", "llama", _table_of_four_bits(1), 1e-3)
    yield quantized("gpt2_nf4", "gpt2", _table_of_four_bits(1), 1e-3)
    yield quantized("llama_hqq", "llama", _narrow_weights("HQQWeightOnlyQuantConfig", block_size=16, bits=4), 1e-3)
    yield quantized("llama_gather", "llama", four_bits(
        "QOperator", is_symmetric=False, op_types_to_quantize=("MatMul", "Gather"),
        quant_axes=(("MatMul", 0), ("Gather", 1))), 1e-3)
    yield quantized("llama_level_4", "llama", four_bits("QOperator", is_symmetric=True, accuracy_level=4), STEPS)
    yield quantized("llama_2_bits", "llama", four_bits("QOperator", bits=2, is_symmetric=False), 1e-3)
    yield quantized("vit_4_bits", f"transformers/vit {_DYNAMO}", four_bits("QDQ", is_symmetric=False), 1e-3)


def _list_half():
    options = {"op_block_list": ["Softmax", "LayerNormalization", "ReduceMean", "Pow", "Sqrt"]}
    yield quantized("bert_half_blocked", "bert", _half_but(keep_io_types=False, **options), 2e-2)
    yield quantized("bert_half_io", "bert", _half_but(keep_io_types=False), 2e-2)
    yield quantized("unet_half", "unet", _half_but(keep_io_types=True), 2e-2, is_own=True)
    yield quantized("unet_half_resize", "unet", _half_but(
        keep_io_types=True, op_block_list=["Resize", "Conv"]), 2e-2, is_own=True)
    yield quantized("gpt2_half_initializers", "gpt2", _half_but(
        keep_io_types=True, force_fp16_initializers=True, op_block_list=["MatMul", "Gemm"]), 2e-2, is_own=True)
    for name in ("t5", "whisper", "clip", "swin", "wav2vec2", "segformer", "detr", "mamba2", "deberta_v2"):
        yield quantized(f"{name}_half", f"transformers/{name} {_DYNAMO}", half, 3e-2, is_own=True)


def _list_fused():
    models = (
        ("bart", f"transformers/bart {_SCRIPT}", "bart"),
        ("clip", f"transformers/clip {_SCRIPT}", "clip"),
        ("t5", f"transformers/t5 {_SCRIPT}", "t5"),
        ("vit", f"transformers/vit {_SCRIPT}", "vit"),
        ("swin", f"transformers/swin {_SCRIPT}", "swin"),
        ("whisper", f"transformers/whisper {_DYNAMO}", "bart"),
        ("conformer", f"transformers/wav2vec2_conformer {_DYNAMO}", "conformer"),
        ("vae", "torch/unet [torch dynamo]", "vae"),
        ("sam2", f"transformers/sam {_DYNAMO}", "sam2"),
        ("llama", f"transformers/llama {_SCRIPT}", "gpt2"),
        ("mmdit", f"transformers/siglip {_DYNAMO}", "mmdit"),
        ("deberta", f"transformers/deberta_v2 {_SCRIPT}", "bert"),
        ("roberta", f"transformers/roberta {_SCRIPT}", "bert"),
        ("distilbert", f"transformers/distilbert {_SCRIPT}", "bert"),
        ("albert", f"transformers/albert {_SCRIPT}", "bert"),
        ("wavlm", f"transformers/wavlm {_SCRIPT}", "tnlr"),
    )
    for name, source, kind in models:
        yield quantized(f"{name}_fused", source, optimized(kind, 4, 32), 1e-3, is_own=True)
    for name, source, kind in models:
        if name in ("bart", "clip", "t5", "vit", "roberta"):
            yield quantized(f"{name}_fused_half", source, _optimized_half(kind, 4, 32), 3e-2, is_own=True)


def list_cases():
    yield from _list_static()
    yield from _list_dynamic()
    yield from _list_four_bits()
    yield from _list_half()
    yield from _list_fused()

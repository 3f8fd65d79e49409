# SPDX-License-Identifier: Apache-2.0
"""Cases that are known not to pass, each with the reason: models that an exporter does not make, and
models that the library refuses. One that passes, or fails in another way, is a failure, so that the
lists stay true."""

import math
import re

_FFT = "torch script has no operators of spectra"
_COLUMNS = "torch script translates no col2im of symbols"
_ADAPTIVE = "torch script pools no image of symbols to other than factors of it"
_CLIPS = "the source itself takes no clips as small"
_TRANSFORMERS = "the source does not load"

# What the exporter does not make.
NOT_MADE = {
    "transformers/fnet [torch script]": _FFT,
    "transformers/longformer [torch script]": "the trace holds the length",
    "torch/graph_network [torch script]": "the trace holds the number of nodes",
    "sklearn/hist_gradient_boosting [skl2onnx]": "skl2onnx writes attributes that onnx refuses",
    "sklearn/hist_gradient_boosting_regressor [skl2onnx]": "skl2onnx writes attributes that onnx refuses",
    "sklearn/knn_regressor [skl2onnx]": "the distances are not those of the metric",
    "transformers/jetmoe [torch script]": "the file does not compute what its source does; ONNX Runtime agrees",
    "transformers/glm4 [torch script]": "torch script concatenates tensors of different ranks",
    "transformers/diffllama [torch script]": "torch script has no aten::rms_norm",
    "torch/arithmetic [torch script]": "torch script has no aten::trunc",
    "transformers/nystromformer [torch script]": "the trace multiplies extents that do not fit",
    "transformers/mobilevitv2 [torch script]": _COLUMNS,
    "transformers/cvt [torch dynamo]": _TRANSFORMERS,
    "transformers/cvt [torch script]": _TRANSFORMERS,
    "transformers/whisper [torch script]": "torch script has no aten::diff",
    "torchvision/alexnet [torch script]": _ADAPTIVE,
    "torchvision/vgg11_bn [torch script]": _ADAPTIVE,
    "torchvision/s3d [torch dynamo]": _CLIPS,
    "torchvision/s3d [torch script]": _CLIPS,
    "timm/volo_d1_224 [torch script]": _COLUMNS,
    "timm/halonet26t [torch script]": "torch script unfolds images of numbers alone",
    "keras/image_network [tf2onnx]": "tf2onnx traces no augmentation of images",
    "keras/causal [tf2onnx]": "the file does not compute what its source does; ONNX Runtime agrees",
    "onnxruntime/bert_qdq [onnxruntime quantizer]": "symbolic shape inference of the quantizer fails",
    "onnxruntime/unet_qdq [onnxruntime quantizer]": "ONNX Runtime does not load what its quantizer writes",
    "onnxruntime/unet_16_bits [onnxruntime quantizer]": "ONNX Runtime does not load what its quantizer writes",
    "genai/gemma_zero_points [genai builder]": "the builder declares rows of floats as bytes",
} | {
    f"{name} [torch dynamo]": "torch.export or its translation fails"
    for name in (
        "torch/rnn", "torch/point_net", "torch/encoder_decoder", "torch/special",
        "transformers/nystromformer", "transformers/longformer", "transformers/funnel",
        "transformers/mamba", "transformers/rwkv")
}  # fmt: skip

# Networks whose number of boxes follows from scores that are almost equal, and how many tolerances they may
# lie off. Where the number is another (inf), ONNX Runtime has to be off, too.
UNSTABLE = {
    f"torchvision/{name} [torch {how}]": 1
    for name in ("retinanet_resnet50_fpn", "ssdlite320_mobilenet_v3_large")
    for how in ("dynamo", "script")
}

# What the library refuses, with a pattern of its sentence.
REFUSED = {
    "onnxruntime/detr_half [onnxruntime quantizer]": (
        "the converter writes a value twice; ONNX Runtime refuses it, too", "defined twice"),
    "keras/attention [tf2onnx]": (
        "Erfc is no operator of ONNX; ONNX Runtime refuses it, too", "Operator 'Erfc'"),
    "keras/efficientnet_b0 [tf2onnx]": (
        "the file has an input that nobody gives; ONNX Runtime refuses it, too", "is not given"),
    "torch/bfloat16 [torch dynamo]": (
        "weights of another type than what they weigh; ONNX Runtime refuses it, too",
        "Element type float of input 1"),
    "transformers/patchtst [torch script]": (
        "the trace adds extents that do not fit; ONNX Runtime refuses it, too", "do not broadcast"),
    "transformers/patchtsmixer [torch script]": (
        "the trace multiplies extents that do not fit; ONNX Runtime refuses it, too",
        "Inner extents of A and B differ"),
    "transformers/helium [torch script]": (
        "the trace repeats angles to extents that do not fit; ONNX Runtime fails in every run, too",
        r"\[batch, 3, length, 2, 4\] and .* do not broadcast"),
    "transformers/cohere [torch script]": (
        "the trace multiplies extents that do not fit; ONNX Runtime refuses it, too",
        "do not broadcast"),
}  # fmt: skip


def verdict_of(result):
    """"passed", "failed", or "not supported" for what is known."""
    key = f"{result['name']} [{result['exporter']}]"
    if key in UNSTABLE and result["status"] == "wrong":
        error, peer = result["error"], result.get("peer_error", 0)
        is_so = error <= UNSTABLE[key] or (math.isinf(error) and math.isinf(peer))
        return "not supported" if is_so else "failed"
    if key in NOT_MADE:
        return "not supported" if result["status"] == "not made" else "failed"
    if key in REFUSED:
        is_so = result["status"] == "refused" and re.search(REFUSED[key][1], result["reason"])
        return "not supported" if is_so else "failed"
    return "passed" if result["status"] == "passed" else "failed"

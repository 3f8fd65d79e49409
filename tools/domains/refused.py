# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime's domain that the kit does not have, each with the rule that keeps it out.

`declarations_test.py` holds the list against ONNX Runtime's schemas; docs/operators.md prints it.
"""

# Operators by reason. An operator is defined by nodes (core/model/definition.h), which have no graphs.
REASONS = {
    "It runs a graph that is an attribute of the node, once per token. Definitions write nodes without graphs; an"
    " application runs the decoder's graph in a loop of its own.": (
        "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"),
    "It holds what another runtime has compiled.": ("EPContext", "Snpe"),
    "Its tensors lie in orders of cuBLASLt, which their extents do not tell.": (
        "DequantizeWithOrder", "QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization",
        "QOrderedLongformerAttention", "QOrderedMatMul", "QuantizeWithOrder"),
    "It is of training: its mask of bits is for the gradient.": ("BitmaskBiasDropout", "BitmaskDropout"),
    "It takes a sparse tensor, which ONNXIFI's descriptors do not have.": ("SparseToDenseMatMul",),
    "A position depends on the result of the one before it, which is a loop; definitions write nodes without"
    " graphs.": ("AttnLSTM", "BifurcationDetector", "DynamicTimeWarping"),
    "Its bytes are laid out for one kernel of ONNX Runtime's.": ("DequantizeBFP", "MatMulFpQ4", "QuantizeBFP"),
    "ONNX Runtime's own passes write it when they prepare a model for one of its devices.": (
        "GemmaRotaryEmbedding", "MatMulNBitsMlp", "MatMulNBitsQkv"),
    "No definition of it is written.": (
        "DecoderAttention", "DecoderMaskedSelfAttention", "DynamicSparseAttention", "GemmFloat8", "Irfft",
        "LongformerAttention", "MaxpoolWithMask", "NGramHashMapping", "PackedSparseAttentionIndexer", "Rfft",
        "SparseAttentionIndexer", "SparsePagedAttention", "VarlenNGramHashMapping", "WordConvEmbedding"),
}  # fmt: skip

REFUSED = {name: reason for reason, names in REASONS.items() for name in names}

// SPDX-License-Identifier: Apache-2.0
//
// Operators of com.microsoft that have no definition here, each with the rule that keeps it out.
// tools/domains/refused.py reads this table: `declarations_test.py` holds it against ONNX Runtime's
// schemas, and docs/operators.md prints it.

#include <array>

#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

constexpr std::string_view kTokenLoop =
    "It runs a graph that is an attribute of the node, once per token. Definitions write "
    "nodes without graphs; an application runs the decoder's graph in a loop of its own.";
constexpr std::string_view kCompiled = "It holds what another runtime has compiled.";
constexpr std::string_view kOrder =
    "Its tensors lie in orders of cuBLASLt, which their extents do not tell.";
constexpr std::string_view kTraining = "It is of training: its mask of bits is for the gradient.";
constexpr std::string_view kSparse =
    "It takes a sparse tensor, which ONNXIFI's descriptors do not have.";
constexpr std::string_view kLoop =
    "A position depends on the result of the one before it, which is a loop; definitions "
    "write nodes without graphs.";
constexpr std::string_view kLayout = "Its bytes are laid out for one kernel of ONNX Runtime's.";
constexpr std::string_view kPass =
    "ONNX Runtime's own passes write it when they prepare a model for one of its devices.";
constexpr std::string_view kMaskOffset =
    "It is documented as internal. ONNX Runtime's kernel reads the mask of a channel in the place "
    "of another, or behind its end; there is no meaning to follow.";
constexpr std::string_view kUnwritten = "No definition of it is written.";

constexpr std::array<model::RefusedOperator, 37> kRefused = {{
    {"AttnLSTM", kLoop},
    {"BeamSearch", kTokenLoop},
    {"BifurcationDetector", kLoop},
    {"BitmaskBiasDropout", kTraining},
    {"BitmaskDropout", kTraining},
    {"DecoderAttention", kUnwritten},
    {"DecoderMaskedSelfAttention", kUnwritten},
    {"DequantizeBFP", kLayout},
    {"DequantizeWithOrder", kOrder},
    {"DynamicSparseAttention", kUnwritten},
    {"DynamicTimeWarping", kLoop},
    {"EPContext", kCompiled},
    {"GemmFloat8", kUnwritten},
    {"GemmaRotaryEmbedding", kPass},
    {"GreedySearch", kTokenLoop},
    {"Irfft", kUnwritten},
    {"LongformerAttention", kUnwritten},
    {"MatMulFpQ4", kLayout},
    {"MatMulNBitsMlp", kPass},
    {"MatMulNBitsQkv", kPass},
    {"MaxpoolWithMask", kMaskOffset},
    {"PackedSparseAttentionIndexer", kUnwritten},
    {"QOrderedAttention", kOrder},
    {"QOrderedGelu", kOrder},
    {"QOrderedLayerNormalization", kOrder},
    {"QOrderedLongformerAttention", kOrder},
    {"QOrderedMatMul", kOrder},
    {"QuantizeBFP", kLayout},
    {"QuantizeWithOrder", kOrder},
    {"Rfft", kUnwritten},
    {"Sampling", kTokenLoop},
    {"Snpe", kCompiled},
    {"SparseAttentionIndexer", kUnwritten},
    {"SparsePagedAttention", kUnwritten},
    {"SparseToDenseMatMul", kSparse},
    {"VarlenNGramHashMapping", kUnwritten},
    {"WhisperBeamSearch", kTokenLoop},
}};

}  // namespace

std::span<const model::RefusedOperator> RefusedOperators() { return kRefused; }

}  // namespace onnxifi::microsoft

// SPDX-License-Identifier: Apache-2.0
//
// The list of all operators: one line per operator file.

#include "backends/core/ops/registry.h"

#include <map>
#include <utility>

namespace onnxifi::ops {
namespace {

using Table = std::span<const Operator> (*)();

constexpr Table kTables[] = {
    ActivationOperators,
    ArgExtremeOperators,
    ArithmeticOperators,
    BatchNormalizationOperators,
    BitwiseOperators,
    CastOperators,
    CausalConvOperators,
    ClipOperators,
    Col2ImOperators,
    ComparisonOperators,
    ConcatOperators,
    ConstantOperators,
    ConvOperators,
    ConvTransposeOperators,
    CumulativeOperators,
    DeformConvOperators,
    DeterminantOperators,
    DftOperators,
    DiagonalOperators,
    DropoutOperators,
    DynamicQuantizeLinearOperators,
    EinsumOperators,
    ExpandOperators,
    ExtentsOperators,
    FeatureOperators,
    FloatClassOperators,
    GateOperators,
    GatherOperators,
    GridSampleOperators,
    GroupNormalizationOperators,
    IdentityOperators,
    IfOperators,
    ImageDecoderOperators,
    InverseOperators,
    LabelEncoderOperators,
    LayerNormalizationOperators,
    LikelihoodLossOperators,
    LinearModelOperators,
    LogicOperators,
    LoopOperators,
    LrnOperators,
    MapOperators,
    MatMulIntegerOperators,
    MatMulOperators,
    MaxRoiPoolOperators,
    MaxUnpoolOperators,
    MeanVarianceNormalizationOperators,
    MelWeightMatrixOperators,
    ModuloOperators,
    NonMaxSuppressionOperators,
    NonZeroOperators,
    OneHotEncoderOperators,
    OneHotOperators,
    OptimizerOperators,
    OptionalOperators,
    PadOperators,
    PoolOperators,
    PowerOperators,
    QuantizeLinearOperators,
    RandomOperators,
    RangeOperators,
    RecurrentOperators,
    ReduceOperators,
    ReshapeOperators,
    ResizeOperators,
    ReverseSequenceOperators,
    RoiAlignOperators,
    ScalingOperators,
    ScanOperators,
    ScatterOperators,
    SequenceOperators,
    SliceOperators,
    SoftmaxOperators,
    StringOperators,
    SupportVectorOperators,
    TensorScatterOperators,
    TfIdfOperators,
    TokenizerOperators,
    TopKOperators,
    TransposeOperators,
    TreeEnsembleOperators,
    TreeModelOperators,
    UnaryMathOperators,
    UniqueOperators,
    VariadicOperators,
    WhereOperators,
    WindowFunctionOperators,
};

// By domain and name.
using Directory = std::map<std::pair<std::string_view, std::string_view>, const Operator*>;

const Directory& GetDirectory() {
  static const Directory directory = [] {
    Directory entries;
    for (Table table : kTables) {
      for (const Operator& entry : table()) {
        entries.emplace(std::pair(entry.domain, entry.op_type), &entry);
      }
    }
    return entries;
  }();
  return directory;
}

}  // namespace

const Operator* FindOperator(std::string_view domain, std::string_view op_type) {
  const Directory& directory = GetDirectory();
  auto found = directory.find(std::pair(domain, op_type));
  return found == directory.end() ? nullptr : found->second;
}

}  // namespace onnxifi::ops

// SPDX-License-Identifier: Apache-2.0
//
// The list of all operators: one line per operator file.

#include "backends/core/ops/registry.h"

#include <map>
#include <utility>
#include <vector>

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
    ClipOperators,
    Col2ImOperators,
    ComparisonOperators,
    ConcatOperators,
    ConstantOperators,
    ConvOperators,
    ConvTransposeOperators,
    CumulativeOperators,
    DeformConvOperators,
    DiagonalOperators,
    DropoutOperators,
    DynamicQuantizeLinearOperators,
    EinsumOperators,
    ExpandOperators,
    ExtentsOperators,
    FloatClassOperators,
    GateOperators,
    GatherOperators,
    GridSampleOperators,
    GroupNormalizationOperators,
    IdentityOperators,
    IfOperators,
    LayerNormalizationOperators,
    LikelihoodLossOperators,
    LogicOperators,
    LoopOperators,
    LrnOperators,
    MatMulIntegerOperators,
    MatMulOperators,
    MaxUnpoolOperators,
    MeanVarianceNormalizationOperators,
    ModuloOperators,
    NonMaxSuppressionOperators,
    NonZeroOperators,
    OneHotOperators,
    OptionalOperators,
    PadOperators,
    PoolOperators,
    PowerOperators,
    QuantizeLinearOperators,
    RandomOperators,
    RangeOperators,
    ReduceOperators,
    ReshapeOperators,
    ResizeOperators,
    ReverseSequenceOperators,
    RoiAlignOperators,
    ScanOperators,
    ScatterOperators,
    SequenceOperators,
    SliceOperators,
    SoftmaxOperators,
    TensorScatterOperators,
    TopKOperators,
    TransposeOperators,
    UnaryMathOperators,
    UniqueOperators,
    VariadicOperators,
    WhereOperators,
    WindowFunctionOperators,
};

struct Directory {
  std::map<std::pair<std::string_view, std::string_view>, const Operator*> by_name;
  std::vector<const Operator*> all;

  Directory() {
    for (Table table : kTables) {
      for (const Operator& entry : table()) {
        by_name.emplace(std::pair(entry.domain, entry.op_type), &entry);
        all.push_back(&entry);
      }
    }
  }
};

const Directory& GetDirectory() {
  static const Directory directory;
  return directory;
}

}  // namespace

const Operator* FindOperator(std::string_view domain, std::string_view op_type) {
  const Directory& directory = GetDirectory();
  auto found = directory.by_name.find(std::pair(domain, op_type));
  return found == directory.by_name.end() ? nullptr : found->second;
}

std::span<const Operator* const> AllOperators() { return GetDirectory().all; }

}  // namespace onnxifi::ops

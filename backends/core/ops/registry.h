// SPDX-License-Identifier: Apache-2.0
//
// The tables of operator entries, one function per operator file; registry.cc joins them.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_

#include <span>

#include "backends/core/base/called_at_load.h"
#include "backends/core/ops/operator.h"

namespace onnxifi::ops {

ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ActivationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ArgExtremeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ArithmeticOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> BatchNormalizationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> BitwiseOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> CastOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> CausalConvOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ClipOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> Col2ImOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ComparisonOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ConcatOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ConstantOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ConvOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ConvTransposeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> CumulativeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> DeformConvOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> DeterminantOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> DftOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> DiagonalOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> DropoutOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> DynamicQuantizeLinearOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> EinsumOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ExpandOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ExtentsOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> FeatureOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> FloatClassOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> GateOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> GatherOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> GridSampleOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> GroupNormalizationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> IdentityOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> IfOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ImageDecoderOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> InverseOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LabelEncoderOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LayerNormalizationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LikelihoodLossOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LinearModelOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LogicOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LoopOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> LrnOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MapOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MatMulIntegerOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MatMulOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MaxRoiPoolOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MaxUnpoolOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MeanVarianceNormalizationOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> MelWeightMatrixOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ModuloOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> NonMaxSuppressionOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> NonZeroOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> OneHotEncoderOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> OneHotOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> OptimizerOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> OptionalOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> PadOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> PoolOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> PowerOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> QuantizeLinearOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> RandomOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> RangeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> RecurrentOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ReduceOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ReshapeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ResizeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ReverseSequenceOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> RoiAlignOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ScalingOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ScanOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> ScatterOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> SequenceOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> SliceOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> SoftmaxOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> StringOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> SupportVectorOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TensorScatterOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TfIdfOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TokenizerOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TopKOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TransposeOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TreeEnsembleOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> TreeModelOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> UnaryMathOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> UniqueOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> VariadicOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> WhereOperators();
ONNXIFI_CALLED_AT_LOAD std::span<const Operator> WindowFunctionOperators();

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_

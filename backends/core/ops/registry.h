// SPDX-License-Identifier: Apache-2.0
//
// The tables of operator entries, one function per operator file; registry.cc joins them.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_
#define ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_

#include <span>

#include "backends/core/ops/operator.h"

namespace onnxifi::ops {

std::span<const Operator> ActivationOperators();
std::span<const Operator> ArgExtremeOperators();
std::span<const Operator> ArithmeticOperators();
std::span<const Operator> BatchNormalizationOperators();
std::span<const Operator> BitwiseOperators();
std::span<const Operator> CastOperators();
std::span<const Operator> CausalConvOperators();
std::span<const Operator> ClipOperators();
std::span<const Operator> Col2ImOperators();
std::span<const Operator> ComparisonOperators();
std::span<const Operator> ConcatOperators();
std::span<const Operator> ConstantOperators();
std::span<const Operator> ConvOperators();
std::span<const Operator> ConvTransposeOperators();
std::span<const Operator> CumulativeOperators();
std::span<const Operator> DeformConvOperators();
std::span<const Operator> DeterminantOperators();
std::span<const Operator> DftOperators();
std::span<const Operator> DiagonalOperators();
std::span<const Operator> DropoutOperators();
std::span<const Operator> DynamicQuantizeLinearOperators();
std::span<const Operator> EinsumOperators();
std::span<const Operator> ExpandOperators();
std::span<const Operator> ExtentsOperators();
std::span<const Operator> FeatureOperators();
std::span<const Operator> FloatClassOperators();
std::span<const Operator> GateOperators();
std::span<const Operator> GatherOperators();
std::span<const Operator> GridSampleOperators();
std::span<const Operator> GroupNormalizationOperators();
std::span<const Operator> IdentityOperators();
std::span<const Operator> IfOperators();
std::span<const Operator> ImageDecoderOperators();
std::span<const Operator> InverseOperators();
std::span<const Operator> LabelEncoderOperators();
std::span<const Operator> LayerNormalizationOperators();
std::span<const Operator> LikelihoodLossOperators();
std::span<const Operator> LinearModelOperators();
std::span<const Operator> LogicOperators();
std::span<const Operator> LoopOperators();
std::span<const Operator> LrnOperators();
std::span<const Operator> MapOperators();
std::span<const Operator> MatMulIntegerOperators();
std::span<const Operator> MatMulOperators();
std::span<const Operator> MaxRoiPoolOperators();
std::span<const Operator> MaxUnpoolOperators();
std::span<const Operator> MeanVarianceNormalizationOperators();
std::span<const Operator> MelWeightMatrixOperators();
std::span<const Operator> ModuloOperators();
std::span<const Operator> NonMaxSuppressionOperators();
std::span<const Operator> NonZeroOperators();
std::span<const Operator> OneHotEncoderOperators();
std::span<const Operator> OneHotOperators();
std::span<const Operator> OptimizerOperators();
std::span<const Operator> OptionalOperators();
std::span<const Operator> PadOperators();
std::span<const Operator> PoolOperators();
std::span<const Operator> PowerOperators();
std::span<const Operator> QuantizeLinearOperators();
std::span<const Operator> RandomOperators();
std::span<const Operator> RangeOperators();
std::span<const Operator> RecurrentOperators();
std::span<const Operator> ReduceOperators();
std::span<const Operator> ReshapeOperators();
std::span<const Operator> ResizeOperators();
std::span<const Operator> ReverseSequenceOperators();
std::span<const Operator> RoiAlignOperators();
std::span<const Operator> ScalingOperators();
std::span<const Operator> ScanOperators();
std::span<const Operator> ScatterOperators();
std::span<const Operator> SequenceOperators();
std::span<const Operator> SliceOperators();
std::span<const Operator> SoftmaxOperators();
std::span<const Operator> StringOperators();
std::span<const Operator> SupportVectorOperators();
std::span<const Operator> TensorScatterOperators();
std::span<const Operator> TfIdfOperators();
std::span<const Operator> TokenizerOperators();
std::span<const Operator> TopKOperators();
std::span<const Operator> TransposeOperators();
std::span<const Operator> TreeEnsembleOperators();
std::span<const Operator> TreeModelOperators();
std::span<const Operator> UnaryMathOperators();
std::span<const Operator> UniqueOperators();
std::span<const Operator> VariadicOperators();
std::span<const Operator> WhereOperators();
std::span<const Operator> WindowFunctionOperators();

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_REGISTRY_H_

// SPDX-License-Identifier: Apache-2.0
//
// Rows of features, the input of the models of ai.onnx.ml: in which type a model computes on them,
// its lists of numbers as constants, and their product with a matrix of coefficients.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ML_ROWS_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ML_ROWS_H_

#include <string_view>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// Whether ONNX lets features be of the type: float32, float64, int64, int32.
bool IsFeatureType(ElementType type);
// UNSUPPORTED_DATATYPE unless input 0 is of such a type.
Status CheckNumeric(const Lowering& lowering);

// Input 0 as [N, C]: one axis is one row. INVALID_MODEL for other numbers of axes.
Result<Operand> ReadRows(Lowering& lowering);
// The same as float64 if the input is that, else as float32.
Result<Operand> ReadRowsAsFloats(Lowering& lowering);

// The numbers of an attribute; none if it is missing.
std::vector<float> FloatList(const Lowering& lowering, std::string_view name);

// A new constant of a float type.
Operand ConstantNumbers(Lowering& lowering, ElementType type, tensor::Extents extents,
                        const std::vector<float>& numbers);
Operand ConstantNumbers(Lowering& lowering, ElementType type, tensor::Extents extents,
                        const std::vector<double>& numbers);

// A vector over the last axis of `shape`: one element per index of it, or one for all.
// MISMATCHING_SHAPE for another length; `what` names the vector.
Status CheckAlongLastAxis(Lowering& lowering, int64_t length, const Shape& shape,
                          std::string_view what);

// A product of rows [N, C], of a float type, with a matrix [C, K] of the same type. Its epilogue is
// made of sum() and of reads over its domain [N, K].
class RowProduct {
 public:
  RowProduct(Lowering& lowering, const Operand& rows, const Operand& matrix);

  StepBuilder& step() { return step_; }
  Expr sum() const { return sum_; }
  // Ends the step: `value`, of the type of the rows, over the domain.
  Operand Write(Expr value);
  void WriteTo(const Operand& target, Expr value);

 private:
  Lowering& lowering_;
  StepBuilder step_;
  program::Contract contract_;
  Expr sum_;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ML_ROWS_H_

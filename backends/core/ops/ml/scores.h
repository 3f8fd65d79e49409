// SPDX-License-Identifier: Apache-2.0
//
// Scores of the models of ai.onnx.ml: the transforms of the attribute post_transform, and the label
// of the class that a row of scores chooses.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_ML_SCORES_H_
#define ONNXIFI_BACKENDS_CORE_OPS_ML_SCORES_H_

#include <string_view>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

// The attribute post_transform. INVALID_MODEL for a name that is none.
Result<PostTransform> ReadPostTransform(const Lowering& lowering);

// Scores [N, K] of a float type, each row transformed, as `type`.
Operand Transformed(Lowering& lowering, const Operand& scores, PostTransform transform,
                    ElementType type = ElementType::kFloat32);

// Scores [N, 1] as those of two classes, [N, 2]: sum - score, score.
Operand AsScoresOfTwo(Lowering& lowering, const Operand& scores, double sum = 0);

// The labels of a classifier's classes, in order.
class Classes {
 public:
  // Of two attributes, of which one may be given: texts win over numbers.
  static Classes Read(const Lowering& lowering, std::string_view numbers, std::string_view texts);

  // 0 if the model gives no labels; its classes are then labelled 0, 1, ...
  int64_t count() const { return labels_.element_count(); }
  // The labels of classes [N], int64 positions that are in range where there are labels.
  Operand LabelsAt(Lowering& lowering, const Operand& positions) const;
  // The label per row of the first class that has the largest of the scores [N, K].
  Operand LabelsOfLargest(Lowering& lowering, const Operand& scores) const;
  // The labels for scores [N, 1] of the second of two classes: whether it is above `limit`. Of a
  // single class that label, else 0 or an empty string.
  Operand LabelsOfPositive(Lowering& lowering, const Operand& scores, double limit = 0) const;

 private:
  tensor::Tensor labels_;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_ML_SCORES_H_

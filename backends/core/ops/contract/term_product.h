// SPDX-License-Identifier: Apache-2.0
//
// TermProduct: of operands whose axes have letters, the product of two and the sum of one, over the
// letters that are not kept.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_TERM_PRODUCT_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_TERM_PRODUCT_H_

#include <map>

#include "backends/core/ops/contract/einsum_equation.h"
#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// An operand with distinct labels.
struct Term {
  Operand operand;
  Labels labels;
};

// Of each label.
using LabelExtents = std::map<Label, Dim>;

Shape ShapeOf(const Labels& labels, const LabelExtents& extents);

// The term's view over `labels`, with stride 0 where it lacks one.
View ViewOver(const Term& term, const Labels& labels, const LabelExtents& extents);

// The sum over the labels of one term that are not kept.
Term SumOut(Lowering& lowering, const Term& term, const Labels& kept, const LabelExtents& extents,
            ElementType type);

// The product of two terms over the labels of either that are kept, summed over the others. An
// element-wise product where none is summed.
Term Multiply(Lowering& lowering, const Term& left, const Term& right, const Labels& kept,
              const LabelExtents& extents, ElementType type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_TERM_PRODUCT_H_

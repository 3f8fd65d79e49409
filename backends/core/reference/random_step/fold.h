// SPDX-License-Identifier: Apache-2.0
//
// MakeFold: a random fold for Reduce, Scan and Row.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_FOLD_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_FOLD_H_

#include <functional>
#include <vector>

#include "backends/core/reference/random_step/step_maker.h"

namespace onnxifi::reference {

struct MadeFold {
  program::Fold fold;
  std::vector<program::Expr> states;
  std::vector<program::Expr> finals;  // expressions of the states that make sense as a result
};

// Updates and merges that agree. `make_element` makes the folded element of a type; `reduced` are
// the extents of the folded axes, the first of which is `first_axis`.
MadeFold MakeFold(StepMaker& make,
                  const std::function<program::Expr(tensor::ElementType)>& make_element,
                  const tensor::Extents& reduced, int first_axis);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_FOLD_H_

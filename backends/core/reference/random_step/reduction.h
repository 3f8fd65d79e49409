// SPDX-License-Identifier: Apache-2.0
//
// MakeReduction: a random reduction for Reduce, Scan and Row.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_REDUCTION_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_REDUCTION_H_

#include <functional>
#include <vector>

#include "backends/core/reference/random_step/step_maker.h"

namespace onnxifi::reference {

struct MadeReduction {
  program::Reduction reduction;
  std::vector<program::Expr> states;
  std::vector<program::Expr> finals;  // expressions of the states that make sense as a result
};

// Updates and merges that agree. `make_element` makes the reduced element of a type; `reduced` are
// the extents of the reduced axes, the first of which is `first_axis`.
MadeReduction MakeReduction(StepMaker& make,
                            const std::function<program::Expr(tensor::ElementType)>& make_element,
                            const tensor::Extents& reduced, int first_axis);

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_REDUCTION_H_

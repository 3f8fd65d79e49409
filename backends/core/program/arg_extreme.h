// SPDX-License-Identifier: Apache-2.0
//
// ArgExtreme: the reduction whose result is where the largest or smallest element is: how it is
// written as states, and how a device that has a loop of its own for it tells it from others.

#ifndef ONNXIFI_BACKENDS_CORE_PROGRAM_ARG_EXTREME_H_
#define ONNXIFI_BACKENDS_CORE_PROGRAM_ARG_EXTREME_H_

#include <optional>

#include "backends/core/program/step.h"

namespace onnxifi::program {

struct Extreme {
  bool is_largest = true;
  bool takes_last = false;  // of equal elements
};

// `index` (int64) of the extreme element. NaN is more extreme than any number, as in numpy. Over no
// elements: -1. Ties are decided by the index, so the order of elements does not matter.
Expr AddArgExtreme(Reduction& reduction, Expr element, Expr index, Extreme extreme);

struct ArgExtreme {
  ExprId element;
  ExprId index;
  Extreme extreme;
};
// Nothing where the reduction is not what AddArgExtreme writes, and that alone: state 1 is then the
// index.
std::optional<ArgExtreme> FindArgExtreme(const ExprPool& pool, const Reduction& reduction);

}  // namespace onnxifi::program

#endif  // ONNXIFI_BACKENDS_CORE_PROGRAM_ARG_EXTREME_H_

// SPDX-License-Identifier: Apache-2.0
//
// Generator: the random numbers of one node. They are a function of the node's seed, of the number
// of the draw (a run, or an iteration of a loop) and of the element's position, so every device
// draws the same ones, in any order.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_RANDOM_GENERATOR_H_
#define ONNXIFI_BACKENDS_CORE_OPS_RANDOM_GENERATOR_H_

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

class Generator {
 public:
  // With attribute `seed` every graph made of the node draws the same sequence; without it the
  // system's random numbers decide where it begins.
  explicit Generator(Lowering& lowering);

  // Independent numbers for each element of the domain of `step` and each call, in float32 or
  // float64.
  Expr Uniform(StepBuilder& step, ElementType type);  // [0, 1)
  Expr Normal(StepBuilder& step, ElementType type);   // mean 0, variance 1
  Expr Gumbel(StepBuilder& step, ElementType type);   // -log(-log(u))

 private:
  // float64 in [0, 1).
  Expr Draw(StepBuilder& step);

  uint64_t seed_;
  Operand draw_;  // int64, one number
  uint64_t draws_ = 0;
};

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_RANDOM_GENERATOR_H_

// SPDX-License-Identifier: Apache-2.0
//
// DirectReduction: a Reduce by one operation, such as ReduceSum, ReduceMean or
// ReduceMax, whose elements are read where they are, with no tile between: rows that lie together
// in memory, or results that lie side by side.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_DIRECT_REDUCTION_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_DIRECT_REDUCTION_H_

#include <memory>
#include <optional>

#include "backends/core/device/device.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

struct DirectReduction {
  program::ExprOp op;
  tensor::ElementType type;
  int read;              // of the elements
  tensor::Scalar begin;  // the state before them
};

// Nothing where the step reduces something else than a read of the type that it computes in.
std::optional<DirectReduction> FindDirectReduction(const program::ExprPool& pool,
                                                   const program::Step& step);

// `roots` are those of the step. Null where elements lie otherwise.
std::unique_ptr<device::BoundKernel> BindDirectReduction(const DirectReduction& reduction,
                                                         std::shared_ptr<const Code> roots,
                                                         const device::BoundStep& step,
                                                         Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_DIRECT_REDUCTION_H_

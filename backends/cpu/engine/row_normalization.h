// SPDX-License-Identifier: Apache-2.0
//
// RowNormalization: a Row in float32 that is Softmax, LogSoftmax, Hardmax, LayerNormalization,
// RMSNormalization or InstanceNormalization as core/ops writes them, told from others by its
// expressions. Where rows lie together in memory, a loop of its own takes each from start to end.
// The result may be rounded to a narrower float, and operands may be widened from one; a softmax of
// narrower floats rounds what it computes in between too.

#ifndef ONNXIFI_BACKENDS_CPU_ENGINE_ROW_NORMALIZATION_H_
#define ONNXIFI_BACKENDS_CPU_ENGINE_ROW_NORMALIZATION_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/core/device/device.h"
#include "backends/core/program/arg_extreme.h"
#include "backends/core/tensor/element_type.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/runtime.h"

namespace onnxifi::engine {

// Immutable.
struct RowNormalization {
  enum class Form : uint8_t {
    kSoftmax,
    kLogSoftmax,
    kHardmax,
    kMoments,     // mean and variance
    kMeanSquare,  // the mean of squares alone
  };
  // By what sums are divided.
  struct Divisor {
    float number = 0;
    std::optional<tensor::Dim> dim;  // or else the number
  };

  Form form;
  // What is normalised, as the only root; `read` where that is no more than a read, else -1.
  Code element;
  int read = -1;
  // To what the result is rounded before it is widened again; float32 where it is not.
  tensor::ElementType rounding_of_result = tensor::ElementType::kFloat32;
  // kSoftmax, kLogSoftmax: what its steps are rounded to; float32 where they are not.
  tensor::ElementType rounding = tensor::ElementType::kFloat32;
  // kHardmax: which element is chosen, and what the result is there and elsewhere.
  program::Extreme extreme;
  float chosen = 0;
  float others = 0;
  // kMoments, kMeanSquare: as of NormalizeRows. Reads, of float32 or a narrower float, or -1.
  Divisor divisor;
  float epsilon = 0;
  int scale = -1;
  int bias = -1;
};

// Null where the step is no such Row.
std::shared_ptr<const RowNormalization> FindRowNormalization(const program::ExprPool& pool,
                                                             const program::Step& step,
                                                             LoopSet loops);

// Null where rows do not lie together in memory, and where they are too short or too long.
std::unique_ptr<device::BoundKernel> BindRowNormalization(
    std::shared_ptr<const RowNormalization> normalization, const device::BoundStep& step,
    Runtime& runtime);

}  // namespace onnxifi::engine

#endif  // ONNXIFI_BACKENDS_CPU_ENGINE_ROW_NORMALIZATION_H_

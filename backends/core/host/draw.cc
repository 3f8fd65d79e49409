// SPDX-License-Identifier: Apache-2.0
//
// NextDraw: one count per node of a compiled graph.

#include "backends/core/host/draw.h"

#include <span>

namespace onnxifi::host {

Outputs Run(const program::NextDraw& attributes, Inputs /*inputs*/) {
  // Wraps where the two together exceed the type.
  const auto number = static_cast<int64_t>(
      static_cast<uint64_t>(attributes.base) +
      static_cast<uint64_t>(attributes.count->fetch_add(1, std::memory_order_relaxed)));
  return One(
      tensor::Tensor::FromValues<int64_t>(tensor::ElementType::kInt64, {}, std::span(&number, 1)));
}

}  // namespace onnxifi::host

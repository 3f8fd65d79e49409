// SPDX-License-Identifier: Apache-2.0
//
// FlowingValue: a value of a model that flows from node to node, and what is known of its type.

#ifndef ONNXIFI_ONNXIFI_SPLIT_FLOWING_VALUE_H_
#define ONNXIFI_ONNXIFI_SPLIT_FLOWING_VALUE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::split {

struct Dimension {
  int64_t number = -1;  // -1: not known
  std::string symbol;   // may be empty
};

// A value that flows along edges: no weights, no constants.
struct FlowingValue {
  std::string name;
  int32_t producer = -1;         // position among the nodes; -1: a graph input
  std::vector<int32_t> readers;  // positions, ascending, each once; captures of subgraphs too
  bool is_output = false;
  // What a descriptor would say of it; nothing where no descriptor can carry it or its rank is not
  // known.
  tensor::ElementType type = tensor::ElementType::kUndefined;
  std::optional<std::vector<Dimension>> dimensions;

  bool is_carried() const { return dimensions.has_value(); }
  bool has_fixed_shape() const {
    return dimensions && std::all_of(dimensions->begin(), dimensions->end(),
                                     [](const Dimension& extent) { return extent.number >= 0; });
  }
};

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_FLOWING_VALUE_H_

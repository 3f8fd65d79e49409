// SPDX-License-Identifier: Apache-2.0
//
// GroupSum: the sums of what the items of a group have, up to each item. For generators alone.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_GROUP_SUM_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_GROUP_SUM_H_

#include <string>
#include <string_view>

#include "backends/core/codegen/writer.h"

namespace onnxifi::codegen {

struct GroupSum {
  std::string before;  // of the items before this one
  std::string all;
};

// Declares the sums of `value`, a variable of type `type` of each of the first `items` items, a
// power of two. All items of the group come by; they use `shared`, an array of that type that has
// an element for each of those, and have met before they write to it. What other items, if any,
// find before them is of no meaning.
GroupSum WriteGroupSum(Writer& writer, std::string_view type, const std::string& value, int items,
                       const std::string& shared);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_GROUP_SUM_H_

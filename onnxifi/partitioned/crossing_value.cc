// SPDX-License-Identifier: Apache-2.0
//
// CrossingValue: an extent that either side does not know agrees with any.

#include "onnxifi/partitioned/crossing_value.h"

#include <algorithm>

namespace onnxifi::partitioned {

using base::Code;
using base::Status;

Status Contradiction(const std::string& value, const std::string& what) {
  return {Code::kBackendUnavailable,
          "The device contradicts the model: '" + value + "' " + what + "."};
}

std::string ShapeText(std::span<const int64_t> extents) {
  std::string text = "[";
  for (const int64_t extent : extents) {
    text += (text.size() > 1 ? ", " : "") + (extent < 0 ? "?" : std::to_string(extent));
  }
  return text + "]";
}

Status CrossingValue::Check(onnxEnum type, std::span<const int64_t> told) const {
  if (data_type != ONNXIFI_DATATYPE_UNDEFINED && type != data_type) {
    return Contradiction(name, "has element type " + std::to_string(type) + " instead of " +
                                   std::to_string(data_type));
  }
  if (!has_rank) return base::Ok();
  bool agrees = told.size() == extents.size();
  for (size_t axis = 0; agrees && axis < told.size(); ++axis) {
    agrees =
        told[axis] >= -1 && (told[axis] < 0 || extents[axis] < 0 || told[axis] == extents[axis]);
  }
  if (agrees) return base::Ok();
  return Contradiction(name, "has shape " + ShapeText(told) + " instead of " + ShapeText(extents));
}

bool IsKnown(const abi::TensorShape& shape) {
  return shape.has_rank && std::all_of(shape.extents.begin(), shape.extents.end(),
                                       [](int64_t extent) { return extent >= 0; });
}

}  // namespace onnxifi::partitioned

// SPDX-License-Identifier: Apache-2.0
//
// CrossingValue: what the model says of a value that crosses the edge of an island, and whether
// what a device says of it agrees.

#ifndef ONNXIFI_ONNXIFI_PARTITIONED_CROSSING_VALUE_H_
#define ONNXIFI_ONNXIFI_PARTITIONED_CROSSING_VALUE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/core/abi/tensor_descriptor.h"
#include "backends/core/base/result.h"

namespace onnxifi::partitioned {

struct CrossingValue {
  std::string name;
  onnxEnum data_type = ONNXIFI_DATATYPE_UNDEFINED;
  // What the model says: -1 where an extent is no number, and whether there is a rank, and a number
  // for each extent.
  std::vector<int64_t> extents;
  bool has_rank = false;
  bool has_extents = false;
  // Whether an island reads what another makes.
  bool is_handed_on = false;

  // Whether type and extents that a device tells, with -1 for what is not known, may be what the
  // model says; else a Contradiction.
  base::Status Check(onnxEnum type, std::span<const int64_t> told) const;
};

// BACKEND_UNAVAILABLE: the device says what cannot be, and nothing that it computes is to be relied
// on.
base::Status Contradiction(const std::string& value, const std::string& what);

// E.g. "[2, ?]".
std::string ShapeText(std::span<const int64_t> extents);

// Whether it has a number for each extent.
bool IsKnown(const abi::TensorShape& shape);

}  // namespace onnxifi::partitioned

#endif  // ONNXIFI_ONNXIFI_PARTITIONED_CROSSING_VALUE_H_

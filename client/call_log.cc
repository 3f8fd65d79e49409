// SPDX-License-Identifier: Apache-2.0
//
// One flag per cell of the status table.

#include "client/call_log.h"

namespace onnxifi::client {

void CallLog::Record(Function function, onnxStatus status) {
  const auto row = static_cast<size_t>(function);
  const std::optional<size_t> column = FindStatus(status);
  if (column) {
    seen_[row][*column].store(true, std::memory_order_relaxed);
  } else {
    unknown_[row].store(status, std::memory_order_relaxed);
  }
}

std::vector<StatusCell> CallLog::cells() const {
  std::vector<StatusCell> cells;
  for (size_t row = 0; row < seen_.size(); ++row) {
    const auto function = static_cast<Function>(row);
    for (size_t column = 0; column < kStatusCount; ++column) {
      if (seen_[row][column].load(std::memory_order_relaxed)) {
        cells.push_back({function, kStatuses[column].status});
      }
    }
    const onnxStatus unknown = unknown_[row].load(std::memory_order_relaxed);
    if (unknown != ONNXIFI_STATUS_SUCCESS) cells.push_back({function, unknown});
  }
  return cells;
}

}  // namespace onnxifi::client

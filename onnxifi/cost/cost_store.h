// SPDX-License-Identifier: Apache-2.0
//
// CostStore: the tables of devices in files, from one process to the next. A file that is damaged,
// cut short or of another device is as good as absent. Whatever goes wrong with the folder, devices
// are as if never measured: no function here fails.

#ifndef ONNXIFI_ONNXIFI_COST_COST_STORE_H_
#define ONNXIFI_ONNXIFI_COST_COST_STORE_H_

#include <filesystem>
#include <string_view>

#include "onnxifi/cost/device_table.h"

namespace onnxifi::cost {

// Any number of processes and threads may use a folder at the same time; of two that add to a table
// at once, one may lose what it added.
class CostStore {
 public:
  // No folder: nothing is found or kept.
  explicit CostStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `identity`: one line that tells the device from all others, and its software from others.
  DeviceTable Read(std::string_view identity) const;
  // Adds to what is there. Readers see the file as it was or as it is, never half of it.
  void Add(std::string_view identity, const DeviceTable& newer) const;

 private:
  std::filesystem::path FileOf(std::string_view identity) const;

  const std::filesystem::path folder_;
};

}  // namespace onnxifi::cost

#endif  // ONNXIFI_ONNXIFI_COST_COST_STORE_H_

// SPDX-License-Identifier: Apache-2.0
//
// ExternalData: the files beside a model that hold the data of its large tensors. Nothing outside
// the folder can be reached, whatever the model says.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_EXTERNAL_DATA_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_EXTERNAL_DATA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::model {

class ExternalData {
 public:
  // Nothing: every request is refused.
  explicit ExternalData(std::optional<std::string> folder) : folder_(std::move(folder)) {}

  struct Region {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  // keeps the file mapped
  };

  // `size_bytes` bytes at `offset` of the file `location`, a relative path in the folder.
  // INVALID_MODEL: no folder, a location that is absolute, has "..", or leaves the folder through a
  // link; a file that is missing, no plain file, or too short. NO_SYSTEM_MEMORY: the file cannot be
  // mapped. Lifetime: mapped read-only until the last owner goes; the file must not be shortened
  // meanwhile.
  base::Result<Region> Map(const std::string& location, int64_t offset, int64_t size_bytes);

 private:
  struct File {
    std::string location;
    Region whole;
  };

  base::Result<Region> MapFile(const std::string& location) const;

  std::optional<std::string> folder_;
  std::vector<File> files_;  // a model has one or a few
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_EXTERNAL_DATA_H_

// SPDX-License-Identifier: Apache-2.0
//
// SharedSource: where memory comes from that a device and the host share.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_SHARED_SOURCE_H_
#define ONNXIFI_ONNXIFI_PLUGINS_SHARED_SOURCE_H_

#include <cstdint>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"

namespace onnxifi::plugins {

// Where memory comes from on which one device and the host both work.
class SharedSource {
 public:
  virtual ~SharedSource() = default;
  // UNSUPPORTED_MEMORY_TYPE where there is none such; resource codes. The owner keeps what it
  // needs.
  virtual base::Result<abi::SharedMemory> AllocateShared(int64_t size_bytes) const = 0;
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_SHARED_SOURCE_H_

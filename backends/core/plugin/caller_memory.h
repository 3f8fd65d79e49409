// SPDX-License-Identifier: Apache-2.0
//
// CallerMemory: tensors of the caller's that a device reads and writes where they lie: in memory of
// its driver, or in the host's where the device takes that.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_CALLER_MEMORY_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_CALLER_MEMORY_H_

#include <memory>
#include <span>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/base/result.h"
#include "backends/core/device/sharing.h"

namespace onnxifi::plugin {

tensor::Extents ExtentsOf(const abi::TensorDescriptor& descriptor);

// The caller's memory of tensors as the device's, one entry each; null for those that are copied.
// Shared with the queue that a run of it may still be in.
using DeviceMemory = std::vector<std::shared_ptr<device::Allocation>>;

// Of tensors in memory of the driver's. `sharing`: not null if there are such. INVALID_MEMORY_...
// and resource codes, about "`role`".
base::Result<DeviceMemory> ImportMemory(std::span<const abi::TensorDescriptor> tensors,
                                        device::Sharing* sharing, device::Sharing::Access access,
                                        const char* role);

// Lets the device use tensors in the host's memory where they lie, as far as it wants to, and as
// they overlap none of `others`: what overlaps an input is written once the inputs were read.
void ImportHostMemory(std::span<const abi::TensorDescriptor> tensors,
                      std::span<const abi::TensorDescriptor> others, device::Sharing& sharing,
                      DeviceMemory& memory);

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_CALLER_MEMORY_H_

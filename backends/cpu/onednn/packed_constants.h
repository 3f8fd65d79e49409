// SPDX-License-Identifier: Apache-2.0
//
// PackedConstants: weights in the layout that a primitive asked for, each packed once however many
// bindings and runs use it.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_PACKED_CONSTANTS_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_PACKED_CONSTANTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/cpu/onednn/layout.h"
#include "backends/cpu/onednn/runtime.h"

namespace onnxifi::onednn {

// Shared by the bindings of a kernel, and by runs that outlive a binding.
using PackedConstant = std::shared_ptr<device::Allocation>;

// Each as long as anybody has it. Belongs to one kernel. Threads: any.
class PackedConstants {
 public:
  // The constant at `data`, which is any address, laid out as `from`, laid out as `to`.
  // NO_SYSTEM_MEMORY.
  base::Result<PackedConstant> Pack(Runtime& runtime, std::byte* data, const Desc& from,
                                    const Desc& to);

 private:
  struct Entry {
    const std::byte* data;
    Desc from;
    Desc to;
    std::weak_ptr<device::Allocation> packed;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // few: primitives of different extents mostly ask for the same
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_PACKED_CONSTANTS_H_

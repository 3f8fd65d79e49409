// SPDX-License-Identifier: Apache-2.0
//
// AlignedConstant: floats that may be part of a model's bytes, at any address, for code that reads
// them as floats while it packs them.

#ifndef ONNXIFI_BACKENDS_CPU_RUNTIME_ALIGNED_CONSTANT_H_
#define ONNXIFI_BACKENDS_CPU_RUNTIME_ALIGNED_CONSTANT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::runtime {

// What a constant buffer of floats takes.
int64_t ConstantBytes(const device::BoundStep& step, program::BufferId constant);

class AlignedConstant {
 public:
  static bool IsAligned(const std::byte* data) {
    return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0;
  }

  // `data` itself where it is an address of floats, and then outlives this; else a copy.
  // NO_SYSTEM_MEMORY.
  static base::Result<AlignedConstant> Create(device::Memory& memory, std::byte* data,
                                              int64_t size_bytes);

  std::byte* data() const { return data_; }

 private:
  explicit AlignedConstant(std::byte* data) : data_(data) {}

  std::byte* data_;
  std::unique_ptr<device::Allocation> copy_;
};

}  // namespace onnxifi::runtime

#endif  // ONNXIFI_BACKENDS_CPU_RUNTIME_ALIGNED_CONSTANT_H_

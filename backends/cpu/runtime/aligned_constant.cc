// SPDX-License-Identifier: Apache-2.0
//
// AlignedConstant.

#include "backends/cpu/runtime/aligned_constant.h"

#include <cstring>

namespace onnxifi::runtime {

int64_t ConstantBytes(const device::BoundStep& step, program::BufferId constant) {
  int64_t bytes = sizeof(float);
  for (const program::Dim& dim : step.program->buffers[constant].shape) bytes *= step.Number(dim);
  return bytes;
}

base::Result<AlignedConstant> AlignedConstant::Create(device::Memory& memory, std::byte* data,
                                                      int64_t size_bytes) {
  AlignedConstant constant(data);
  if (IsAligned(data)) return constant;
  ONNXIFI_ASSIGN_OR_RETURN(constant.copy_, memory.Allocate(size_bytes));
  constant.data_ = constant.copy_->data();
  std::memcpy(constant.data_, data, static_cast<size_t>(size_bytes));
  return constant;
}

}  // namespace onnxifi::runtime

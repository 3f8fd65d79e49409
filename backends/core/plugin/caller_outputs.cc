// SPDX-License-Identifier: Apache-2.0
//
// CallerOutputs: an output may be smaller than what is bound for it, and never larger.

#include "backends/core/plugin/caller_outputs.h"

#include <utility>

#include "backends/core/plugin/caller_memory.h"

namespace onnxifi::plugin {

using abi::TensorDescriptor;
using base::Code;
using base::Result;
using base::Status;
using tensor::Extents;

CallerOutputs::CallerOutputs(const program::Program& program,
                             std::span<const TensorDescriptor> outputs,
                             std::span<const std::shared_ptr<device::Allocation>> memory)
    : program_(program),
      outputs_(outputs),
      memory_(memory),
      actual_(outputs.size()),
      kept_(program) {}

Result<std::byte*> CallerOutputs::Allocate(int output, const Extents& extents) {
  const TensorDescriptor& descriptor = outputs_[output];
  actual_[output] = extents;
  if (descriptor.is_kept) return kept_.Allocate(output, extents);
  Extents bound = ExtentsOf(descriptor);
  if (extents != bound && tensor::ElementCount(extents) > tensor::ElementCount(bound)) {
    return Status(Code::kMismatchingShape,
                  "Output '" + descriptor.name + "' has shape " + tensor::ToString(extents) +
                      ", more than the bound shape " + tensor::ToString(bound) + " can hold.");
  }
  if (memory_[output] != nullptr) return memory_[output]->data();
  return static_cast<std::byte*>(descriptor.mutable_cpu_data());
}

Status CallerOutputs::Take(int output, tensor::ValueRef value) {
  return kept_.Take(output, std::move(value));
}

abi::RunOutputs CallerOutputs::Outputs(const tensor::StringTable& strings) const {
  abi::RunOutputs told;
  bool differs = false;
  for (size_t k = 0; k < outputs_.size(); ++k) {
    const TensorDescriptor& output = outputs_[k];
    const program::Buffer& buffer = program_.buffers[program_.outputs[k].buffer];
    differs = differs || output.is_kept || actual_[k] != ExtentsOf(output);
    told.shapes.push_back({output.name,
                           buffer.value ? onnxEnum{ONNXIFI_DATATYPE_UNDEFINED}
                                        : static_cast<onnxEnum>(buffer.element_type()),
                           !buffer.value, actual_[k]});
    if (output.is_kept) {
      told.kept.push_back({output.name, kept_.Get(static_cast<int>(k), strings)});
    }
  }
  if (!differs) told.shapes.clear();
  return told;
}

}  // namespace onnxifi::plugin

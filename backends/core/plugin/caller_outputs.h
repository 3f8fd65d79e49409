// SPDX-License-Identifier: Apache-2.0
//
// CallerOutputs: where a run leaves its outputs: in the caller's buffers, or, those that the run
// keeps, in memory of their own.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_CALLER_OUTPUTS_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_CALLER_OUTPUTS_H_

#include <memory>
#include <span>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/device/sharing.h"
#include "backends/core/execution/executor.h"
#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/whole_run.h"

namespace onnxifi::plugin {

// Notes the extents that outputs turn out to have. Of one run.
class CallerOutputs : public execution::OutputAllocator {
 public:
  // `memory[k]` is that of output k where it lies in the device, else null.
  CallerOutputs(const program::Program& program, std::span<const abi::TensorDescriptor> outputs,
                std::span<const std::shared_ptr<device::Allocation>> memory);

  base::Result<std::byte*> Allocate(int output, const tensor::Extents& extents) override;
  bool IsInside(int output) const override { return memory_[output] != nullptr; }
  base::Status Take(int output, tensor::ValueRef value) override;

  // No shapes when every output has that of its descriptor.
  abi::RunOutputs Outputs(const tensor::StringTable& strings) const;

 private:
  const program::Program& program_;
  std::span<const abi::TensorDescriptor> outputs_;
  std::span<const std::shared_ptr<device::Allocation>> memory_;
  std::vector<tensor::Extents> actual_;
  execution::KeptOutputs kept_;
};

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_CALLER_OUTPUTS_H_

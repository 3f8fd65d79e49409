// SPDX-License-Identifier: Apache-2.0
//
// Device: the implementations of each family, fastest first.

#include "backends/opencl/device.h"

#include <utility>

#include "backends/opencl/generated.h"
#include "backends/opencl/queue.h"
#include "backends/opencl/tiled.h"

namespace onnxifi::opencl {

base::Result<device::Selection> Selector::Select(const device::Facts& facts) const {
  device::Selection selection;
  ONNXIFI_ASSIGN_OR_RETURN(selection.recipe, SelectGenerated(facts, capabilities_));
  if (facts.step.As<program::Contract>() == nullptr) return selection;
  base::Result<std::unique_ptr<const Recipe>> tiled = SelectTiled(facts, capabilities_, tuning_);
  if (tiled.ok()) {
    selection.recipe = *std::move(tiled);
  } else {
    selection.rejected.push_back(std::move(tiled).status());
  }
  return selection;
}

base::Result<std::unique_ptr<Device>> Device::Open(const Api& api, const DeviceInfo& info,
                                                   const std::filesystem::path& cache_folder,
                                                   const Shared& shared) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime, Runtime::Open(api, info, shared));
  return std::unique_ptr<Device>(new Device(std::move(runtime), cache_folder));
}

base::Result<std::unique_ptr<device::Queue>> Device::NewQueue() {
  return std::unique_ptr<device::Queue>(std::make_unique<Queue>(*runtime_, memory_));
}

base::Result<std::unique_ptr<device::Kernel>> Device::Build(const device::Recipe& recipe) {
  return static_cast<const Recipe&>(recipe).Build(services_);
}

}  // namespace onnxifi::opencl

// SPDX-License-Identifier: Apache-2.0
//
// Runtime: a context of one device.

#include "backends/opencl/runtime.h"

#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {

base::Result<std::unique_ptr<Runtime>> Runtime::Open(const Api& api, const DeviceInfo& info) {
  const SignalKeeper keeper;
  std::unique_ptr<Runtime> runtime(new Runtime(api, info));
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(info.platform), 0};
  cl_int result = CL_SUCCESS;
  runtime->context_ = {api.CreateContext(properties, 1, &info.id, nullptr, nullptr, &result),
                       api.ReleaseContext};
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "create a context for " + info.name));
  runtime->queue_ = {api.CreateCommandQueue(runtime->context(), info.id, /*properties=*/0, &result),
                     api.ReleaseCommandQueue};
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "create a queue for " + info.name));
  return runtime;
}

Runtime::~Runtime() {
  if (queue_.get() != nullptr) api_.Finish(queue_.get());
}

}  // namespace onnxifi::opencl

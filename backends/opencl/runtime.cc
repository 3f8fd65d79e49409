// SPDX-License-Identifier: Apache-2.0
//
// Runtime: a context of one device.

#include "backends/opencl/runtime.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {

namespace {

using base::Code;
using base::Status;

Status Unfit(std::string sentence) { return Status(Code::kInvalidProperty, std::move(sentence)); }

}  // namespace

// A handle that is none at all cannot be told from one: drivers look into what they are given.
Status Runtime::Share(const Shared& shared) {
  cl_context context = shared.context;
  if (shared.queue != nullptr) {
    cl_context of_queue = nullptr;
    cl_device_id device = nullptr;
    cl_command_queue_properties properties = 0;
    const auto ask = [&](cl_command_queue_info query, size_t size, void* value) {
      return api_.GetCommandQueueInfo(shared.queue, query, size, value, nullptr) == CL_SUCCESS;
    };
    if (!ask(CL_QUEUE_CONTEXT, sizeof(of_queue), static_cast<void*>(&of_queue)) ||
        !ask(CL_QUEUE_DEVICE, sizeof(device), static_cast<void*>(&device)) ||
        !ask(CL_QUEUE_PROPERTIES, sizeof(properties), &properties)) {
      return Unfit("The queue to share is no OpenCL command queue.");
    }
    if (context != nullptr && context != of_queue) {
      return Unfit("The queue to share belongs to another context than the one to share.");
    }
    if (device != info_.id) {
      return Unfit("The queue to share belongs to another device than " + info_.name + ".");
    }
    if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0) {
      return Unfit("The queue to share runs its commands out of order; it must be in-order.");
    }
    context = of_queue;
    ONNXIFI_RETURN_IF_ERROR(ToStatus(api_.RetainCommandQueue(shared.queue), "share a queue"));
    queue_ = {shared.queue, api_.ReleaseCommandQueue};
    shares_queue_ = true;
    tells_times_ = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  }
  if (context == nullptr) return base::Ok();
  size_t size = 0;
  if (api_.GetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &size) != CL_SUCCESS) {
    return Unfit("The context to share is no OpenCL context.");
  }
  std::vector<cl_device_id> devices(size / sizeof(cl_device_id));
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api_.GetContextInfo(context, CL_CONTEXT_DEVICES, size,
                                                       static_cast<void*>(devices.data()), nullptr),
                                   "list the devices of a context"));
  if (std::ranges::count(devices, info_.id) == 0) {
    return Unfit("The context to share has " + std::to_string(devices.size()) +
                 (devices.size() == 1 ? " device, which is" : " devices, none of which is") +
                 (devices.size() == 1 ? " not " : " ") + info_.name + ".");
  }
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api_.RetainContext(context), "share a context"));
  context_ = {context, api_.ReleaseContext};
  shares_context_ = true;
  return base::Ok();
}

base::Result<std::unique_ptr<Runtime>> Runtime::Open(const Api& api, const DeviceInfo& info,
                                                     const Shared& shared) {
  const SignalKeeper keeper;
  std::unique_ptr<Runtime> runtime(new Runtime(api, info));
  ONNXIFI_RETURN_IF_ERROR(runtime->Share(shared));
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(info.platform), 0};
  cl_int result = CL_SUCCESS;
  if (!runtime->shares_context_) {
    runtime->context_ = {api.CreateContext(properties, 1, &info.id, nullptr, nullptr, &result),
                         api.ReleaseContext};
    ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "create a context for " + info.name));
  }
  if (!runtime->shares_queue_) {
    ONNXIFI_ASSIGN_OR_RETURN(runtime->queue_, runtime->NewQueue(/*properties=*/0));
  }
  return runtime;
}

base::Result<Handle<cl_command_queue>> Runtime::NewQueue(
    cl_command_queue_properties properties) const {
  cl_int result = CL_SUCCESS;
  Handle<cl_command_queue> queue(api_.CreateCommandQueue(context(), info_.id, properties, &result),
                                 api_.ReleaseCommandQueue);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "create a queue for " + info_.name));
  return queue;
}

base::Result<bool> Runtime::EnableTiming() {
  const std::unique_lock lock(queue_mutex_);
  if (tells_times_ || shares_queue_) return tells_times_;
  // The two queues are one order: the second has nothing before the first has nothing more.
  ONNXIFI_RETURN_IF_ERROR(ToStatus(api_.Finish(queue_.get()), "finish a queue"));
  ONNXIFI_ASSIGN_OR_RETURN(queue_, NewQueue(CL_QUEUE_PROFILING_ENABLE));
  tells_times_ = true;
  return true;
}

Runtime::~Runtime() {
  if (queue_.get() != nullptr) api_.Finish(queue_.get());
}

}  // namespace onnxifi::opencl

// SPDX-License-Identifier: Apache-2.0
//
// Runtime: an opened device: its context and its one command queue. The queue is in order, so that
// memory which one piece of work is done with can be given to the next at once, whichever run that
// belongs to.

#ifndef ONNXIFI_BACKENDS_OPENCL_RUNTIME_H_
#define ONNXIFI_BACKENDS_OPENCL_RUNTIME_H_

#include <memory>

#include "backends/opencl/api.h"
#include "backends/opencl/driver.h"

namespace onnxifi::opencl {

class Runtime {
 public:
  // BACKEND_UNAVAILABLE or a resource code.
  static base::Result<std::unique_ptr<Runtime>> Open(const Api& api, const DeviceInfo& info);
  // Waits for all work.
  ~Runtime();

  const Api& api() const { return api_; }
  const DeviceInfo& info() const { return info_; }
  cl_context context() const { return context_.get(); }
  cl_command_queue queue() const { return queue_.get(); }

 private:
  Runtime(const Api& api, DeviceInfo info) : api_(api), info_(std::move(info)) {}

  const Api api_;
  const DeviceInfo info_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_RUNTIME_H_

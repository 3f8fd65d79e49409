// SPDX-License-Identifier: Apache-2.0
//
// Runtime: an opened device: its context and its one command queue, each our own or the caller's.
// The queue is in order, so that memory which one piece of work is done with can be given to the
// next at once, whichever run that belongs to.

#ifndef ONNXIFI_BACKENDS_OPENCL_RUNTIME_H_
#define ONNXIFI_BACKENDS_OPENCL_RUNTIME_H_

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "backends/opencl/api.h"
#include "backends/opencl/driver.h"

namespace onnxifi::opencl {

// What a caller gives for the backend to share; null: the backend makes its own. A queue's context
// is shared with it.
struct Shared {
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
};

class Runtime {
 public:
  // INVALID_PROPERTY if what is to be shared is not of this device or does not fit together,
  // BACKEND_UNAVAILABLE or a resource code.
  static base::Result<std::unique_ptr<Runtime>> Open(const Api& api, const DeviceInfo& info,
                                                     const Shared& shared = {});
  // Waits for all work.
  ~Runtime();

  const Api& api() const { return api_; }
  const DeviceInfo& info() const { return info_; }
  cl_context context() const { return context_.get(); }
  // The queue, to put one command into it, which nobody exchanges meanwhile.
  class QueueUse {
   public:
    explicit QueueUse(const Runtime& runtime)
        : lock_(runtime.queue_mutex_), queue_(runtime.queue_.get()) {}
    cl_command_queue get() const { return queue_; }

   private:
    const std::shared_lock<std::shared_mutex> lock_;
    const cl_command_queue queue_;
  };
  QueueUse queue() const { return QueueUse(*this); }
  // Sees to it that events of later commands tell when those ran, for which our own queue is
  // exchanged, once what is in it is done. False: the caller's queue does not tell.
  base::Result<bool> EnableTiming();
  // Whether they are the caller's.
  bool shares_context() const { return shares_context_; }
  bool shares_queue() const { return shares_queue_; }

 private:
  Runtime(const Api& api, DeviceInfo info) : api_(api), info_(std::move(info)) {}
  base::Status Share(const Shared& shared);
  base::Result<Handle<cl_command_queue>> NewQueue(cl_command_queue_properties properties) const;

  const Api api_;
  const DeviceInfo info_;
  Handle<cl_context> context_;
  mutable std::shared_mutex queue_mutex_;
  Handle<cl_command_queue> queue_;
  bool tells_times_ = false;
  bool shares_context_ = false;
  bool shares_queue_ = false;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_RUNTIME_H_

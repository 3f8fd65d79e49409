// SPDX-License-Identifier: Apache-2.0
//
// LibraryHost: what the calls of a library need of the device: its context, and a way into its
// queues and recordings.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_HOST_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_HOST_H_

#include <cuda.h>

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "backends/core/device/memory_use.h"

namespace onnxifi::cuda {

class LibraryHost {
 public:
  virtual ~LibraryHost() = default;
  // Whether anything runs there; on some devices kernels are compiled and nothing else.
  virtual bool IsReal() const = 0;
  // A queue of the device's.
  virtual base::Result<std::unique_ptr<device::Queue>> NewQueue() const = 0;
  // Does `call` with the device's context current on this thread. Any thread.
  virtual base::Status Do(std::string_view doing,
                          const std::function<base::Status()>& call) const = 0;
  // Puts what `call(stream)` puts into a stream into one of the device's queues, or into what that
  // records. It uses this memory.
  virtual base::Status Put(device::Queue& queue, std::string_view doing,
                           std::span<const device::MemoryUse> uses,
                           const std::function<base::Status(CUstream)>& call) const = 0;
};

// The host of a device with this runtime and queues; both outlive it.
template <typename Runtime, typename Queue>
class LibraryHostOf final : public LibraryHost {
 public:
  LibraryHostOf(const Runtime& runtime, device::Device& device)
      : runtime_(runtime), device_(device) {}

  bool IsReal() const override { return !runtime_.info().is_compiled_for_only; }
  base::Result<std::unique_ptr<device::Queue>> NewQueue() const override {
    return device_.NewQueue();
  }
  base::Status Do(std::string_view doing,
                  const std::function<base::Status()>& call) const override {
    base::Status status = base::Ok();
    base::Status done = runtime_.Do(doing, [&] {
      status = call();
      return CUDA_SUCCESS;
    });
    return status.ok() ? std::move(done) : std::move(status);
  }
  base::Status Put(device::Queue& queue, std::string_view doing,
                   std::span<const device::MemoryUse> uses,
                   const std::function<base::Status(CUstream)>& call) const override {
    base::Status status = base::Ok();
    base::Status done = static_cast<Queue&>(queue).Call(doing, uses, [&](CUstream stream) {
      status = call(stream);
      return status.ok() ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
    });
    return status.ok() ? std::move(done) : std::move(status);
  }

 private:
  const Runtime& runtime_;
  device::Device& device_;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_LIBRARY_HOST_H_

// SPDX-License-Identifier: Apache-2.0
//
// HostThreads: all threads of the host for work that takes milliseconds a piece, such as compiling
// kernels, on devices of which the host's threads have nothing else to do. Threads live as long as
// a call.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_HOST_THREADS_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_HOST_THREADS_H_

#include <cstdint>
#include <functional>

#include "backends/core/device/parallel.h"

namespace onnxifi::device {

class HostThreads final : public Parallel {
 public:
  // More threads need more memory for compilers than they save time.
  static constexpr int64_t kMaxThreads = 16;

  // One range for each thread. Where the system has no more threads, the calling one does the rest.
  void For(int64_t count, int64_t grain,
           const std::function<void(int64_t begin, int64_t end)>& body) override;
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_HOST_THREADS_H_

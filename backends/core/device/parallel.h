// SPDX-License-Identifier: Apache-2.0
//
// Parallel: how a kernel that runs on the host splits its work. The reference engine takes one; a
// CPU backend gives its own thread pool, everything else the serial one.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_PARALLEL_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace onnxifi::device {

class Parallel {
 public:
  virtual ~Parallel() = default;
  // Calls `body(begin, end)` for disjoint ranges that cover [0, count), each of at least `grain`
  // indices but the last, and returns when all are done. Bodies may run at the same time, on any
  // thread; they throw nothing. Any thread may call.
  virtual void For(int64_t count, int64_t grain,
                   const std::function<void(int64_t begin, int64_t end)>& body) = 0;
};

// One range, on the calling thread.
class Serial final : public Parallel {
 public:
  void For(int64_t count, int64_t /*grain*/,
           const std::function<void(int64_t begin, int64_t end)>& body) override {
    if (count > 0) body(0, count);
  }
};

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_PARALLEL_H_

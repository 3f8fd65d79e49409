// SPDX-License-Identifier: Apache-2.0
//
// Waiters: threads that wait for events which tell nobody when they are signalled: those of
// plugins.

#ifndef ONNXIFI_ONNXIFI_PLUGINS_WAITERS_H_
#define ONNXIFI_ONNXIFI_PLUGINS_WAITERS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace onnxifi::plugins {

// Threads: any.
class Waiters {
 public:
  Waiters() = default;
  ~Waiters() { Join(); }
  Waiters(const Waiters&) = delete;
  Waiters& operator=(const Waiters&) = delete;

  // Calls `wait`, which blocks, on a thread of its own.
  void Start(std::function<void()> wait);
  // Returns when all that was started is done. Nothing is started meanwhile.
  void Join();

 private:
  struct Waiter {
    std::shared_ptr<std::atomic<bool>> is_done;
    std::thread thread;
  };
  std::mutex mutex_;
  std::vector<Waiter> waiters_;  // guarded by mutex_
};

}  // namespace onnxifi::plugins

#endif  // ONNXIFI_ONNXIFI_PLUGINS_WAITERS_H_

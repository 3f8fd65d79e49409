// SPDX-License-Identifier: Apache-2.0
//
// Semaphores: timeline semaphores of the caller's that somebody waits for, in a thread of their own
// that starts with the first of them, and new ones for the caller, which the host signals.

#ifndef ONNXIFI_BACKENDS_VULKAN_SEMAPHORES_H_
#define ONNXIFI_BACKENDS_VULKAN_SEMAPHORES_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

// What only they call; looked up when they are first used.
// NOLINTBEGIN(readability-identifier-naming): the names of Vulkan.
struct SemaphoreApi {
  PFN_vkGetSemaphoreCounterValue GetSemaphoreCounterValue = nullptr;
  PFN_vkSignalSemaphore SignalSemaphore = nullptr;
};
// NOLINTEND(readability-identifier-naming)

// Any thread.
class Semaphores {
 public:
  using OnDone = std::function<void(const base::Status&)>;

  // `runtime` outlives it.
  explicit Semaphores(Runtime& runtime) : runtime_(runtime) {}
  ~Semaphores() { End(); }
  Semaphores(const Semaphores&) = delete;
  Semaphores& operator=(const Semaphores&) = delete;

  // Calls `done` once, on any thread, when the semaphore has reached the value, with
  // BACKEND_UNAVAILABLE if the device is lost before. Resource codes, and no call.
  base::Status WhenReached(VkSemaphore semaphore, uint64_t value, OnDone done);
  // What is still waited for is done with BACKEND_UNAVAILABLE, and no semaphore of the caller's is
  // used any more. Not at a time with itself.
  void End();

  // A semaphore at 0, the receiver's to destroy, and the function that signals it: kReached, or
  // kFailed. That needs the device, but not this object.
  static constexpr uint64_t kReached = 1;
  static constexpr uint64_t kFailed = 2;
  struct Made {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    OnDone complete;
  };
  base::Result<Made> Make();

 private:
  struct Awaited {
    VkSemaphore semaphore = VK_NULL_HANDLE;
    uint64_t value = 0;
    OnDone done;
  };

  base::Status LoadFunctions();  // with the mutex held
  base::Status Start();          // with the mutex held
  void Loop();
  // Takes out what is reached, or all of it after a `fault`.
  void TellReached(const base::Status& fault);

  Runtime& runtime_;
  std::mutex mutex_;
  // Set before the thread starts.
  SemaphoreApi api_;
  // Guarded by mutex_.
  std::vector<Awaited> awaited_;
  uint64_t wakes_ = 0;
  bool is_ending_ = false;  // nobody is waited for any more
  // Set before the thread starts.
  Handle<VkSemaphore> wake_;
  std::thread thread_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_SEMAPHORES_H_

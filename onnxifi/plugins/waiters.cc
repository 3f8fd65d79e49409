// SPDX-License-Identifier: Apache-2.0
//
// Waiters: those that are done are joined when the next one starts.

#include "onnxifi/plugins/waiters.h"

#include <utility>

namespace onnxifi::plugins {

void Waiters::Start(std::function<void()> wait) {
  std::lock_guard lock(mutex_);
  std::erase_if(waiters_, [](Waiter& waiter) {
    if (!waiter.is_done->load()) return false;
    waiter.thread.join();
    return true;
  });
  auto is_done = std::make_shared<std::atomic<bool>>(false);
  waiters_.push_back({is_done, std::thread([wait = std::move(wait), is_done]() mutable {
                        wait();
                        wait = nullptr;
                        is_done->store(true);
                      })});
}

void Waiters::Join() {
  std::vector<Waiter> waiters;
  {
    std::lock_guard lock(mutex_);
    waiters.swap(waiters_);
  }
  for (Waiter& waiter : waiters) waiter.thread.join();
}

}  // namespace onnxifi::plugins

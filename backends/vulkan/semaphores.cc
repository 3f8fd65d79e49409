// SPDX-License-Identifier: Apache-2.0
//
// Semaphores: the thread waits for any of them and for one of its own, by which it is told of more.

#include "backends/vulkan/semaphores.h"

#include <string>
#include <string_view>
#include <utility>

#include "backends/core/base/start_thread.h"

namespace onnxifi::vulkan {
namespace {

using base::Code;
using base::Result;
using base::Status;

VkResult Signal(const SemaphoreApi& api, VkDevice device, VkSemaphore semaphore, uint64_t value) {
  VkSemaphoreSignalInfo signal{};
  signal.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
  signal.semaphore = semaphore;
  signal.value = value;
  return api.SignalSemaphore(device, &signal);
}

}  // namespace

void Semaphores::End() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    if (thread_.joinable()) {
      static_cast<void>(Signal(api_, runtime_.device(), wake_.get(), ++wakes_));
    }
  }
  if (thread_.joinable()) thread_.join();
  TellReached(Status(Code::kBackendUnavailable,
                     "The backend is released before the semaphore reached its value."));
}

Status Semaphores::LoadFunctions() {
  if (api_.SignalSemaphore != nullptr) return base::Ok();
  const auto look_up = [&](const char* name) {
    return runtime_.instance_api().GetDeviceProcAddr(runtime_.device(), name);
  };
  api_.GetSemaphoreCounterValue =
      reinterpret_cast<PFN_vkGetSemaphoreCounterValue>(look_up("vkGetSemaphoreCounterValue"));
  api_.SignalSemaphore = reinterpret_cast<PFN_vkSignalSemaphore>(look_up("vkSignalSemaphore"));
  if (api_.GetSemaphoreCounterValue != nullptr && api_.SignalSemaphore != nullptr) {
    return base::Ok();
  }
  api_ = {};
  return Status(Code::kBackendUnavailable,
                runtime_.info().name + " has no function that signals a semaphore.");
}

Result<Semaphores::Made> Semaphores::Make() {
  SemaphoreApi api;
  {
    const std::lock_guard lock(mutex_);
    ONNXIFI_RETURN_IF_ERROR(LoadFunctions());
    api = api_;
  }
  ONNXIFI_ASSIGN_OR_RETURN(VkSemaphore semaphore, runtime_.NewSemaphore());
  return Made{semaphore, [api, device = runtime_.device(), semaphore](const Status& status) {
                static_cast<void>(Signal(api, device, semaphore, status.ok() ? kReached : kFailed));
              }};
}

Status Semaphores::Start() {
  if (thread_.joinable()) return base::Ok();
  ONNXIFI_RETURN_IF_ERROR(LoadFunctions());
  ONNXIFI_ASSIGN_OR_RETURN(VkSemaphore wake, runtime_.NewSemaphore());
  wake_ = {runtime_.device(), wake, runtime_.api().DestroySemaphore};
  ONNXIFI_ASSIGN_OR_RETURN(thread_, base::StartThread("waits for semaphores", [this] { Loop(); }));
  return base::Ok();
}

Status Semaphores::WhenReached(VkSemaphore semaphore, uint64_t value, OnDone done) {
  const std::lock_guard lock(mutex_);
  if (is_ending_) {
    return Status(Code::kBackendUnavailable,
                  "The device is lost, or the backend released; it waits for no semaphore.");
  }
  ONNXIFI_RETURN_IF_ERROR(Start());
  ONNXIFI_RETURN_IF_ERROR(runtime_.Check(Signal(api_, runtime_.device(), wake_.get(), ++wakes_),
                                         "wait for a semaphore"));
  awaited_.push_back({semaphore, value, std::move(done)});
  return base::Ok();
}

void Semaphores::Loop() {
  constexpr std::string_view kDoing = "wait for a semaphore";
  std::vector<VkSemaphore> semaphores;
  std::vector<uint64_t> values;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
      semaphores = {wake_.get()};
      values = {wakes_ + 1};
      for (const Awaited& awaited : awaited_) {
        semaphores.push_back(awaited.semaphore);
        values.push_back(awaited.value);
      }
    }
    VkSemaphoreWaitInfo wait{};
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.flags = VK_SEMAPHORE_WAIT_ANY_BIT;
    wait.semaphoreCount = static_cast<uint32_t>(semaphores.size());
    wait.pSemaphores = semaphores.data();
    wait.pValues = values.data();
    const Status waited =
        runtime_.Check(runtime_.api().WaitSemaphores(runtime_.device(), &wait, UINT64_MAX), kDoing);
    if (!waited.ok()) {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    TellReached(waited);
  }
}

void Semaphores::TellReached(const Status& fault) {
  std::vector<std::pair<OnDone, Status>> told;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Awaited> left;
    for (Awaited& awaited : awaited_) {
      uint64_t value = 0;
      Status status = fault;
      if (status.ok()) {
        status = runtime_.Check(
            api_.GetSemaphoreCounterValue(runtime_.device(), awaited.semaphore, &value),
            "look at a semaphore");
      }
      if (status.ok() && value < awaited.value) {
        left.push_back(std::move(awaited));
        continue;
      }
      if (!status.ok()) {
        status = Status(Code::kBackendUnavailable, std::string(status.sentence()));
      }
      told.emplace_back(std::move(awaited.done), std::move(status));
    }
    awaited_ = std::move(left);
  }
  for (const auto& [done, status] : told) done(status);
}

}  // namespace onnxifi::vulkan

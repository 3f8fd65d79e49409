// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver: for tests: Vulkan's functions over the host's memory, with devices of any kind and
// every fault that a driver may have. It carries out what is submitted as late as it may, when
// somebody waits for it; a kernel does nothing. It keeps account of objects, and notes every use of
// the functions that Vulkan forbids: real drivers may not survive it.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_DRIVER_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_DRIVER_H_

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/testing/fake_device.h"

namespace onnxifi::vulkan {

// One per process. Any thread.
class FakeDriver {
 public:
  // The loader's functions; the others are found through them.
  static Api GetApi();
  // The names of the functions that can fail, without "vk".
  static std::vector<std::string> Functions();

  // One device as FakeDevice has it, no faults, nothing counted.
  static void Reset();
  // For instances that are made from now on. Objects of others are gone.
  static void SetDevices(std::vector<FakeDevice> devices);
  static void SetLoaderVersion(uint32_t version);
  // What the device tells of its heap's budget from now on.
  static void SetBudget(size_t device, size_t heap, uint64_t budget_bytes, uint64_t others_bytes);

  // The function's call number `call` from now on (0: the next) and `count` calls in all answer
  // `result`. After VK_ERROR_DEVICE_LOST the device that was called is lost for good.
  static void Fail(const std::string& function, VkResult result, int call = 0, int count = INT_MAX);
  // The function is not found.
  static void Hide(const std::string& function);
  // All that are open; those that are opened later work.
  static void LoseOpenDevices(size_t device = 0);
  // Nothing that is submitted is carried out while queues are held.
  static void HoldQueues(bool holds);
  // Ends faults; forgets calls and all that the functions below tell, but for misuses.
  static void Recover();

  // Of the function since the last Recover.
  static int CallCount(const std::string& function);
  // That were made and not destroyed, and allocations of memory among them.
  static int64_t LiveObjects();
  static int64_t LiveAllocations();
  // The most allocations that there were at a time, since the last Recover.
  static int64_t MostAllocations();
  // What was done against the rules since the last Reset, a sentence each.
  static std::vector<std::string> Misuses();

  // Of kernels that were carried out, and the barriers and copies between them.
  static std::vector<FakeStart> Starts();
  static int BarrierCount();
  static int CopyCount();
  // The SPIR-V of every kernel that was made.
  static std::vector<std::vector<uint32_t>> Modules();
  // Pipelines that were made with what the driver told of them before.
  static int PipelinesFromCache();
  // When vkQueueSubmit was called last.
  static std::chrono::steady_clock::time_point LastSubmission();
  // The index of the memory type of every allocation.
  static std::vector<uint32_t> AllocatedTypes();
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_FAKE_DRIVER_H_

// SPDX-License-Identifier: Apache-2.0
//
// The fake driver as a loader: a library of the loader's name, for tests of the whole plugin.

#include "backends/vulkan/testing/fake_driver.h"

// NOLINTNEXTLINE(readability-identifier-naming): the loader's one exported function.
extern "C" VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                                          const char* name) {
  static const auto look_up = onnxifi::vulkan::FakeDriver::GetApi().GetInstanceProcAddr;
  return look_up(instance, name);
}

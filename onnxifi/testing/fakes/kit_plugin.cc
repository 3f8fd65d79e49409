// SPDX-License-Identifier: Apache-2.0
//
// A plugin for tests made from the kit's exported functions over the fake provider. FAKE_NAME is
// its name, FAKE_DEVICE_TYPE the type of its device, FAKE_DEVICE_COUNT how many it lists.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/abi/fake_provider.h"
#include "backends/core/abi/provider.h"

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  std::vector<FakeDevice> devices;
  for (int index = 0; index < FAKE_DEVICE_COUNT; ++index) {
    devices.push_back({FAKE_NAME ":" + std::to_string(index), FAKE_DEVICE_TYPE});
  }
  return MakeFakeProvider(std::move(devices));
}

}  // namespace onnxifi::abi

// SPDX-License-Identifier: Apache-2.0
//
// State: what all backends and graphs of one mock device have in common.

#ifndef ONNXIFI_BACKENDS_MOCK_STATE_H_
#define ONNXIFI_BACKENDS_MOCK_STATE_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "backends/core/base/status.h"

namespace onnxifi::mock {

struct State {
  // Held by the run under way: the device does one thing at a time.
  std::mutex device_mutex;
  std::atomic<int64_t> runs = 0;
  std::atomic<bool> is_gone = false;
  // Bytes allocated on the device.
  std::atomic<int64_t> used_bytes = 0;

  base::Status CheckPresent() const {
    if (!is_gone) return base::Ok();
    return {base::Code::kBackendUnavailable, "The mock device has vanished."};
  }
};

}  // namespace onnxifi::mock

#endif  // ONNXIFI_BACKENDS_MOCK_STATE_H_

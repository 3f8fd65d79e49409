// SPDX-License-Identifier: Apache-2.0
//
// StartThread: a thread, or the status of a system that has no more.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_START_THREAD_H_
#define ONNXIFI_BACKENDS_CORE_BASE_START_THREAD_H_

#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "backends/core/base/result.h"
#include "backends/core/base/status.h"

namespace onnxifi::base {

// NO_SYSTEM_RESOURCES. `task` says what it does, as in "runs graphs".
template <typename Body>
Result<std::thread> StartThread(std::string_view task, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    return Status(Code::kNoSystemResources, "The thread that " + std::string(task) +
                                                " cannot be started: " + error.what() + ".");
  }
}

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_START_THREAD_H_

// SPDX-License-Identifier: Apache-2.0
//
// ToStatus: what a library answers, as onnxifi_run passes it on.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_LIBRARY_ERROR_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_LIBRARY_ERROR_H_

#include <fmt/format.h>

#include <onnxifi/onnxifi.hpp>
#include <string_view>
#include <utility>

#include "backends/core/base/status.h"

namespace onnxifi::run {

// The library's status and sentence; `doing` what, with an -ing.
inline base::Status ToStatus(const Error& error, std::string_view doing) {
  // The SDK numbers its codes as the interface does.
  base::Status status(static_cast<base::Code>(error.status),
                      error.sentence.empty() ? "The library gives no reason." : error.sentence);
  return std::move(status.Context(fmt::format("while {} ({})", doing, StatusName(error.status))));
}

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_LIBRARY_ERROR_H_

// SPDX-License-Identifier: Apache-2.0
//
// What a program tells goes to standard output as a whole, or the program says that it did not.

#ifndef ONNXIFI_CLIENT_STANDARD_OUTPUT_H_
#define ONNXIFI_CLIENT_STANDARD_OUTPUT_H_

#include <string_view>

#include "backends/core/base/status.h"

namespace onnxifi::client {

// Writes the text and flushes it. INVALID_NAME with the system's reason if standard output does not
// take all of it: the disk is full, or the caller closed it.
base::Status WriteOutput(std::string_view text);

}  // namespace onnxifi::client

#endif  // ONNXIFI_CLIENT_STANDARD_OUTPUT_H_

// SPDX-License-Identifier: Apache-2.0
//
// fmt::print throws where a write fails, and what the buffer of stdio holds at the end of a program
// is lost without a word.

#include "client/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace onnxifi::client {

base::Status WriteOutput(std::string_view text) {
  errno = 0;
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (is_written && std::fflush(stdout) == 0) return base::Ok();
  return base::Status(base::Code::kInvalidName,
                      "Standard output cannot be written: " +
                          std::generic_category().message(errno != 0 ? errno : EIO) + ".");
}

}  // namespace onnxifi::client

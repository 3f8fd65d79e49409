// SPDX-License-Identifier: Apache-2.0
//
// Recording of what did not hold.

#include "conformance/suites/interface/check.h"

#include <fmt/format.h>

#include <algorithm>

namespace onnxifi::suites {

bool Check::Expect(bool holds, std::string_view sentence) {
  if (holds) return true;
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_.emplace_back(sentence);
  return false;
}

bool Check::ExpectStatus(onnxStatus expected, onnxStatus actual, std::string_view what) {
  return ExpectOneOf({expected}, actual, what);
}

bool Check::ExpectOneOf(std::initializer_list<onnxStatus> expected, onnxStatus actual,
                        std::string_view what) {
  if (std::ranges::find(expected, actual) == expected.end()) {
    std::string names;
    for (const onnxStatus status : expected) {
      names += (names.empty() ? "" : " or ") + client::StatusName(status);
    }
    const std::string reason = client::IsAcceptance(actual) ? "" : library_.LastError();
    return Expect(false,
                  fmt::format("{} answers {} instead of {}.{}", what, client::StatusName(actual),
                              names, reason.empty() ? "" : " (" + reason + ")"));
  }
  if (!client::IsAcceptance(actual) && extensions_.get_last_error_message != nullptr) {
    return Expect(!library_.LastError().empty(), fmt::format("{} answers {} without a sentence.",
                                                             what, client::StatusName(actual)));
  }
  return true;
}

void Check::SetNotSupported(onnxStatus status, std::string reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  unsupported_status_ = status;
  unsupported_reason_ = reason.empty() ? "no reason given" : std::move(reason);
}

}  // namespace onnxifi::suites

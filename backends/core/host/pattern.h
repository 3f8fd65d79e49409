// SPDX-License-Identifier: Apache-2.0
//
// Pattern: a regular expression in the syntax that RegexFullMatch names (RE2's), matched in time
// that grows with pattern and text and never beyond: by a walk over all states at once.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_PATTERN_H_
#define ONNXIFI_BACKENDS_CORE_HOST_PATTERN_H_

#include <memory>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::host {

// Threads: const functions any number.
class Pattern {
 public:
  // INVALID_MODEL with the place and reason of the fault; so for what RE2 has not: back references
  // and conditions on what lies around.
  static base::Result<Pattern> Compile(const std::string& text);

  // Whether the whole of `text` matches; one that is no UTF-8 never does. NO_SYSTEM_RESOURCES where
  // more states are alive at once than are kept.
  base::Result<bool> MatchesWhole(std::string_view text) const;

 private:
  struct Release {
    void operator()(void* code) const;
  };
  explicit Pattern(void* code) : code_(code) {}

  std::unique_ptr<void, Release> code_;
};

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_PATTERN_H_

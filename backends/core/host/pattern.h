// SPDX-License-Identifier: Apache-2.0
//
// Pattern: a regular expression in the syntax that RegexFullMatch and Tokenizer name (RE2's),
// matched in time that grows with pattern and text and never beyond: by a walk over all states at
// once.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_PATTERN_H_
#define ONNXIFI_BACKENDS_CORE_HOST_PATTERN_H_

#include <memory>
#include <optional>
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

  // Bytes begin to end of a text.
  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };
  // The leftmost match at `start` or behind, the longest of those that begin there; nothing if
  // there is none. What lies in front of `start` counts for word boundaries and line starts. `text`
  // is UTF-8, and `start` the first byte of a character of it or its end. NO_SYSTEM_RESOURCES as
  // above.
  base::Result<std::optional<Match>> Find(std::string_view text, size_t start) const;

 private:
  struct Release {
    void operator()(void* code) const;
  };
  explicit Pattern(void* code) : code_(code) {}

  base::Result<std::optional<Match>> Run(std::string_view text, size_t start,
                                         unsigned options) const;

  std::unique_ptr<void, Release> code_;
};

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_PATTERN_H_

// SPDX-License-Identifier: Apache-2.0
//
// LastError: one string per thread. It is state of the interface, not of an object: a caller whose
// call fails may hold no object to ask.

#include "backends/core/abi/last_error.h"

#include <utility>

namespace onnxifi::abi {

namespace {

struct Text {
  std::string owned;
  // Replaces `owned` where there was no memory to copy it.
  const char* literal = nullptr;
};

Text& ThisThread() {
  static thread_local Text text;
  return text;
}

}  // namespace

void LastError::Set(std::string text) {
  ThisThread().owned = std::move(text);
  ThisThread().literal = nullptr;
}

void LastError::SetLiteral(const char* text) noexcept { ThisThread().literal = text; }

std::string_view LastError::Get() {
  const Text& text = ThisThread();
  return text.literal != nullptr ? std::string_view(text.literal) : std::string_view(text.owned);
}

}  // namespace onnxifi::abi

// SPDX-License-Identifier: Apache-2.0
//
// Printable: ASCII's control characters are one byte; Unicode's others, 80 to 9f, are two of UTF-8,
// the first of which is c2.

#include "client/printable.h"

#include <fmt/format.h>

#include <iterator>

namespace onnxifi::client {

std::string Printable(std::string_view text) {
  constexpr unsigned char kDelete = 0x7f;
  constexpr unsigned char kLeadOfTwo = 0xc2;
  std::string printable;
  printable.reserve(text.size());
  for (size_t k = 0; k < text.size(); ++k) {
    const auto byte = static_cast<unsigned char>(text[k]);
    if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == kDelete) {
      fmt::format_to(std::back_inserter(printable), "\\x{:02x}", byte);
      continue;
    }
    const auto next = static_cast<unsigned char>(k + 1 < text.size() ? text[k + 1] : 0);
    if (byte == kLeadOfTwo && next >= 0x80 && next < 0xa0) {
      fmt::format_to(std::back_inserter(printable), "\\x{:02x}", next);
      ++k;
      continue;
    }
    printable.push_back(text[k]);
  }
  return printable;
}

}  // namespace onnxifi::client

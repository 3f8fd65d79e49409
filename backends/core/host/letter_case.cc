// SPDX-License-Identifier: Apache-2.0
//
// LetterCase: decodes, maps and encodes one character at a time.

#include "backends/core/host/letter_case.h"

#include <wctype.h>

#include <cstdint>
#include <utility>

namespace onnxifi::host {
namespace {

// The character at `position` and how many bytes it has; 0 bytes where there is no valid one.
struct Decoded {
  uint32_t character = 0;
  size_t size_bytes = 0;
};

Decoded Decode(std::string_view text, size_t position) {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[position + k]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  size_t count = 0;
  uint32_t character = 0;
  uint32_t smallest = 0;
  if ((first & 0xE0) == 0xC0) {
    count = 2, character = first & 0x1FU, smallest = 0x80;
  } else if ((first & 0xF0) == 0xE0) {
    count = 3, character = first & 0x0FU, smallest = 0x800;
  } else if ((first & 0xF8) == 0xF0) {
    count = 4, character = first & 0x07U, smallest = 0x10000;
  }
  if (count == 0 || text.size() - position < count) return {};
  for (size_t k = 1; k < count; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return {};
    character = character << 6 | (byte(k) & 0x3FU);
  }
  const bool is_surrogate = character >= 0xD800 && character < 0xE000;
  if (character < smallest || character > 0x10FFFF || is_surrogate) return {};
  return {character, count};
}

void Encode(uint32_t character, std::string& text) {
  const auto append = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (character < 0x80) {
    append(character);
    return;
  }
  if (character < 0x800) {
    append(0xC0 | character >> 6);
  } else {
    if (character < 0x10000) {
      append(0xE0 | character >> 12);
    } else {
      append(0xF0 | character >> 18);
      append(0x80 | (character >> 12 & 0x3F));
    }
    append(0x80 | (character >> 6 & 0x3F));
  }
  append(0x80 | (character & 0x3F));
}

}  // namespace

base::Result<LetterCase> LetterCase::Open(const std::string& name) {
  // What Unicode says, which no dialect of English changes, is in the C library's own locale.
  const bool is_plain = name.empty() || name == "C" || name == "POSIX" || name.starts_with("en_");
  const std::string full =
      is_plain ? "C.UTF-8" : name + (name.find('.') == std::string::npos ? ".UTF-8" : "");
  const locale_t locale = newlocale(LC_CTYPE_MASK, full.c_str(), locale_t{});
  if (locale == locale_t{}) {
    return base::Status(base::Code::kUnsupportedAttribute,
                        "Locale '" + full + "' is not installed on this system.");
  }
  return LetterCase(locale);
}

LetterCase::~LetterCase() {
  if (locale_ != locale_t{}) freelocale(locale_);
}

LetterCase::LetterCase(LetterCase&& other) noexcept
    : locale_(std::exchange(other.locale_, locale_t{})) {}

std::string LetterCase::Map(std::string_view text, bool to_upper) const {
  std::string mapped;
  mapped.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const Decoded decoded = Decode(text, position);
    if (decoded.size_bytes == 0) {
      mapped += text[position++];
      continue;
    }
    const auto character = static_cast<wint_t>(decoded.character);
    Encode(static_cast<uint32_t>(to_upper ? towupper_l(character, locale_)
                                          : towlower_l(character, locale_)),
           mapped);
    position += decoded.size_bytes;
  }
  return mapped;
}

}  // namespace onnxifi::host

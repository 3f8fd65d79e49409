// SPDX-License-Identifier: Apache-2.0
//
// LetterCase: upper and lower case of UTF-8 text, letter by letter as a locale of the system has
// it. No locale of the process is read or changed.

#ifndef ONNXIFI_BACKENDS_CORE_HOST_LETTER_CASE_H_
#define ONNXIFI_BACKENDS_CORE_HOST_LETTER_CASE_H_

#include <locale.h>

#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::host {

// Threads: const functions any number.
class LetterCase {
 public:
  // `name` as ONNX has it: "en_US", "de_DE". The locales of English, and "C", need none installed.
  // UNSUPPORTED_ATTRIBUTE where the system has none of that name.
  static base::Result<LetterCase> Open(const std::string& name);
  ~LetterCase();
  LetterCase(LetterCase&& other) noexcept;
  LetterCase& operator=(LetterCase&&) = delete;
  LetterCase(const LetterCase&) = delete;
  LetterCase& operator=(const LetterCase&) = delete;

  // Bytes that are no UTF-8 stay as they are.
  std::string Lower(std::string_view text) const { return Map(text, /*to_upper=*/false); }
  std::string Upper(std::string_view text) const { return Map(text, /*to_upper=*/true); }

 private:
  explicit LetterCase(locale_t locale) : locale_(locale) {}
  std::string Map(std::string_view text, bool to_upper) const;

  locale_t locale_;
};

}  // namespace onnxifi::host

#endif  // ONNXIFI_BACKENDS_CORE_HOST_LETTER_CASE_H_

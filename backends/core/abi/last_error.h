// SPDX-License-Identifier: Apache-2.0
//
// LastError: the sentence of the last call that failed on this thread, read back through
// onnxGetLastErrorMessage.

#ifndef ONNXIFI_BACKENDS_CORE_ABI_LAST_ERROR_H_
#define ONNXIFI_BACKENDS_CORE_ABI_LAST_ERROR_H_

#include <string>
#include <string_view>

namespace onnxifi::abi {

class LastError {
 public:
  static void Set(std::string text);
  // For a text that lives forever; needs no memory.
  static void SetLiteral(const char* text) noexcept;
  // Valid until the next Set on this thread.
  static std::string_view Get();
};

}  // namespace onnxifi::abi

#endif  // ONNXIFI_BACKENDS_CORE_ABI_LAST_ERROR_H_

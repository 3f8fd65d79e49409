// SPDX-License-Identifier: Apache-2.0
//
// InfoValue: the bytes of a number, a pointer or a NUL-terminated string.

#include "backends/core/abi/info_value.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <variant>

namespace onnxifi::abi {

using base::Code;
using base::Status;

Status StoreInfoValue(const InfoValue& value, void* buffer, size_t* size_bytes) {
  const void* bytes = nullptr;
  size_t size = 0;
  if (const auto* text = std::get_if<std::string>(&value)) {
    bytes = text->c_str();
    size = text->size() + 1;
  } else if (const auto* number = std::get_if<uint64_t>(&value)) {
    bytes = number;
    size = sizeof(*number);
  } else {
    bytes = &std::get<void*>(value);
    size = sizeof(void*);
  }
  const bool fits = buffer != nullptr && *size_bytes >= size;
  *size_bytes = size;
  if (!fits) {
    return Status(Code::kFallback, "The value takes " + std::to_string(size) + " bytes.");
  }
  std::memcpy(buffer, bytes, size);
  return base::Ok();
}

}  // namespace onnxifi::abi

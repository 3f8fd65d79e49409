// SPDX-License-Identifier: Apache-2.0
//
// Appends fields of protobuf's wire format to a message: what the suite builds its own small models
// and tensors with.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_WIRE_WRITER_H_
#define ONNXIFI_CLIENT_ONNX_FILE_WIRE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "client/onnx_file/wire_reader.h"

namespace onnxifi::onnx_file {

inline void AppendVarint(std::string& message, uint64_t value) {
  while (value >= 0x80) {
    message.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  message.push_back(static_cast<char>(value));
}

inline void AppendIntegerField(std::string& message, uint32_t number, int64_t value) {
  AppendVarint(message, uint64_t{number} << 3);
  AppendVarint(message, static_cast<uint64_t>(value));
}

inline void AppendBytesField(std::string& message, uint32_t number, std::string_view content) {
  AppendVarint(message, uint64_t{number} << 3 | 2);
  AppendVarint(message, content.size());
  message.append(content);
}

// Appends a field as it was read.
inline void AppendField(std::string& message, const WireField& field) {
  if (field.type == WireType::kBytes) return AppendBytesField(message, field.number, field.text());
  AppendVarint(message, uint64_t{field.number} << 3 | static_cast<uint64_t>(field.type));
  if (field.type == WireType::kVarint) return AppendVarint(message, field.value);
  const int size_bytes = field.type == WireType::kFixed64 ? 8 : 4;
  for (int k = 0; k < size_bytes; ++k) {
    message.push_back(static_cast<char>(field.value >> (8 * k) & 0xFF));
  }
}

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_WIRE_WRITER_H_

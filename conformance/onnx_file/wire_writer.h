// SPDX-License-Identifier: Apache-2.0
//
// Appends fields of protobuf's wire format to a message: what the suite builds its own small models
// and tensors with.

#ifndef ONNXIFI_CONFORMANCE_ONNX_FILE_WIRE_WRITER_H_
#define ONNXIFI_CONFORMANCE_ONNX_FILE_WIRE_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CONFORMANCE_ONNX_FILE_WIRE_WRITER_H_

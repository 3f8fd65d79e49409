// SPDX-License-Identifier: Apache-2.0
//
// WireReader: walks the fields of one protobuf message. The suite reads test data and model
// outlines with it, so that it shares no parser with the libraries it checks.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_WIRE_READER_H_
#define ONNXIFI_CLIENT_ONNX_FILE_WIRE_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::onnx_file {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  // The value of a varint or fixed field; of a bytes field its length.
  uint64_t value = 0;
  // The content of a bytes field, inside the message that is read.
  std::span<const std::byte> bytes;

  int64_t signed_value() const { return static_cast<int64_t>(value); }
  std::string_view text() const;
};

// Lifetime: borrows the bytes of the message.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) : message_(message) {}

  // Reads the next field. False at the end of the message; INVALID_PROTOBUF when the bytes are no
  // such message.
  base::Result<bool> Next(WireField& field);

 private:
  base::Result<uint64_t> ReadVarint();
  base::Result<std::span<const std::byte>> Take(uint64_t size_bytes);

  std::span<const std::byte> message_;
  size_t position_ = 0;
};

// Appends the integers of a repeated varint field, which is packed or not, to `values`.
base::Status AppendIntegers(const WireField& field, std::vector<int64_t>& values);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_WIRE_READER_H_

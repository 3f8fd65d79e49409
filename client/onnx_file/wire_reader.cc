// SPDX-License-Identifier: Apache-2.0
//
// The bounded walk over protobuf's wire format: every length is checked against what is left before
// it is used.

#include "client/onnx_file/wire_reader.h"

#include <fmt/format.h>

namespace onnxifi::onnx_file {
namespace {

base::Status Malformed(std::string sentence) {
  return base::Status(base::Code::kInvalidProtobuf, std::move(sentence));
}

uint64_t LittleEndian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t index = 0; index < bytes.size(); ++index) {
    value |= std::to_integer<uint64_t>(bytes[index]) << (8 * index);
  }
  return value;
}

}  // namespace

std::string_view WireField::text() const {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

base::Result<uint64_t> WireReader::ReadVarint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (position_ == message_.size()) {
      return Malformed(fmt::format("The message ends inside a number, at byte {}.", position_));
    }
    const auto byte = std::to_integer<uint64_t>(message_[position_++]);
    value |= (byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return Malformed(
      fmt::format("The number that ends at byte {} has more than 64 bits.", position_));
}

base::Result<std::span<const std::byte>> WireReader::Take(uint64_t size_bytes) {
  const size_t left = message_.size() - position_;
  if (size_bytes > left) {
    return Malformed(fmt::format("A field at byte {} has {} bytes, the message only {} more.",
                                 position_, size_bytes, left));
  }
  const auto bytes = message_.subspan(position_, static_cast<size_t>(size_bytes));
  position_ += bytes.size();
  return bytes;
}

base::Result<bool> WireReader::Next(WireField& field) {
  if (position_ == message_.size()) return false;
  ONNXIFI_ASSIGN_OR_RETURN(const uint64_t key, ReadVarint());
  if (key >> 3 == 0 || key >> 3 >= (uint64_t{1} << 29)) {
    return Malformed(fmt::format(
        "The field number {} before byte {} is not between 1 and 2^29 - 1.", key >> 3, position_));
  }
  field.number = static_cast<uint32_t>(key >> 3);
  field.bytes = {};
  switch (key & 7) {
    case 0: {
      field.type = WireType::kVarint;
      ONNXIFI_ASSIGN_OR_RETURN(field.value, ReadVarint());
      return true;
    }
    case 1:
    case 5: {
      field.type = (key & 7) == 1 ? WireType::kFixed64 : WireType::kFixed32;
      ONNXIFI_ASSIGN_OR_RETURN(const auto bytes, Take((key & 7) == 1 ? 8 : 4));
      field.value = LittleEndian(bytes);
      return true;
    }
    case 2: {
      field.type = WireType::kBytes;
      ONNXIFI_ASSIGN_OR_RETURN(field.value, ReadVarint());
      ONNXIFI_ASSIGN_OR_RETURN(field.bytes, Take(field.value));
      return true;
    }
    default:
      return Malformed(
          fmt::format("Wire type {} before byte {} is none of 0, 1, 2, 5.", key & 7, position_));
  }
}

base::Status AppendIntegers(const WireField& field, std::vector<int64_t>& values) {
  if (field.type == WireType::kVarint) {
    values.push_back(field.signed_value());
    return base::Ok();
  }
  if (field.type != WireType::kBytes) {
    return Malformed(fmt::format("Field {} holds no integers.", field.number));
  }
  // A packed list is a run of varints without keys; lend each one to the reader as a field of its
  // own.
  size_t position = 0;
  while (position < field.bytes.size()) {
    uint64_t value = 0;
    int shift = 0;
    bool ended = false;
    while (!ended) {
      if (position == field.bytes.size() || shift >= 64) {
        return Malformed(
            fmt::format("The packed integers of field {} end inside a number.", field.number));
      }
      const auto byte = std::to_integer<uint64_t>(field.bytes[position++]);
      value |= (byte & 0x7F) << shift;
      shift += 7;
      ended = (byte & 0x80) == 0;
    }
    values.push_back(static_cast<int64_t>(value));
  }
  return base::Ok();
}

}  // namespace onnxifi::onnx_file

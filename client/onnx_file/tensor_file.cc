// SPDX-License-Identifier: Apache-2.0
//
// TensorProto in and out. The field numbers are those of onnx.proto: dims 1, data_type 2,
// float_data 4, int32_data 5, string_data 6, int64_data 7, name 8, raw_data 9, double_data 10,
// uint64_data 11, data_location 14.

#include "client/onnx_file/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <fstream>
#include <optional>

#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

base::Status BadTensor(std::string sentence) {
  return base::Status(base::Code::kInvalidModel, std::move(sentence));
}

// What the fields hold, before type and extents are known to agree with it.
struct RawFields {
  std::optional<std::span<const std::byte>> raw_data;
  std::vector<std::byte> fixed_data;  // float_data and double_data
  std::vector<int64_t> integer_data;  // int32_data, int64_data and uint64_data
  bool is_external = false;
};

void AppendFixed(const WireField& field, std::vector<std::byte>& bytes) {
  if (field.type == WireType::kBytes) {
    bytes.insert(bytes.end(), field.bytes.begin(), field.bytes.end());
    return;
  }
  const int width_bytes = field.type == WireType::kFixed64 ? 8 : 4;
  for (int index = 0; index < width_bytes; ++index) {
    bytes.push_back(static_cast<std::byte>(field.value >> (8 * index)));
  }
}

base::Status ReadField(const WireField& field, DenseTensor& tensor, RawFields& raw) {
  switch (field.number) {
    case 1:
      return AppendIntegers(field, tensor.extents);
    case 2:
      tensor.type = static_cast<ElementType>(static_cast<int32_t>(field.value));
      return base::Ok();
    case 4:
    case 10:
      AppendFixed(field, raw.fixed_data);
      return base::Ok();
    case 5:
    case 7:
    case 11:
      return AppendIntegers(field, raw.integer_data);
    case 6:
      tensor.strings.emplace_back(field.text());
      return base::Ok();
    case 8:
      tensor.name = field.text();
      return base::Ok();
    case 9:
      raw.raw_data = field.bytes;
      return base::Ok();
    case 14:
      raw.is_external = field.value == 1;
      return base::Ok();
    default:
      return base::Ok();
  }
}

// Typed integer fields hold one element each; the types that a byte holds several of, one byte
// each.
void StoreIntegers(const std::vector<int64_t>& values, int bits, std::vector<std::byte>& bytes) {
  if (bits == 6) {
    bytes.resize((values.size() * 6 + 7) / 8);
    for (size_t index = 0; index < values.size(); ++index) {
      const uint64_t placed = (static_cast<uint64_t>(values[index]) & 0x3F) << index * 6 % 8;
      bytes[index * 6 / 8] |= static_cast<std::byte>(placed);
      if (placed >> 8 != 0) bytes[index * 6 / 8 + 1] |= static_cast<std::byte>(placed >> 8);
    }
    return;
  }
  const int width_bytes = bits < 8 ? 1 : bits / 8;
  bytes.reserve(values.size() * static_cast<size_t>(width_bytes));
  for (const int64_t value : values) {
    for (int index = 0; index < width_bytes; ++index) {
      bytes.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * index)));
    }
  }
}

}  // namespace

std::optional<int64_t> ElementCount(std::span<const int64_t> extents) {
  constexpr int64_t kMax = int64_t{1} << 62;
  int64_t count = 1;
  bool is_empty = false;
  for (const int64_t extent : extents) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      is_empty = true;
    } else if (count > kMax / extent) {
      return std::nullopt;
    } else {
      count *= extent;
    }
  }
  return is_empty ? 0 : count;
}

int64_t DenseTensor::element_count() const { return ElementCount(extents).value_or(0); }

std::string ToString(std::span<const int64_t> extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

base::Result<DenseTensor> ParseTensor(std::span<const std::byte> message) {
  DenseTensor tensor;
  RawFields raw;
  WireReader reader(message);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) break;
    ONNXIFI_RETURN_IF_ERROR(ReadField(field, tensor, raw));
  }
  if (raw.is_external) {
    return BadTensor(fmt::format("Tensor '{}' keeps its data in another file.", tensor.name));
  }
  const std::optional<int64_t> count = ElementCount(tensor.extents);
  if (!count) {
    return BadTensor(fmt::format("Tensor '{}' has the impossible shape {}.", tensor.name,
                                 ToString(tensor.extents)));
  }
  if (tensor.type == ElementType::kString) {
    if (static_cast<int64_t>(tensor.strings.size()) != *count) {
      return BadTensor(fmt::format("Tensor '{}' has {} strings for {} elements.", tensor.name,
                                   tensor.strings.size(), *count));
    }
    return tensor;
  }
  const std::optional<int64_t> size_bytes = SizeBytes(tensor.type, *count);
  if (!size_bytes) {
    return BadTensor(fmt::format("Tensor '{}' has {} elements of {}, which have no size in memory.",
                                 tensor.name, *count, NameOf(tensor.type)));
  }
  if (raw.raw_data) {
    tensor.bytes.assign(raw.raw_data->begin(), raw.raw_data->end());
  } else if (!raw.fixed_data.empty()) {
    tensor.bytes = std::move(raw.fixed_data);
  } else {
    StoreIntegers(raw.integer_data, FactsOf(tensor.type).bits, tensor.bytes);
  }
  if (static_cast<int64_t>(tensor.bytes.size()) != *size_bytes) {
    return BadTensor(fmt::format("Tensor '{}' ({} {}) has {} bytes of data instead of {}.",
                                 tensor.name, NameOf(tensor.type), ToString(tensor.extents),
                                 tensor.bytes.size(), *size_bytes));
  }
  return tensor;
}

std::string SerializeTensor(const DenseTensor& tensor) {
  std::string message;
  for (const int64_t extent : tensor.extents) AppendIntegerField(message, 1, extent);
  AppendIntegerField(message, 2, static_cast<int32_t>(tensor.type));
  for (const std::string& text : tensor.strings) AppendBytesField(message, 6, text);
  if (!tensor.name.empty()) AppendBytesField(message, 8, tensor.name);
  if (tensor.type != ElementType::kString) {
    AppendBytesField(message, 9,
                     {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  }
  return message;
}

base::Result<std::vector<std::byte>> ReadFile(const std::filesystem::path& path) {
  std::error_code error;
  const auto size_bytes = std::filesystem::file_size(path, error);
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("File '{}' cannot be read{}.", path.string(),
                                    error ? ": " + error.message() : std::string()));
  }
  std::vector<std::byte> content(size_bytes);
  stream.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(size_bytes));
  if (static_cast<uintmax_t>(stream.gcount()) != size_bytes) {
    return base::Status(base::Code::kInvalidName,
                        fmt::format("File '{}' ends after {} of its {} bytes.", path.string(),
                                    stream.gcount(), size_bytes));
  }
  return content;
}

base::Status WriteFile(const std::filesystem::path& path, std::string_view content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
  stream.close();
  if (!stream) {
    return base::Status(base::Code::kNoSystemResources,
                        fmt::format("File '{}' cannot be written.", path.string()));
  }
  return base::Ok();
}

base::Result<DenseTensor> ReadTensorFile(const std::filesystem::path& path) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content, ReadFile(path));
  base::Result<DenseTensor> tensor = ParseTensor(content);
  if (!tensor.ok()) {
    return std::move(tensor).status().Context(
        fmt::format("while reading '{}' as a TensorProto of ONNX", path.string()));
  }
  return tensor;
}

base::Status WriteTensorFile(const std::filesystem::path& path, const DenseTensor& tensor) {
  return WriteFile(path, SerializeTensor(tensor));
}

}  // namespace onnxifi::onnx_file

// SPDX-License-Identifier: Apache-2.0
//
// Tensors as ONNX's test data store them: a TensorProto per file. Read into the dense form that a
// descriptor's buffer has, written back as raw data.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_TENSOR_FILE_H_
#define ONNXIFI_CLIENT_ONNX_FILE_TENSOR_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/element_type.h"

namespace onnxifi::onnx_file {

struct DenseTensor {
  std::string name;
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> extents;
  // Row-major, little-endian; packed types as in raw_data, first element in the low bits. Empty for
  // strings.
  std::vector<std::byte> bytes;
  std::vector<std::string> strings;

  int64_t element_count() const;
};

// Product of the extents; nothing when one is negative or the product exceeds 2^62.
std::optional<int64_t> ElementCount(std::span<const int64_t> extents);

// "[2, 3]" for messages.
std::string ToString(std::span<const int64_t> extents);

// Reads the bytes of a TensorProto, whichever of its fields holds the values. INVALID_PROTOBUF when
// they are none; INVALID_MODEL when type, extents and data disagree or the data are in another
// file.
base::Result<DenseTensor> ParseTensor(std::span<const std::byte> message);

// The bytes of a TensorProto with the values as raw data (strings: as string data).
std::string SerializeTensor(const DenseTensor& tensor);

// A whole file. INVALID_NAME when it cannot be read.
base::Result<std::vector<std::byte>> ReadFile(const std::filesystem::path& path);
base::Status WriteFile(const std::filesystem::path& path, std::string_view content);

base::Result<DenseTensor> ReadTensorFile(const std::filesystem::path& path);
base::Status WriteTensorFile(const std::filesystem::path& path, const DenseTensor& tensor);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_TENSOR_FILE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Values of any kind as ONNX's test data store them: a TensorProto, SequenceProto, MapProto or
// OptionalProto per file, by what the model declares.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_VALUE_FILE_H_
#define ONNXIFI_CLIENT_ONNX_FILE_VALUE_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/model_outline.h"
#include "client/onnx_file/tensor_file.h"

namespace onnxifi::onnx_file {

// An optional is its element, or nothing.
struct FileValue {
  enum class Kind : uint8_t { kNothing, kTensor, kSequence, kMap };
  std::string name;
  Kind kind = Kind::kNothing;
  DenseTensor tensor;               // kTensor; kMap: the keys, of rank 1
  std::vector<FileValue> elements;  // kSequence; kMap: one per key

  bool is_of_numbers() const {
    return kind == Kind::kTensor && tensor.type != ElementType::kString;
  }
};

// Reads the bytes of the message that a value of this kind has. As ParseTensor.
base::Result<FileValue> ParseValue(std::span<const std::byte> message, ValueKind kind);

// The bytes of the message that a value has which a model declares so: an optional's is an
// OptionalProto, of its element or of nothing.
std::string SerializeValue(const FileValue& value, ValueKind declared);

base::Result<FileValue> ReadValueFile(const std::filesystem::path& path, ValueKind kind);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_VALUE_FILE_H_

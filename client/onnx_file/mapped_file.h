// SPDX-License-Identifier: Apache-2.0
//
// MappedFile: a file's bytes where the system keeps them, for models that would take memory twice
// if they were read.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_MAPPED_FILE_H_
#define ONNXIFI_CLIENT_ONNX_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::onnx_file {

// A private mapping that nobody writes to: what onnxInitGraph takes as a mapped model. The bytes
// live as long as the object.
class MappedFile {
 public:
  // INVALID_NAME when the file cannot be opened or is no plain file; NO_SYSTEM_MEMORY.
  static base::Result<MappedFile> Open(const std::filesystem::path& path);

  std::span<const std::byte> content() const { return {data_.get(), data_.get_deleter().size}; }

 private:
  struct Unmap {
    size_t size = 0;
    void operator()(const std::byte* data) const;
  };
  using Data = std::unique_ptr<const std::byte, Unmap>;

  explicit MappedFile(Data data) : data_(std::move(data)) {}

  Data data_;
};

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_MAPPED_FILE_H_

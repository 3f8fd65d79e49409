// SPDX-License-Identifier: Apache-2.0
//
// OddModel: a copy of a model whose weights lie at odd addresses. Protobuf aligns nothing, so where
// the raw data of an exporter's weights lie is chance; a library that reads them in place has to
// read them at any address.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_ODD_MODEL_H_
#define ONNXIFI_CLIENT_ONNX_FILE_ODD_MODEL_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::onnx_file {

class OddModel {
 public:
  // Copies the model. The raw data of every initializer of the main graph start at an odd address;
  // the space before them is a doc_string in front of the tensor's own fields. INVALID_PROTOBUF.
  static base::Result<OddModel> Make(std::span<const std::byte> model);

  // Lives as long as the object, at the same address also when the object moves.
  std::span<const std::byte> content() const { return std::span(buffer_).subspan(start_); }

 private:
  OddModel(std::vector<std::byte> buffer, size_t start)
      : buffer_(std::move(buffer)), start_(start) {}

  std::vector<std::byte> buffer_;
  size_t start_;
};

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_ODD_MODEL_H_

// SPDX-License-Identifier: Apache-2.0
//
// ModelOutline: what a caller must know of a model to run it: names, types and shapes of the
// graph's inputs and outputs, and which operators it contains.

#ifndef ONNXIFI_CLIENT_ONNX_FILE_MODEL_OUTLINE_H_
#define ONNXIFI_CLIENT_ONNX_FILE_MODEL_OUTLINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "client/onnx_file/element_type.h"

namespace onnxifi::onnx_file {

enum class ValueKind : uint8_t { kUnknown, kTensor, kSparseTensor, kSequence, kMap, kOptional };

// "tensor", "sequence", ... for messages.
std::string_view NameOf(ValueKind kind);

struct DimensionOutline {
  // A number; otherwise a symbol, whose name may be empty.
  std::optional<int64_t> extent;
  std::string symbol;
};

struct ValueOutline {
  std::string name;
  ValueKind kind = ValueKind::kUnknown;
  ElementType type = ElementType::kUndefined;
  // Nothing when the model does not even say the rank.
  std::optional<std::vector<DimensionOutline>> shape;

  // Whether it is a tensor of numbers, as far as the model says.
  bool may_be_of_numbers() const {
    return (kind == ValueKind::kTensor || kind == ValueKind::kUnknown) &&
           type != ElementType::kString;
  }
};

struct ModelOutline {
  int64_t ir_version = 0;
  // The inputs that are not initializers: those a caller provides.
  std::vector<ValueOutline> inputs;
  std::vector<ValueOutline> outputs;  // each name once
  // Of the main graph, each once, in the order of the nodes: "Conv", "ai.onnx.ml.Scaler".
  std::vector<std::string> operators;
  // Whether an initializer of the main graph keeps its data in another file.
  bool has_external_data = false;
};

// INVALID_PROTOBUF when the bytes are no protobuf message, INVALID_MODEL when they hold no graph.
base::Result<ModelOutline> ParseModelOutline(std::span<const std::byte> model);

}  // namespace onnxifi::onnx_file

#endif  // ONNXIFI_CLIENT_ONNX_FILE_MODEL_OUTLINE_H_

// SPDX-License-Identifier: Apache-2.0
//
// SmallTensors: the skeleton tells whether there are any; only then is the model parsed whole.

#include "onnxifi/split/small_tensors.h"

#include <onnx/onnx_pb.h>

#include <charconv>
#include <cstdint>

#include "backends/core/model/external_data.h"
#include "backends/core/model/wire_scanner.h"
#include "backends/core/tensor/element_type.h"
#include "onnxifi/split/node_signer.h"

namespace onnxifi::split {

using base::Code;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kMaxBytes = NodeSigner::kSmallTensorBytes;

// Of an external tensor that is small; nothing of any other.
std::optional<int64_t> SmallSizeOf(const onnx::TensorProto& tensor) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return std::nullopt;
  const auto type = tensor::ElementTypeFromOnnx(tensor.data_type());
  if (!type || *type == tensor::ElementType::kString) return std::nullopt;
  int64_t count = 1;
  for (const int64_t extent : tensor.dims()) {
    if (extent == 0) return 0;
    // Every element takes half a byte at least.
    if (extent < 0 || extent > 2 * kMaxBytes / count) return std::nullopt;
    count *= extent;
  }
  const int64_t size_bytes = tensor::SizeBytes(*type, count);
  return size_bytes <= kMaxBytes ? std::optional(size_bytes) : std::nullopt;
}

// Calls `visit` for each tensor that a graph, a function or a model holds until it answers an
// error.
template <typename Visit>
Status ForEachTensor(onnx::GraphProto& graph, const Visit& visit);

template <typename Nodes, typename Visit>
Status ForEachTensorOfNodes(Nodes& nodes, const Visit& visit) {
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) ONNXIFI_RETURN_IF_ERROR(visit(*attribute.mutable_t()));
      for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) {
        ONNXIFI_RETURN_IF_ERROR(visit(tensor));
      }
      if (attribute.has_g()) {
        ONNXIFI_RETURN_IF_ERROR(ForEachTensor(*attribute.mutable_g(), visit));
      }
      for (onnx::GraphProto& inner : *attribute.mutable_graphs()) {
        ONNXIFI_RETURN_IF_ERROR(ForEachTensor(inner, visit));
      }
    }
  }
  return base::Ok();
}

template <typename Visit>
Status ForEachTensor(onnx::GraphProto& graph, const Visit& visit) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    ONNXIFI_RETURN_IF_ERROR(visit(tensor));
  }
  return ForEachTensorOfNodes(*graph.mutable_node(), visit);
}

template <typename Visit>
Status ForEachTensor(onnx::ModelProto& model, const Visit& visit) {
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    ONNXIFI_RETURN_IF_ERROR(ForEachTensorOfNodes(*function.mutable_node(), visit));
  }
  return ForEachTensor(*model.mutable_graph(), visit);
}

// `what`: "offset" or "length".
Result<int64_t> ParseNumber(const std::string& text, const char* what, const std::string& tensor) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && last == end && number >= 0) return number;
  return Status(Code::kInvalidModel, std::string("The ") + what +
                                         " of the external data of tensor '" + tensor + "' is '" +
                                         text + "', which is no number of bytes.");
}

Status Inline(onnx::TensorProto& tensor, int64_t size_bytes, model::ExternalData& data) {
  std::string location;
  int64_t offset = 0;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      ONNXIFI_ASSIGN_OR_RETURN(offset, ParseNumber(entry.value(), "offset", tensor.name()));
    }
    if (entry.key() != "length") continue;
    ONNXIFI_ASSIGN_OR_RETURN(const int64_t length,
                             ParseNumber(entry.value(), "length", tensor.name()));
    if (length == size_bytes) continue;
    return {Code::kInvalidModel, "Tensor '" + tensor.name() + "' has " + std::to_string(length) +
                                     " bytes of external data, where its type and extents need " +
                                     std::to_string(size_bytes) + "."};
  }
  auto region = data.Map(location, offset, size_bytes);
  if (!region.ok()) {
    return std::move(region).status().Context("while reading tensor '" + tensor.name() + "'");
  }
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(region->bytes.data(), region->bytes.size());
  return base::Ok();
}

}  // namespace

Result<std::optional<std::string>> WithSmallTensors(std::span<const std::byte> model,
                                                    const std::string& base_folder) {
  const Result<model::ScannedModel> scanned = model::ScanModel(model);
  onnx::ModelProto proto;
  // What is wrong with the model, whoever reads it tells.
  if (!scanned.ok() || !proto.ParseFromString(scanned->skeleton)) {
    return std::optional<std::string>();
  }
  bool has_any = false;
  const auto look = [&](const onnx::TensorProto& tensor) {
    has_any = has_any || SmallSizeOf(tensor).has_value();
    return base::Ok();
  };
  ONNXIFI_RETURN_IF_ERROR(ForEachTensor(proto, look));
  if (!has_any || !proto.ParseFromArray(model.data(), static_cast<int>(model.size()))) {
    return std::optional<std::string>();
  }
  model::ExternalData data(base_folder);
  ONNXIFI_RETURN_IF_ERROR(ForEachTensor(proto, [&](onnx::TensorProto& tensor) -> Status {
    const std::optional<int64_t> size_bytes = SmallSizeOf(tensor);
    return size_bytes ? Inline(tensor, *size_bytes, data) : base::Ok();
  }));
  return std::optional(proto.SerializeAsString());
}

}  // namespace onnxifi::split

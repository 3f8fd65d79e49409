// SPDX-License-Identifier: Apache-2.0
//
// OddModel: first every weight gets an odd offset in the graph, then the whole model gets the
// address at which these offsets are odd addresses.

#include "client/onnx_file/odd_model.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "client/onnx_file/wire_reader.h"
#include "client/onnx_file/wire_writer.h"

namespace onnxifi::onnx_file {
namespace {

// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7;
constexpr uint32_t kGraphInitializer = 5;
constexpr uint32_t kTensorRawData = 9;
constexpr uint32_t kTensorDocString = 12;

// Where the raw data start in a TensorProto; nothing if it has none.
base::Result<std::optional<size_t>> FindRawData(std::span<const std::byte> tensor) {
  WireReader reader(tensor);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return std::optional<size_t>();
    if (field.number == kTensorRawData && field.type == WireType::kBytes && !field.bytes.empty()) {
      return std::optional(static_cast<size_t>(field.bytes.data() - tensor.data()));
    }
  }
}

// Appends an initializer to a graph, its raw data at an odd offset.
base::Status AppendInitializer(std::string& graph, const WireField& initializer) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::optional<size_t> raw_data, FindRawData(initializer.bytes));
  const size_t before = graph.size();
  // A second doc_string of one byte moves the data by three bytes, which is enough unless the
  // tensor's length then takes a byte more; one of two bytes is enough in that case. Of two
  // doc_strings the tensor's own, the later one, counts.
  for (const std::string_view filler : {"", "x", "xx"}) {
    std::string tensor;
    if (!filler.empty()) AppendBytesField(tensor, kTensorDocString, filler);
    const size_t moved_bytes = tensor.size();
    tensor += initializer.text();
    AppendBytesField(graph, kGraphInitializer, tensor);
    if (!raw_data) break;
    const size_t offset = graph.size() - tensor.size() + moved_bytes + *raw_data;
    if (offset % 2 == 1 || filler == "xx") break;
    graph.resize(before);
  }
  return base::Ok();
}

base::Result<std::string> CopyGraph(std::span<const std::byte> graph) {
  std::string copy;
  copy.reserve(graph.size() + graph.size() / 64);
  WireReader reader(graph);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) return copy;
    if (field.number == kGraphInitializer && field.type == WireType::kBytes) {
      ONNXIFI_RETURN_IF_ERROR(AppendInitializer(copy, field));
    } else {
      AppendField(copy, field);
    }
  }
}

}  // namespace

base::Result<OddModel> OddModel::Make(std::span<const std::byte> model) {
  std::string copy;
  size_t graph_offset = 0;
  WireReader reader(model);
  WireField field;
  while (true) {
    ONNXIFI_ASSIGN_OR_RETURN(const bool has_field, reader.Next(field));
    if (!has_field) break;
    if (field.number != kModelGraph || field.type != WireType::kBytes) {
      AppendField(copy, field);
      continue;
    }
    ONNXIFI_ASSIGN_OR_RETURN(const std::string graph, CopyGraph(field.bytes));
    AppendBytesField(copy, kModelGraph, graph);
    graph_offset = copy.size() - graph.size();
  }
  std::vector<std::byte> buffer(copy.size() + 1);
  const auto graph_address = reinterpret_cast<uintptr_t>(buffer.data()) + graph_offset;
  const size_t start = graph_address % 2;
  std::ranges::copy(std::as_bytes(std::span(copy)), buffer.begin() + static_cast<ptrdiff_t>(start));
  if (start == 0) buffer.pop_back();
  return OddModel(std::move(buffer), start);
}

}  // namespace onnxifi::onnx_file

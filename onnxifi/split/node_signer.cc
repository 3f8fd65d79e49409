// SPDX-License-Identifier: Apache-2.0
//
// NodeSigner: names are replaced by the place at which a node reads them, but for those that
// subgraphs capture, which stand in the subgraphs.

#include "onnxifi/split/node_signer.h"

#include <algorithm>
#include <vector>

namespace onnxifi::split {
namespace {

// Tensors of at most so many elements and one axis may be the extents of others.
constexpr int64_t kMaxExtents = 64;

bool SaysMoreInItsModel(const FlowingValue& value) {
  if (!value.has_fixed_shape()) return true;
  if (value.dimensions->size() > 1) return false;
  return value.dimensions->empty() || value.dimensions->front().number <= kMaxExtents;
}

void AddValue(const FlowingValue& value, Digester& digester) {
  digester.Add(static_cast<uint64_t>(value.type));
  if (!value.dimensions) {
    digester.Add("?");
    return;
  }
  digester.Add(uint64_t{value.dimensions->size()});
  for (const Dimension& dimension : *value.dimensions) {
    digester.Add(static_cast<uint64_t>(dimension.number));
    if (dimension.number < 0) digester.Add(dimension.symbol);
  }
}

std::string KeyOf(const std::string& domain, const std::string& name) {
  return (domain == "ai.onnx" ? "" : domain) + "." + name;
}

}  // namespace

NodeSigner::NodeSigner(const onnx::ModelProto& model) {
  std::vector<std::string> versions;
  for (const onnx::OperatorSetIdProto& set : model.opset_import()) {
    versions.push_back(KeyOf(set.domain(), std::to_string(set.version())));
  }
  std::sort(versions.begin(), versions.end());
  Digester frame;
  frame.Add(static_cast<uint64_t>(model.ir_version()));
  for (const std::string& version : versions) frame.Add(version);
  frame_ = frame.Get();
  // A function may call any other.
  Digester all;
  for (const onnx::FunctionProto& function : model.functions()) {
    all.Add(function.SerializeAsString());
  }
  for (const onnx::FunctionProto& function : model.functions()) {
    functions_.emplace(KeyOf(function.domain(), function.name()), all.Get());
  }
}

Digest NodeSigner::OfConstant(tensor::ElementType type, std::span<const int64_t> extents,
                              std::string_view contents) {
  Digester digester;
  digester.Add(static_cast<uint64_t>(type)).Add(uint64_t{extents.size()});
  for (const int64_t extent : extents) digester.Add(static_cast<uint64_t>(extent));
  digester.Add(contents.size() <= kSmallTensorBytes ? contents : std::string_view());
  return digester.Get();
}

Digest NodeSigner::OfConstant(const onnx::TensorProto& tensor) {
  Digester digester;
  digester.Add(static_cast<uint64_t>(tensor.data_type()))
      .Add(static_cast<uint64_t>(tensor.dims_size()));
  for (const int64_t extent : tensor.dims()) digester.Add(static_cast<uint64_t>(extent));
  if (tensor.ByteSizeLong() > kSmallTensorBytes) return digester.Get();
  onnx::TensorProto contents = tensor;
  contents.clear_name();
  contents.clear_doc_string();
  return digester.Add(contents.SerializeAsString()).Get();
}

NodeSignature NodeSigner::Sign(
    const onnx::NodeProto& node, std::span<const std::string> reads,
    const std::function<Meaning(const std::string&)>& meaning_of,
    const std::function<const FlowingValue*(const std::string&)>& value_of) const {
  Digester digester;
  digester.Add(frame_).Add(KeyOf(node.domain(), node.op_type())).Add(node.overload());
  if (const auto function = functions_.find(KeyOf(node.domain(), node.op_type()));
      function != functions_.end()) {
    digester.Add(function->second);
  }
  bool has_subgraphs = false;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    digester.Add(attribute.name());
    digester.Add(attribute.has_t() ? OfConstant(attribute.t())
                                   : Digester().Add(attribute.SerializeAsString()).Get());
    has_subgraphs = has_subgraphs || attribute.has_g() || attribute.graphs_size() > 0;
  }
  for (const std::string& input : node.input()) {
    const auto place = std::find(reads.begin(), reads.end(), input);
    digester.Add(static_cast<uint64_t>(place == reads.end() ? -1 : place - reads.begin()));
  }
  Digester makers;
  for (const std::string& name : reads) {
    const Meaning meaning = meaning_of(name);
    if (has_subgraphs) digester.Add(name);
    if (meaning.constant) {
      digester.Add("constant").Add(*meaning.constant);
      continue;
    }
    AddValue(*meaning.value, digester);
    if (!SaysMoreInItsModel(*meaning.value)) continue;
    makers.Add(static_cast<uint64_t>(&name - reads.data()));
    if (meaning.maker != nullptr) {
      makers.Add(meaning.maker->in_model).Add(static_cast<uint64_t>(meaning.place));
    }
  }
  for (const std::string& output : node.output()) {
    const FlowingValue* const value = value_of(output);
    digester.Add(uint64_t{value != nullptr});
    if (value != nullptr) AddValue(*value, digester);
  }
  const Digest alone = digester.Get();
  return {alone, digester.Add(makers.Get()).Get()};
}

}  // namespace onnxifi::split

// SPDX-License-Identifier: Apache-2.0
//
// WholeModel: everything but the data of the main graph's initializers is parsed; those stay where
// they lie in the caller's bytes and are copied into an island's model as they are.

#include "onnxifi/split/whole_model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backends/core/model/node_order.h"
#include "backends/core/model/node_reads.h"
#include "backends/core/model/protobuf_cleanup.h"
#include "backends/core/model/wire_scanner.h"
#include "onnxifi/split/default_domain.h"
#include "onnxifi/split/domain_imports.h"
#include "onnxifi/split/lifted_data.h"
#include "onnxifi/split/node_signer.h"
#include "onnxifi/split/placement.h"
#include "onnxifi/split/value_inference.h"

namespace onnxifi::split {

using base::Code;
using base::Result;
using base::Status;

namespace {

const model::ProtobufCleanup kProtobufCleanup;

// Tensors up to this size are there when shapes are inferred; what decides shapes is smaller.
constexpr size_t kSmallTensorBytes = NodeSigner::kSmallTensorBytes;

// Field numbers of the wire form.
constexpr char kModelGraphTag = 7 << 3 | 2;
constexpr char kGraphInitializerTag = 5 << 3 | 2;

void AppendVarint(std::string& bytes, uint64_t number) {
  while (number >= 0x80) {
    bytes.push_back(static_cast<char>(number | 0x80));
    number >>= 7;
  }
  bytes.push_back(static_cast<char>(number));
}

size_t VarintSize(uint64_t number) {
  size_t size = 1;
  for (; number >= 0x80; number >>= 7) ++size;
  return size;
}

bool IsConstantNode(const onnx::NodeProto& node) {
  return node.op_type() == "Constant" && node.domain().empty();
}

int64_t ElementCount(const auto& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim == 0) return 0;
    if (dim > 0 && count <= INT64_MAX / dim) count *= dim;
  }
  return count;
}

int64_t SizeOf(const onnx::TensorProto& tensor) {
  const auto type = tensor::ElementTypeFromOnnx(tensor.data_type());
  return type ? tensor::SizeBytes(*type, ElementCount(tensor.dims())) : 0;
}

std::optional<std::vector<Dimension>> DimensionsOf(const onnx::TypeProto::Tensor& type) {
  if (!type.has_shape()) return std::nullopt;
  std::vector<Dimension> dimensions;
  for (const onnx::TensorShapeProto::Dimension& dim : type.shape().dim()) {
    Dimension& dimension = dimensions.emplace_back();
    if (dim.has_dim_value() && dim.dim_value() >= 0) dimension.number = dim.dim_value();
    if (dim.has_dim_param()) dimension.symbol = dim.dim_param();
  }
  return dimensions;
}

// The type and the extents of the descriptor in place of those that the model declares: clients
// declare the shape of a Reshape as FLOAT and give INT64.
void DeclareWeight(const GivenWeight& weight, onnx::ModelProto& model) {
  // From this version on initializers need not be inputs.
  constexpr int64_t kInitializersAlone = 4;
  onnx::GraphProto& graph = *model.mutable_graph();
  auto& inputs = *graph.mutable_input();
  auto declared =
      std::find_if(inputs.begin(), inputs.end(),
                   [&](const onnx::ValueInfoProto& input) { return input.name() == weight.name; });
  if (declared == inputs.end() && model.ir_version() >= kInitializersAlone) return;
  onnx::ValueInfoProto& info = declared == inputs.end() ? *graph.add_input() : *declared;
  info.set_name(weight.name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(weight.type));
  type.clear_shape();
  type.mutable_shape();
  for (const int64_t extent : weight.extents) {
    type.mutable_shape()->add_dim()->set_dim_value(extent);
  }
}

// Everything of the model but the main graph: what each island's model repeats.
onnx::ModelProto FrameOf(const onnx::ModelProto& model) {
  onnx::ModelProto frame = model;
  frame.clear_graph();
  return frame;
}

}  // namespace

struct WholeModel::Contents {
  std::span<const GivenWeight> weights;
  LiftedData lifted;
  // Complete but for the main graph's initializers, whose raw data are numbers among `lifted`.
  onnx::ModelProto model;
  onnx::ModelProto frame;
  // What constants are, by name.
  std::unordered_map<std::string, int> initializers;
  std::unordered_map<std::string, int> sparse_initializers;
  std::unordered_map<std::string, int> weight_of;
  std::unordered_map<std::string, int> constant_nodes;
  std::unordered_map<std::string, onnx::TensorProto> fixed;
  // As inferred or declared, by name.
  std::unordered_map<std::string, onnx::TypeProto> types;
  std::unordered_set<std::string> open_ranks;
  // By position in graph.node, which is sorted: the position in the model as given.
  std::vector<int32_t> model_positions;
  // The devices that the model names, by position in the model as given.
  std::map<int32_t, std::string> placements;
  // By position among the nodes.
  std::vector<std::vector<std::string>> reads;
  // Of flowing values.
  std::unordered_map<std::string, int32_t> value_of;

  const onnx::GraphProto& graph() const { return model.graph(); }
  bool IsGivenConstant(const std::string& name) const {
    return initializers.contains(name) || sparse_initializers.contains(name) ||
           weight_of.contains(name) || constant_nodes.contains(name);
  }
  int64_t ConstantBytes(const std::string& name) const;
  void IndexConstants();
  // INVALID_MODEL for a cycle.
  Status SortNodes();
  // What nodes that read the constant know of it.
  Digest SignatureOf(const std::string& constant) const;
  // Without nodes whose results nobody reads, be it because they are fixed, and without constants.
  std::vector<bool> FindNeededNodes() const;
  // The model that devices are asked about; what inference finds is in `types` and `fixed`.
  Status Infer(std::string& claim_model);
};

int64_t WholeModel::Contents::ConstantBytes(const std::string& name) const {
  if (const auto found = weight_of.find(name); found != weight_of.end()) {
    const GivenWeight& weight = weights[found->second];
    return tensor::SizeBytes(weight.type, ElementCount(weight.extents));
  }
  if (const auto found = initializers.find(name); found != initializers.end()) {
    return SizeOf(graph().initializer(found->second));
  }
  if (const auto found = constant_nodes.find(name); found != constant_nodes.end()) {
    for (const onnx::AttributeProto& attribute : graph().node(found->second).attribute()) {
      if (attribute.has_t()) return SizeOf(attribute.t());
    }
  }
  return 0;
}

Digest WholeModel::Contents::SignatureOf(const std::string& constant) const {
  if (const auto found = weight_of.find(constant); found != weight_of.end()) {
    const GivenWeight& weight = weights[found->second];
    const auto size_bytes =
        static_cast<size_t>(tensor::SizeBytes(weight.type, ElementCount(weight.extents)));
    const bool is_read = weight.data != nullptr && size_bytes <= kSmallTensorBytes;
    return NodeSigner::OfConstant(
        weight.type, weight.extents,
        {reinterpret_cast<const char*>(weight.data), is_read ? size_bytes : 0});
  }
  if (const auto found = initializers.find(constant); found != initializers.end()) {
    const onnx::TensorProto& tensor = graph().initializer(found->second);
    const std::span<const std::byte> body = lifted.BodyOf(tensor);
    if (body.size() > kSmallTensorBytes) {
      return NodeSigner::OfConstant(static_cast<tensor::ElementType>(tensor.data_type()),
                                    {tensor.dims().data(), static_cast<size_t>(tensor.dims_size())},
                                    {});
    }
    onnx::TensorProto whole;
    whole.ParseFromArray(body.data(), static_cast<int>(body.size()));
    return NodeSigner::OfConstant(whole);
  }
  if (const auto found = sparse_initializers.find(constant); found != sparse_initializers.end()) {
    return Digester().Add(graph().sparse_initializer(found->second).SerializeAsString()).Get();
  }
  if (const auto found = constant_nodes.find(constant); found != constant_nodes.end()) {
    Digester digester;
    for (const onnx::AttributeProto& attribute : graph().node(found->second).attribute()) {
      digester.Add(attribute.has_t() ? NodeSigner::OfConstant(attribute.t())
                                     : Digester().Add(attribute.SerializeAsString()).Get());
    }
    return digester.Get();
  }
  return NodeSigner::OfConstant(fixed.at(constant));
}

void WholeModel::Contents::IndexConstants() {
  for (size_t index = 0; index < weights.size(); ++index) {
    weight_of.emplace(weights[index].name, static_cast<int>(index));
  }
  for (int index = 0; index < graph().initializer_size(); ++index) {
    initializers.emplace(graph().initializer(index).name(), index);
  }
  for (int index = 0; index < graph().sparse_initializer_size(); ++index) {
    sparse_initializers.emplace(graph().sparse_initializer(index).values().name(), index);
  }
  for (int index = 0; index < graph().node_size(); ++index) {
    const onnx::NodeProto& node = graph().node(index);
    if (IsConstantNode(node) && node.output_size() == 1) {
      constant_nodes.emplace(node.output(0), index);
    }
  }
}

Status WholeModel::Contents::SortNodes() {
  auto& nodes = *model.mutable_graph()->mutable_node();
  model_positions.resize(static_cast<size_t>(nodes.size()));
  std::iota(model_positions.begin(), model_positions.end(), 0);
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int> order, model::OrderNodes(nodes));
  if (order.empty()) return base::Ok();
  model_positions.assign(order.begin(), order.end());
  google::protobuf::RepeatedPtrField<onnx::NodeProto> sorted;
  sorted.Reserve(nodes.size());
  for (const int position : order) *sorted.Add() = std::move(nodes[position]);
  nodes.Swap(&sorted);
  return base::Ok();
}

std::vector<bool> WholeModel::Contents::FindNeededNodes() const {
  std::unordered_set<std::string> needed;
  for (const onnx::ValueInfoProto& output : graph().output()) needed.insert(output.name());
  std::vector<bool> is_needed(static_cast<size_t>(graph().node_size()), false);
  for (int index = graph().node_size() - 1; index >= 0; --index) {
    const onnx::NodeProto& node = graph().node(index);
    if (IsConstantNode(node)) continue;
    is_needed[index] =
        std::any_of(node.output().begin(), node.output().end(),
                    [&](const std::string& output) { return needed.contains(output); });
    if (!is_needed[index]) continue;
    for (std::string& name : model::NamesReadBy(node)) {
      if (!IsGivenConstant(name) && !fixed.contains(name)) needed.insert(std::move(name));
    }
  }
  return is_needed;
}

Status WholeModel::Contents::Infer(std::string& claim_model) {
  onnx::ModelProto claim = model;
  onnx::GraphProto& claimed = *claim.mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::TensorProto> initializers_left;
  for (onnx::TensorProto& tensor : *claimed.mutable_initializer()) {
    if (weight_of.contains(tensor.name())) continue;
    if (lifted.BodyOf(tensor).size() <= kSmallTensorBytes) {
      lifted.Restore(tensor);
    } else {
      tensor.clear_raw_data();
    }
    *initializers_left.Add() = std::move(tensor);
  }
  for (const GivenWeight& weight : weights) {
    DeclareWeight(weight, claim);
    onnx::TensorProto& tensor = *initializers_left.Add();
    tensor.set_name(weight.name);
    tensor.set_data_type(static_cast<int>(weight.type));
    for (const int64_t extent : weight.extents) tensor.add_dims(extent);
    const int64_t size_bytes = tensor::SizeBytes(weight.type, ElementCount(weight.extents));
    if (weight.data != nullptr && size_bytes <= static_cast<int64_t>(kSmallTensorBytes)) {
      tensor.set_raw_data(weight.data, static_cast<size_t>(size_bytes));
    }
  }
  claimed.mutable_initializer()->Swap(&initializers_left);

  ONNXIFI_ASSIGN_OR_RETURN(InferredValues found, InferValues(claim));
  types = std::move(found.types);
  fixed = std::move(found.contents);
  open_ranks = std::move(found.open_ranks);
  std::erase_if(fixed, [&](const auto& value) { return IsGivenConstant(value.first); });
  claim_model = claim.SerializeAsString();
  return base::Ok();
}

WholeModel::WholeModel(std::unique_ptr<Contents> parts) : parts_(std::move(parts)) {}
WholeModel::~WholeModel() = default;

Result<std::unique_ptr<WholeModel>> WholeModel::Read(std::span<const std::byte> model,
                                                     std::span<const GivenWeight> weights) {
  ONNXIFI_ASSIGN_OR_RETURN(model::ScannedModel scanned, model::ScanModel(model));
  auto parts = std::make_unique<Contents>();
  parts->weights = weights;
  parts->lifted = LiftedData(std::move(scanned.tensors));
  parts->placements = PlacementsOf(model);
  if (!parts->model.ParseFromString(scanned.skeleton)) {
    return Status(Code::kInvalidProtobuf, "The model does not parse as a ModelProto.");
  }
  const LiftedData& lifted = parts->lifted;
  onnx::GraphProto& graph = *parts->model.mutable_graph();
  for (onnx::NodeProto& node : *graph.mutable_node()) lifted.Restore(node);
  for (onnx::SparseTensorProto& tensor : *graph.mutable_sparse_initializer()) {
    lifted.Restore(tensor);
  }
  for (onnx::FunctionProto& function : *parts->model.mutable_functions()) {
    for (onnx::NodeProto& node : *function.mutable_node()) lifted.Restore(node);
  }
  WriteDefaultDomain(parts->model);
  AddDomainImports(parts->model);
  ONNXIFI_RETURN_IF_ERROR(parts->SortNodes());
  parts->frame = FrameOf(parts->model);
  parts->IndexConstants();
  std::unique_ptr<WholeModel> whole(new WholeModel(std::move(parts)));
  ONNXIFI_RETURN_IF_ERROR(whole->parts_->Infer(whole->claim_model_));
  ONNXIFI_RETURN_IF_ERROR(whole->FindValues());
  return whole;
}

Status WholeModel::FindValues() {
  Contents& parts = *parts_;
  const auto refuse = [](std::string sentence) {
    return Status(Code::kUnsupportedOperator, std::move(sentence));
  };
  const auto add_value = [&](const std::string& name, int32_t producer) {
    const auto position = static_cast<int32_t>(values_.size());
    if (!parts.value_of.emplace(name, position).second) return false;
    FlowingValue& value = values_.emplace_back();
    value.name = name;
    value.producer = producer;
    const auto type = parts.types.find(name);
    if (type == parts.types.end() || !type->second.has_tensor_type()) return true;
    const auto element = tensor::ElementTypeFromOnnx(type->second.tensor_type().elem_type());
    if (!element || *element == tensor::ElementType::kString) return true;
    value.type = *element;
    // A device refuses to give such a value away.
    if (parts.open_ranks.contains(name)) return true;
    value.dimensions = DimensionsOf(type->second.tensor_type());
    return true;
  };
  std::unordered_map<std::string, const onnx::ValueInfoProto*> declared;
  for (const onnx::ValueInfoProto& input : parts.graph().input()) {
    if (parts.IsGivenConstant(input.name())) continue;
    // Clients list what a node reads twice as two inputs.
    const auto [first, is_new] = declared.emplace(input.name(), &input);
    if (!is_new && first->second->type().SerializeAsString() == input.type().SerializeAsString()) {
      continue;
    }
    inputs_.push_back(static_cast<int32_t>(values_.size()));
    if (!add_value(input.name(), -1)) {
      return refuse("The model declares input '" + input.name() + "' twice, with two types.");
    }
  }
  const std::vector<bool> is_needed = parts.FindNeededNodes();
  for (int index = 0; index < parts.graph().node_size(); ++index) {
    const onnx::NodeProto& proto = parts.graph().node(index);
    if (!is_needed[index]) continue;
    const auto position = static_cast<int32_t>(nodes_.size());
    ModelNode& node = nodes_.emplace_back();
    node.graph_index = index;
    node.model_index = parts.model_positions[static_cast<size_t>(index)];
    node.name = proto.name();
    node.domain = proto.domain();
    node.operator_type = proto.op_type();
    const auto placement = parts.placements.find(node.model_index);
    if (placement != parts.placements.end()) node.placement = placement->second;
    std::vector<std::string>& reads = parts.reads.emplace_back(model::NamesReadBy(proto));
    for (const std::string& name : reads) {
      if (parts.IsGivenConstant(name)) {
        node.constant_bytes += parts.ConstantBytes(name);
        continue;
      }
      if (parts.fixed.contains(name)) continue;
      const auto value = parts.value_of.find(name);
      if (value == parts.value_of.end()) {
        return refuse("Node " + std::to_string(node.model_index) + " (" + node.operator_type +
                      ") reads '" + name + "', which nothing makes.");
      }
      values_[value->second].readers.push_back(position);
    }
    for (const std::string& name : proto.output()) {
      if (!name.empty() && !add_value(name, position)) {
        return refuse("Two nodes make '" + name + "'.");
      }
    }
  }
  for (const onnx::ValueInfoProto& output : parts.graph().output()) {
    const auto value = parts.value_of.find(output.name());
    if (value == parts.value_of.end() || values_[value->second].producer < 0) {
      return refuse("Output '" + output.name() + "' is made by no node.");
    }
    // One that is listed twice is one, as plugins have it.
    if (std::exchange(values_[value->second].is_output, true)) continue;
    outputs_.push_back(value->second);
  }
  if (outputs_.empty()) return refuse("The model declares no outputs.");
  return base::Ok();
}

namespace {

void Declare(const FlowingValue& value, onnx::ValueInfoProto& info) {
  info.set_name(value.name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(static_cast<int>(value.type));
  if (!value.dimensions) return;
  type.mutable_shape();
  for (const Dimension& dimension : *value.dimensions) {
    onnx::TensorShapeProto::Dimension& dim = *type.mutable_shape()->add_dim();
    if (dimension.number >= 0) {
      dim.set_dim_value(dimension.number);
    } else if (!dimension.symbol.empty()) {
      dim.set_dim_param(dimension.symbol);
    }
  }
}

}  // namespace

IslandModel WholeModel::Extract(std::span<const int32_t> nodes) const {
  const Contents& parts = *parts_;
  IslandModel island;
  onnx::GraphProto graph;
  graph.set_name(parts.graph().name().empty() ? "island" : parts.graph().name());
  std::vector<std::span<const std::byte>> initializers;
  std::unordered_set<int32_t> inside(nodes.begin(), nodes.end());
  std::unordered_set<std::string> known;
  const auto declare = [&](int32_t position, onnx::ValueInfoProto& info) {
    const FlowingValue& value = values_[position];
    info.set_name(value.name);
    if (value.is_carried()) {
      Declare(value, info);
    } else if (const auto type = parts.types.find(value.name); type != parts.types.end()) {
      *info.mutable_type() = type->second;
    }
  };
  const auto need = [&](const std::string& name) {
    if (!known.insert(name).second) return;
    if (const auto weight = parts.weight_of.find(name); weight != parts.weight_of.end()) {
      island.weights.push_back(weight->second);
      // Declared, so that the name is the graph's; given as a weight, it is nothing to bind.
      const GivenWeight& given = parts.weights[weight->second];
      onnx::ValueInfoProto& info = *graph.add_input();
      info.set_name(name);
      info.mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(given.type));
      info.mutable_type()->mutable_tensor_type()->mutable_shape();
      for (const int64_t extent : given.extents) {
        info.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(
            extent);
      }
    } else if (const auto found = parts.initializers.find(name);
               found != parts.initializers.end()) {
      const onnx::TensorProto& tensor = parts.graph().initializer(found->second);
      initializers.push_back(parts.lifted.BodyOf(tensor));
    } else if (const auto sparse = parts.sparse_initializers.find(name);
               sparse != parts.sparse_initializers.end()) {
      *graph.add_sparse_initializer() = parts.graph().sparse_initializer(sparse->second);
    } else if (const auto constant = parts.constant_nodes.find(name);
               constant != parts.constant_nodes.end()) {
      *graph.add_node() = parts.graph().node(constant->second);
      island.model_nodes.push_back(parts.model_positions[constant->second]);
    } else if (const auto fixed = parts.fixed.find(name); fixed != parts.fixed.end()) {
      *graph.add_initializer() = fixed->second;
    } else {
      const int32_t position = parts.value_of.at(name);
      if (inside.contains(values_[position].producer)) return;
      island.inputs.push_back(position);
      declare(position, *graph.add_input());
    }
  };
  // A value that the model fixes and a node in here makes all the same is that node's.
  for (const int32_t node : nodes) {
    const onnx::NodeProto& proto = parts.graph().node(nodes_[node].graph_index);
    for (const std::string& output : proto.output()) {
      if (parts.fixed.contains(output)) known.insert(output);
    }
  }
  for (const int32_t node : nodes) {
    for (const std::string& name : parts.reads[node]) need(name);
    const onnx::NodeProto& proto = parts.graph().node(nodes_[node].graph_index);
    *graph.add_node() = proto;
    island.model_nodes.push_back(nodes_[node].model_index);
    for (const std::string& name : proto.output()) {
      if (name.empty()) continue;
      const int32_t position = parts.value_of.at(name);
      const FlowingValue& value = values_[position];
      const bool leaves =
          value.is_output || std::any_of(value.readers.begin(), value.readers.end(),
                                         [&](int32_t reader) { return !inside.contains(reader); });
      if (!leaves) {
        // Devices were asked about the node with it: a rank may be known from here alone.
        if (parts.types.contains(name)) declare(position, *graph.add_value_info());
        continue;
      }
      island.outputs.push_back(position);
      declare(position, *graph.add_output());
    }
  }
  std::string graph_bytes = graph.SerializeAsString();
  for (const std::span<const std::byte> body : initializers) {
    graph_bytes.push_back(kGraphInitializerTag);
    AppendVarint(graph_bytes, body.size());
    graph_bytes.append(reinterpret_cast<const char*>(body.data()), body.size());
  }
  island.bytes = parts.frame.SerializeAsString();
  island.bytes.reserve(island.bytes.size() + 1 + VarintSize(graph_bytes.size()) +
                       graph_bytes.size());
  island.bytes.push_back(kModelGraphTag);
  AppendVarint(island.bytes, graph_bytes.size());
  island.bytes += graph_bytes;
  return island;
}

std::vector<NodeHead> WholeModel::Heads() const {
  std::map<std::string, int64_t> versions;
  for (const onnx::OperatorSetIdProto& opset : parts_->model.opset_import()) {
    versions.emplace(opset.domain(), opset.version());
  }
  std::vector<NodeHead> heads(parts_->model_positions.size());
  for (size_t index = 0; index < heads.size(); ++index) {
    const onnx::NodeProto& node = parts_->graph().node(static_cast<int>(index));
    NodeHead& head = heads[static_cast<size_t>(parts_->model_positions[index])];
    head.name = node.name();
    head.domain = node.domain();
    head.operator_type = node.op_type();
    const auto version = versions.find(head.domain);
    if (version != versions.end()) head.opset_version = version->second;
  }
  return heads;
}

std::vector<std::string> WholeModel::NamesOf(int32_t node) const {
  const onnx::NodeProto& proto = parts_->graph().node(nodes_[node].graph_index);
  std::vector<std::string> names = {proto.name()};
  names.insert(names.end(), proto.input().begin(), proto.input().end());
  names.insert(names.end(), proto.output().begin(), proto.output().end());
  for (std::string& name : names) {
    if (name == proto.op_type()) name.clear();
  }
  return names;
}

std::vector<NodeSignature> WholeModel::Signatures() const {
  const Contents& parts = *parts_;
  const NodeSigner signer(parts.model);
  // Constants are read by many.
  std::unordered_map<std::string, Digest> constants;
  std::vector<NodeSignature> signatures;
  signatures.reserve(nodes_.size());
  const auto meaning_of = [&](const std::string& name) {
    NodeSigner::Meaning meaning;
    const auto known = parts.value_of.find(name);
    if (known == parts.value_of.end() || parts.fixed.contains(name)) {
      auto [constant, is_new] = constants.try_emplace(name);
      if (is_new) constant->second = parts.SignatureOf(name);
      meaning.constant = constant->second;
      return meaning;
    }
    meaning.value = &values_[known->second];
    if (meaning.value->producer < 0) return meaning;
    const onnx::NodeProto& maker = parts.graph().node(nodes_[meaning.value->producer].graph_index);
    meaning.maker = &signatures[meaning.value->producer];
    meaning.place =
        std::find(maker.output().begin(), maker.output().end(), name) - maker.output().begin();
    return meaning;
  };
  const auto value_of = [&](const std::string& name) -> const FlowingValue* {
    const auto found = parts.value_of.find(name);
    return name.empty() || found == parts.value_of.end() ? nullptr : &values_[found->second];
  };
  for (size_t node = 0; node < nodes_.size(); ++node) {
    signatures.push_back(signer.Sign(parts.graph().node(nodes_[node].graph_index),
                                     parts.reads[node], meaning_of, value_of));
  }
  return signatures;
}

}  // namespace onnxifi::split

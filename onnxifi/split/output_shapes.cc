// SPDX-License-Identifier: Apache-2.0
//
// OutputShapes: the model is inferred anew with the extents of the inputs in it. What it declares
// of intermediate values and outputs is believed only where inference finds nothing.

#include "onnxifi/split/output_shapes.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "backends/core/model/protobuf_cleanup.h"
#include "backends/core/model/wire_scanner.h"
#include "onnxifi/split/default_domain.h"
#include "onnxifi/split/domain_imports.h"
#include "onnxifi/split/lifted_data.h"
#include "onnxifi/split/node_signer.h"
#include "onnxifi/split/value_inference.h"

namespace onnxifi::split {

using base::Code;
using base::Result;
using base::Status;

namespace {

const model::ProtobufCleanup kProtobufCleanup;

// What decides shapes is smaller.
constexpr size_t kSmallTensorBytes = NodeSigner::kSmallTensorBytes;

constexpr int64_t kUnknown = -1;

using Symbols = std::unordered_map<std::string, int64_t>;

// The tensor as the model has it, without its data where it is large.
void RestoreSmall(const LiftedData& lifted, onnx::TensorProto& tensor) {
  if (lifted.BodyOf(tensor).size() <= kSmallTensorBytes) {
    lifted.Restore(tensor);
  } else {
    tensor.clear_raw_data();
  }
}

void RestoreSmall(const LiftedData& lifted, onnx::NodeProto& node) {
  const bool is_constant =
      node.op_type() == "Constant" && node.attribute_size() == 1 && node.attribute(0).has_t();
  if (is_constant) {
    RestoreSmall(lifted, *node.mutable_attribute(0)->mutable_t());
  } else {
    lifted.Restore(node);
  }
}

onnx::TensorProto TensorOf(const GivenWeight& weight) {
  onnx::TensorProto tensor;
  tensor.set_name(weight.name);
  tensor.set_data_type(static_cast<int>(weight.type));
  int64_t count = 1;
  for (const int64_t extent : weight.extents) {
    tensor.add_dims(extent);
    if (__builtin_mul_overflow(count, extent, &count)) count = INT64_MAX;
  }
  const bool is_small = count <= static_cast<int64_t>(kSmallTensorBytes);
  const int64_t size_bytes = is_small ? tensor::SizeBytes(weight.type, count) : INT64_MAX;
  if (weight.data != nullptr && size_bytes <= static_cast<int64_t>(kSmallTensorBytes)) {
    tensor.set_raw_data(weight.data, static_cast<size_t>(size_bytes));
  }
  return tensor;
}

// Writes the extents of the input into the model, and those of its symbols into `symbols`.
Status WriteExtents(const InputShape& input, onnx::ValueInfoProto& declared, Symbols& symbols) {
  if (declared.has_type() && !declared.type().has_tensor_type()) return base::Ok();
  onnx::TypeProto::Tensor& type = *declared.mutable_type()->mutable_tensor_type();
  const auto rank = static_cast<int>(input.extents.size());
  if (type.has_shape() && type.shape().dim_size() != rank) {
    return Status(Code::kInvalidShape, "Input '" + input.name + "' has rank " +
                                           std::to_string(rank) + "; the model declares " +
                                           std::to_string(type.shape().dim_size()) + ".");
  }
  onnx::TensorShapeProto& shape = *type.mutable_shape();
  while (shape.dim_size() < rank) shape.add_dim();
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t extent = input.extents[static_cast<size_t>(axis)];
    if (shape.dim(axis).has_dim_param()) symbols.emplace(shape.dim(axis).dim_param(), extent);
    shape.mutable_dim(axis)->set_dim_value(extent);
  }
  return base::Ok();
}

// The extents that a type says; nothing where it says no rank.
std::optional<std::vector<int64_t>> ExtentsOf(const onnx::TypeProto& type, const Symbols& symbols) {
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return std::nullopt;
  std::vector<int64_t> extents;
  for (const onnx::TensorShapeProto::Dimension& dim : type.tensor_type().shape().dim()) {
    int64_t& extent = extents.emplace_back(kUnknown);
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      extent = dim.dim_value();
    } else if (dim.has_dim_param()) {
      const auto symbol = symbols.find(dim.dim_param());
      if (symbol != symbols.end()) extent = symbol->second;
    }
  }
  return extents;
}

// Fills in what is not known yet.
void Complete(OutputShape& shape, const onnx::TypeProto& type, const Symbols& symbols) {
  if (shape.type == tensor::ElementType::kUndefined && type.has_tensor_type()) {
    shape.type = tensor::ElementTypeFromOnnx(type.tensor_type().elem_type())
                     .value_or(tensor::ElementType::kUndefined);
  }
  auto extents = ExtentsOf(type, symbols);
  if (!extents) return;
  if (!shape.has_rank) {
    shape.has_rank = true;
    shape.extents = *std::move(extents);
    return;
  }
  if (extents->size() != shape.extents.size()) return;
  for (size_t axis = 0; axis < extents->size(); ++axis) {
    if (shape.extents[axis] == kUnknown) shape.extents[axis] = (*extents)[axis];
  }
}

bool IsComplete(const std::vector<OutputShape>& shapes) {
  return std::ranges::all_of(shapes, [](const OutputShape& shape) {
    return shape.has_rank && std::ranges::find(shape.extents, kUnknown) == shape.extents.end();
  });
}

}  // namespace

struct OutputShapes::Parts {
  onnx::ModelProto model;
};

OutputShapes::OutputShapes(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
OutputShapes::~OutputShapes() = default;

Result<std::unique_ptr<OutputShapes>> OutputShapes::Read(std::span<const std::byte> model,
                                                         std::span<const GivenWeight> weights) {
  ONNXIFI_ASSIGN_OR_RETURN(model::ScannedModel scanned, model::ScanModel(model));
  const LiftedData lifted(std::move(scanned.tensors));
  auto parts = std::make_unique<Parts>();
  if (!parts->model.ParseFromString(scanned.skeleton)) {
    return Status(Code::kInvalidProtobuf, "The model does not parse as a ModelProto.");
  }
  onnx::GraphProto& graph = *parts->model.mutable_graph();
  for (onnx::NodeProto& node : *graph.mutable_node()) RestoreSmall(lifted, node);
  for (onnx::SparseTensorProto& tensor : *graph.mutable_sparse_initializer()) {
    lifted.Restore(tensor);
  }
  for (onnx::FunctionProto& function : *parts->model.mutable_functions()) {
    for (onnx::NodeProto& node : *function.mutable_node()) lifted.Restore(node);
  }
  google::protobuf::RepeatedPtrField<onnx::TensorProto> constants;
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    const bool is_given = std::ranges::any_of(
        weights, [&](const GivenWeight& weight) { return weight.name == tensor.name(); });
    if (is_given) continue;
    RestoreSmall(lifted, tensor);
    *constants.Add() = std::move(tensor);
  }
  for (const GivenWeight& weight : weights) *constants.Add() = TensorOf(weight);
  graph.mutable_initializer()->Swap(&constants);
  WriteDefaultDomain(parts->model);
  AddDomainImports(parts->model);
  return std::unique_ptr<OutputShapes>(new OutputShapes(std::move(parts)));
}

Result<std::vector<OutputShape>> OutputShapes::Infer(std::span<const InputShape> inputs) const {
  onnx::ModelProto model = parts_->model;
  onnx::GraphProto& graph = *model.mutable_graph();
  Symbols symbols;
  for (const InputShape& input : inputs) {
    for (onnx::ValueInfoProto& declared : *graph.mutable_input()) {
      if (declared.name() != input.name) continue;
      ONNXIFI_RETURN_IF_ERROR(WriteExtents(input, declared, symbols));
    }
  }
  std::vector<OutputShape> shapes;
  for (onnx::ValueInfoProto& output : *graph.mutable_output()) {
    shapes.emplace_back().name = output.name();
    if (output.type().has_tensor_type()) {
      output.mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
  const auto infer = [&](onnx::ModelProto& asked) {
    const auto found = InferValues(asked);
    if (!found.ok()) return;
    for (OutputShape& shape : shapes) {
      const auto type = found->types.find(shape.name);
      if (type != found->types.end()) Complete(shape, type->second, symbols);
    }
  };
  onnx::ModelProto bare = model;
  bare.mutable_graph()->clear_value_info();
  infer(bare);
  if (!IsComplete(shapes) && graph.value_info_size() > 0) infer(model);
  for (int index = 0; index < graph.output_size(); ++index) {
    const onnx::ValueInfoProto& declared = parts_->model.graph().output(index);
    Complete(shapes[static_cast<size_t>(index)], declared.type(), symbols);
  }
  return shapes;
}

bool FollowFromInputs(const IslandModel& island, std::span<const FlowingValue> values) {
  // A number with many divisors, which windows fit into and reshapes divide.
  constexpr int64_t kTrialExtent = 720;
  const auto shapes = OutputShapes::Read(
      {reinterpret_cast<const std::byte*>(island.bytes.data()), island.bytes.size()},
      /*weights=*/{});
  if (!shapes.ok()) return false;
  std::vector<InputShape> inputs;
  for (const int32_t position : island.inputs) {
    const FlowingValue& value = values[static_cast<size_t>(position)];
    if (!value.is_carried()) return false;
    InputShape& input = inputs.emplace_back();
    input.name = value.name;
    for (const Dimension& dimension : *value.dimensions) {
      input.extents.push_back(dimension.number >= 0 ? dimension.number : kTrialExtent);
    }
  }
  const auto found = (*shapes)->Infer(inputs);
  return found.ok() && IsComplete(*found);
}

}  // namespace onnxifi::split

// SPDX-License-Identifier: Apache-2.0
//
// SeedModels: small models that together use every part of the format that the importer reads.
// Seeds of the mutation test and of model_fuzz, and material of the unit tests.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_TESTING_SEED_MODELS_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_TESTING_SEED_MODELS_H_

#include <onnx/onnx_pb.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace onnxifi::model::testing {

// An empty graph of the default domain at `opset`.
onnx::ModelProto MakeModel(int64_t opset = 17, int64_t ir_version = 8);

onnx::NodeProto& AddNode(onnx::GraphProto& graph, const std::string& op_type,
                         std::initializer_list<const char*> inputs,
                         std::initializer_list<const char*> outputs);

// A float32 input or output.
onnx::ValueInfoProto& AddFloat(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list,
                               const std::string& name, std::initializer_list<int64_t> extents);

// With float_data counting up from 0.
onnx::TensorProto& AddFloatInitializer(onnx::GraphProto& graph, const std::string& name,
                                       std::initializer_list<int64_t> extents);

onnx::AttributeProto& AddAttribute(onnx::NodeProto& node, const std::string& name,
                                   onnx::AttributeProto::AttributeType type);

// Names and serialised models, all of which import.
std::vector<std::pair<std::string, std::string>> MakeSeedModels();

}  // namespace onnxifi::model::testing

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_TESTING_SEED_MODELS_H_

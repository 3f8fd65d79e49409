// SPDX-License-Identifier: Apache-2.0
//
// AttributeProto -> graph::Attribute, and what there is to ask about either.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_ATTRIBUTE_PROTO_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_ATTRIBUTE_PROTO_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/tensor_proto.h"

namespace onnxifi::model {

// The attribute's type; old models leave it out, and the field that is filled tells it. UNDEFINED
// for an empty list.
onnx::AttributeProto::AttributeType TypeOf(const onnx::AttributeProto& attribute);
onnx::AttributeProto::AttributeType TypeOf(const graph::Attribute& attribute);

using SubgraphImporter =
    std::function<base::Result<std::shared_ptr<const graph::Graph>>(const onnx::GraphProto&)>;

// The value, read as one of `type`. Errors: those of the leaves; UNSUPPORTED_ATTRIBUTE: a type that
// a Graph does not hold.
base::Result<graph::Attribute> ReadAttribute(const onnx::AttributeProto& proto,
                                             onnx::AttributeProto::AttributeType type,
                                             TensorReader& tensors,
                                             const SubgraphImporter& import_subgraph);

// Whether a subgraph in it reads values of the graph around it.
bool HasCaptures(const graph::Attribute& attribute);

// What a copy of the attribute costs; tensors and graphs are shared.
int64_t CopiedBytes(const graph::Attribute& attribute);
int64_t TensorBytes(const graph::Attribute& attribute);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_ATTRIBUTE_PROTO_H_

// SPDX-License-Identifier: Apache-2.0
//
// FunctionCall: a node that calls a model-local function. Which function that is, what goes into
// its body and comes out again, and how much all bodies together may add to the graph.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_FUNCTION_CALL_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_FUNCTION_CALL_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/scope.h"

namespace onnxifi::model {

using Attributes = std::map<std::string, graph::Attribute, std::less<>>;

// What a node takes in the file, subgraphs included, without the numbers in its tensors: names and
// what else is copied each time that it is expanded.
int64_t TextBytes(const onnx::NodeProto& node);

// Nodes, names and attributes that inlining may add: each function may call others many times.
// Weights count from their second expansion on, since the file holds the first.
inline constexpr int64_t kMaxInlined = int64_t{1} << 18;
inline constexpr int64_t kMaxInlinedBytes = int64_t{256} << 20;

// A call while its body is imported.
struct Call {
  const onnx::FunctionProto* function;
  const Call* caller;  // null: called from the model's own graph
  const graph::Graph* graph;
  int node_index;
  Attributes attributes;
};

// The functions of one model, which it borrows.
class FunctionTable {
 public:
  // INVALID_MODEL: a function defined twice.
  base::Status Add(const onnx::ModelProto& model);
  // Null: the node, whose canonical domain is given, calls none.
  const onnx::FunctionProto* Find(const onnx::NodeProto& node, std::string_view domain) const;

 private:
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
};

// What the functions of one model have added so far.
class InlineBudget {
 public:
  // Counts what is added in `scope`; free outside functions. UNSUPPORTED_OPERATOR above the limits.
  base::Status Spend(int64_t count, int64_t size_bytes, const Scope& scope);
  // Counts the bytes of a tensor or an attribute that `content` in the file holds, but the first
  // time.
  base::Status SpendRepeated(const google::protobuf::MessageLite& content, int64_t size_bytes,
                             const Scope& scope);

 private:
  std::unordered_set<const google::protobuf::MessageLite*> expanded_;
  int64_t count_ = 0;
  int64_t size_bytes_ = 0;
};

// Recursion, depth and the numbers of inputs and outputs. INVALID_MODEL, UNSUPPORTED_OPERATOR.
base::Status CheckCall(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                       const Scope& scope);

// The attribute of the call that `proto`, an attribute of a node in a body, refers to; null if the
// call has none of that name. `expected` is the type that the node's operator asks for, UNDEFINED
// if it asks for none. INVALID_MODEL, UNSUPPORTED_OPERATOR.
base::Result<const graph::Attribute*> FindCallAttribute(
    const onnx::AttributeProto& proto, onnx::AttributeProto::AttributeType expected,
    const Scope& body);

// Gives the function's inputs their values; `inputs` may be fewer. INVALID_MODEL.
base::Status BindCallInputs(const onnx::FunctionProto& function, const graph::ValueIds& inputs,
                            Scope& body);

// Gives the value that the body has under `inner_name` the name that the calling node has for it.
// INVALID_MODEL.
base::Status BindCallOutput(const std::string& inner_name, const std::string& outer_name,
                            const graph::Node& node, Scope& body, Scope& scope);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_FUNCTION_CALL_H_

// SPDX-License-Identifier: Apache-2.0
//
// Graph: level one. ONNX operators as the standard defines them, after import: names resolved to
// value ids, each node's operator version resolved, weights lifted out as tensors. Passes rewrite
// it; core/ops lowers it. Owns no protobuf.

#ifndef ONNXIFI_BACKENDS_CORE_GRAPH_GRAPH_H_
#define ONNXIFI_BACKENDS_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/core/base/small_vector.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::graph {

class Graph;

// An extent as a model declares it: a number, a name (dim_param), or neither (unknown).
struct Extent {
  int64_t number = -1;  // >= 0: known
  std::string symbol;   // not empty: named

  bool is_known() const { return number >= 0; }
  bool operator==(const Extent&) const = default;
};

// What is declared of a value. Anything may be missing.
struct Type {
  enum class Kind : uint8_t { kUnknown, kTensor, kSequence, kOptional, kMap };
  Kind kind = Kind::kUnknown;
  tensor::ElementType element = tensor::ElementType::kUndefined;  // kTensor; kMap: the key
  std::optional<std::vector<Extent>> extents;                     // kTensor; nothing: unknown rank
  std::shared_ptr<const Type> inner;  // kSequence, kOptional: the element; kMap: the value
};

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an omitted optional input or output
// Inputs or outputs, of a node or a graph.
using ValueIds = base::SmallVector<ValueId, 4>;
using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

// Most elements of a constant whose values may decide whether a node is supported (shapes, axes,
// pads, scales).
inline constexpr int64_t kMaxStructuralCount = 64;

// One edge: a name, what is declared of it, and its tensor if it is constant.
struct Value {
  std::string name;
  Type type;
  // Present for initializers, weights by descriptor and folded values.
  std::optional<tensor::Tensor> constant;
  // Defined in an enclosing graph: the id there (the enclosing graph's ValueId), else kNoValue.
  ValueId outer = kNoValue;
  // A constant whose values the support answer must not look at. Without `constant`: a weight whose
  // values are not at hand (a support question); its type and extents are those of `type`.
  bool is_weight = false;
};

// Attribute values. Graph-valued ones are owned. Types as in ONNX's AttributeProto.
using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, tensor::Tensor, std::vector<tensor::Tensor>,
                 std::shared_ptr<const Graph>, std::vector<std::shared_ptr<const Graph>>, Type>;

struct Node {
  std::string name;
  std::string op_type;
  std::string domain;     // "" for the default domain, never "ai.onnx"
  int since_version = 0;  // of the operator's schema, resolved from the model's operator sets
  int index = 0;     // position in the model as the caller sent it; kept by passes for messages
  ValueIds inputs;   // kNoValue where omitted
  ValueIds outputs;  // likewise
  std::map<std::string, Attribute, std::less<>> attributes;

  template <typename T>
  const T* FindAttribute(std::string_view attribute_name) const {
    auto found = attributes.find(attribute_name);
    return found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
  }
};

// "node 3 'conv1' (Conv)": how messages name a node.
std::string Describe(const Node& node);

// Calls `visit` for each graph among the node's attributes.
void ForEachSubgraph(const Node& node,
                     const std::function<void(const std::shared_ptr<const Graph>&)>& visit);
// Replaces each graph among the node's attributes by what `transform` gives for it; the same
// pointer leaves it as it is. Answers whether any was replaced.
bool TransformSubgraphs(Node& node, const std::function<std::shared_ptr<const Graph>(
                                        const std::shared_ptr<const Graph>&)>& transform);

// Nodes are in topological order at all times; each value has at most one producer. A subgraph is a
// Graph of its own whose captured values are values with `outer` set.
class Graph {
 public:
  std::string name;
  std::vector<Value> values;  // indexed by ValueId
  std::vector<Node> nodes;
  ValueIds inputs;  // without constants: what a caller must bind
  ValueIds outputs;
  // Of the model's own graph: what its import did not take, a sentence each, for the log.
  std::vector<std::string> notes;

  ValueId AddValue(Value value);
  // How often `value` is read: by node inputs, graph outputs and captures of subgraphs. O(nodes),
  // as is Producer; a pass over the whole graph asks for all at once.
  int UseCount(ValueId value) const;
  std::vector<int> UseCounts() const;  // by ValueId
  std::optional<NodeId> Producer(ValueId value) const;
  std::vector<NodeId> Producers() const;  // by ValueId; kNoNode for inputs, constants, captures
  bool IsOutput(ValueId value) const;
  // Makes every reader (graph outputs and captures too) of `from` read `to`.
  void ReplaceUses(ValueId from, ValueId to);
};

}  // namespace onnxifi::graph

#endif  // ONNXIFI_BACKENDS_CORE_GRAPH_GRAPH_H_

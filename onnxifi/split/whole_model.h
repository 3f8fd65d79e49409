// SPDX-License-Identifier: Apache-2.0
//
// WholeModel: a model as the partitioner needs it: which nodes read and make which values, what is
// known of each value, and the parts from which models of islands are put together. Shapes are
// inferred here once, by the ONNX library.

#ifndef ONNXIFI_ONNXIFI_SPLIT_WHOLE_MODEL_H_
#define ONNXIFI_ONNXIFI_SPLIT_WHOLE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/tensor/element_type.h"
#include "onnxifi/split/flowing_value.h"
#include "onnxifi/split/node_signature.h"

namespace onnxifi::split {

// A weight that the caller gives by a descriptor, apart from the model. It wins over an initializer
// of its name.
struct GivenWeight {
  std::string name;
  tensor::ElementType type = tensor::ElementType::kUndefined;
  std::vector<int64_t> extents;
  const std::byte* data = nullptr;  // dense; may be null where there are no elements
};

struct ModelNode {
  int32_t model_index = 0;  // in graph.node of the model as given, whose nodes need not be sorted
  int32_t graph_index = 0;  // in graph.node of the claim model
  std::string name;
  std::string domain;  // "" for the default domain
  std::string operator_type;
  // The device that the model names for it, see placement.h; empty where it names none.
  std::string placement;
  // Bytes of the weights and constants that it reads, extents that are not known taken as 1.
  int64_t constant_bytes = 0;
};

// A node of the main graph as the model writes it.
struct NodeHead {
  std::string name;
  std::string domain;  // "" for the default domain
  std::string operator_type;
  // Of the operator set that the model imports for the domain; -1: none.
  int64_t opset_version = -1;
};

// An island as a model of its own, which any ONNXIFI plugin takes.
struct IslandModel {
  std::string bytes;
  // What it reads and makes, in the order of its graph: positions among the values.
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  // Weights of the caller's that it reads: positions among those given.
  std::vector<int32_t> weights;
  // For each of its nodes the position in the whole model's graph.node.
  std::vector<int32_t> model_nodes;
};

class WholeModel {
 public:
  // Borrows `model` and the data of `weights`, which outlive it. INVALID_PROTOBUF, INVALID_MODEL,
  // or UNSUPPORTED_OPERATOR for a model that cannot be cut: one without declared outputs, or with
  // an output that no node makes. Nodes are sorted.
  static base::Result<std::unique_ptr<WholeModel>> Read(std::span<const std::byte> model,
                                                        std::span<const GivenWeight> weights);
  ~WholeModel();

  // Without constants, without nodes whose results the model fixes (those of Shape where all
  // extents are numbers), and without what only these need: islands that read such values get them
  // as constants. Without nodes whose results nobody reads.
  const std::vector<ModelNode>& nodes() const { return nodes_; }
  const std::vector<FlowingValue>& values() const { return values_; }
  // Every node of the model as given, in its order, those that are not among nodes() too. Made
  // anew.
  std::vector<NodeHead> Heads() const;
  // Positions among the values, in the order of the model's declarations.
  const std::vector<int32_t>& inputs() const { return inputs_; }
  const std::vector<int32_t>& outputs() const { return outputs_; }

  // The model with the type of every value that is known and without the data of large weights:
  // what devices are asked about.
  const std::string& claim_model() const { return claim_model_; }

  // `nodes`: positions, ascending. An island without outputs has no use and is not asked for.
  IslandModel Extract(std::span<const int32_t> nodes) const;

  // What a sentence about the node may quote: its name, then those of what it reads and makes, but
  // for any that is its operator's too; empty ones among them.
  std::vector<std::string> NamesOf(int32_t node) const;

  // By node: equal ones are claimed alike and take equally long. Not cheap: made anew.
  std::vector<NodeSignature> Signatures() const;

 private:
  struct Contents;

  explicit WholeModel(std::unique_ptr<Contents> parts);
  base::Status FindValues();

  const std::unique_ptr<Contents> parts_;
  std::vector<ModelNode> nodes_;
  std::vector<FlowingValue> values_;
  std::vector<int32_t> inputs_;
  std::vector<int32_t> outputs_;
  std::string claim_model_;
};

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_WHOLE_MODEL_H_

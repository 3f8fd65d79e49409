// SPDX-License-Identifier: Apache-2.0
//
// NodeSigner: what a node is but for names, as a digest. Nodes of equal signatures, of whatever
// models, are claimed alike and take equally long, so that a device is asked once.

#ifndef ONNXIFI_ONNXIFI_SPLIT_NODE_SIGNER_H_
#define ONNXIFI_ONNXIFI_SPLIT_NODE_SIGNER_H_

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/split/digest.h"
#include "onnxifi/split/flowing_value.h"
#include "onnxifi/split/node_signature.h"

namespace onnxifi::split {

// Makes the signatures of the nodes of one model, in their order.
class NodeSigner {
 public:
  // Tensors up to this size count by their contents, larger ones by type and extents.
  static constexpr size_t kSmallTensorBytes = 4096;

  // Operator sets and functions of `model`, whose nodes are not read.
  explicit NodeSigner(const onnx::ModelProto& model);

  // Of a constant: the type, extents and, where they are small enough to be here, contents.
  static Digest OfConstant(tensor::ElementType type, std::span<const int64_t> extents,
                           std::string_view contents);
  // Of a tensor that has its data, but for its name.
  static Digest OfConstant(const onnx::TensorProto& tensor);

  // What a name means that a node reads: a constant, or a value and the signature of what makes it
  // (nothing for a graph input).
  struct Meaning {
    std::optional<Digest> constant;
    const FlowingValue* value = nullptr;
    const NodeSignature* maker = nullptr;
    int64_t place = 0;  // among the maker's outputs
  };

  // `reads`: names that the node reads, each once; `meaning_of` by name; `value_of` by the name of
  // an output, null where it makes none.
  NodeSignature Sign(const onnx::NodeProto& node, std::span<const std::string> reads,
                     const std::function<Meaning(const std::string&)>& meaning_of,
                     const std::function<const FlowingValue*(const std::string&)>& value_of) const;

 private:
  Digest frame_;
  // By domain and operator.
  std::unordered_map<std::string, Digest> functions_;
};

}  // namespace onnxifi::split

#endif  // ONNXIFI_ONNXIFI_SPLIT_NODE_SIGNER_H_

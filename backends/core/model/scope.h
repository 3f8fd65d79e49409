// SPDX-License-Identifier: Apache-2.0
//
// Scope: the names of one graph or function body while it is imported, and the values that they
// stand for in the Graph that is being built.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_SCOPE_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_SCOPE_H_

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/hash_index.h"
#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/opset_table.h"

namespace onnxifi::model {

// Subgraphs and function calls inside one another.
inline constexpr int kDeepestScope = 128;

struct Call;

// Function bodies see no names around them, subgraphs see all. Borrows the strings that it is given
// as names, and all that its members point to.
struct Scope {
  struct Entry {
    graph::ValueId id = graph::kNoValue;
    bool is_defined = false;  // else only its type is declared
    bool is_input = false;
    bool is_output = false;
    bool is_read = false;
  };

  // The entries of all names. References to them are valid until a name is added.
  class Names {
   public:
    // Null: no such name.
    Entry* Find(std::string_view name);
    const Entry* Find(std::string_view name) const { return const_cast<Names*>(this)->Find(name); }
    // Adds the name if it is not there.
    Entry& operator[](std::string_view name);

   private:
    struct Named {
      std::string_view name;
      Entry entry;
    };
    int32_t Position(std::string_view name, size_t hash) const;

    base::HashIndex by_hash_;
    std::vector<Named> named_;
  };

  graph::Graph* graph;
  Scope* outer;  // of the enclosing graph; null in the model's own graph and in function bodies
  const OpsetTable* opsets;
  const Call* call;    // whose body this is, or is a subgraph in; null outside functions
  std::string prefix;  // of node names: the path of calls
  int depth;
  // A name that nothing defines becomes an input of the graph, of unknown type. Only without
  // `outer`.
  bool takes_undeclared = false;
  Names names = {};

  // Whether this is the model's own graph.
  bool is_main() const { return outer == nullptr && call == nullptr; }

  // Notes the type that the model declares for a name before the name is defined.
  void Declare(std::string_view name, graph::Type type);
  // INVALID_MODEL if the name has a value already.
  base::Result<graph::ValueId> Define(std::string_view name, graph::Value value);
  // The value of that name here or in an enclosing graph, which is captured; kNoValue for an
  // omitted input of a function.
  std::optional<graph::ValueId> Resolve(std::string_view name);
  // One per input of the node, kNoValue where it is omitted. INVALID_MODEL.
  base::Result<graph::ValueIds> ResolveInputs(const onnx::NodeProto& node);

  // Whether a scope may lie inside this one. UNSUPPORTED_OPERATOR.
  base::Status CheckDepth() const;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_SCOPE_H_

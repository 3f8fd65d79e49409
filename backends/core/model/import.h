// SPDX-License-Identifier: Apache-2.0
//
// Import: the bytes of an ONNX model -> a Graph. The first stage of every call that takes a model:
// scan the bytes, parse what is left without tensor data, resolve names and operator versions,
// check each node against its schema, take the weights in.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"

namespace onnxifi::model {

// A weight that the caller gives apart from the model. Borrowed during the call; data are copied.
struct Weight {
  std::string name;
  tensor::ElementType type = tensor::ElementType::kUndefined;
  std::vector<int64_t> extents;
  const std::byte* data = nullptr;  // dense; may be null where an extent is 0
};

struct ImportOptions {
  // Win over initializers of the same name and over the element type that the model declares for
  // them.
  std::vector<Weight> weights;
  // The folder that external data may be read from. Nothing: a model with external data is refused.
  std::optional<std::string> base_folder;
  // The model is a private mapping of a file that nobody has written to: pages whose data are
  // copied are given back to the system.
  bool is_mapped_model = false;
  // The model's bytes stay, unchanged, for as long as the graph and whatever is made of it: large
  // tensors are views on them, at any address.
  bool is_lasting_model = false;
  // False for a support question: initializers of more than kLargestStructuralCount elements, those
  // in external files and those without data become weights without values, and a name that nothing
  // defines becomes an input of unknown type.
  bool lift_values = true;
};

// The graph of the model, model-local functions inlined. No pointer into `model` is kept, unless
// it lasts; tensors in external files stay mapped while the graph or a tensor of it lives. Graph
// inputs that are initializers or weights are constants, no longer inputs. A model that declares no
// outputs gets the values that nothing reads. Errors, each with the offset, node or value
// concerned:
//   INVALID_PROTOBUF      the bytes are no ModelProto, or nest too deep
//   INVALID_MODEL         the model breaks a rule of ONNX
//   UNSUPPORTED_VERSION   IR or operator set version above the newest known
//   UNSUPPORTED_OPERATOR  an operator that neither ONNX nor the model defines; functions that
//   expand without end UNSUPPORTED_DATATYPE, UNSUPPORTED_SHAPE   element types, ranks and sparse
//   tensors beyond what a Graph holds INVALID_NAME          a weight that nothing in the model
//   names, or given twice INVALID_SHAPE, INVALID_MEMORY_LOCATION, MISMATCHING_SHAPE   a weight
//   against its declaration NO_SYSTEM_MEMORY
// Threads: may be called from any number of threads at once.
base::Result<graph::Graph> Import(std::span<const std::byte> model, const ImportOptions& options);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_H_

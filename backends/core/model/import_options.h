// SPDX-License-Identifier: Apache-2.0
//
// ImportOptions: what a caller says of a model beside its bytes.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_OPTIONS_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/core/tensor/element_type.h"

namespace onnxifi::model {

class Domains;

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
  // False for a support question: initializers of more than kMaxStructuralCount elements, those
  // in external files and those without data become weights without values, Constant nodes in
  // external files, too, and a name that nothing defines becomes an input of unknown type.
  bool lift_values = true;
  // The model is made of an operator's definition: attributes that ONNX leaves to implementations,
  // whose names begin with two underscores, are this project's (graph/own_attributes.h) and kept.
  // Of a caller's model they are dropped.
  bool is_definition = false;
  // The operators beside ONNX's, which outlive the import; null: there are none.
  const Domains* domains = nullptr;
};

// Those of the options, or none.
const Domains& DomainsOf(const ImportOptions& options);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_IMPORT_OPTIONS_H_

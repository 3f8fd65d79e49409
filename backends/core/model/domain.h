// SPDX-License-Identifier: Apache-2.0
//
// Domain: operators beside those that ONNX defines, as the author of a domain writes them down: the
// declaration of each, and its definition as a function of other operators. `Domains` makes schemas
// of them.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_DOMAIN_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_DOMAIN_H_

#include <span>
#include <string_view>

#include "backends/core/base/status.h"

namespace onnx {
struct InferenceContext;
}
namespace onnxifi::tensor {
class Tensor;
}

namespace onnxifi::model {

class Definition;

// One operator since one version of its domain.
struct DomainOperator {
  // Inputs, outputs, attributes and types, as declaration.h describes.
  std::string_view declaration;
  // Writes what a node computes as nodes of other operators, and checks what the declaration cannot
  // say. Null where plugins lower the operator themselves.
  base::Status (*define)(Definition& definition) = nullptr;
  int since_version = 1;
  // Types and shapes of outputs, as the ONNX library asks for them. Null: those of the definition.
  void (*infer)(onnx::InferenceContext& context) = nullptr;
  // Checks the numbers of an input that is a structural constant of the model; a definition sees
  // types and extents alone. Null: any are right.
  base::Status (*check_constant)(int input, const tensor::Tensor& constant) = nullptr;
};

// An operator that the domain's owner defines and the list below does not, and why: a sentence.
struct RefusedOperator {
  std::string_view name;
  std::string_view reason;
};

struct Domain {
  std::string_view name;  // canonical: "" for ONNX's own
  int newest_version = 1;
  std::span<const DomainOperator> operators;
  std::span<const RefusedOperator> refused = {};
  // What a person is told once of a model that uses the domain: a sentence; empty for nothing.
  std::string_view note = {};
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_DOMAIN_H_

// SPDX-License-Identifier: Apache-2.0
//
// Schema: what ONNX and the domains beside it say of operators. The one adapter around the schemas
// of the ONNX library; no exception of the library passes it.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_SCHEMA_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_SCHEMA_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/graph/graph.h"
#include "backends/core/model/domains.h"

namespace onnxifi::model {

// One version of one operator. Refers to the schema, which lives as long as the process.
class Schema {
 public:
  // The schema in force at `opset` of `domain` (canonical). UNSUPPORTED_OPERATOR if the domain
  // never had the operator, or not yet at `opset`; INVALID_MODEL if it is deprecated there.
  // `domains` outlives the result.
  static base::Result<Schema> Find(const std::string& op_type, const std::string& domain,
                                   int64_t opset, const Domains& domains = NoDomains());
  const std::string& op_type() const;
  int since_version() const;

  // Counts and omissions of inputs and outputs, names and types of attributes. An attribute that no
  // version of the operator has is not checked; one of another version is refused. INVALID_MODEL.
  base::Status CheckNode(const onnx::NodeProto& node) const;
  // Whether the operator has the attribute in this version.
  bool Knows(const std::string& attribute) const;
  // The type that the operator gives an attribute; UNDEFINED for one that it does not have.
  onnx::AttributeProto::AttributeType AttributeType(const std::string& name) const;

  // A required attribute that is not there. INVALID_MODEL. Apart from CheckNode, because the
  // attributes of a node in a function may come from its call.
  base::Status CheckRequired(
      const std::map<std::string, graph::Attribute, std::less<>>& attributes) const;

  // Whether ONNX lets the operator take inputs of these types; unknown ones are not checked.
  // UNSUPPORTED_DATATYPE.
  base::Status CheckInputTypes(const std::vector<onnx::TypeProto>& types) const;

  // Whether a domain's operator takes a constant of these numbers as an input. INVALID_MODEL.
  base::Status CheckConstant(int input, const tensor::Tensor& constant) const {
    return domains_->CheckConstant(*schema_, input, constant);
  }

  // Whether the operator is defined as a function, for some types at least.
  bool HasFunction() const;

  // The operator's definition as a function for a node of these input types, which wants these of
  // its outputs. UNSUPPORTED_OPERATOR if it has none, or none for these types; what the definition
  // of a domain refuses a node for.
  base::Result<onnx::FunctionProto> BuildFunction(const onnx::NodeProto& node,
                                                  const std::vector<onnx::TypeProto>& types,
                                                  const std::vector<bool>& wants) const;

 private:
  Schema(const onnx::OpSchema& schema, const Domains& domains)
      : schema_(&schema), domains_(&domains) {}

  bool IsOfAnotherVersion(const std::string& attribute) const;

  const onnx::OpSchema* schema_;
  const Domains* domains_;
};

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_SCHEMA_H_

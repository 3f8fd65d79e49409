// SPDX-License-Identifier: Apache-2.0
//
// Domains: the schemas of ONNX's operators and of those that domains add. Whoever imports a model
// or infers its shapes looks operators up here.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_DOMAINS_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_DOMAINS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/model/domain.h"

namespace onnx {
class FunctionProto;
class OpSchema;
struct InferenceContext;
}  // namespace onnx

namespace onnxifi::model {

class DefinedNode;

// Threads: any. Schemas live as long as this object.
class Domains {
 public:
  // The domains, which outlive this object; the operators of one may be listed in parts. Where two
  // declare the same version of an operator, the first counts, and ONNX before all.
  explicit Domains(std::span<const Domain* const> domains);
  ~Domains();
  Domains(const Domains&) = delete;
  Domains& operator=(const Domains&) = delete;

  // The newest schema that is no newer than `opset` of `domain` (canonical); null if there is none.
  const onnx::OpSchema* FindSchema(std::string_view op_type, std::string_view domain,
                                   int opset) const;
  bool HasSchema(std::string_view op_type, std::string_view domain) const;
  // Why the domain has the operator and no schema of it; empty where nothing says so.
  std::string_view ReasonToRefuse(std::string_view op_type, std::string_view domain) const;
  // Nothing for a domain that is neither ONNX's nor one of these.
  std::optional<int64_t> NewestOpset(std::string_view domain) const;
  // What a person is told once of a model that uses the domain; empty for nothing.
  std::string_view NoteOf(std::string_view domain) const;
  // "ai.onnx:28 ... com.example:1", as the information query wants it.
  std::string SupportedOpsets() const;

  // Whether every declaration can be read. INTERNAL_ERROR; for the tests of a domain, since an
  // operator whose declaration cannot be read is none.
  base::Status CheckDeclarations() const;

  // Whether `schema`, one of these, is of an operator with a definition of its domain's.
  bool HasDefinition(const onnx::OpSchema& schema) const;
  // The definition for a node. Errors: those that it gives; UNSUPPORTED_DATATYPE and
  // MISMATCHING_DATATYPE: types that the declaration does not allow.
  base::Result<onnx::FunctionProto> Define(const onnx::OpSchema& schema,
                                           const DefinedNode& node) const;
  // What the operator refuses a constant as an input for.
  base::Status CheckConstant(const onnx::OpSchema& schema, int input,
                             const tensor::Tensor& constant) const;

 private:
  struct Entry {
    const DomainOperator* operation = nullptr;
    std::unique_ptr<const onnx::OpSchema> made;  // guarded by mutex_
  };
  using Key = std::pair<std::string_view, std::string_view>;  // domain and operator

  const onnx::OpSchema* Make(std::string_view domain, Entry& entry) const;
  const DomainOperator* FindOperator(const onnx::OpSchema& schema) const;
  void Infer(const onnx::OpSchema& schema, onnx::InferenceContext& context) const;

  const std::vector<const Domain*> domains_;
  // By operator: its versions, the oldest first.
  mutable std::map<Key, std::map<int, Entry>> entries_;
  mutable std::mutex mutex_;
};

// ONNX's operators alone.
const Domains& NoDomains();

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_DOMAINS_H_

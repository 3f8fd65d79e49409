// SPDX-License-Identifier: Apache-2.0
//
// Operator: the entry of one ONNX operator. Each operator file has two beats, legality and
// lowering, in one function per operator, and a table of its entries at the end; registry.cc lists
// the tables.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_OPERATOR_H_
#define ONNXIFI_BACKENDS_CORE_OPS_OPERATOR_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "backends/core/base/status.h"

namespace onnxifi::ops {

class Lowering;

// What inputs of an operator may be; others are refused before its `lower` is called.
enum class InputKinds : uint8_t {
  kNumbers,  // tensors of numbers or bool
  kStrings,  // and of strings
  kValues,   // and sequences, maps and optionals
};

struct Operator {
  std::string_view op_type;
  // The newest version (ONNX's since_version) that `lower` knows; older ones are told apart by
  // Lowering::version().
  int newest_version;
  // Checks the node and emits its steps. UNSUPPORTED_* where the lowering has a limit,
  // INVALID_MODEL or MISMATCHING_* where the model is wrong, each with a sentence.
  base::Status (*lower)(Lowering& lowering);
  std::string_view domain = "";
  InputKinds input_kinds = InputKinds::kNumbers;
};

// The entry of an operator of the default or another domain; null if there is none.
const Operator* FindOperator(std::string_view domain, std::string_view op_type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_OPERATOR_H_

// SPDX-License-Identifier: Apache-2.0
//
// CheckRecurrent: which views there are, their types and ranks, and the attributes of the kind.

#include "backends/core/program/recurrent_verifier.h"

#include <string>

#include "backends/core/program/expr_verifier.h"

namespace onnxifi::program {
namespace {

using base::Status;
using Kind = Recurrent::Kind;

// A view that a step may, must or must not have.
struct OperandRule {
  const char* name;
  bool is_allowed, is_needed;
  ElementType type;
  size_t rank;
};

Status CheckOperand(const View& view, const OperandRule& place) {
  const std::string name(place.name);
  if (view.buffer == kNoBuffer) {
    if (place.is_needed) return Fault("A recurrent step has no " + name + ".");
    return base::Ok();
  }
  if (!place.is_allowed) {
    return Fault("A recurrent step has " + name + ", which its kind does not use.");
  }
  if (view.type != place.type) {
    return Fault("The " + name + " of a recurrent step have type " + TypeText(view.type) +
                 ", not " + TypeText(place.type) + ".");
  }
  if (view.strides.size() == place.rank) return base::Ok();
  return Fault("The " + name + " of a recurrent step have " + std::to_string(view.strides.size()) +
               " axes instead of " + std::to_string(place.rank) + ".");
}

Status CheckAttributes(const Step& step, const Recurrent& recurrent) {
  if (step.domain.size() != 4) {
    return Fault("A recurrent step has a domain of rank " + std::to_string(step.domain.size()) +
                 ", not 4.");
  }
  const Dim& directions = step.domain[0];
  const Dim& hidden = step.domain[3];
  if (!(directions == Dim(1)) && !(directions == Dim(2))) {
    return Fault("A recurrent step has " + directions.ToString() + " directions, not 1 or 2.");
  }
  if (!hidden.is_constant() || hidden.constant() < 1) {
    return Fault("The hidden size of a recurrent step is " + hidden.ToString() +
                 ", no positive number.");
  }
  if (recurrent.type != ElementType::kFloat32 && recurrent.type != ElementType::kFloat64) {
    return Fault("A recurrent step computes in " + TypeText(recurrent.type) +
                 ", not in float32 or float64.");
  }
  const int64_t functions = recurrent.functions() * directions.constant();
  if (static_cast<int64_t>(recurrent.activations.size()) != functions) {
    return Fault("A recurrent step has " + std::to_string(recurrent.activations.size()) +
                 " activations instead of " + std::to_string(functions) + ".");
  }
  if (!(recurrent.clip >= 0)) {
    return Fault("A recurrent step clips at " + std::to_string(recurrent.clip) + ".");
  }
  return base::Ok();
}

}  // namespace

Status CheckRecurrent(const Step& step) {
  const Recurrent& recurrent = *step.As<Recurrent>();
  ONNXIFI_RETURN_IF_ERROR(CheckAttributes(step, recurrent));
  if (step.reads.size() != Recurrent::kReads || step.writes.size() != Recurrent::kWrites) {
    return Fault("A recurrent step has " + std::to_string(step.reads.size()) + " reads and " +
                 std::to_string(step.writes.size()) + " writes instead of " +
                 std::to_string(Recurrent::kReads) + " and " + std::to_string(Recurrent::kWrites) +
                 ".");
  }
  const ElementType type = recurrent.type;
  const bool is_lstm = recurrent.kind == Kind::kLstm;
  const bool has_bias = recurrent.kind == Kind::kGru && recurrent.resets_linear;
  const OperandRule reads[] = {{"projected inputs", true, true, type, 4},
                               {"weights", true, true, type, 3},
                               {"initial hidden states", true, false, type, 3},
                               {"initial cell states", is_lstm, false, type, 3},
                               {"lengths", true, false, ElementType::kInt32, 1},
                               {"peepholes", is_lstm, false, type, 2},
                               {"biases of the hidden gate", has_bias, false, type, 2}};
  const OperandRule writes[] = {{"hidden states", true, false, type, 4},
                                {"last hidden states", true, false, type, 3},
                                {"last cell states", is_lstm, false, type, 3}};
  for (size_t k = 0; k < step.reads.size(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(CheckOperand(step.reads[k], reads[k]));
  }
  for (size_t k = 0; k < step.writes.size(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(CheckOperand(step.writes[k], writes[k]));
  }
  return base::Ok();
}

}  // namespace onnxifi::program

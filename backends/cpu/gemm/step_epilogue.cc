// SPDX-License-Identifier: Apache-2.0
//
// StepEpilogue: some lists of operations fit: one bias, one addend, then one activation.

#include "backends/cpu/gemm/step_epilogue.h"

#include <vector>

#include "backends/cpu/epilogue/operation.h"

namespace onnxifi::gemm {
namespace {

using base::Code;
using base::Status;
using epilogue::Kind;
using epilogue::Operation;

// A view over the result that differs between channels only.
bool IsPerChannel(const program::View& view, const program::Shape& domain, size_t channel_axis) {
  for (size_t axis = 0; axis < view.strides.size(); ++axis) {
    const program::Dim expected(axis == channel_axis ? 1 : 0);
    if (domain[axis] != program::Dim(1) && view.strides[axis] != expected) return false;
  }
  return true;
}

bool TakesActivation(const Operation& operation, StepEpilogue& result) {
  switch (operation.kind) {
    case Kind::kClip:
      result.activation = Activation::kClip;
      break;
    case Kind::kLeakyRelu:
      result.activation = Activation::kLeaky;
      break;
    case Kind::kHardSwish:
      result.activation = Activation::kHardSwish;
      break;
    case Kind::kLogistic:
      result.activation = Activation::kLogistic;
      break;
    case Kind::kSwish:
      result.activation = Activation::kSwish;
      break;
    case Kind::kGelu:
      result.activation = Activation::kGelu;
      break;
    case Kind::kTanh:
      result.activation = Activation::kTanh;
      break;
    default:
      return false;
  }
  result.low = operation.alpha;
  result.high = operation.beta;
  return true;
}

}  // namespace

base::Result<StepEpilogue> SelectEpilogue(const device::Facts& facts, size_t channel_axis) {
  const auto& contract = *facts.step.As<program::Contract>();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<Operation> operations,
                           epilogue::OperationsOf(facts.program, facts.step, contract.roots[0]));
  StepEpilogue result;
  for (const Operation& operation : operations) {
    if (result.activation != Activation::kNone) {
      return Status(Code::kUnsupportedAttribute, "The epilogue goes on after its activation.");
    }
    if (!operation.is_binary()) {
      if (TakesActivation(operation, result)) continue;
      return Status(Code::kUnsupportedAttribute,
                    "The epilogue is none of bias, sum, bounds, logistic, Swish, Gelu and Tanh.");
    }
    if (operation.kind != Kind::kAdd) {
      return Status(Code::kUnsupportedAttribute,
                    "The epilogue combines sums with a tensor other than by adding it.");
    }
    const program::View& view = facts.step.reads[static_cast<size_t>(operation.read)];
    if (result.bias < 0 && IsPerChannel(view, facts.step.domain, channel_axis)) {
      result.bias = operation.read;
    } else if (result.addend < 0 && view.strides[channel_axis] == program::Dim(1)) {
      result.addend = operation.read;
    } else {
      return Status(Code::kUnsupportedShape,
                    "The epilogue adds more than a bias and a tensor with its channels innermost.");
    }
  }
  return result;
}

BoundEpilogue::BoundEpilogue(const StepEpilogue& epilogue, const device::BoundStep& step)
    : epilogue_(epilogue) {
  if (epilogue.bias >= 0) bias_ = step.reads[static_cast<size_t>(epilogue.bias)];
  if (epilogue.addend >= 0) addend_ = step.reads[static_cast<size_t>(epilogue.addend)];
}

Epilogue BoundEpilogue::At(device::Addresses addresses) const {
  Epilogue epilogue;
  if (bias_) epilogue.bias = FloatsAt(addresses, *bias_);
  epilogue.activation = epilogue_.activation;
  epilogue.low = epilogue_.low;
  epilogue.high = epilogue_.high;
  return epilogue;
}

}  // namespace onnxifi::gemm

// SPDX-License-Identifier: Apache-2.0
//
// ExprVerifier: types of operands by operation, and leaves by place.

#include "backends/core/program/expr_verifier.h"

#include <utility>

namespace onnxifi::program {

using base::Status;

Status Fault(std::string sentence) {
  return Status(base::Code::kInternalError, std::move(sentence));
}

std::string TypeText(ElementType type) { return std::string(tensor::Name(type)); }

Status CheckRank(const char* what, size_t index, const View& view, size_t expected) {
  if (view.strides.size() == expected) return base::Ok();
  return Fault(std::string(what) + " " + std::to_string(index) + " has " +
               std::to_string(view.strides.size()) + " axes, not " + std::to_string(expected) +
               ".");
}

Status ExprVerifier::Check(ExprId root, const AllowedLeaves& place) const {
  if (root < 0 || root >= program_.exprs.size()) {
    return Fault("Expression " + std::to_string(root) + " does not exist; there are " +
                 std::to_string(program_.exprs.size()) + ".");
  }
  const ExprId roots[] = {root};
  for (ExprId id : Reachable(program_.exprs, roots)) {
    Status status = CheckNode(program_.exprs[id], place);
    if (!status.ok()) return std::move(status).Context("in " + ToString(program_.exprs, id));
  }
  return base::Ok();
}

Status ExprVerifier::CheckNode(const ExprNode& node, const AllowedLeaves& place) const {
  const ExprPool& pool = program_.exprs;
  auto operand_type = [&](size_t k) { return pool[node.operands[k]].type; };
  auto arity = [&](size_t expected) {
    return node.operands.size() == expected
               ? base::Ok()
               : Fault("The operation " + std::string(Name(node.op)) + " has " +
                       std::to_string(node.operands.size()) + " operands, not " +
                       std::to_string(expected) + ".");
  };
  auto typed = [&](ElementType expected) {
    return node.type == expected ? base::Ok()
                                 : Fault("A " + std::string(Name(node.op)) + " has type " +
                                         TypeText(node.type) + ", not " + TypeText(expected) + ".");
  };
  switch (node.op) {
    case ExprOp::kConstant:
      return arity(0);
    case ExprOp::kDim:
      return typed(ElementType::kInt64);
    case ExprOp::kIndex:
      if (node.payload >= place.index_axes) {
        return Fault("Coordinate " + std::to_string(node.payload) + " is read where there are " +
                     std::to_string(place.index_axes) + ".");
      }
      return typed(ElementType::kInt64);
    case ExprOp::kLoad:
      return CheckLoad(node, place);
    case ExprOp::kState:
    case ExprOp::kOther: {
      const bool is_allowed =
          place.state != nullptr && (node.op == ExprOp::kState || place.has_other);
      if (!is_allowed || node.payload >= place.state->size()) {
        return Fault("State " + std::to_string(node.payload) + " is read where there is none.");
      }
      return typed((*place.state)[node.payload].type);
    }
    case ExprOp::kRow: {
      const size_t pass = node.payload / 256;
      const size_t result = node.payload % 256;
      if (pass >= place.row_passes || result >= (*place.passes)[pass].results.size()) {
        return Fault("Result " + std::to_string(result) + " of pass " + std::to_string(pass) +
                     " is read where " + std::to_string(place.row_passes) + " passes are done.");
      }
      return typed(pool[(*place.passes)[pass].results[result]].type);
    }
    case ExprOp::kAccumulator:
      if (place.accumulator == ElementType::kUndefined) {
        return Fault("An accumulator is read where there is none.");
      }
      return typed(place.accumulator);
    case ExprOp::kSelect:
      ONNXIFI_RETURN_IF_ERROR(arity(3));
      if (operand_type(0) != ElementType::kBool || operand_type(1) != node.type ||
          operand_type(2) != node.type) {
        return Fault("A select of " + TypeText(node.type) + " has operands of types " +
                     TypeText(operand_type(0)) + ", " + TypeText(operand_type(1)) + " and " +
                     TypeText(operand_type(2)) + ".");
      }
      return base::Ok();
    case ExprOp::kCast:
      return arity(1);
    case ExprOp::kBitcast:
      ONNXIFI_RETURN_IF_ERROR(arity(1));
      if (tensor::BitWidth(operand_type(0)) != tensor::BitWidth(node.type)) {
        return Fault("A bitcast turns " + TypeText(operand_type(0)) + " into " +
                     TypeText(node.type) + ", which is of another width.");
      }
      return base::Ok();
    case ExprOp::kRandom:
      ONNXIFI_RETURN_IF_ERROR(arity(1));
      return operand_type(0) == ElementType::kInt64
                 ? typed(ElementType::kFloat64)
                 : Fault("The counter of a random number has type " + TypeText(operand_type(0)) +
                         ", not int64.");
    default:
      return CheckArithmetic(node);
  }
}

Status ExprVerifier::CheckArithmetic(const ExprNode& node) const {
  const auto operand_count = static_cast<size_t>(OperandCount(node.op));
  if (node.operands.size() != operand_count) {
    return Fault("The operation " + std::string(Name(node.op)) + " has " +
                 std::to_string(node.operands.size()) + " operands.");
  }
  const ElementType type = program_.exprs[node.operands[0]].type;
  if (operand_count == 2 && program_.exprs[node.operands[1]].type != type) {
    return Fault("The operation " + std::string(Name(node.op)) + " combines " + TypeText(type) +
                 " and " + TypeText(program_.exprs[node.operands[1]].type) + ".");
  }
  if (tensor::ArithmeticType(type) != type || tensor::IsComplex(type)) {
    return Fault("The operation " + std::string(Name(node.op)) + " is done in " + TypeText(type) +
                 ", a type that is only stored.");
  }
  const bool gives_bool = node.op == ExprOp::kIsNan || IsComparison(node.op);
  const ElementType expected = gives_bool ? ElementType::kBool : type;
  if (node.type == expected) return base::Ok();
  return Fault("The operation " + std::string(Name(node.op)) + " on " + TypeText(type) +
               " has type " + TypeText(node.type) + ".");
}

Status ExprVerifier::CheckLoad(const ExprNode& node, const AllowedLeaves& place) const {
  if (!place.may_load) return Fault("An element is loaded where none may be.");
  if (node.payload >= step_.reads.size()) {
    return Fault("Read " + std::to_string(node.payload) + " does not exist; there are " +
                 std::to_string(step_.reads.size()) + ".");
  }
  const View& view = step_.reads[node.payload];
  if (node.type != view.type) {
    return Fault("Read " + std::to_string(node.payload) + " of type " + TypeText(view.type) +
                 " is loaded as " + TypeText(node.type) + ".");
  }
  for (ExprId operand : node.operands) {
    if (program_.exprs[operand].type != ElementType::kInt64) {
      return Fault("A coordinate of a load has type " + TypeText(program_.exprs[operand].type) +
                   ", not int64.");
    }
  }
  // A scalar is loaded at no coordinates; it looks like a load at the domain's.
  const bool is_scalar = node.operands.empty() && view.strides.empty();
  if (is_scalar) return base::Ok();
  return CheckRank("Read", node.payload, view,
                   node.operands.empty() ? place.load_rank : node.operands.size());
}

}  // namespace onnxifi::program

// SPDX-License-Identifier: Apache-2.0
//
// CheckPlain: type, guards, prologue.

#include "backends/cpu/runtime/plain_operand.h"

#include <string>
#include <string_view>

#include "backends/core/program/product_operand.h"

namespace onnxifi::runtime {

using base::Code;
using base::Status;
using program::Contract;
using program::ExprNode;
using tensor::ElementType;

namespace {

constexpr std::string_view kRoles[] = {"Operand A", "Operand B"};

}  // namespace

Status CheckPlain(const program::Program& program, const program::Step& step, int operand,
                  ElementType type) {
  const Contract* contract = step.As<Contract>();
  const std::string role(contract != nullptr ? kRoles[operand] : "The input");
  const program::View& view = step.reads[static_cast<size_t>(operand)];
  if (view.type != type) {
    return Status(Code::kUnsupportedDatatype, role + " is " + std::string(tensor::Name(view.type)) +
                                                  "; the primitives are used for " +
                                                  std::string(tensor::Name(type)) + ".");
  }
  if (!view.guards.empty()) {
    return Status(Code::kUnsupportedShape,
                  role + " is padded by its view; a primitive reads whole tensors.");
  }
  if (contract == nullptr) return base::Ok();
  const program::ProductOperand factor = program::FindProductOperand(program, step, operand);
  if (factor.is_stored && factor.zero_point == program::kNoExpr) return base::Ok();
  const ExprNode& node = program.exprs[operand == 0 ? contract->a_prologue : contract->b_prologue];
  return Status(Code::kUnsupportedAttribute, role + " is computed while it is read (" +
                                                 std::string(program::Name(node.op)) +
                                                 "); a primitive reads it from memory.");
}

}  // namespace onnxifi::runtime

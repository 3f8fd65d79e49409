// SPDX-License-Identifier: Apache-2.0
//
// FindProductOperand: takes a prologue apart from its root down.

#include "backends/core/program/product_operand.h"

namespace onnxifi::program {

using tensor::ElementType;

namespace {

ExprId PrologueOf(const Step& step, int operand) {
  if (const Contract* contract = step.As<Contract>()) {
    return operand == 0 ? contract->a_prologue : contract->b_prologue;
  }
  const Attention& attention = *step.As<Attention>();
  return operand == 0   ? attention.query_prologue
         : operand == 1 ? attention.key_prologue
                        : attention.value_prologue;
}

// What `root` is cast from, through all casts at its top that lose nothing.
ExprId BeforeWidening(const ExprPool& pool, ExprId root) {
  while (pool[root].op == ExprOp::kCast) {
    const ExprId from = pool[root].operands[0];
    if (!IsWidening(pool[from].type, pool[root].type)) break;
    root = from;
  }
  return root;
}

// The read that `root` loads over the operand's axes; -1 for anything else.
int LoadedRead(const ExprPool& pool, ExprId root) {
  const ExprNode& node = pool[root];
  return node.op == ExprOp::kLoad && node.operands.empty() ? static_cast<int>(node.payload) : -1;
}

}  // namespace

ElementType SumType(const Step& step) {
  const Contract* contract = step.As<Contract>();
  return contract != nullptr ? contract->accumulator : ElementType::kFloat32;
}

ProductOperand FindProductOperand(const Program& program, const Step& step, int operand) {
  const ExprPool& pool = program.exprs;
  ProductOperand found;
  found.element = PrologueOf(step, operand);
  if (pool[found.element].op == ExprOp::kSub && tensor::IsInteger(SumType(step))) {
    const ExprNode& difference = pool[found.element];
    found.element = difference.operands[0];
    found.zero_point = BeforeWidening(pool, difference.operands[1]);
    found.zero_point_type = pool[found.zero_point].type;
    found.zero_point_read = LoadedRead(pool, found.zero_point);
  }
  found.element = BeforeWidening(pool, found.element);
  found.type = pool[found.element].type;
  found.is_stored = LoadedRead(pool, found.element) == operand;
  return found;
}

bool IsWidening(ElementType from, ElementType to) {
  if (from == to) return true;
  const int from_bits = tensor::BitWidth(from);
  const int to_bits = tensor::BitWidth(to);
  if (tensor::IsFloat(to)) {
    // The narrower floats have no exponent that float32 lacks.
    const bool is_wide = to == ElementType::kFloat32 || to == ElementType::kFloat64;
    if (tensor::IsFloat(from)) return is_wide && from_bits < to_bits;
    // Of 24 and 53 bits of fraction.
    return is_wide && (tensor::IsBool(from) || tensor::IsInteger(from)) && 2 * from_bits <= to_bits;
  }
  if (!tensor::IsInteger(to)) return false;
  if (tensor::IsBool(from)) return true;
  if (!tensor::IsInteger(from) || from_bits >= to_bits) return false;
  return tensor::IsUnsigned(from) || tensor::IsSigned(to);
}

}  // namespace onnxifi::program

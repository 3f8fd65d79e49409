// SPDX-License-Identifier: Apache-2.0
//
// ContractForm: expressions that are taken apart from their roots down.

#include "backends/cuda/libraries/contract_form.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "backends/core/program/product_operand.h"

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;
using tensor::Precision;

Status Refuse(std::string sentence) {
  return Status(Code::kUnsupportedOperator, std::move(sentence));
}

Result<ContractForm> FindOperands(const device::Facts& facts) {
  const auto& contract = *facts.step.As<Contract>();
  std::array<program::ProductOperand, 2> operands;
  for (const int k : {0, 1}) {
    operands[static_cast<size_t>(k)] = FindProductOperand(facts.program, facts.step, k);
    const program::ProductOperand& operand = operands[static_cast<size_t>(k)];
    if (!operand.is_stored || operand.zero_point != program::kNoExpr ||
        !facts.step.reads[static_cast<size_t>(k)].guards.empty()) {
      return Refuse("An operand is not multiplied as it lies in memory.");
    }
  }
  const ElementType type = operands[0].type;
  const bool is_int8 = type == ElementType::kInt8;
  if (operands[1].type != type ||
      contract.accumulator != (is_int8 ? ElementType::kInt32 : ElementType::kFloat32)) {
    return Refuse("No library has products of these types.");
  }
  switch (type) {
    case ElementType::kInt8:
      return ContractForm{type, "int8"};
    case ElementType::kFloat16:
      return ContractForm{type, "float16"};
    case ElementType::kBfloat16:
      return ContractForm{type, "bfloat16"};
    case ElementType::kFloat32:
      break;
    default:
      return Refuse("No library has products of these types.");
  }
  // TF32 has all numbers of the narrower types, so that it is permitted where they are.
  if (facts.program.precision != Precision::kFloat32) {
    return ContractForm{type, "tf32", Precision::kTf32};
  }
  return ContractForm{type, "float32"};
}

// The step's results, if they have that form and a type that libraries give.
std::optional<ContractEpilogue> FindEpilogue(const device::Facts& facts, ElementType operand) {
  const auto& contract = *facts.step.As<Contract>();
  const program::ExprPool& pool = facts.program.exprs;
  if (contract.roots.size() != 1) return std::nullopt;
  ExprId at = contract.roots[0];
  const ElementType type = pool[at].type;
  if (type != contract.accumulator && type != operand) return std::nullopt;
  if (type != contract.accumulator) {
    const ExprNode& cast = pool[at];
    constexpr auto kNearest = static_cast<uint64_t>(tensor::Rounding::kNearestEven);
    if (cast.op != ExprOp::kCast || cast.payload >> 1 != kNearest) return std::nullopt;
    at = cast.operands[0];
  }
  const auto read_of = [&](ExprId id) {
    if (pool[id].op == ExprOp::kCast && pool[pool[id].operands[0]].type == type) {
      id = pool[id].operands[0];
    }
    const ExprNode& load = pool[id];
    const bool is_read = load.op == ExprOp::kLoad && load.operands.empty() && load.payload > 1 &&
                         load.type == type && facts.step.reads[load.payload].guards.empty();
    return is_read ? static_cast<int>(load.payload) : -1;
  };
  ContractEpilogue epilogue;
  if (pool[at].op == ExprOp::kMax && tensor::IsFloat(contract.accumulator)) {
    const program::ExprIds& sides = pool[at].operands;
    const auto is_zero = [&](ExprId side) {
      return pool[side].op == ExprOp::kConstant && std::bit_cast<double>(pool[side].payload) == 0;
    };
    const size_t zero = is_zero(sides[1]) ? 1 : 0;
    if (!is_zero(sides[zero])) return std::nullopt;
    epilogue.is_rectified = true;
    at = sides[1 - zero];
  }
  for (int* const term : {&epilogue.addend, &epilogue.bias}) {
    if (pool[at].op != ExprOp::kAdd || !tensor::IsFloat(contract.accumulator)) break;
    const program::ExprIds& terms = pool[at].operands;
    const size_t read_place = read_of(terms[1]) >= 0 ? 1 : 0;
    *term = read_of(terms[read_place]);
    if (*term < 0) return std::nullopt;
    at = terms[1 - read_place];
  }
  if (pool[at].op == ExprOp::kMul && pool[at].type == ElementType::kFloat32) {
    const program::ExprIds& factors = pool[at].operands;
    const size_t place = pool[factors[1]].op == ExprOp::kConstant ? 1 : 0;
    const ExprNode& factor = pool[factors[place]];
    if (factor.op != ExprOp::kConstant) return std::nullopt;
    epilogue.scale = static_cast<float>(std::bit_cast<double>(factor.payload));
    at = factors[1 - place];
  }
  if (pool[at].op != ExprOp::kAccumulator) return std::nullopt;
  return epilogue;
}

}  // namespace

Result<ContractForm> FindContractForm(const device::Facts& facts) {
  ONNXIFI_ASSIGN_OR_RETURN(ContractForm form, FindOperands(facts));
  const program::ExprPool& pool = facts.program.exprs;
  const Contract& contract = *facts.step.As<Contract>();
  for (const ExprId id : program::Reachable(pool, contract.roots)) {
    if (pool[id].op == ExprOp::kLoad && pool[id].payload < 2) {
      return Refuse("An operand is read after the products, too.");
    }
  }
  form.epilogue = FindEpilogue(facts, form.operand);
  form.is_narrowed = form.epilogue && pool[contract.roots[0]].type != contract.accumulator;
  return form;
}

}  // namespace onnxifi::cuda

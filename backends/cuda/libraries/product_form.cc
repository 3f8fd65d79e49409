// SPDX-License-Identifier: Apache-2.0
//
// ProductForm: expressions that are taken apart from their roots down.

#include "backends/cuda/libraries/product_form.h"

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

Status CheckForm(const Contract& contract) {
  if (contract.form == Contract::Form::kMatMul) return base::Ok();
  const auto is = [](const program::Dim& dim, int64_t number) {
    return dim == program::Dim(number);
  };
  if (contract.form != Contract::Form::kConv ||
      !std::ranges::all_of(std::span(contract.inner).subspan(1),
                           [&](const program::Dim& taps) { return is(taps, 1); }) ||
      !std::ranges::all_of(contract.strides, [](int64_t stride) { return stride == 1; }) ||
      !std::ranges::all_of(contract.pads_begin, [&](const auto& pad) { return is(pad, 0); })) {
    return Refuse(
        "cuBLASLt has products and convolutions of 1 tap, stride 1 and no padding alone.");
  }
  return base::Ok();
}

Result<ProductForm> FindOperands(const device::Facts& facts) {
  const auto& contract = *facts.step.As<Contract>();
  ONNXIFI_RETURN_IF_ERROR(CheckForm(contract));
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
    return Refuse("cuBLASLt has no product of these types.");
  }
  switch (type) {
    case ElementType::kInt8:
      return ProductForm{type, "int8", lt::kInInt32};
    case ElementType::kFloat16:
      return ProductForm{type, "float16"};
    case ElementType::kBfloat16:
      return ProductForm{type, "bfloat16"};
    case ElementType::kFloat32:
      break;
    default:
      return Refuse("cuBLASLt has no product of these types.");
  }
  // TF32 has all numbers of the narrower types, so that it is permitted where they are.
  if (facts.program.precision != Precision::kFloat32) {
    return ProductForm{type, "tf32", lt::kRoundedToTf32, Precision::kTf32};
  }
  return ProductForm{type, "float32"};
}

// The step's results, if they have that form and a type that the library gives.
std::optional<ProductEpilogue> FindEpilogue(const device::Facts& facts, ElementType operand) {
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
  ProductEpilogue epilogue;
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
  // To a narrower output it rounds before it adds, and its Relu makes zero of NaN, both for some
  // extents alone.
  const bool has_more = epilogue.bias >= 0 || epilogue.addend >= 0 || epilogue.is_rectified;
  if (type != contract.accumulator && has_more) return std::nullopt;
  return epilogue;
}

}  // namespace

Result<ProductForm> FindProductForm(const device::Facts& facts) {
  ONNXIFI_ASSIGN_OR_RETURN(ProductForm form, FindOperands(facts));
  const program::ExprPool& pool = facts.program.exprs;
  for (const ExprId id : program::Reachable(pool, facts.step.As<Contract>()->roots)) {
    if (pool[id].op == ExprOp::kLoad && pool[id].payload < 2) {
      return Refuse("An operand is read after the products, too.");
    }
  }
  form.epilogue = FindEpilogue(facts, form.operand);
  return form;
}

}  // namespace onnxifi::cuda

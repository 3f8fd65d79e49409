// SPDX-License-Identifier: Apache-2.0
//
// DescribeByteFactors: one reason after the other.

#include "backends/cpu/integer/byte_factors.h"

#include <string>

#include "backends/core/program/product_operand.h"

namespace onnxifi::integer {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Contract;
using program::Dim;
using tensor::ElementType;

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

// Whether the zero points of an operand may differ along one of its axes.
bool MayVary(const Contract& contract, int operand, size_t axis) {
  if (contract.form == Contract::Form::kConv) return operand == 1 && axis == 0;
  const auto batch = static_cast<size_t>(contract.batch_axes);
  const size_t inner = contract.inner.size();
  const size_t first = operand == 0 ? batch + static_cast<size_t>(contract.m_axes) : batch;
  return axis < first || axis >= first + inner;
}

Result<ByteFactor> DescribeFactor(const device::Facts& facts, int operand) {
  const std::string role = operand == 0 ? "Operand A" : "Operand B";
  const program::ProductOperand found =
      program::FindProductOperand(facts.program, facts.step, operand);
  if (!IsByte(found.type)) {
    return Status(Code::kUnsupportedDatatype,
                  role + " is " + std::string(tensor::Name(found.type)) + ", not a byte.");
  }
  if (!found.is_stored) {
    return Status(Code::kUnsupportedAttribute, role + " is computed while it is read.");
  }
  if (!facts.step.reads[static_cast<size_t>(operand)].guards.empty()) {
    return Status(Code::kUnsupportedShape, role + " is padded by its view.");
  }
  ByteFactor factor;
  factor.is_signed = found.type == ElementType::kInt8;
  if (found.zero_point == program::kNoExpr) return factor;
  if (found.zero_point_read < 0 || !IsByte(found.zero_point_type)) {
    return Status(Code::kUnsupportedAttribute, "The zero point of " + role + " is no byte.");
  }
  factor.zero_point_read = found.zero_point_read;
  factor.is_zero_point_signed = found.zero_point_type == ElementType::kInt8;
  const program::View& view = facts.step.reads[static_cast<size_t>(found.zero_point_read)];
  if (!view.guards.empty()) {
    return Status(Code::kUnsupportedShape, "The zero point of " + role + " is padded by its view.");
  }
  const Contract& contract = *facts.step.As<Contract>();
  for (size_t axis = 0; axis < view.strides.size(); ++axis) {
    if (view.strides[axis] == Dim(0) || MayVary(contract, operand, axis)) continue;
    return Status(Code::kUnsupportedShape, "The zero points of " + role + " differ along axis " +
                                               std::to_string(axis) +
                                               " of it, which is none of rows or columns.");
  }
  return factor;
}

}  // namespace

Result<ByteFactors> DescribeByteFactors(const device::Facts& facts) {
  const Contract* contract = facts.step.As<Contract>();
  if (contract == nullptr || contract->form == Contract::Form::kConvTranspose) {
    return Status(Code::kUnsupportedOperator,
                  "The step is neither a matrix product nor a convolution.");
  }
  if (contract->accumulator != ElementType::kInt32 &&
      contract->accumulator != ElementType::kUint32) {
    return Status(Code::kUnsupportedDatatype, "The product accumulates in " +
                                                  std::string(tensor::Name(contract->accumulator)) +
                                                  ", not in 32-bit integers.");
  }
  ByteFactors factors;
  ONNXIFI_ASSIGN_OR_RETURN(factors.a, DescribeFactor(facts, 0));
  ONNXIFI_ASSIGN_OR_RETURN(factors.b, DescribeFactor(facts, 1));
  return factors;
}

}  // namespace onnxifi::integer

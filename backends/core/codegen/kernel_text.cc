// SPDX-License-Identifier: Apache-2.0
//
// KernelText: numbers looked up in bound loops.

#include "backends/core/codegen/kernel_text.h"

#include <bit>
#include <span>

#include "backends/core/tensor/tensor.h"

namespace onnxifi::codegen {
namespace {

// A view may have fewer axes than the loops: it does not vary along the missing ones.
int64_t At(const std::vector<int64_t>& values, int axis) {
  return axis < static_cast<int>(values.size()) ? values[static_cast<size_t>(axis)] : 0;
}

int64_t ValueOf(const Number& number, const LoopNest& loops) {
  const auto operand = static_cast<size_t>(number.operand);
  const auto guard = static_cast<size_t>(number.guard);
  switch (number.kind) {
    case Number::Kind::kDim:
      return tensor::ValueOf(number.dim, loops.dims);
    case Number::Kind::kExtent:
      return loops.extents[static_cast<size_t>(number.axis)];
    case Number::Kind::kReadOffset:
      return loops.reads[operand].offset;
    case Number::Kind::kReadStride:
      return At(loops.reads[operand].strides, number.axis);
    case Number::Kind::kReadGuardCoefficient:
      return At(loops.reads[operand].guards[guard].coefficients, number.axis);
    case Number::Kind::kReadGuardOffset:
      return loops.reads[operand].guards[guard].offset;
    case Number::Kind::kReadGuardExtent:
      return loops.reads[operand].guards[guard].extent;
    case Number::Kind::kWriteOffset:
      return loops.writes[operand].offset;
    case Number::Kind::kWriteStride:
      return At(loops.writes[operand].strides, number.axis);
    case Number::Kind::kGiven:
      return loops.given[operand];
  }
  return 0;
}

// The least shift whose power of two is not below the divisor, and 2^(31 + shift) / divisor,
// rounded up, which fits 32 bits. A divisor that no position is divided by may be anything.
int64_t DivisionOf(Number::Form form, int64_t divisor) {
  if (form == Number::Form::kItself) return divisor;
  if (divisor <= 0 || divisor > int64_t{1} << 31) return 0;
  const int shift = std::bit_width(static_cast<uint64_t>(divisor - 1));
  if (form == Number::Form::kShift) return shift;
  const uint64_t power = uint64_t{1} << (31 + shift);
  const auto unsigned_divisor = static_cast<uint64_t>(divisor);
  return static_cast<int64_t>((power + unsigned_divisor - 1) / unsigned_divisor);
}

}  // namespace

std::vector<int64_t> ValuesOf(const std::vector<Number>& numbers, const LoopNest& loops) {
  std::vector<int64_t> values;
  values.reserve(numbers.size());
  for (const Number& number : numbers) {
    values.push_back(DivisionOf(number.form, ValueOf(number, loops)));
  }
  return values;
}

int64_t ItemCount(const Launch& launch, const LoopNest& loops) {
  if (launch.given_items >= 0) return loops.given[static_cast<size_t>(launch.given_items)];
  const auto extents = std::span(loops.extents);
  const auto item_axes = static_cast<size_t>(launch.item_axes);
  if (launch.run_length == 1) return tensor::ElementCount(extents.first(item_axes));
  return tensor::ElementCount(extents.first(item_axes - 1)) *
         ((extents[item_axes - 1] + launch.run_length - 1) / launch.run_length);
}

}  // namespace onnxifi::codegen

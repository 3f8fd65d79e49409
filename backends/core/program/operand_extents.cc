// SPDX-License-Identifier: Apache-2.0
//
// OperandExtents: put together from the domain and the step's own extents, family by family.

#include "backends/core/program/operand_extents.h"

#include <initializer_list>

#include "backends/core/program/recurrent_extents.h"

namespace onnxifi::program {
namespace {

using Dims = std::span<const Dim>;

Shape Join(std::initializer_list<Dims> parts) {
  Shape all;
  for (const Dims part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Shape OfProduct(const Contract& contract, int operand, Dims domain, Dims inner) {
  const auto batch = static_cast<size_t>(contract.batch_axes);
  const size_t rows = batch + static_cast<size_t>(contract.m_axes);
  if (operand == 0) return Join({domain.first(rows), inner});
  return Join({domain.first(batch), inner, domain.subspan(rows)});
}

Shape OfConvolution(const Contract& contract, int operand, Dims domain, Dims inner,
                    Dims a_spatial) {
  const Dim channels[] = {inner[0] * Dim(contract.group)};
  if (operand == 0) return Join({domain.first(1), channels, a_spatial});
  if (contract.form == Contract::Form::kConv) return Join({domain.subspan(1, 1), inner});
  const Dim group_outputs[] = {FloorDiv(domain[1], contract.group)};
  return Join({channels, group_outputs, inner.subspan(1)});
}

Shape OfAttention(int operand, Dims domain, const Dim& keys, const Dim& width) {
  const Dims batch = domain.first(domain.size() - 2);
  const Dim across[] = {width};
  const Dim along[] = {keys};
  if (operand == 0) return Join({domain.first(domain.size() - 1), across});
  if (operand == 1) return Join({batch, across, along});
  return Join({batch, along, domain.last(1)});
}

// `settle` gives the dims to compute with for those of the step.
template <typename Settle>
Shape ShapeOf(const Step& step, int operand, const Settle& settle) {
  const Shape domain = settle(step.domain);
  if (const Window* window = step.As<Window>()) {
    return Join({Dims(domain).first(2), settle(window->in_spatial)});
  }
  if (const Attention* attention = step.As<Attention>()) {
    const Shape keys_and_width = settle({attention->keys, attention->width});
    return OfAttention(operand, domain, keys_and_width[0], keys_and_width[1]);
  }
  if (step.As<Recurrent>() != nullptr) return settle(RecurrentReadShape(step, operand));
  const Contract& contract = *step.As<Contract>();
  const Shape inner = settle(contract.inner);
  if (contract.form == Contract::Form::kMatMul) return OfProduct(contract, operand, domain, inner);
  return OfConvolution(contract, operand, domain, inner, settle(contract.a_spatial));
}

}  // namespace

int OperandCount(const Step& step) {
  if (step.As<Contract>() != nullptr) return 2;
  if (step.As<Attention>() != nullptr) return 3;
  if (step.As<Recurrent>() != nullptr) return Recurrent::kReads;
  return step.As<Window>() != nullptr ? 1 : 0;
}

Shape OperandShape(const Step& step, int operand) {
  return ShapeOf(step, operand, [](const Shape& shape) { return shape; });
}

tensor::Extents OperandExtents(const Step& step, int operand, std::span<const int64_t> dims) {
  // Arithmetic on constants needs no table and saturates.
  const Shape shape = ShapeOf(step, operand, [dims](const Shape& symbolic) {
    Shape numbers;
    for (const Dim& dim : symbolic) numbers.push_back(tensor::ValueOf(dim, dims));
    return numbers;
  });
  tensor::Extents extents;
  for (const Dim& dim : shape) extents.push_back(dim.constant());
  return extents;
}

}  // namespace onnxifi::program

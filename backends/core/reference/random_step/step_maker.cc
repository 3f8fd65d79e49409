// SPDX-License-Identifier: Apache-2.0
//
// StepMaker: extents, buffers and views. Views come from the view algebra itself: slice, flip, pad,
// permute and broadcast of a dense buffer.

#include "backends/core/reference/random_step/step_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

namespace onnxifi::reference {

using program::Buffer;
using program::Dim;
using program::Operand;
using program::Shape;
using tensor::ElementType;
using tensor::Extents;
using tensor::Scalar;

Dim StepMaker::MakeDim(int64_t number) {
  if (number < 1 || !Chance(20)) return number;
  symbols.push_back(number);
  return program.dims->NewSymbol("s" + std::to_string(symbols.size()), false);
}

Shape StepMaker::MakeShape(const Extents& extents) {
  Shape shape;
  for (int64_t extent : extents) shape.push_back(MakeDim(extent));
  return shape;
}

Extents StepMaker::MakeExtents(int min_rank, int max_rank, int64_t target) {
  Extents extents(static_cast<size_t>(Roll(min_rank, max_rank)));
  const Numbers numbers(*this);
  int64_t left = Roll(1, target);
  for (int64_t& extent : extents) {
    extent = std::min(left, Roll(1, Chance(20) ? 150 : 7));
    left = std::max<int64_t>(1, left / extent);
  }
  std::shuffle(extents.begin(), extents.end(), *source_);
  if (!extents.empty() && Chance(2)) extents[0] = 0;
  return extents;
}

Scalar StepMaker::MakeScalar(ElementType type, Data data) {
  if (tensor::IsFloat(type)) {
    double value = Uniform(-2, 2);
    if (data == Data::kSmall) value = static_cast<double>(Roll(-4, 4));
    if (data == Data::kAny) {
      if (Chance(30)) value = static_cast<double>(Roll(-8, 8)) / 2;
      if (Chance(10)) value *= std::exp2(static_cast<double>(Roll(-12, 12)));
      if (has_specials && Chance(5)) {
        value =
            Pick({std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                  std::numeric_limits<double>::quiet_NaN(), -0.0, 1e30, 1e-30});
      }
    }
    return tensor::CastScalar(kFloat64, type, Scalar{.f = value});
  }
  const bool is_any = data != Data::kSmall && Chance(30);
  int64_t value = is_any ? static_cast<int64_t>((*source_)()) : Roll(-9, 9);
  if (data == Data::kSmall) value = Roll(tensor::IsSigned(type) ? -4 : 0, 4);
  return tensor::CastScalar(kInt64, type, Scalar{.i = value});
}

tensor::Tensor StepMaker::MakeData(ElementType type, const Extents& extents, Data data) {
  const Numbers numbers(*this);
  base::Result<tensor::Tensor> tensor = tensor::Tensor::Allocate(type, extents);
  const int64_t count = tensor::ElementCount(extents);
  if (tensor::IsComplex(type)) {
    for (int64_t k = 0; k < tensor->size_bytes(); ++k) {
      tensor->mutable_data()[k] = static_cast<std::byte>((*source_)());
    }
  } else {
    for (int64_t k = 0; k < count; ++k) {
      tensor::StoreScalar(type, tensor->mutable_data(), k, MakeScalar(type, data));
    }
  }
  return *std::move(tensor);
}

program::BufferId StepMaker::AddBuffer(ElementType type, const Extents& extents, bool is_input,
                                       Data data) {
  Buffer buffer;
  buffer.type = type;
  for (int64_t extent : extents) buffer.shape.push_back(extent);
  auto& ports = is_input ? program.inputs : program.outputs;
  const program::BufferId id = program.AddBuffer(buffer);
  if (is_input) {
    program.buffers.back().kind = Buffer::Kind::kInput;
    program.buffers.back().index = static_cast<int>(ports.size());
  }
  ports.push_back({(is_input ? "in" : "out") + std::to_string(ports.size()), id, buffer.shape});
  buffers.push_back(MakeData(type, extents, data));
  return id;
}

Operand StepMaker::MakeOperand(ElementType type, const Extents& extents, bool is_input, Data data) {
  const size_t rank = extents.size();
  std::vector<int> order(rank);
  for (size_t axis = 0; axis < rank; ++axis) order[axis] = static_cast<int>(axis);
  const bool is_plain = Chance(40);
  if (!is_plain && Chance(50)) std::shuffle(order.begin(), order.end(), random_);
  struct Axis {
    int64_t extent, start = 0, step = 1, before = 0, after = 0, inside;
    bool is_repeated = false;
  };
  std::vector<Axis> axes;
  Extents base(rank);
  for (size_t k = 0; k < rank; ++k) {
    Axis axis{.extent = extents[static_cast<size_t>(order[k])], .inside = 0};
    axis.inside = axis.extent;
    if (!is_plain && axis.extent > 0) {
      if (is_input && Chance(15)) {
        axis.is_repeated = true;
      } else if (is_input && Chance(15)) {
        const Numbers numbers(*this);
        axis.before = Roll(0, std::min<int64_t>(2, axis.extent));
        axis.after = Roll(0, std::min<int64_t>(2, axis.extent - axis.before));
        axis.inside = axis.extent - axis.before - axis.after;
      }
      if (!axis.is_repeated && Chance(20)) {
        const Numbers numbers(*this);
        axis.step = Pick({-1, 1, 2, -2, 3});
        axis.start = Roll(0, 2);
      }
    }
    const Numbers numbers(*this);
    const int64_t reach = std::max<int64_t>(0, axis.inside - 1) * std::abs(axis.step);
    base[k] = axis.is_repeated ? 1
              : axis.inside == 0 && axis.step == 1
                  ? 0
                  : axis.start + reach + 1 + (axis.step == 1 ? 0 : Roll(0, 1));
    if (axis.step < 0) axis.start += reach;
    axes.push_back(axis);
  }
  const program::BufferId buffer = AddBuffer(type, base, is_input, data);
  Shape shape;
  for (int64_t extent : base) shape.push_back(extent);
  Operand operand{program::DenseView(buffer, type, shape), shape};
  program::Dims before(rank, 0), after(rank, 0);
  for (size_t k = 0; k < rank; ++k) {
    if (!axes[k].is_repeated) {
      operand = Slice(operand, static_cast<int>(k), axes[k].start, axes[k].step, axes[k].inside);
    }
    // A symbolic pad with a number as the extent: the guard's offset is then known only when
    // bound.
    before[k] = MakeZeroOr(axes[k].before);
    after[k] = axes[k].after;
  }
  const Scalar fill = tensor::IsComplex(type) ? Scalar{.f = 2} : MakeScalar(type, data);
  operand = *Pad(operand, before, after, fill);
  std::vector<int> back(rank);
  for (size_t k = 0; k < rank; ++k) back[static_cast<size_t>(order[k])] = static_cast<int>(k);
  operand = Permute(operand, back);
  Shape target;
  for (int64_t extent : extents) target.push_back(extent);
  return {BroadcastTo(operand, target), target};
}

Dim StepMaker::MakeZeroOr(int64_t number) { return number == 0 ? Dim(0) : MakeDim(number); }

int StepMaker::AddRead(ElementType type, const Extents& extents, Data data) {
  step.reads.push_back(MakeOperand(type, extents, /*is_input=*/true, data).view);
  return static_cast<int>(step.reads.size()) - 1;
}

void StepMaker::AddWrite(ElementType type, const Extents& extents) {
  step.writes.push_back(MakeOperand(type, extents, /*is_input=*/false, Data::kAny).view);
}

ElementType StepMaker::StoredType(ElementType computed) {
  if (computed == kFloat32 && Chance(25)) {
    return Pick({ElementType::kFloat16, ElementType::kBfloat16});
  }
  if (computed == ElementType::kInt8 && Chance(25)) return ElementType::kInt4;
  if (computed == ElementType::kUint8 && Chance(25)) return ElementType::kUint2;
  return computed;
}

}  // namespace onnxifi::reference

// SPDX-License-Identifier: Apache-2.0
//
// NonZero, against the reference: random steps and large ones, whole, cut into as many parts as
// there can be, and on threads.

#include "backends/cpu/non_zero/non_zero.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "backends/cpu/testing/divided_steps.h"

namespace onnxifi::non_zero {
namespace {

using program::Index;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

program::BufferId Add(RandomStep& made, tensor::Tensor tensor) {
  program::Buffer buffer;
  buffer.type = tensor.type();
  buffer.shape = program::Shape(tensor.extents().begin(), tensor.extents().end());
  made.buffers.push_back(std::move(tensor));
  return made.program.AddBuffer(buffer);
}

// Of a bool buffer, as many of a hundred are true as `percent` says; the list has room for `room`.
RandomStep MakeStep(Index::Kind kind, const Extents& extents, int percent, int64_t room,
                    bool is_transposed) {
  RandomStep made;
  tensor::Tensor source = *tensor::Tensor::Allocate(ElementType::kBool, extents);
  std::mt19937 random(7);
  for (int64_t k = 0; k < source.element_count(); ++k) {
    source.mutable_data()[k] =
        static_cast<std::byte>(static_cast<int>(random() % 100) < percent ? 1 + random() % 255 : 0);
  }
  const program::BufferId read = Add(made, std::move(source));
  const program::Shape shape(extents.begin(), extents.end());
  program::Operand operand{program::DenseView(read, ElementType::kBool, shape), shape};
  if (is_transposed) {
    std::vector<int> axes;
    for (int axis = operand.rank(); axis-- > 0;) axes.push_back(axis);
    operand = program::Permute(operand, axes);
  }
  Extents written = {1};
  if (kind == Index::Kind::kNonZero) written = {static_cast<int64_t>(extents.size()), room};
  tensor::Tensor target = *tensor::Tensor::Allocate(ElementType::kInt64, written);
  std::fill_n(target.mutable_data(), target.size_bytes(), std::byte{0x5A});
  const program::BufferId write = Add(made, std::move(target));
  program::Step step;
  step.domain = operand.shape;
  step.reads = {operand.view};
  step.writes = {program::DenseView(write, ElementType::kInt64,
                                    program::Shape(written.begin(), written.end()))};
  Index index;
  index.kind = kind;
  step.body = index;
  made.program.steps.push_back(std::move(step));
  return made;
}

void Compare(const RandomStep& step) { cpu::CompareDividedStep(SelectNonZero, step); }

TEST(NonZeroTest, RandomStepsAgreeWithTheReference) {
  // Two of seven kinds, a quarter of whose elements are packed.
  cpu::CompareDividedRandomSteps(SelectNonZero, reference::Family::kIndex, 0.15);
}

TEST(NonZeroTest, LargeStepsAgreeWithTheReference) {
  for (const Extents& extents : std::vector<Extents>{
           {100'000}, {300, 300}, {30'000, 3}, {7, 11, 13, 17}, {3, 40'000}, {0, 5}, {1, 1}}) {
    const int64_t count = tensor::ElementCount(extents);
    for (const int percent : {0, 1, 50, 100}) {
      for (const bool is_transposed : {false, true}) {
        Compare(MakeStep(Index::Kind::kCountNonZero, extents, percent, count, is_transposed));
        Compare(MakeStep(Index::Kind::kNonZero, extents, percent, count, is_transposed));
      }
    }
  }
}

TEST(NonZeroTest, StopsAtTheEndOfItsBuffer) {
  for (const int64_t room : {0, 1, 1023, 1024, 5000, 70'000}) {
    Compare(MakeStep(Index::Kind::kNonZero, {300, 300}, 60, room, /*is_transposed=*/false));
  }
}

}  // namespace
}  // namespace onnxifi::non_zero

// SPDX-License-Identifier: Apache-2.0
//
// Positions of extremes among few values with NaN, infinities, zeros of both signs and many ties,
// compared with the reference's loops, along rows and of neighbours, on every instruction set.

#include "backends/cpu/engine/extreme_position.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using program::Buffer;
using program::Dim;
using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kFloat32 = ElementType::kFloat32;

// ArgMax or ArgMin of [outer, neighbours, elements], whose neighbours or elements lie side by side.
reference::RandomStep MakeSearch(std::mt19937& random, program::Extreme extreme, bool is_by_row,
                                 ElementType type) {
  const auto roll = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const Extents extents = {roll(1, 3), is_by_row ? roll(1, 5) : roll(4, 600), roll(2, 90)};
  reference::RandomStep made;
  program::Step step;
  const auto add = [&](ElementType type, Buffer::Kind kind, const std::vector<Dim>& strides,
                       int64_t count) {
    Buffer buffer;
    buffer.kind = kind;
    buffer.type = type;
    buffer.shape = {count};
    program::View view;
    view.type = type;
    view.strides.assign(strides.begin(), strides.end());
    view.buffer = made.program.AddBuffer(buffer);
    made.buffers.push_back(*tensor::Tensor::Allocate(type, Extents{count}));
    return view;
  };
  const int64_t row = is_by_row ? extents[2] + roll(0, 3) : extents[1] + roll(0, 3);
  const int64_t rows = is_by_row ? extents[1] : extents[2];
  const std::vector<Dim> strides = {rows * row, is_by_row ? row : 1, is_by_row ? 1 : row};
  const int64_t count = extents[0] * rows * row;
  step.reads = {add(type, Buffer::Kind::kInput, strides, count)};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float values[] = {0.0F, -0.0F, 1, 2, -1, kInfinity, -kInfinity, std::nanf("")};
  const int64_t kinds = roll(2, 8);
  for (int64_t k = 0; k < count; ++k) {
    const tensor::Scalar number{.f = values[roll(0, kinds - 1)]};
    tensor::StoreScalar(type, made.buffers[0].mutable_data(), k,
                        tensor::CastScalar(kFloat32, type, number));
  }
  step.writes = {
      add(ElementType::kInt64, Buffer::Kind::kTemporary, {extents[1], 1}, extents[0] * extents[1])};
  for (const int64_t extent : extents) step.domain.emplace_back(extent);
  program::ExprPool& pool = made.program.exprs;
  program::Reduce reduce;
  reduce.axes = 1;
  const program::Expr element =
      program::Cast(program::Load(pool, type, 0), tensor::ArithmeticType(type));
  const program::Expr position =
      program::AddArgExtreme(reduce.reduction, element, program::Coordinate(pool, 2), extreme);
  reduce.roots = {position.id()};
  step.body = reduce;
  made.program.steps.push_back(std::move(step));
  return made;
}

void CompareWithReference(uint32_t seed) {
  device::Serial serial;
  EngineDevice device(serial, {.loops = LoopSet::kReference});
  reference::Device reference;
  std::mt19937 random(seed);
  constexpr ElementType kTypes[] = {kFloat32,
                                    ElementType::kFloat16,
                                    ElementType::kBfloat16,
                                    ElementType::kInt8,
                                    ElementType::kUint16,
                                    ElementType::kFloat64,
                                    ElementType::kInt32,
                                    ElementType::kUint32,
                                    ElementType::kInt64,
                                    ElementType::kUint64};
  for (int k = 0; k < 400; ++k) {
    const program::Extreme extreme = {k % 2 == 0, k / 2 % 2 == 0};
    const bool is_by_row = k / 4 % 2 == 0;
    const reference::RandomStep made = MakeSearch(random, extreme, is_by_row, kTypes[k / 8 % 10]);
    ASSERT_TRUE(FindExtremePosition(made.program.exprs, made.program.steps[0]).has_value());
    const auto expected = RunStep(reference, made);
    const auto actual = RunStep(device, made);
    ASSERT_TRUE(expected.ok() && actual.ok()) << actual.status().Text();
    for (int64_t n = 0; n < (*expected)[1].element_count(); ++n) {
      ASSERT_EQ((*actual)[1].AsInt(n), (*expected)[1].AsInt(n))
          << "number " << k << ", result " << n << "\n"
          << ToString(made.program);
    }
  }
}

TEST(ExtremePositionTest, AgreesWithTheReference) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CompareWithReference(7);
  });
}

TEST(ExtremePositionTest, IsNoOtherReduction) {
  program::ExprPool pool;
  const program::Expr element = program::Load(pool, kFloat32, 0);
  const program::Expr index = program::Coordinate(pool, 1);
  program::Reduction reduction;
  program::AddArgExtreme(reduction, element, index, {.is_largest = false, .takes_last = true});
  const auto found = program::FindArgExtreme(pool, reduction);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->extreme.is_largest);
  EXPECT_TRUE(found->extreme.takes_last);
  EXPECT_EQ(found->element, element.id());
  EXPECT_EQ(found->index, index.id());
  program::Reduction other = reduction;
  other.states[0].merge = other.states[0].update;
  EXPECT_FALSE(program::FindArgExtreme(pool, other).has_value());
  other = reduction;
  other.states[1].init = program::IntConstant(pool, ElementType::kInt64, 0).id();
  EXPECT_FALSE(program::FindArgExtreme(pool, other).has_value());
  other = reduction;
  other.states.push_back(other.states[0]);
  EXPECT_FALSE(program::FindArgExtreme(pool, other).has_value());
}

}  // namespace
}  // namespace onnxifi::engine

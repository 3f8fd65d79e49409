// SPDX-License-Identifier: Apache-2.0
//
// Positions of extremes among few values with NaN, infinities, zeros of both signs and many ties,
// compared with the reference's loops, along rows and of neighbours, on every instruction set.

#include "backends/cpu/engine/extreme_position.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"
#include "backends/core/tensor/native_type.h"
#include "backends/cpu/engine/testing/engine_device.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using program::Buffer;
using program::Dim;
using tensor::ElementType;
using tensor::Extents;

constexpr ElementType kFloat32 = ElementType::kFloat32;

// Few numbers of a type, those side by side that a narrower type would not tell apart.
template <typename T>
std::vector<T> Numbers() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) {
    std::vector<T> numbers = {0, 1, 2, static_cast<T>(-1)};
    // Neighbours of the powers of 2 from which on float32 and float64 skip numbers.
    for (const int digits : {24, 53}) {
      if (digits >= Limits::digits) continue;
      const T power = static_cast<T>(T{1} << (digits % Limits::digits));
      for (const T number : {power, static_cast<T>(power + 1), static_cast<T>(power + 2)}) {
        numbers.push_back(number);
        if (std::is_signed_v<T>) numbers.push_back(static_cast<T>(0 - number));
      }
    }
    const T least = Limits::lowest(), most = Limits::max();
    for (const T number : {least, static_cast<T>(least + 1), static_cast<T>(most - 1), most}) {
      numbers.push_back(number);
    }
    return numbers;
  } else {
    const T infinity = Limits::infinity(), most = Limits::max(), step = Limits::epsilon();
    return {T{0},
            -T{0},
            T{1},
            T{2},
            T{-1},
            infinity,
            -infinity,
            Limits::quiet_NaN(),
            T{1} + step,
            T{1} + 2 * step,
            -most,
            std::nextafter(-most, T{0}),
            std::nextafter(most, T{0}),
            most};
  }
}

// ArgMax or ArgMin of [outer, neighbours, elements], whose neighbours or elements lie side by side,
// compared as `compared`.
reference::RandomStep MakeSearch(std::mt19937& random, program::Extreme extreme, bool is_by_row,
                                 ElementType type, ElementType compared) {
  const auto roll = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  const bool has_short_rows = is_by_row && roll(0, 1) == 0;
  const Extents extents = {roll(1, 3),
                           has_short_rows ? roll(30, 600)
                           : is_by_row    ? roll(1, 5)
                                          : roll(4, 600),
                           roll(has_short_rows ? 1 : 2, has_short_rows ? 15 : 90)};
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
  const auto fill = [&]<typename T>(T, const auto& store) {
    const std::vector<T> values = Numbers<T>();
    const auto last = static_cast<int64_t>(values.size()) - 1;
    // Neighbours in the list, of which there are few: they tie, or differ by their last digit.
    const int64_t least = roll(0, last - 1), most = std::min(last, least + roll(1, 7));
    for (int64_t k = 0; k < count; ++k) store(k, values[static_cast<size_t>(roll(least, most))]);
    return true;
  };
  std::byte* const data = made.buffers[0].mutable_data();
  const bool is_native = tensor::VisitNative(type, [&]<typename T>(T zero) {
    return fill(zero, [&](int64_t k, T number) { reinterpret_cast<T*>(data)[k] = number; });
  });
  if (!is_native) {
    fill(float{}, [&](int64_t k, float number) {
      tensor::StoreScalar(type, data, k, tensor::CastScalar(kFloat32, type, {.f = number}));
    });
  }
  step.writes = {
      add(ElementType::kInt64, Buffer::Kind::kTemporary, {extents[1], 1}, extents[0] * extents[1])};
  for (const int64_t extent : extents) step.domain.emplace_back(extent);
  program::ExprPool& pool = made.program.exprs;
  program::Reduce reduce;
  reduce.axes = 1;
  const program::Expr element = program::Cast(program::Load(pool, type, 0), compared);
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
    const ElementType type = kTypes[k / 8 % 10];
    const reference::RandomStep made =
        MakeSearch(random, extreme, is_by_row, type, tensor::ArithmeticType(type));
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

// float32 makes one number of several: the first of them is the position, not the largest.
TEST(ExtremePositionTest, ComparesWhatACastLeaves) {
  device::Serial serial;
  EngineDevice device(serial, {.loops = LoopSet::kReference});
  reference::Device reference;
  std::mt19937 random(11);
  for (const ElementType type : {ElementType::kInt32, ElementType::kUint32, ElementType::kInt64,
                                 ElementType::kUint64, ElementType::kFloat64}) {
    for (int k = 0; k < 40; ++k) {
      const program::Extreme extreme = {k % 2 == 0, k / 2 % 2 == 0};
      const reference::RandomStep made =
          MakeSearch(random, extreme, /*is_by_row=*/k / 4 % 2 == 0, type, kFloat32);
      EXPECT_FALSE(FindExtremePosition(made.program.exprs, made.program.steps[0]).has_value());
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

// SPDX-License-Identifier: Apache-2.0
//
// Row reductions against a plain loop that joins parts as the reference says, bit for bit, over
// rows of every length around a vector's and a block's; and against float64. What only some numbers
// show: NaN, infinities, zeros of both signs.

#include "backends/cpu/engine/row_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using program::ExprOp;
using tensor::ElementType;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kLengths[] = {1,   2,   3,   4,   5,   7,   8,   9,   12,   15,   16,  17,  31,
                                32,  33,  40,  63,  64,  65,  100, 127, 128,  129,  130, 143, 144,
                                145, 192, 255, 256, 257, 300, 383, 384, 1000, 1024, 5000};

float Apply(ExprOp op, float a, float b) {
  switch (op) {
    case ExprOp::kAdd:
      return a + b;
    case ExprOp::kMul:
      return a * b;
    case ExprOp::kMax:
      return b < a || std::isnan(a) ? a : b;
    default:
      return a < b || std::isnan(a) ? a : b;
  }
}

float Neutral(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return 0;
    case ExprOp::kMul:
      return 1;
    default:
      return op == ExprOp::kMax ? -kInfinity : kInfinity;
  }
}

float ReducePlainly(ExprOp op, std::span<const float> index, float state) {
  std::vector<float> parts(std::min<size_t>(128, index.size()), state);
  for (size_t k = 0; k < index.size(); ++k) parts[k % 128] = Apply(op, parts[k % 128], index[k]);
  for (size_t half = 64; half > 0; half /= 2) {
    for (size_t k = half; k < parts.size(); ++k) {
      parts[k - half] = Apply(op, parts[k - half], parts[k]);
    }
    parts.resize(std::min(parts.size(), half));
  }
  return parts[0];
}

// At an address that no vector is aligned to, with something after the last row that no reduction
// may see.
std::vector<float> ReduceTile(ExprOp op, int64_t rows, int64_t count,
                              const std::vector<float>& elements,
                              const std::vector<float>& states) {
  std::vector<float> tile(1, 77.0f);
  tile.insert(tile.end(), elements.begin(), elements.end());
  tile.resize(tile.size() + 16, kNan);
  std::vector<float> reduced = states;
  FindRowReduction(op, ElementType::kFloat32)(reinterpret_cast<const std::byte*>(tile.data() + 1),
                                              rows, count,
                                              reinterpret_cast<std::byte*>(reduced.data()));
  return reduced;
}

void ExpectSameBits(float expected, float actual, ExprOp op, int64_t count) {
  if (std::isnan(expected) && std::isnan(actual)) return;
  EXPECT_EQ(std::bit_cast<uint32_t>(expected), std::bit_cast<uint32_t>(actual))
      << Name(op) << " of " << count << ": " << actual << " instead of " << expected;
}

class RowReductionTest : public testing::TestWithParam<ExprOp> {};

TEST_P(RowReductionTest, JoinsPartsInTheReferencesOrder) {
  std::mt19937 random(7);
  for (const int64_t count : kLengths) {
    const int64_t rows = count < 300 ? 5 : 2;
    std::vector<float> elements(static_cast<size_t>(rows * count));
    std::vector<float> states(static_cast<size_t>(rows));
    for (float& element : elements) {
      element = std::uniform_real_distribution<float>(-1.25f, 1.25f)(random);
    }
    for (float& state : states) state = std::uniform_real_distribution<float>(-2, 2)(random);
    const std::vector<float> reduced = ReduceTile(GetParam(), rows, count, elements, states);
    for (int64_t index = 0; index < rows; ++index) {
      const auto k = static_cast<size_t>(index);
      const auto first = static_cast<size_t>(index * count);
      const std::span<const float> row(elements.data() + first, static_cast<size_t>(count));
      ExpectSameBits(ReducePlainly(GetParam(), row, states[k]), reduced[k], GetParam(), count);
    }
  }
}

// Every place of a row may hold what is unlike other numbers, alone or with another.
TEST_P(RowReductionTest, TreatsSpecialNumbersAsTheReferenceDoes) {
  for (const int64_t count : {1, 2, 15, 16, 17, 40, 129, 255}) {
    for (const float special : {kNan, kInfinity, -kInfinity, 0.0f, -0.0f}) {
      for (const float rest : {-0.0f, 0.0f, 1.0f, kInfinity}) {
        for (int64_t place = 0; place < count; ++place) {
          std::vector<float> index(static_cast<size_t>(count), rest);
          index[static_cast<size_t>(place)] = special;
          const float state = Neutral(GetParam());
          const std::vector<float> reduced = ReduceTile(GetParam(), 1, count, index, {state});
          ExpectSameBits(ReducePlainly(GetParam(), index, state), reduced[0], GetParam(), count);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, RowReductionTest,
                         testing::Values(ExprOp::kAdd, ExprOp::kMul, ExprOp::kMax, ExprOp::kMin),
                         [](const auto& info) { return std::string(program::Name(info.param)); });

// A sum of n numbers of one sign: log2(128) + n / 128 roundings at most along any way, not n.
TEST(RowReductionTest, SumsAreCloserToFloat64ThanOneAfterTheOther) {
  std::mt19937 random(3);
  for (const int64_t count : {16, 40, 256, 1000, 5000}) {
    double worst = 0;
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<float> index(static_cast<size_t>(count));
      double exact = 0;
      for (float& element : index) {
        element = std::uniform_real_distribution<float>(0.0f, 1.0f)(random);
        exact += element;
      }
      const float sum = ReduceTile(ExprOp::kAdd, 1, count, index, {0.0f})[0];
      worst = std::max(worst, std::fabs(sum - exact) / exact);
    }
    const double roundings = 8 + static_cast<double>(count) / 128;
    EXPECT_LT(worst, roundings * 0x1p-24) << count;
  }
}

TEST(RowReductionTest, RefusesOtherOperations) {
  EXPECT_EQ(FindRowReduction(ExprOp::kSub, ElementType::kFloat32), nullptr);
  EXPECT_EQ(FindRowReduction(ExprOp::kMul, ElementType::kInt32), nullptr);
  EXPECT_EQ(FindRowReduction(ExprOp::kAdd, ElementType::kBool), nullptr);
  EXPECT_EQ(FindRowReduction(ExprOp::kMax, ElementType::kFloat16), nullptr);
}

// Sums wrap. Extremes of bool are those of its bytes.
template <typename T>
void CheckIntegers(ElementType type) {
  constexpr ExprOp kOperations[] = {ExprOp::kAdd, ExprOp::kMax, ExprOp::kMin};
  std::mt19937_64 random(5);
  for (const ExprOp op : kOperations) {
    const RowReduction reduce = FindRowReduction(op, type);
    ASSERT_NE(reduce, nullptr) << tensor::Name(type);
    const auto apply = [op](T a, T b) {
      if (op == ExprOp::kAdd) return static_cast<T>(static_cast<uint64_t>(a) + b);
      return op == ExprOp::kMax ? std::max(a, b) : std::min(a, b);
    };
    for (const int64_t count : kLengths) {
      constexpr int64_t kRows = 3;
      // At an address that no vector is aligned to, and more behind the last row.
      std::vector<std::byte> memory(static_cast<size_t>(kRows * count + 70) * sizeof(T) + 1);
      for (std::byte& each : memory) each = static_cast<std::byte>(random());
      const std::byte* const elements = memory.data() + 1;
      const T begin[kRows] = {0, 1, static_cast<T>(100)};
      T expected[kRows], reduced[kRows];
      std::copy_n(begin, kRows, reduced);
      for (int64_t row = 0; row < kRows; ++row) {
        expected[row] = begin[row];
        for (int64_t k = 0; k < count; ++k) {
          T element;
          std::memcpy(&element, elements + (row * count + k) * sizeof(T), sizeof(T));
          expected[row] = apply(expected[row], element);
        }
      }
      reduce(elements, kRows, count, reinterpret_cast<std::byte*>(reduced));
      for (int64_t row = 0; row < kRows; ++row) {
        ASSERT_EQ(reduced[row], expected[row])
            << Name(op) << " of " << count << " " << tensor::Name(type);
      }
    }
  }
}

TEST(RowReductionTest, ReducesIntegers) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    CheckIntegers<int8_t>(ElementType::kInt8);
    CheckIntegers<uint8_t>(ElementType::kUint8);
    CheckIntegers<int16_t>(ElementType::kInt16);
    CheckIntegers<uint16_t>(ElementType::kUint16);
    CheckIntegers<int32_t>(ElementType::kInt32);
    CheckIntegers<uint32_t>(ElementType::kUint32);
    CheckIntegers<int64_t>(ElementType::kInt64);
    CheckIntegers<uint64_t>(ElementType::kUint64);
  });
}

template <typename T>
void CheckSpread(int64_t rows, int64_t count) {
  std::vector<T> values;
  for (int64_t index = 0; index < rows; ++index) values.push_back(static_cast<T>(3 * index + 1));
  const T untouched = static_cast<T>(201);
  std::vector<T> target(static_cast<size_t>(rows * count + 1), untouched);
  SpreadOverRows(reinterpret_cast<const std::byte*>(values.data()), sizeof(T), rows, count,
                 reinterpret_cast<std::byte*>(target.data()));
  for (int64_t k = 0; k < rows * count; ++k) {
    ASSERT_EQ(target[static_cast<size_t>(k)], values[static_cast<size_t>(k / count)])
        << k << " of " << rows << " x " << count;
  }
  EXPECT_EQ(target.back(), untouched);
}

TEST(SpreadTest, RepeatsEachValueOverItsRow) {
  for (const int64_t rows : {0, 1, 3}) {
    for (const int64_t count : {1, 2, 15, 16, 17, 255, 1000}) {
      CheckSpread<uint8_t>(rows, count);
      CheckSpread<uint16_t>(rows, count);
      CheckSpread<uint32_t>(rows, count);
      CheckSpread<uint64_t>(rows, count);
    }
  }
}

}  // namespace
}  // namespace onnxifi::engine

// SPDX-License-Identifier: Apache-2.0
//
// Fused operations against the loops of the same operations one after the other: the same bits, for
// any number of lanes, every operation on both sides, operands that are one number, and results
// written over an input.

#include "backends/cpu/engine/fused_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/engine/cast_chain.h"
#include "backends/cpu/engine/code.h"
#include "backends/cpu/engine/loop.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using program::ExprOp;
using tensor::ElementType;

// Those with an operand first.
constexpr ExprOp kOps[] = {ExprOp::kAdd,   ExprOp::kSub,  ExprOp::kMul,       ExprOp::kDiv,
                           ExprOp::kMin,   ExprOp::kMax,  ExprOp::kNeg,       ExprOp::kAbs,
                           ExprOp::kFloor, ExprOp::kCeil, ExprOp::kRoundEven, ExprOp::kTrunc,
                           ExprOp::kSqrt,  ExprOp::kExp,  ExprOp::kExpm1,     ExprOp::kLog,
                           ExprOp::kLog1p, ExprOp::kTanh, ExprOp::kErf};
constexpr int kOpsWithOperand = 6;

class RandomOperations {
 public:
  explicit RandomOperations(uint32_t seed) : random_(seed), lanes_(Roll(1, 400)) {
    value_ = MakeColumn();
    expected_ = value_;
    const int64_t count = Roll(1, kMaxFusedOperations);
    for (int64_t k = 0; k < count; ++k) {
      // Half of the time one that has an operand.
      const auto number = static_cast<size_t>(Roll(
          0, Roll(0, 1) == 0 ? kOpsWithOperand - 1 : static_cast<int64_t>(std::size(kOps)) - 1));
      const ExprOp op = kOps[number];
      const bool value_is_first = number >= kOpsWithOperand || Roll(0, 1) == 0;
      FusedOperation step{*FindFusedOp(op, value_is_first, LoopSet::kFast)};
      std::vector<float> operand = MakeColumn();
      if (HasOperand(step.op) && Roll(0, 1) == 0) {
        step.is_uniform = true;
        std::fill_n(operand.begin(), lanes_, operand[0]);
      }
      operands_.push_back(operand);
      operations_.push_back(step);
      EXPECT_EQ(HasOperand(step.op), number < kOpsWithOperand);
      RunAlone(op, value_is_first ? expected_ : operand, value_is_first ? operand : expected_);
      // Nothing is read behind its only lane.
      if (step.is_uniform) operands_.back() = {operand[0]};
    }
  }

  void Check() {
    FusedOperands fused{};
    fused.count = static_cast<int>(operations_.size());
    fused.operations = operations_.data();
    fused.lanes = lanes_;
    for (size_t k = 0; k < operands_.size(); ++k) {
      if (HasOperand(operations_[k].op)) fused.operands[k] = Bytes(operands_[k]);
    }
    fused.first = Bytes(value_);
    // Over the first input, one of the operands, or neither; nothing behind the lanes changes.
    std::vector<float> apart(value_.size(), kBehind);
    std::vector<float>* results[] = {&apart, &operands_.back(), &value_};
    const bool is_over_operand =
        HasOperand(operations_.back().op) && !operations_.back().is_uniform;
    std::vector<float>& result = *results[is_over_operand ? Roll(0, 2) : 2 * Roll(0, 1)];
    fused.result = Bytes(result);
    RunFused(fused);
    for (size_t k = 0; k < result.size(); ++k) {
      if (std::isnan(expected_[k]) && std::isnan(result[k])) continue;
      EXPECT_EQ(std::bit_cast<uint32_t>(expected_[k]), std::bit_cast<uint32_t>(result[k]))
          << "lane " << k << " of " << lanes_ << ": " << result[k] << " instead of "
          << expected_[k];
    }
  }

 private:
  static constexpr float kBehind = -777;

  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  static std::byte* Bytes(std::vector<float>& column) {
    return reinterpret_cast<std::byte*>(column.data());
  }

  std::vector<float> MakeColumn() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float specials[] = {0.0F, -0.0F, kInfinity, -kInfinity,
                              std::numeric_limits<float>::quiet_NaN()};
    std::vector<float> column(static_cast<size_t>(lanes_) + 5, kBehind);
    for (int64_t k = 0; k < lanes_; ++k) {
      column[static_cast<size_t>(k)] = Roll(0, 9) == 0
                                           ? specials[Roll(0, 4)]
                                           : std::uniform_real_distribution<float>(-2, 2)(random_);
    }
    return column;
  }

  void RunAlone(ExprOp op, const std::vector<float>& a, const std::vector<float>& b) {
    std::vector<float> result(a.size(), kBehind);
    std::vector<float> first = a;
    std::vector<float> second = b;
    LoopOperands operands{Bytes(result),         {Bytes(first), Bytes(second)}, lanes_, 0,
                          ElementType::kFloat32, ElementType::kFloat32};
    FindLoop(op, ElementType::kFloat32, ElementType::kFloat32, LoopSet::kFast)(operands);
    expected_ = std::move(result);
  }

  std::mt19937 random_;
  const int64_t lanes_;
  std::vector<float> value_, expected_;
  std::vector<std::vector<float>> operands_;
  std::vector<FusedOperation> operations_;
};

TEST(FusedOperationsTest, GivesTheBitsOfItsOperations) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (uint32_t seed = 0; seed < 3000; ++seed) {
      SCOPED_TRACE(seed);
      RandomOperations(seed).Check();
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Lanes of a type and their bytes, with some behind them that nothing may change.
struct Lanes {
  static constexpr auto kBehind = std::byte{0x5A};
  std::vector<std::byte> bytes;

  Lanes(ElementType type, int64_t count)
      : bytes(static_cast<size_t>(count) *
                      (type == ElementType::kFloat32 || type == ElementType::kInt32 ? sizeof(float)
                                                                                    : 1) +
                  16,
              kBehind) {}
  explicit Lanes(const std::vector<float>& numbers)
      : Lanes(ElementType::kFloat32, static_cast<int64_t>(numbers.size())) {
    std::memcpy(bytes.data(), numbers.data(), numbers.size() * sizeof(float));
  }
};

// The loop of one operation over `count` lanes.
Lanes RunLoop(ExprOp op, const Lanes& a, const Lanes& b, int64_t count, ElementType type,
              ElementType from) {
  Lanes result(type, count);
  const Loop loop =
      op == ExprOp::kCast ? FindCastLoop(from, type) : FindLoop(op, type, from, LoopSet::kFast);
  loop({result.bytes.data(), {a.bytes.data(), b.bytes.data()}, count, 0, type, from});
  return result;
}

// Chains between casts, in more lanes than one pass takes: the bits of the loops of all of them.
// Some do what QuantizeLinear does, and go through bytes; some have numbers that no integer holds.
TEST(FusedOperationsTest, CastsAsTheLoopsOfCastsDo) {
  constexpr ElementType kFirst[] = {ElementType::kFloat32, ElementType::kInt32, ElementType::kUint8,
                                    ElementType::kInt8};
  constexpr ElementType kLast[] = {ElementType::kFloat32, ElementType::kUint8, ElementType::kInt8};
  constexpr ExprOp kSimple[] = {ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul,
                                ExprOp::kMin, ExprOp::kMax, ExprOp::kFloor};
  constexpr ExprOp kQuantize[] = {ExprOp::kDiv, ExprOp::kRoundEven, ExprOp::kAdd, ExprOp::kMax,
                                  ExprOp::kMin};
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (uint32_t seed = 0; seed < 4000; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 random(seed);
      const auto roll = [&](int least, int most) {
        return std::uniform_int_distribution(least, most)(random);
      };
      const int64_t count = seed % 8 == 0 ? roll(1000, 2500) : roll(1, 200);
      const ElementType from = kFirst[roll(0, 3)];
      const ElementType to = kLast[roll(0, 2)];
      Lanes first(from, count);
      for (int64_t k = 0; k < count; ++k) {
        if (from == ElementType::kFloat32) {
          const auto number = static_cast<float>(roll(-100000, 100000)) / 16;
          std::memcpy(&first.bytes[static_cast<size_t>(k) * sizeof(float)], &number, sizeof(float));
        } else if (from == ElementType::kInt32) {
          const int32_t number = roll(0, 9) == 0 ? roll(INT32_MIN, INT32_MAX) : roll(-9999, 9999);
          std::memcpy(&first.bytes[static_cast<size_t>(k) * sizeof(float)], &number, sizeof(float));
        } else {
          first.bytes[static_cast<size_t>(k)] = static_cast<std::byte>(roll(0, 255));
        }
      }
      Lanes expected = first;
      if (from != ElementType::kFloat32) {
        expected = RunLoop(ExprOp::kCast, first, first, count, ElementType::kFloat32, from);
      }
      std::vector<FusedOperation> operations;
      std::vector<Lanes> operands;
      const auto append = [&](ExprOp op, bool is_uniform, float least, float most) {
        std::vector<float> numbers(static_cast<size_t>(count));
        for (float& number : numbers) {
          number = std::uniform_real_distribution<float>(least, most)(random);
          if (!is_uniform && roll(0, 400) == 0) number = std::numeric_limits<float>::quiet_NaN();
          if (!is_uniform && roll(0, 400) == 0) number = 1e30F;
        }
        if (is_uniform) std::fill(numbers.begin(), numbers.end(), numbers[0]);
        expected = RunLoop(op, expected, Lanes(numbers), count, ElementType::kFloat32,
                           ElementType::kFloat32);
        operations.push_back({*FindFusedOp(op, true, LoopSet::kFast), is_uniform});
        operands.emplace_back(is_uniform ? std::vector<float>{numbers[0]} : numbers);
      };
      const auto wrap = [&](ElementType byte) {
        expected = RunLoop(ExprOp::kCast, expected, expected, count, byte, ElementType::kFloat32);
        expected = RunLoop(ExprOp::kCast, expected, expected, count, ElementType::kFloat32, byte);
        operations.push_back(
            {byte == ElementType::kInt8 ? FusedOp::kWrapInt8 : FusedOp::kWrapUint8});
        operands.emplace_back(ElementType::kFloat32, 0);
      };
      for (int stage = roll(0, 2); stage >= 0; --stage) {
        const bool quantizes = roll(0, 3) != 0;
        // Divisions and roundings have no step in one pass.
        const int kinds = roll(0, 2) == 0 ? 5 : 4;
        for (int k = roll(quantizes ? 0 : 1, 2); k > 0; --k) {
          const ExprOp op = kSimple[roll(0, kinds)];
          append(op, op == ExprOp::kMax || op == ExprOp::kMin || roll(0, 1) == 0, -3, 3);
        }
        // Or of neither type, with a fraction, or crossed.
        constexpr float kBounds[][2] = {{-128, 127}, {0, 255},   {-100, 300},
                                        {0, 6.5F},   {-5, -300}, {0, -10}};
        const int bounds = roll(0, 8) < 8 ? roll(0, 1) : roll(2, 5);
        const float added = roll(0, 3) == 0   ? -0.0F
                            : roll(0, 9) == 0 ? 0.5F
                                              : static_cast<float>(roll(-9, 130));
        for (size_t k = 0; quantizes && k < std::size(kQuantize); ++k) {
          const float number[][2] = {{0.01F, 40},
                                     {0, 0},
                                     {added, added},
                                     {kBounds[bounds][0], kBounds[bounds][0]},
                                     {kBounds[bounds][1], kBounds[bounds][1]}};
          append(kQuantize[k], true, number[k][0], number[k][1]);
        }
        const bool is_int8 = (bounds == 0) == (roll(0, 5) > 0);
        if (stage > 0) wrap(is_int8 ? ElementType::kInt8 : ElementType::kUint8);
      }
      if (to != ElementType::kFloat32) {
        expected = RunLoop(ExprOp::kCast, expected, expected, count, to, ElementType::kFloat32);
      }
      MarkPatterns(operations);
      // Apart, over the first lanes, or over an operand, of the same size.
      Lanes apart(to, count);
      std::vector<Lanes*> results = {&apart};
      const auto is_wide = [](ElementType type) {
        return type == ElementType::kFloat32 || type == ElementType::kInt32;
      };
      if (is_wide(from) == is_wide(to)) results.push_back(&first);
      for (size_t k = 0; k < operands.size() && is_wide(to); ++k) {
        if (HasOperand(operations[k].op) && !operations[k].is_uniform) {
          results.push_back(&operands[k]);
        }
      }
      Lanes& result = *results[static_cast<size_t>(roll(0, static_cast<int>(results.size()) - 1))];
      FusedOperands fused{};
      fused.result = result.bytes.data();
      fused.first = first.bytes.data();
      for (size_t k = 0; k < operands.size(); ++k) {
        if (HasOperand(operations[k].op)) fused.operands[k] = operands[k].bytes.data();
      }
      fused.operations = operations.data();
      fused.count = static_cast<int>(operations.size());
      fused.lanes = count;
      if (from != ElementType::kFloat32) fused.first_lanes = *FindCastFrom(from);
      if (to != ElementType::kFloat32) fused.result_lanes = *FindCastTo(to);
      RunFused(fused);
      if (to != ElementType::kFloat32) {
        ASSERT_EQ(result.bytes, expected.bytes);
        continue;
      }
      for (int64_t k = 0; k < count; ++k) {
        float ours, loops;
        std::memcpy(&ours, &result.bytes[static_cast<size_t>(k) * sizeof(float)], sizeof(float));
        std::memcpy(&loops, &expected.bytes[static_cast<size_t>(k) * sizeof(float)], sizeof(float));
        if (std::isnan(ours) && std::isnan(loops)) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(ours), std::bit_cast<uint32_t>(loops)) << "lane " << k;
      }
      ASSERT_EQ(result.bytes.back(), Lanes::kBehind);
    }
  });
}

// The quotient `by` / `divisor` of the loop and of the fused operation, for every `by`.
void CompareQuotients(const std::vector<float>& by, float divisor) {
  const std::vector<float> divisors(by.size(), divisor);
  std::vector<float> expected(by.size());
  std::vector<float> result(by.size());
  const auto bytes = [](const std::vector<float>& column) {
    return reinterpret_cast<const std::byte*>(column.data());
  };
  FindLoop(ExprOp::kDiv, ElementType::kFloat32, ElementType::kFloat32,
           LoopSet::kReference)({reinterpret_cast<std::byte*>(expected.data()),
                                 {bytes(by), bytes(divisors)},
                                 static_cast<int64_t>(by.size()),
                                 0,
                                 ElementType::kFloat32,
                                 ElementType::kFloat32});
  const FusedOperation step{FusedOp::kDiv, /*is_uniform=*/true};
  RunFused({reinterpret_cast<std::byte*>(result.data()),
            bytes(by),
            {reinterpret_cast<const std::byte*>(&divisor)},
            &step,
            1,
            static_cast<int64_t>(by.size())});
  for (size_t k = 0; k < by.size(); ++k) {
    if (std::isnan(expected[k]) && std::isnan(result[k])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(expected[k]), std::bit_cast<uint32_t>(result[k]))
        << by[k] << " / " << divisor << " is " << expected[k] << ", not " << result[k];
  }
}

// Divisors whose reciprocals are rounded by nothing, little and half a unit; both signs.
TEST(FusedOperationsTest, DividesEveryMantissaAsADivisionDoes) {
  std::vector<float> mantissas(1 << 23);
  for (uint32_t k = 0; k < mantissas.size(); ++k) {
    mantissas[k] = std::bit_cast<float>(0x3f800000 + k);
  }
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    for (const float divisor : {3.0F, 1.4142135F, 0x1.fffffep0F, 0x1.000002p0F, -7.0F, 0x1.8p-3F}) {
      SCOPED_TRACE(divisor);
      CompareQuotients(mantissas, divisor);
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST(FusedOperationsTest, DividesNumbersOfAnySizeAsADivisionDoes) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    std::mt19937 random(11);
    for (int round = 0; round < 4000; ++round) {
      // Any bits; or of sizes whose quotients are near one.
      const bool is_any = round % 4 == 0;
      auto draw = [&] {
        const auto bits = static_cast<uint32_t>(random());
        return std::bit_cast<float>(is_any ? bits : (bits & 0x81ffffff) | 0x3e000000);
      };
      std::vector<float> by(256);
      for (float& x : by) x = random() % 16 == 0 ? std::copysign(0.0F, draw()) : draw();
      CompareQuotients(by, draw());
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Against C++'s own division; among the numbers are those whose quotients are nearly between two
// integers, and far beyond the bounds.
TEST(FusedOperationsTest, QuantizesAsItsOperationsDo) {
  constexpr FusedOp kOperations[] = {FusedOp::kDiv, FusedOp::kRoundEven, FusedOp::kAdd,
                                     FusedOp::kMax, FusedOp::kMin};
  std::vector<FusedOperation> operations;
  for (const FusedOp op : kOperations) operations.push_back({op, HasOperand(op)});
  operations.insert(operations.begin(), {FusedOp::kNeg});
  MarkPatterns(operations);
  EXPECT_EQ(operations[1].begins, FusedPattern::kQuantize);
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    std::mt19937 random(5);
    const auto roll = [&](int least, int most) {
      return std::uniform_int_distribution(least, most)(random);
    };
    for (int round = 0; round < 4000; ++round) {
      float divisor = std::ldexp(1 + static_cast<float>(random() % 1000) / 1000, roll(-20, 4));
      if (round % 50 == 0) divisor = round % 100 == 0 ? 0.0F : 0x1p-100F;
      const bool is_signed = round % 2 == 0;
      const float added = round % 7 == 0 ? -0.0F : static_cast<float>(roll(0, 255));
      const float least = is_signed ? -128 : 0;
      const float most = round % 11 == 0 ? 65535 : is_signed ? 127 : 255;
      std::vector<float> values(static_cast<size_t>(roll(1, 200)));
      for (float& value : values) {
        const auto quotient = static_cast<float>(roll(-600, 600)) / 2;
        value = quotient * divisor;
        for (int k = roll(0, 2); k > 0; --k) value = std::nextafter(value, quotient);
        if (roll(0, 20) == 0) value *= 1e6F;
        if (round % 3 == 0 && roll(0, 300) == 0) value = kNone;
      }
      std::vector<float> results(values.size());
      const auto bytes = [](const float& number) {
        return reinterpret_cast<const std::byte*>(&number);
      };
      // Behind another operation, or alone.
      const bool negates = round % 5 != 0;
      FusedOperands fused{
          reinterpret_cast<std::byte*>(results.data()),
          bytes(values[0]),
          {nullptr, bytes(divisor), nullptr, bytes(added), bytes(least), bytes(most)},
          operations.data(),
          static_cast<int>(operations.size()),
          static_cast<int64_t>(values.size())};
      if (!negates) {
        std::copy_n(fused.operands + 1, kQuantizeLength, fused.operands);
        ++fused.operations;
        --fused.count;
      }
      RunFused(fused);
      for (size_t k = 0; k < values.size(); ++k) {
        const float value = negates ? -values[k] : values[k];
        const float sum = std::nearbyint(value / divisor) + added;
        if (std::isnan(sum)) {
          ASSERT_TRUE(std::isnan(results[k]));
          continue;
        }
        const float expected = std::min(std::max(sum, least), most);
        ASSERT_EQ(results[k], expected) << value << " / " << divisor << " + " << added;
      }
    }
  });
}

// The distance of two neighbours at the size of `value`.
double UnitOf(double value) {
  const double size = std::fabs(value);
  return size < 0x1p-126 ? 0x1p-149 : std::exp2(std::floor(std::log2(size)) - 23);
}

void ExpectNear(float result, double exact, double units, float at) {
  if (std::isnan(exact)) {
    EXPECT_TRUE(std::isnan(result)) << "at " << at;
    return;
  }
  EXPECT_EQ(std::signbit(result), std::signbit(exact)) << "at " << at;
  if (std::fabs(exact) > std::numeric_limits<float>::max()) {
    EXPECT_GE(std::fabs(result), std::numeric_limits<float>::max()) << "at " << at;
  } else {
    EXPECT_LE(std::fabs(static_cast<double>(result) - exact), units * UnitOf(exact))
        << result << " at " << at;
  }
}

// All exponents, and special values.
std::vector<float> MakeArguments(uint32_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> arguments = {0.0F,
                                  -0.0F,
                                  1.0F,
                                  -1.0F,
                                  2.0F,
                                  kInfinity,
                                  -kInfinity,
                                  1e-40F,
                                  1e38F,
                                  -1e30F,
                                  std::numeric_limits<float>::quiet_NaN()};
  std::mt19937 random(seed);
  for (int k = 0; k < 2000; ++k) {
    arguments.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
    arguments.push_back(std::uniform_real_distribution<float>(-20, 20)(random));
  }
  return arguments;
}

std::vector<float> RunOn(const std::vector<float>& values, std::vector<FusedOperation> operations,
                         const std::vector<float>& operands) {
  MarkPatterns(operations);
  std::vector<float> results(values.size());
  FusedOperands fused{};
  fused.result = reinterpret_cast<std::byte*>(results.data());
  fused.first = reinterpret_cast<const std::byte*>(values.data());
  fused.operations = operations.data();
  fused.count = static_cast<int>(operations.size());
  fused.lanes = static_cast<int64_t>(values.size());
  for (size_t k = 0; k < operations.size(); ++k) {
    fused.operands[k] = reinterpret_cast<const std::byte*>(&operands[k]);
  }
  RunFused(fused);
  return results;
}

// Among the exponents are all that have operations of their own.
TEST(FusedOperationsTest, RaisesToANumberAsPowDoes) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const float number :
         {2.0F, 3.0F, 0.5F, -0.5F, -1.0F, 1.0F, 0.0F, -0.0F, 4.0F, -2.0F, 2.5F, -7.0F,
          std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      SCOPED_TRACE(number);
      const std::vector<float> arguments = MakeArguments(3);
      const std::vector<float> powers =
          RunOn(arguments, {{FusedOp::kPow, /*is_uniform=*/true}}, {number});
      const std::vector<float> inverted =
          RunOn(arguments, {{FusedOp::kPowOf, /*is_uniform=*/true}}, {number});
      for (size_t k = 0; k < arguments.size(); ++k) {
        const double x = static_cast<double>(arguments[k]);
        const double y = static_cast<double>(number);
        ExpectNear(powers[k], std::pow(x, y), 2, arguments[k]);
        ExpectNear(inverted[k], std::pow(y, x), 0.51, arguments[k]);
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

// What LeakyRelu and Selu do is one chain, of both sides of the choice.
TEST(FusedOperationsTest, HasChoicesBySign) {
  program::ExprPool pool;
  const program::Expr x = program::Load(pool, ElementType::kFloat32, 0);
  const program::Expr zero = program::Like(x, 0), slope = program::Like(x, 0.25);
  for (const program::Expr& chosen :
       {Select(x < zero, slope * x, x), Select(x > zero, x, slope * x)}) {
    const program::ExprId root = chosen.id();
    const Code code = Code::Compile(pool, {&root, 1}, LoopSet::kReference);
    ASSERT_EQ(code.varying().size(), 2U);
    EXPECT_EQ(code.varying()[1].kind, Code::Kind::kFused);
    EXPECT_EQ(code.varying()[1].operations.size(), 2U);
  }
}

// 1 / (1 + exp(-x)) as one function; the same operations with other numbers one by one.
TEST(FusedOperationsTest, ComputesTheLogisticFunction) {
  const std::vector<FusedOperation> operations = {{FusedOp::kNeg},
                                                  {FusedOp::kExp},
                                                  {FusedOp::kAdd, /*is_uniform=*/true},
                                                  {FusedOp::kDivInto, /*is_uniform=*/true}};
  std::vector<FusedOperation> marked = operations;
  MarkPatterns(marked);
  EXPECT_EQ(marked[0].begins, FusedPattern::kLogistic);
  processor::ForEachTarget([&](const char* target) {
    SCOPED_TRACE(target);
    const std::vector<float> arguments = MakeArguments(4);
    for (const float numerator : {1.0F, 3.0F}) {
      const std::vector<float> results = RunOn(arguments, operations, {0, 0, 1, numerator});
      for (size_t k = 0; k < arguments.size(); ++k) {
        const double x = static_cast<double>(arguments[k]);
        const double exact = static_cast<double>(numerator) / (1 + std::exp(-x));
        // Results that are hardly normal numbers may be 0.
        if (x < -86 && results[k] >= 0 && results[k] <= 1e-36F) continue;
        ExpectNear(results[k], exact, 3, arguments[k]);
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::engine

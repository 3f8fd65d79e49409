// SPDX-License-Identifier: Apache-2.0
//
// Running reductions compared with the reference around the lengths at which a group takes a row,
// and groups share one.

#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "backends/core/codegen/testing/step_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Expr;
using program::Scan;
using program::Shape;
using program::View;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

enum class Kind { kSum, kArgMax, kMeanAndDeviation };

struct Running {
  Kind kind = Kind::kSum;
  Extents domain;
  ElementType type = kFloat;
  bool is_exclusive = false;
  bool is_reversed = false;
  bool has_merge = true;
};

RandomStep MakeScan(const Running& of, uint32_t seed) {
  StepMaker make(seed);
  make.step.domain = Shape(of.domain.begin(), of.domain.end());
  const int64_t length = of.domain.back();
  // Backwards, as a running sum from the end has them.
  const auto directed = [&](View view) {
    if (!of.is_reversed) return view;
    view.offset = length - 1;
    view.strides.back() = -1;
    return view;
  };
  const Expr element = make.Read(directed(make.Buffer(of.domain, of.type)));
  program::ExprPool& pool = make.pool();
  Scan scan;
  scan.exclusive = of.is_exclusive;
  const auto add_state = [&](Expr init, Expr update, Expr merge) {
    scan.reduction.states.push_back(
        {init.type(), init.id(), update.id(), of.has_merge ? merge.id() : program::kNoExpr});
  };
  const auto add_root = [&](Expr value) {
    scan.roots.push_back(value.id());
    make.step.writes.push_back(directed(make.Buffer(of.domain, value.type())));
  };
  double tolerance = 0;
  switch (of.kind) {
    case Kind::kSum: {
      const ElementType sum_type = tensor::ArithmeticType(of.type);
      const Expr state = State(pool, sum_type, 0);
      add_state(Constant(pool, sum_type, 0), state + Cast(element, sum_type),
                state + Other(pool, sum_type, 0));
      add_root(Cast(state, of.type));
      break;
    }
    case Kind::kArgMax: {
      // The first of equals, whatever the order of merging; -1 before any element.
      const Expr best = State(pool, of.type, 0);
      const Expr at = State(pool, ElementType::kInt64, 1);
      const Expr place = Coordinate(pool, static_cast<int>(of.domain.size()) - 1);
      const Expr none = IntConstant(pool, ElementType::kInt64, -1);
      const auto is_better = [&](Expr value, Expr index) {
        return (at == none) || (best < value) || ((best == value) && (index < at));
      };
      const Expr takes = is_better(element, place);
      const Expr other = Other(pool, of.type, 0);
      const Expr other_at = Other(pool, ElementType::kInt64, 1);
      const Expr joins = (none < other_at) && is_better(other, other_at);
      add_state(Constant(pool, of.type, 0), Select(takes, element, best),
                Select(joins, other, best));
      add_state(none, Select(takes, place, at), Select(joins, other_at, at));
      add_root(at);
      // What is written may depend on the element, too.
      add_root(best - element);
      break;
    }
    case Kind::kMeanAndDeviation: {
      // No state may be joined that has seen no element: it divides by their number.
      const Expr count = State(pool, kFloat, 0);
      const Expr mean = State(pool, kFloat, 1);
      const Expr squares = State(pool, kFloat, 2);
      const Expr one = Constant(pool, kFloat, 1);
      const Expr zero = Constant(pool, kFloat, 0);
      const Expr delta = element - mean;
      const Expr new_mean = mean + delta / (count + one);
      const Expr other_count = Other(pool, kFloat, 0);
      const Expr apart = Other(pool, kFloat, 1) - mean;
      const Expr total = count + other_count;
      add_state(zero, count + one, total);
      add_state(zero, new_mean, mean + apart * other_count / total);
      add_state(zero, squares + delta * (element - new_mean),
                squares + Other(pool, kFloat, 2) + apart * apart * count * other_count / total);
      add_root(mean);
      add_root(squares / (count + one));
      tolerance = 1e-3;
      break;
    }
  }
  make.step.body = std::move(scan);
  make.FinishStep(tolerance);
  return std::move(make.made);
}

class ScanTest : public StepTest {};

TEST_F(ScanTest, RunningSumsAreRightAroundTheLengthsOfRoundsAndBlocks) {
  uint32_t seed = 0;
  for (const int64_t length : {0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 2047, 2048, 2049, 4096,
                               5121, 70001, 99999, 262145, 1'000'003}) {
    for (const int64_t rows : {1, 3}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << length);
      Running running{.domain = {rows, length}};
      running.is_exclusive = seed % 2 == 1;
      running.is_reversed = seed % 3 == 1;
      if (length >= 1'000'000 && rows > 1) continue;
      ExpectRight(MakeScan(running, seed++), "generated");
    }
  }
}

TEST_F(ScanTest, ManyRowsAreRight) {
  uint32_t seed = 100;
  for (const Extents& domain : {Extents{511, 2100},
                                {512, 2100},
                                {513, 2100},
                                {4095, 65},
                                {4096, 65},
                                {4097, 256},
                                {0, 3000},
                                {3, 2, 7, 2500}}) {
    SCOPED_TRACE(testing::Message() << domain[0] << " x " << domain.back());
    ExpectRight(MakeScan({.domain = domain, .is_exclusive = seed % 2 == 0}, seed), "generated");
    ++seed;
  }
}

TEST_F(ScanTest, StatesOfEveryTypePassFromBlockToBlock) {
  uint32_t seed = 200;
  for (const ElementType type :
       {ElementType::kInt8, ElementType::kUint16, ElementType::kInt32, ElementType::kInt64,
        ElementType::kUint64, ElementType::kFloat64}) {
    if (type == ElementType::kFloat64 && !has_float64_) continue;
    SCOPED_TRACE(tensor::Name(type));
    for (const int64_t length : {700, 5000}) {
      ExpectRight(MakeScan({.domain = {2, length}, .type = type}, seed++), "generated");
    }
    ExpectRight(MakeScan({.kind = Kind::kArgMax, .domain = {2, 5000}, .type = type}, seed++),
                "generated");
  }
}

TEST_F(ScanTest, SeveralStatesRunTogether) {
  uint32_t seed = 300;
  for (const Kind kind : {Kind::kArgMax, Kind::kMeanAndDeviation}) {
    for (const int64_t length : {64, 259, 2047, 2051, 40000}) {
      for (const bool is_exclusive : {false, true}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(kind) << " of " << length);
        ExpectRight(
            MakeScan({.kind = kind, .domain = {2, length}, .is_exclusive = is_exclusive}, seed++),
            "generated");
      }
    }
  }
}

TEST_F(ScanTest, WithoutAMergeElementsAreTakenInOrder) {
  for (const int64_t length : {1, 100, 5000}) {
    ExpectRight(MakeScan({.domain = {2, length}, .has_merge = false}, 400), "generated");
  }
}

TEST_F(ScanTest, NoNumberAndInfinityReachWhatComesBehindThem) {
  for (const int64_t at : {int64_t{0}, int64_t{1023}, int64_t{1024}, int64_t{6001}}) {
    SCOPED_TRACE(at);
    for (const float value :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      RandomStep step = MakeScan({.domain = {2, 7000}}, 500);
      reinterpret_cast<float*>(step.buffers[0].mutable_data())[at] = value;
      ExpectRight(step, "generated");
    }
  }
}

// 10^5 floats of one sign: a running sum is as good as the one that is taken in order.
TEST_F(ScanTest, SumsOfBlocksAreNoWorseThanSumsInOrder) {
  constexpr int64_t kLength = 100'000;
  RandomStep step = MakeScan({.domain = {1, kLength}}, 600);
  auto* x = reinterpret_cast<float*>(step.buffers[0].mutable_data());
  std::mt19937 random(7);
  for (int64_t k = 0; k < kLength; ++k) x[k] = static_cast<float>(random() % 100'000) / 100'000;
  const auto actual = RunStep(*device_, step);
  ASSERT_TRUE(actual.ok()) << actual.status().Text();
  const auto* sums = reinterpret_cast<const float*>((*actual)[1].data());
  double exact = 0;
  float in_order = 0;
  double largest = 0;
  double largest_in_order = 0;
  for (int64_t k = 0; k < kLength; ++k) {
    exact += x[k];
    in_order += x[k];
    largest = std::max(largest, std::fabs(sums[k] - exact) / exact);
    largest_in_order = std::max(largest_in_order, std::fabs(in_order - exact) / exact);
  }
  EXPECT_LE(largest, largest_in_order);
  RecordProperty("largest", std::to_string(largest));
  RecordProperty("largest_in_order", std::to_string(largest_in_order));
}

}  // namespace
}  // namespace onnxifi::codegen

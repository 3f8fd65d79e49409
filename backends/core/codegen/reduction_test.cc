// SPDX-License-Identifier: Apache-2.0
//
// Long reductions and rows, compared with the reference around the lengths at which groups share a
// reduction, a group takes a row, and a row stays in shared memory.

#include <limits>
#include <utility>

#include "backends/core/codegen/testing/step_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Expr;
using program::Reduce;
using program::Row;
using program::Shape;
using reference::RandomStep;
using tensor::ElementType;
using tensor::Extents;

class ReductionTest : public StepTest {};

enum class Kind { kSum, kMax, kArgMax, kSumAndMax };

// The fold over the last `axes` axes. States are sums in the type that ONNX's operators sum in.
RandomStep MakeReduction(Kind fold, const Extents& domain, int axes, ElementType type,
                         uint32_t seed) {
  StepMaker make(seed);
  make.step.domain = Shape(domain.begin(), domain.end());
  const Expr element = make.Read(make.Buffer(domain, type));
  program::ExprPool& pool = make.pool();
  const Extents out(domain.begin(), domain.end() - axes);
  Reduce reduce;
  reduce.axes = axes;
  const auto add_state = [&](Expr init, Expr update, Expr merge) {
    reduce.reduction.states.push_back({init.type(), init.id(), update.id(), merge.id()});
  };
  const auto add_root = [&](Expr value) {
    reduce.roots.push_back(value.id());
    make.step.writes.push_back(make.Buffer(out, value.type()));
  };
  if (fold == Kind::kSum || fold == Kind::kSumAndMax) {
    const ElementType sum_type = tensor::IsFloat(type) ? type : ElementType::kInt64;
    const int k = static_cast<int>(reduce.reduction.states.size());
    const Expr state = State(pool, sum_type, k);
    add_state(Constant(pool, sum_type, 0), state + Cast(element, sum_type),
              state + Other(pool, sum_type, k));
    add_root(state);
  }
  if (fold == Kind::kMax || fold == Kind::kSumAndMax) {
    const int k = static_cast<int>(reduce.reduction.states.size());
    const Expr state = State(pool, type, k);
    add_state(
        Constant(pool, type, tensor::IsFloat(type) ? -std::numeric_limits<double>::infinity() : 0),
        Maximum(state, element), Maximum(state, Other(pool, type, k)));
    add_root(state);
  }
  if (fold == Kind::kArgMax) {
    // The first of equals, whatever the order of merging; -1 before any element.
    const Expr best = State(pool, type, 0);
    const Expr at = State(pool, ElementType::kInt64, 1);
    const Expr place = Coordinate(pool, static_cast<int>(domain.size()) - 1);
    const Expr none = IntConstant(pool, ElementType::kInt64, -1);
    const auto is_better = [&](Expr value, Expr index) {
      return (at == none) || (best < value) || ((best == value) && (index < at));
    };
    const Expr takes = is_better(element, place);
    const Expr other = Other(pool, type, 0);
    const Expr other_at = Other(pool, ElementType::kInt64, 1);
    const Expr joins = (none < other_at) && is_better(other, other_at);
    add_state(Constant(pool, type, 0), Select(takes, element, best), Select(joins, other, best));
    add_state(none, Select(takes, place, at), Select(joins, other_at, at));
    add_root(at);
  }
  make.step.body = std::move(reduce);
  // Sums of many elements in another order, relative to their magnitude.
  make.FinishStep(tensor::IsFloat(type) ? 1e-3 : 0);
  return std::move(make.made);
}

TEST_F(ReductionTest, FoldsToFewResultsAreRightAroundTheLengthThatGroupsShare) {
  uint32_t seed = 0;
  for (const int64_t elements : {65535, 65536, 65537, 70001, 1000000}) {
    for (const int64_t results : {1, 3, 512, 513}) {
      if (results > 3 && elements > 70001) continue;
      if (results > 3 && elements != 65537) continue;
      SCOPED_TRACE(testing::Message() << elements << " elements, " << results << " results");
      const Kind fold =
          std::vector{Kind::kSum, Kind::kMax, Kind::kArgMax, Kind::kSumAndMax}[seed % 4];
      ExpectRight(MakeReduction(fold, {results, elements}, 1, kFloat, seed++), "generated");
    }
  }
  // Several reduced axes, none that stays, and none at all to reduce.
  ExpectRight(MakeReduction(Kind::kSumAndMax, {2, 300, 7, 41}, 3, kFloat, 50), "generated");
  ExpectRight(MakeReduction(Kind::kArgMax, {90001}, 1, kFloat, 51), "generated");
  ExpectRight(MakeReduction(Kind::kSum, {3, 0}, 1, kFloat, 52), "generated");
  ExpectRight(MakeReduction(Kind::kSum, {0, 100000}, 1, kFloat, 53), "generated");
}

TEST_F(ReductionTest, StatesOfEveryTypePassFromGroupToGroup) {
  uint32_t seed = 60;
  for (const ElementType type :
       {ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kInt32,
        ElementType::kUint32, ElementType::kInt64, ElementType::kUint64, ElementType::kFloat64}) {
    if (type == ElementType::kFloat64 && !has_float64_) continue;
    SCOPED_TRACE(tensor::Name(type));
    ExpectRight(MakeReduction(Kind::kSumAndMax, {2, 66001}, 1, type, seed++), "generated");
    ExpectRight(MakeReduction(Kind::kArgMax, {2, 66001}, 1, type, seed++), "generated");
  }
}

TEST_F(ReductionTest, NoNumberAndInfinityReachTheResult) {
  for (const int64_t at : {int64_t{0}, int64_t{65536}, int64_t{99999}}) {
    SCOPED_TRACE(at);
    RandomStep step = MakeReduction(Kind::kSumAndMax, {3, 100000}, 1, kFloat, 70);
    auto* x = reinterpret_cast<float*>(step.buffers[0].mutable_data());
    x[at] = std::numeric_limits<float>::quiet_NaN();
    x[100000 + at] = std::numeric_limits<float>::infinity();
    x[200000 + at] = -std::numeric_limits<float>::infinity();
    ExpectRight(step, "generated");
  }
}

// (x - max x) / sum of (x - max x)^2 and the sum itself, once per row; x is a read, or the sum of
// two.
RandomStep MakeRow(const Extents& domain, int axes, ElementType type, bool has_two, uint32_t seed) {
  StepMaker make(seed);
  make.step.domain = Shape(domain.begin(), domain.end());
  const Expr element = make.Read(make.Buffer(domain, type));
  program::ExprPool& pool = make.pool();
  Expr x = Cast(element, kFloat);
  if (has_two) x = x + Cast(make.Read(make.Buffer(domain, type)), kFloat);
  Row row;
  row.axes = axes;
  const Expr state = State(pool, kFloat, 0);
  const Expr other = Other(pool, kFloat, 0);
  Row::Pass largest;
  largest.reduction.states.push_back(
      {kFloat, Constant(pool, kFloat, -std::numeric_limits<double>::infinity()).id(),
       Maximum(state, x).id(), Maximum(state, other).id()});
  largest.results = {state.id()};
  row.passes.push_back(std::move(largest));
  const Expr below = x - RowResult(pool, kFloat, 0, 0);
  Row::Pass squares;
  squares.reduction.states.push_back(
      {kFloat, Constant(pool, kFloat, 0).id(), (state + below * below).id(), (state + other).id()});
  squares.results = {state.id()};
  row.passes.push_back(std::move(squares));
  const Expr sum = RowResult(pool, kFloat, 1, 0);
  const Expr value = below / (sum + Constant(pool, kFloat, 1));
  program::View once = make.Buffer(Extents(domain.begin(), domain.end() - axes));
  once.strides.resize(domain.size(), 0);
  row.roots = {value.id(), sum.id()};
  make.step.writes = {make.Buffer(domain), once};
  make.step.body = std::move(row);
  make.FinishStep(1e-3);
  return std::move(make.made);
}

TEST_F(ReductionTest, RowsAreRightAroundTheLengthsThatFitSharedMemory) {
  uint32_t seed = 80;
  for (const int64_t elements :
       {1, 63, 64, 65, 255, 256, 257, 1000, 1023, 1024, 1025, 4095, 4096, 4097, 9001}) {
    SCOPED_TRACE(elements);
    ExpectRight(MakeRow({3, elements}, 1, kFloat, seed % 2 == 0, seed), "generated");
    ++seed;
  }
  ExpectRight(MakeRow({2, 2, 9, 31, 7}, 3, kFloat, true, 120), "generated");
}

TEST_F(ReductionTest, RowsOfEveryTypeAreKept) {
  for (const ElementType type : {ElementType::kInt8, ElementType::kUint16, ElementType::kInt64,
                                 ElementType::kFloat8E4M3Fn, ElementType::kFloat64}) {
    if (type == ElementType::kFloat64 && !has_float64_) continue;
    SCOPED_TRACE(tensor::Name(type));
    for (const int64_t elements : {1000, 3001}) {
      ExpectRight(MakeRow({2, elements}, 1, type, true, 130), "generated");
    }
  }
}

}  // namespace
}  // namespace onnxifi::codegen

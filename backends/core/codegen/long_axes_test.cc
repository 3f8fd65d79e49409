// SPDX-License-Identifier: Apache-2.0
//
// Steps of every family along axes of 70,000 elements and more, compared with the reference. A
// kernel whose items go through all of such an axis is slow everywhere; and Mesa's llvmpipe leaves
// the loops of an item after 65,535 rounds in all.

#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tiled_fixture.h"

namespace onnxifi::codegen {
namespace {

using program::Attention;
using program::Expr;
using program::ExprPool;
using program::Index;
using program::Shape;
using program::Window;

class LongAxesTest : public StepTest {};

constexpr int64_t kLong = 70'001;
constexpr int64_t kLonger = 200'000;

// A running product of numbers next to 1, which no block of it may be taken out of.
TEST_F(LongAxesTest, RunningProductsAreTakenInOrder) {
  for (const int64_t length : {kLong, kLonger}) {
    for (const bool is_exclusive : {false, true}) {
      SCOPED_TRACE(length);
      StepMaker make(static_cast<uint32_t>(length));
      make.step.domain = {2, length};
      ExprPool& pool = make.pool();
      const Expr x = make.Read(make.Buffer({2, length}));
      const Expr state = State(pool, kFloat, 0);
      program::Scan scan;
      scan.exclusive = is_exclusive;
      scan.reduction.states = {
          {kFloat, Constant(pool, kFloat, 1).id(), (state * x).id(), program::kNoExpr}};
      scan.roots = {state.id()};
      make.step.body = std::move(scan);
      make.step.writes = {make.Buffer({2, length})};
      make.FinishStep(0);
      auto* values = reinterpret_cast<float*>(make.made.buffers[0].mutable_data());
      for (int64_t k = 0; k < 2 * length; ++k) {
        values[k] = k % 2 == 0 ? 1.0F + static_cast<float>(k % 7) / 512 : 1.0F / 1.0078125F;
      }
      ExpectRight(make.made, "generated");
    }
  }
}

TEST_F(LongAxesTest, ReductionsAndTheirPlacesAreRight) {
  for (const Extents& domain : {Extents{3, kLong}, {2, kLonger}}) {
    SCOPED_TRACE(testing::Message() << domain[0] << " x " << domain[1]);
    StepMaker make(1);
    ExprPool& pool = make.pool();
    make.step.domain = Shape(domain.begin(), domain.end());
    const Expr x = make.Read(make.Buffer(domain));
    const Expr best = State(pool, kFloat, 0);
    const Expr at = State(pool, ElementType::kInt64, 1);
    const Expr none = IntConstant(pool, ElementType::kInt64, -1);
    const auto is_better = [&](Expr value, Expr index) {
      return (at == none) || (best < value) || ((best == value) && (index < at));
    };
    const Expr place = Coordinate(pool, 1);
    const Expr takes = is_better(x, place);
    const Expr other = Other(pool, kFloat, 0);
    const Expr other_at = Other(pool, ElementType::kInt64, 1);
    const Expr joins = (none < other_at) && is_better(other, other_at);
    program::Reduce reduce;
    reduce.axes = 1;
    reduce.reduction.states = {{kFloat, Constant(pool, kFloat, 0).id(), Select(takes, x, best).id(),
                                Select(joins, other, best).id()},
                               {ElementType::kInt64, none.id(), Select(takes, place, at).id(),
                                Select(joins, other_at, at).id()}};
    reduce.roots = {best.id(), at.id()};
    make.step.body = std::move(reduce);
    make.step.writes = {make.Buffer({domain[0]}), make.Buffer({domain[0]}, ElementType::kInt64)};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
}

TEST_F(LongAxesTest, RowsAreRight) {
  StepMaker make(2);
  ExprPool& pool = make.pool();
  program::Row row;
  const Expr x = make.Read(make.Buffer({2, kLonger}));
  const Expr state = State(pool, kFloat, 0);
  const Expr other = Other(pool, kFloat, 0);
  row.passes.push_back(
      {{{{kFloat, Like(x, -100).id(), Maximum(state, x).id(), Maximum(state, other).id()}}},
       {state.id()}});
  const Expr power = Unary(program::ExprOp::kExp, x - RowResult(pool, kFloat, 0, 0));
  row.passes.push_back(
      {{{{kFloat, Like(x, 0).id(), (state + power).id(), (state + other).id()}}}, {state.id()}});
  row.roots = {(power / RowResult(pool, kFloat, 1, 0)).id()};
  make.step.domain = {2, kLonger};
  make.step.writes = {make.Buffer({2, kLonger})};
  make.step.body = std::move(row);
  make.FinishStep(1e-6);
  ExpectRight(make.made, "generated");
}

TEST_F(LongAxesTest, SortsAreRight) {
  for (const int64_t k : {int64_t{5}, kLong}) {
    StepMaker make(3);
    make.step.reads = {make.Buffer({2, kLong})};
    make.step.domain = {2, kLong};
    make.step.writes = {make.Buffer({2, k}), make.Buffer({2, k}, ElementType::kInt64)};
    make.step.body = Index{.kind = Index::Kind::kTopK, .k = k};
    make.FinishStep(0);
    ExpectRight(make.made, "generated");
  }
}

TEST_F(LongAxesTest, NonZeroElementsAreFound) {
  StepMaker make(4);
  make.step.reads = {make.Buffer({kLonger})};
  make.step.domain = {kLonger};
  make.step.writes = {make.Buffer({1, kLonger}, ElementType::kInt64)};
  make.step.body = Index{.kind = Index::Kind::kNonZero};
  make.FinishStep(0);
  ExpectRight(make.made, "generated");
}

// Boxes of 1 x 1 on a grid that many of them share.
TEST_F(LongAxesTest, SuppressionOfManyBoxesIsRight) {
  for (const int64_t boxes : {63, 64, 65, 500, 2000, 5000}) {
    for (const int64_t limit : {boxes / 4, boxes}) {
      SCOPED_TRACE(testing::Message() << boxes << " boxes, limit " << limit);
      constexpr int64_t kRows = 3;
      StepMaker make(static_cast<uint32_t>(boxes));
      make.step.domain = {kRows, boxes};
      make.step.reads = {make.Buffer({kRows, boxes}, ElementType::kBool)};
      for (int edge = 0; edge < 4; ++edge) {
        // Rows share their boxes.
        program::View view = make.Buffer({boxes});
        view.strides.insert(view.strides.begin(), program::Dim(0));
        make.step.reads.push_back(view);
      }
      program::View threshold = make.Buffer({});
      threshold.strides = {0, 0};
      program::View most = make.Buffer({}, ElementType::kInt64);
      most.strides = {0, 0};
      make.step.reads.push_back(threshold);
      make.step.reads.push_back(most);
      make.step.writes = {make.Buffer({kRows, boxes}, ElementType::kBool)};
      make.step.body = Index{.kind = Index::Kind::kSuppress};
      make.FinishStep(0);
      std::vector<float*> edges;
      for (size_t k = 1; k <= 4; ++k) {
        edges.push_back(reinterpret_cast<float*>(make.made.buffers[k].mutable_data()));
      }
      for (int64_t box = 0; box < boxes; ++box) {
        const auto y = static_cast<float>(box * 7919 % 97) / 2;
        const auto x = static_cast<float>(box * 104729 % 89) / 2;
        edges[0][box] = y;
        edges[1][box] = x;
        edges[2][box] = y + 1;
        edges[3][box] = x + 1;
      }
      *reinterpret_cast<float*>(make.made.buffers[5].mutable_data()) = 0.3F;
      *reinterpret_cast<int64_t*>(make.made.buffers[6].mutable_data()) = limit;
      ExpectRight(make.made, "generated");
    }
  }
}

RandomStep MakeWindow(Window window, const Extents& in, const Extents& out, bool has_indices,
                      uint32_t seed) {
  StepMaker make(seed);
  const Expr read = make.Read(make.Buffer(in));
  static_cast<void>(read);
  make.step.domain = Shape(out.begin(), out.end());
  window.roots = {Accumulator(make.pool(), kFloat).id()};
  make.step.writes = {make.Buffer(out)};
  if (has_indices) make.step.writes.push_back(make.Buffer(out, ElementType::kInt64));
  if (has_indices) window.roots.push_back(program::kNoExpr);
  make.step.body = std::move(window);
  make.FinishStep(1e-3);
  return std::move(make.made);
}

TEST_F(LongAxesTest, LargeWindowsAreRight) {
  for (const auto kind : {Window::Kind::kMax, Window::Kind::kAverage, Window::Kind::kLp}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const Window line{.kind = kind,
                      .in_spatial = {kLong + 2},
                      .kernel = {kLong},
                      .strides = {1},
                      .dilations = {1},
                      .pads_begin = {1},
                      .pads_end = {0}};
    ExpectRight(MakeWindow(line, {1, 2, kLong + 2}, {1, 2, 4}, false, 5), "generated");
    const Window plane{.kind = kind,
                       .in_spatial = {300, 301},
                       .kernel = {300, 300},
                       .strides = {1, 1},
                       .dilations = {1, 1},
                       .pads_begin = {0, 0},
                       .pads_end = {0, 0}};
    ExpectRight(MakeWindow(plane, {1, 2, 300, 301}, {1, 2, 1, 2}, kind == Window::Kind::kMax, 6),
                "generated");
  }
}

TEST_F(LongAxesTest, DeepProductsAreRight) {
  uint32_t seed = 7;
  const std::pair<int64_t, int64_t> few[] = {{1, 5}};
  const std::pair<int64_t, int64_t> more[] = {{3, 70}, {20, 20}, {2, 1}};
  const auto expect_right = [&](int64_t m, int64_t n, int64_t k) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    RandomStep step = MakeProduct({.batch = 1, .m = m, .n = n, .k = k}, seed++);
    step.tolerance = 0.5;
    ExpectRight(step, "tiled product");
  };
  for (const auto& [m, n] : few) expect_right(m, n, kLonger);
  for (const auto& [m, n] : more) expect_right(m, n, kLong);
}

TEST_F(LongAxesTest, DeepConvolutionsAreRight) {
  RandomStep step = MakeConvolution(1, 1, kLong, 9, {{2, 1}, {2, 1}}, kFloat, 20);
  step.tolerance = 0.5;
  ExpectRight(step, "tiled convolution");
  step = MakeConvolution(1, 1, 1, 9, {{300, 300}, {303, 300}}, kFloat, 21);
  step.tolerance = 0.5;
  ExpectRight(step, "tiled convolution");
  // Depthwise: in tiles only where these are not a group's.
  step = MakeConvolution(1, 2, 1, 1, {{300, 300}, {303, 300}}, kFloat, 22);
  step.tolerance = 0.5;
  const auto selection = device_->Select({step.program, step.program.steps[0]});
  ASSERT_TRUE(selection.ok()) << selection.status().Text();
  ExpectRight(step, selection->recipe->implementation());
  // Of too few pixels for tiles.
  step = MakeConvolution(1, 1, kLong, 5, {{1, 1}, {3, 1}}, kFloat, 23);
  step.tolerance = 0.5;
  ExpectRight(step, "generated");
}

TEST_F(LongAxesTest, AttentionToManyKeysIsRight) {
  for (const int64_t keys : {int64_t{9'000}, kLong}) {
    StepMaker make(30);
    ExprPool& pool = make.pool();
    constexpr int64_t kQueries = 5, kWidth = 40, kValues = 9;
    make.step.domain = {1, kQueries, kValues};
    Attention attention;
    attention.keys = keys;
    attention.width = kWidth;
    attention.query_prologue = make.Read(make.Buffer({1, kQueries, kWidth})).id();
    program::View rows = make.Buffer({1, keys, kWidth});
    std::swap(rows.strides[1], rows.strides[2]);
    attention.key_prologue = make.Read(rows).id();
    attention.value_prologue = make.Read(make.Buffer({1, keys, kValues})).id();
    const Expr score = Accumulator(pool, kFloat);
    attention.score = (score * Like(score, 0.02)).id();
    attention.roots = {Accumulator(pool, kFloat).id()};
    make.step.writes = {make.Buffer({1, kQueries, kValues})};
    make.step.body = std::move(attention);
    make.FinishStep(1e-3);
    ExpectRight(make.made, "generated");
  }
}

}  // namespace
}  // namespace onnxifi::codegen

// SPDX-License-Identifier: Apache-2.0
//
// ViewExtents: over the domain, over an operand's axes, over what is left of reduced axes, or not
// known.

#include "backends/core/program/view_extents.h"

#include <gtest/gtest.h>

#include <vector>

#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::program {
namespace {

TEST(ViewExtentsTest, FollowsTheFamily) {
  ProgramMaker maker;
  const Operand x = maker.Input({2, 3});
  const Operand y = maker.MatMul(x, maker.Input({3, 4}));
  maker.SumRows(y);
  const ViewExtents product(maker.program, maker.program.steps[0]);
  EXPECT_EQ(product.OfRead(0), (Shape{2, 3}));
  EXPECT_EQ(product.OfRead(1), (Shape{3, 4}));
  EXPECT_EQ(product.OfWrite(0), (Shape{2, 4}));
  const ViewExtents sum(maker.program, maker.program.steps[1]);
  EXPECT_EQ(sum.OfRead(0), (Shape{2, 4}));
  EXPECT_EQ(sum.OfWrite(0), Shape{2});
}

TEST(ViewExtentsTest, ScatterWritesAnywhereInItsTarget) {
  ProgramMaker maker;
  Index scatter;
  scatter.target = {7};
  const Operand at = maker.Input({3}, ElementType::kInt64);
  maker.AddStep({{3}, {maker.Input({3}).view, at.view}, {maker.Temporary({7}).view}, scatter});
  Index top;
  top.kind = Index::Kind::kTopK;
  top.k = 2;
  maker.AddStep({{3}, {maker.Input({3}).view}, {maker.Temporary({2}).view}, top});
  const ViewExtents scattered(maker.program, maker.program.steps[0]);
  EXPECT_EQ(scattered.OfRead(0), Shape{3});
  EXPECT_EQ(scattered.OfWrite(0), Shape{7});
  EXPECT_EQ(ViewExtents(maker.program, maker.program.steps[1]).OfWrite(0), std::nullopt);
}

TEST(ViewExtentsTest, OfComputedCoordinatesAreWhatGuardsLetPass) {
  ProgramMaker maker;
  const Operand x = maker.Input({5, 9});
  maker.Map({7, 9}, {x}, [](ExprPool& pool, const std::vector<Expr>&) {
    const Expr row = Coordinate(pool, 0) + Coordinate(pool, 0);
    return LoadAt(pool, ElementType::kFloat32, 0, std::vector<Expr>{row, Coordinate(pool, 1)});
  });
  Step& step = maker.program.steps[0];
  EXPECT_EQ(ViewExtents(maker.program, step).OfRead(0), std::nullopt);
  // Of the sum of both coordinates, which bounds neither.
  step.reads[0].guards = {{{1, 1}, 0, 4}};
  EXPECT_EQ(ViewExtents(maker.program, step).OfRead(0), std::nullopt);
  step.reads[0].guards.push_back({{1, 0}, 0, 5});
  const ViewExtents extents(maker.program, step);
  EXPECT_EQ(extents.OfRead(0), (Shape{5, 9}));
  EXPECT_TRUE(extents.HasComputedCoordinates(0));
  // A constant coordinate bounds itself.
  const Expr at[] = {IntConstant(maker.program.exprs, ElementType::kInt64, 3),
                     Coordinate(maker.program.exprs, 1)};
  step.body = Map{{LoadAt(maker.program.exprs, ElementType::kFloat32, 0, at).id()}};
  step.reads[0].guards.clear();
  EXPECT_EQ(ViewExtents(maker.program, step).OfRead(0), (Shape{4, 9}));
}

TEST(ViewExtentsTest, AreNotKnownOfComputedCoordinates) {
  ProgramMaker maker;
  const Operand x = maker.Input({5});
  maker.Map({5}, {x, x}, [](ExprPool& pool, const std::vector<Expr>& loads) {
    const Expr at[] = {Coordinate(pool, 0) + Coordinate(pool, 0)};
    return loads[0] + LoadAt(pool, ElementType::kFloat32, 1, at);
  });
  const ViewExtents extents(maker.program, maker.program.steps[0]);
  EXPECT_EQ(extents.OfRead(0), Shape{5});
  EXPECT_EQ(extents.OfRead(1), std::nullopt);
  EXPECT_EQ(extents.OfWrite(0), Shape{5});
}

TEST(ViewExtentsTest, OfAttentionAreThoseOfOperandsAndResults) {
  ProgramMaker maker;
  ExprPool& pool = maker.program.exprs;
  constexpr ElementType kFloat = ElementType::kFloat32;
  Attention attention;
  attention.keys = 7;
  attention.width = 5;
  // Reads 3 to 5: of a prologue, of the score, of the results.
  attention.query_prologue = (Load(pool, kFloat, 0) + Load(pool, kFloat, 3)).id();
  attention.key_prologue = Load(pool, kFloat, 1).id();
  attention.value_prologue = Load(pool, kFloat, 2).id();
  attention.score = (Accumulator(pool, kFloat) + Load(pool, kFloat, 4)).id();
  attention.roots = {(Accumulator(pool, kFloat) + Load(pool, kFloat, 5)).id()};
  std::vector<View> reads;
  for (const Shape& shape :
       {Shape{3, 5}, Shape{5, 7}, Shape{7, 11}, Shape{3, 5}, Shape{3, 7}, Shape{3, 11}}) {
    reads.push_back(maker.Input(shape).view);
  }
  maker.AddStep({{3, 11}, reads, {maker.Temporary({3, 11}).view}, std::move(attention)});
  const ViewExtents extents(maker.program, maker.program.steps[0]);
  EXPECT_EQ(extents.OfRead(0), (Shape{3, 5}));
  EXPECT_EQ(extents.OfRead(1), (Shape{5, 7}));
  EXPECT_EQ(extents.OfRead(2), (Shape{7, 11}));
  EXPECT_EQ(extents.OfRead(3), std::nullopt);
  EXPECT_EQ(extents.OfRead(4), std::nullopt);
  EXPECT_EQ(extents.OfRead(5), (Shape{3, 11}));
  EXPECT_EQ(extents.OfWrite(0), (Shape{3, 11}));
}

TEST(ViewExtentsTest, AreNotKnownOfWhatExecutionRuns) {
  ProgramMaker maker;
  maker.AddStep({{1}, {maker.Input({1}, ElementType::kInt64).view}, {}, Cut{}});
  EXPECT_EQ(ViewExtents(maker.program, maker.program.steps[0]).OfRead(0), std::nullopt);
}

}  // namespace
}  // namespace onnxifi::program

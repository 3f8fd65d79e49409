// SPDX-License-Identifier: Apache-2.0
//
// MakeGatheredProducts: matrices that positions select are read where they lie, or all of them
// multiply all rows, and the program computes the same on the reference; other loads stay.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;
using enum tensor::ElementType;

constexpr int64_t kEntries = 3, kDepth = 4, kColumns = 5;

bool PreferAll(const Program&, const Step&) { return true; }
bool PreferNone(const Program&, const Step&) { return false; }

Operand Floats(ProgramMaker& maker, const tensor::Extents& extents) {
  std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k * 5 % 17) / 4 - 2;
  return maker.Constant(tensor::Tensor::FromValues<float>(kFloat32, extents, values));
}

Operand Positions(ProgramMaker& maker, const tensor::Extents& extents,
                  const std::vector<int64_t>& positions) {
  return maker.Constant(tensor::Tensor::FromValues<int64_t>(kInt64, extents, positions));
}

// matrices[positions], as Gather is lowered: [positions..., rest of the matrices' axes].
Operand Gather(ProgramMaker& maker, const Operand& matrices, const Operand& positions) {
  ExprPool& pool = maker.program.exprs;
  Step step;
  step.domain = positions.shape;
  step.domain.insert(step.domain.end(), matrices.shape.begin() + 1, matrices.shape.end());
  Operand aligned = positions;
  for (int axis = 1; axis < matrices.rank(); ++axis) aligned = InsertAxis(aligned, aligned.rank());
  step.reads = {BroadcastTo(aligned, step.domain), matrices.view};
  Guard guard{Dims(matrices.shape.size(), Dim(0)), Dim(0), matrices.shape[0]};
  guard.coefficients[0] = Dim(1);
  step.reads[1].guards.push_back(std::move(guard));
  const Expr given = Load(pool, kInt64, 0);
  std::vector<Expr> at = {
      Select(given < Like(given, 0), given + DimExpr(pool, matrices.shape[0]), given)};
  for (int axis = 1; axis < matrices.rank(); ++axis) {
    at.push_back(Coordinate(pool, axis + positions.rank() - 1));
  }
  const Operand gathered = maker.Temporary(step.domain);
  step.writes = {gathered.view};
  step.body = Map{{LoadAt(pool, kFloat32, 1, at).id()}};
  maker.AddStep(std::move(step));
  return gathered;
}

// a[batch..., m, k] x b[batch..., k, n].
Operand Multiply(ProgramMaker& maker, const Operand& a, const Operand& b, int batch_axes) {
  Contract contract;
  contract.batch_axes = batch_axes;
  contract.m_axes = 1;
  contract.n_axes = 1;
  contract.inner = {a.shape.back()};
  contract.a_prologue = Load(maker.program.exprs, kFloat32, 0).id();
  contract.b_prologue = Load(maker.program.exprs, kFloat32, 1).id();
  contract.roots = {Accumulator(maker.program.exprs, kFloat32).id()};
  Shape shape(b.shape.begin(), b.shape.begin() + batch_axes);
  Shape of_a = shape, domain = shape;
  of_a.push_back(a.shape[a.shape.size() - 2]);
  of_a.push_back(a.shape.back());
  domain.push_back(of_a[of_a.size() - 2]);
  domain.push_back(b.shape.back());
  const Operand product = maker.Temporary(domain);
  maker.AddStep({domain, {BroadcastTo(a, of_a), b.view}, {product.view}, std::move(contract)});
  return product;
}

// The positions of the two largest of each row of an input.
Operand TopTwo(ProgramMaker& maker, int64_t rows) {
  const Operand scores = maker.Input({rows, kEntries});
  const Operand values = maker.Temporary({rows, 2});
  const Operand positions = maker.Temporary({rows, 2}, kInt64);
  Index index;
  index.kind = Index::Kind::kTopK;
  index.k = 2;
  maker.AddStep({scores.shape, {scores.view}, {values.view, positions.view}, std::move(index)});
  return positions;
}

// What the pass leaves, after it has computed the same as before.
Program Replaced(const std::function<void(ProgramMaker&)>& make,
                 const PrefersGatheredMatrices& prefers) {
  ProgramMaker plain, replaced;
  make(plain);
  make(replaced);
  MakeGatheredProducts(replaced.program, prefers);
  EXPECT_TRUE(Verify(replaced.program).ok()) << ToString(replaced.program);
  const std::vector<std::vector<float>> expected = RunOnNumbers(plain.program);
  EXPECT_EQ(RunOnNumbers(replaced.program), expected) << ToString(replaced.program);
  EXPECT_NE(expected.at(0), std::vector<float>(expected.at(0).size()));
  return std::move(replaced.program);
}

// The largest number of elements that a temporary has.
int64_t LargestTemporary(const Program& program) {
  int64_t largest = 0;
  for (const Step& step : program.steps) {
    for (const View& write : step.writes) {
      int64_t elements = 1;
      for (const Dim& dim : program.buffers[write.buffer].shape) elements *= dim.constant();
      largest = std::max(largest, elements);
    }
  }
  return largest;
}

int CountMaps(const Program& program) {
  return static_cast<int>(std::ranges::count_if(
      program.steps, [](const Step& step) { return step.As<Map>() != nullptr; }));
}

// Tokens that go through two experts each: rows that both share, or a row for each of them.
std::function<void(ProgramMaker&)> Experts(int64_t tokens, bool has_own_rows) {
  return [=](ProgramMaker& maker) {
    const Operand positions = TopTwo(maker, tokens);
    const Operand weights = Floats(maker, {kEntries, kColumns, kDepth});
    const Operand gathered = Permute(Gather(maker, weights, positions), {0, 1, 3, 2});
    const Operand x = maker.Input({tokens, has_own_rows ? 2 : 1, 1, kDepth});
    maker.Output(Multiply(maker, x, gathered, 2));
  };
}

TEST(GatheredProductsTest, ReadsMatricesWhereTheyLie) {
  for (const bool has_own_rows : {false, true}) {
    const Program program = Replaced(Experts(7, has_own_rows), PreferAll);
    EXPECT_EQ(CountMaps(program), 0) << ToString(program);
  }
}

TEST(GatheredProductsTest, CountsNegativePositionsFromTheEndAndGivesZeroBeyond) {
  Replaced(
      [](ProgramMaker& maker) {
        const Operand positions = Positions(maker, {5}, {-1, 2, 3, -4, -3});
        const Operand weights = Floats(maker, {kEntries, kDepth, kColumns});
        maker.Output(
            Multiply(maker, maker.Input({5, 2, kDepth}), Gather(maker, weights, positions), 1));
      },
      PreferAll);
}

// bmm(weights[experts], x)
TEST(GatheredProductsTest, TakesMatricesInTheFirstPlace) {
  const Program program = Replaced(
      [](ProgramMaker& maker) {
        const Operand positions = Positions(maker, {5}, {1, 2, 0, 2, 1});
        const Operand weights = Floats(maker, {kEntries, kColumns, kDepth});
        maker.Output(
            Multiply(maker, Gather(maker, weights, positions), maker.Input({5, kDepth, 1}), 1));
      },
      PreferAll);
  EXPECT_EQ(CountMaps(program), 0) << ToString(program);
}

TEST(GatheredProductsTest, TakesWhatIsDequantized) {
  for (const int64_t block : {kDepth, kDepth / 2}) {
    const Program program = Replaced(
        [&](ProgramMaker& maker) {
          std::vector<uint8_t> bytes(kEntries * kColumns * kDepth);
          for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<uint8_t>(k * 37);
          const Shape shape = {kEntries, kColumns, kDepth};
          const Operand numbers = maker.Constant(
              tensor::Tensor::FromValues<uint8_t>(kUint8, {kEntries, kColumns, kDepth}, bytes));
          const Operand scales = Floats(maker, {kEntries, kColumns, kDepth / block});
          const Operand zeros = maker.Constant(tensor::Tensor::FromValues<uint8_t>(
              kUint8, {kEntries, kColumns},
              std::vector<uint8_t>(bytes.begin(), bytes.begin() + kEntries * kColumns)));
          Step step;
          step.domain = shape;
          step.reads = {numbers.view, scales.view, BroadcastTo(InsertAxis(zeros, 2), shape)};
          ExprPool& pool = maker.program.exprs;
          const Expr at[] = {Coordinate(pool, 0), Coordinate(pool, 1),
                             Coordinate(pool, 2) / IntConstant(pool, kInt64, block)};
          const Expr difference =
              Cast(Load(pool, kUint8, 0), kInt32) - Cast(Load(pool, kUint8, 2), kInt32);
          const Operand weights = maker.Temporary(shape);
          step.writes = {weights.view};
          step.body = Map{{(Cast(difference, kFloat32) * LoadAt(pool, kFloat32, 1, at)).id()}};
          maker.AddStep(std::move(step));
          const Operand positions = Positions(maker, {5}, {-1, 2, 0, -9, 1});
          const Operand gathered = Permute(Gather(maker, weights, positions), {0, 2, 1});
          maker.Output(Multiply(maker, maker.Input({5, 1, kDepth}), gathered, 1));
        },
        PreferAll);
    EXPECT_EQ(program.steps.size(), 1U) << ToString(program);
  }
}

// Where the device has no kernel for it.
TEST(GatheredProductsTest, MultipliesAllRowsWithAllMatrices) {
  for (const bool has_own_rows : {false, true}) {
    const Program program = Replaced(Experts(7, has_own_rows), PreferNone);
    EXPECT_LT(LargestTemporary(program), int64_t{7} * 2 * kDepth * kColumns) << ToString(program);
  }
}

TEST(GatheredProductsTest, CopiesFewMatrices) {
  const Program program = Replaced(Experts(1, false), PreferNone);
  EXPECT_EQ(LargestTemporary(program), int64_t{2} * kDepth * kColumns) << ToString(program);
}

// Positions that may be equal: a row of its own for each would be lost.
TEST(GatheredProductsTest, KeepsRowsOfEqualPositionsApart) {
  Replaced(
      [](ProgramMaker& maker) {
        const Operand positions = Positions(maker, {3, 2}, {1, 1, 2, 0, 2, 2});
        const Operand weights = Floats(maker, {kEntries, kDepth, kColumns});
        maker.Output(
            Multiply(maker, maker.Input({3, 2, 1, kDepth}), Gather(maker, weights, positions), 2));
      },
      PreferNone);
}

// Sums of embeddings by weights: each row of a matrix has a position of its own.
TEST(GatheredProductsTest, KeepsMatricesWhoseRowsAreSelected) {
  const std::vector<int64_t> positions = {0, 1, 2, 2, 0, 1, 1, 1, 0, 2, 0, 2,
                                          0, 2, 1, 1, 0, 2, 2, 2, 0, 1, 0, 1};
  Replaced(
      [&](ProgramMaker& maker) {
        const Operand table = Floats(maker, {kEntries, kColumns});
        const Operand gathered = Gather(maker, table, Positions(maker, {2, 4, 3}, positions));
        maker.Output(Multiply(maker, maker.Input({2, 1, 1, 3}), gathered, 2));
      },
      PreferNone);
  // In the first place, each times a column.
  Replaced(
      [&](ProgramMaker& maker) {
        const Operand table = Floats(maker, {kEntries, kDepth});
        const Operand gathered = Gather(maker, table, Positions(maker, {2, 4, 3}, positions));
        const Shape shape = {2, 4, kDepth, 1};
        const Operand x = maker.Input({2, 1, kDepth, 1});
        maker.Output(Multiply(maker, gathered, {BroadcastTo(x, shape), shape}, 2));
      },
      PreferNone);
}

// The number of tokens is known once a run begins.
TEST(GatheredProductsTest, TakesAnyNumberOfTokens) {
  for (const auto& prefers : {PreferAll, PreferNone}) {
    ProgramMaker maker;
    const Dim tokens = maker.program.dims->NewSymbol("tokens", /*is_data=*/false);
    const Operand positions = maker.Input({tokens, 2}, kInt64);
    const Operand weights = Floats(maker, {kEntries, kDepth, kColumns});
    const Operand x = maker.Input({tokens, 1, 1, kDepth});
    maker.Output(Multiply(maker, x, Gather(maker, weights, positions), 2));
    MakeGatheredProducts(maker.program, prefers);
    EXPECT_TRUE(Verify(maker.program).ok()) << ToString(maker.program);
    const bool is_written = std::ranges::any_of(maker.program.steps, [&](const Step& step) {
      return step.writes.size() == 1 && step.domain.size() == 4 && step.domain[2] == Dim(kDepth) &&
             step.domain[3] == Dim(kColumns);
    });
    EXPECT_FALSE(is_written) << ToString(maker.program);
  }
}

}  // namespace
}  // namespace onnxifi::program

// SPDX-License-Identifier: Apache-2.0
//
// Cost: each family against numbers worked out by hand, with extents that all differ.

#include "backends/core/program/cost.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace onnxifi::program {

// For the messages of failures.
std::ostream& operator<<(std::ostream& out, const StepCost& cost) {
  return out << cost.flops << " flops, " << cost.read_bytes << " bytes read, " << cost.written_bytes
             << " written";
}

namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

class CostTest : public testing::Test {
 protected:
  BufferId AddBuffer(const Shape& shape, ElementType type = kFloat) {
    return program_.AddBuffer({Buffer::Kind::kTemporary, type, shape});
  }
  View AddDense(const Shape& shape, ElementType type = kFloat) {
    return DenseView(AddBuffer(shape, type), type, shape);
  }
  Expr LoadOf(int read) { return Load(program_.exprs, kFloat, read); }
  StepCost Cost(const std::vector<int64_t>& dims = {}) { return CostOf(program_, step_, dims); }

  Program program_;
  Step step_;
};

TEST_F(CostTest, MapCountsOperationsOnFloatsPerElement) {
  step_.domain = {5, 7};
  step_.reads = {AddDense({5, 7}), AddDense({5, 7})};
  step_.writes = {AddDense({5, 7})};
  // tanh(a) * a + b: three operations; the shared load is none.
  Expr a = LoadOf(0);
  step_.body = Map{{(Unary(ExprOp::kTanh, a) * a + LoadOf(1)).id()}};
  EXPECT_EQ(Cost(), (StepCost{3 * 35, 2 * 35 * 4, 35 * 4}));
}

TEST_F(CostTest, CastsAndIndexArithmeticAreNoFlops) {
  step_.domain = {6};
  step_.reads = {AddDense({6}, ElementType::kInt32)};
  step_.writes = {AddDense({6})};
  Expr sum =
      Load(program_.exprs, ElementType::kInt32, 0) + Load(program_.exprs, ElementType::kInt32, 0);
  step_.body = Map{{Cast(sum, kFloat).id()}};
  EXPECT_EQ(Cost(), (StepCost{0, 24, 24}));
}

TEST_F(CostTest, BroadcastOperandsAndPartsOfBuffersCountWhatIsReached) {
  step_.domain = {5, 7};
  View row = AddDense({7});
  row.strides.insert(row.strides.begin(), 0);
  // Columns 2, 4, ... of a wider buffer.
  View part = AddDense({5, 20});
  part.strides = {20, 2};
  part.offset = 2;
  step_.reads = {row, part};
  step_.writes = {AddDense({5, 7})};
  step_.body = Map{{(LoadOf(0) + LoadOf(1)).id()}};
  EXPECT_EQ(Cost(), (StepCost{35, 7 * 4 + 35 * 4, 35 * 4}));
}

TEST_F(CostTest, NoBufferCountsForMoreThanItHas) {
  step_.domain = {9};
  View once = AddDense({9});
  View reversed = once;
  reversed.strides = {-1};
  reversed.offset = 8;
  step_.reads = {once, reversed};
  step_.writes = {AddDense({9})};
  step_.body = Map{{(LoadOf(0) + LoadOf(1)).id()}};
  EXPECT_EQ(Cost(), (StepCost{9, 36, 36}));
}

TEST_F(CostTest, AComputedIndexReachesOneElementPerEvaluation) {
  step_.domain = {3, 8};
  step_.reads = {AddDense({1000, 8}), AddDense({3}, ElementType::kInt64)};
  step_.reads[1].strides = {1, 0};
  step_.writes = {AddDense({3, 8})};
  ExprPool& pool = program_.exprs;
  const std::vector<Expr> at = {Load(pool, ElementType::kInt64, 1), Coordinate(pool, 1)};
  step_.body = Map{{LoadAt(pool, kFloat, 0, at).id()}};
  EXPECT_EQ(Cost(), (StepCost{0, 24 * 4 + 3 * 8, 24 * 4}));
}

TEST_F(CostTest, ReduceWritesItsOuterAxes) {
  step_.domain = {3, 11};
  step_.reads = {AddDense({3, 11})};
  step_.writes = {AddDense({3})};
  ExprPool& pool = program_.exprs;
  Expr state = State(pool, kFloat, 0);
  Reduce reduce;
  reduce.axes = 1;
  reduce.reduction.states = {{kFloat, Constant(pool, kFloat, 0).id(),
                              (state + LoadOf(0) * LoadOf(0)).id(),
                              (state + Other(pool, kFloat, 0)).id()}};
  reduce.roots = {Unary(ExprOp::kSqrt, state).id()};
  step_.body = std::move(reduce);
  EXPECT_EQ(Cost(), (StepCost{2 * 33 + 3, 33 * 4, 3 * 4}));
}

TEST_F(CostTest, RowReducesOncePerPassAndWritesEverything) {
  step_.domain = {3, 11};
  step_.reads = {AddDense({3, 11})};
  step_.writes = {AddDense({3, 11})};
  ExprPool& pool = program_.exprs;
  Expr state = State(pool, kFloat, 0);
  Row row;
  row.axes = 1;
  Row::Pass pass;
  pass.reduction.states = {{kFloat, Constant(pool, kFloat, 0).id(), (state + LoadOf(0)).id(),
                            (state + Other(pool, kFloat, 0)).id()}};
  pass.results = {(Constant(pool, kFloat, 1) / state).id()};
  row.passes = {pass};
  row.roots = {(LoadOf(0) * RowResult(pool, kFloat, 0, 0)).id()};
  step_.body = std::move(row);
  EXPECT_EQ(Cost(), (StepCost{33 + 3 + 33, 33 * 4, 33 * 4}));
}

TEST_F(CostTest, MatMulReadsWhatItsOperandsHave) {
  // A[2, 3, 5] * B[2, 5, 7] + bias[7].
  step_.domain = {2, 3, 7};
  View bias = AddDense({7});
  bias.strides = {0, 0, 1};
  step_.reads = {AddDense({2, 3, 5}), AddDense({2, 5, 7}), bias};
  step_.writes = {AddDense({2, 3, 7})};
  Contract contract;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {5};
  contract.a_prologue = LoadOf(0).id();
  contract.b_prologue = LoadOf(1).id();
  contract.roots = {(Accumulator(program_.exprs, kFloat) + LoadOf(2)).id()};
  step_.body = std::move(contract);
  EXPECT_EQ(Cost(), (StepCost{2 * 2 * 3 * 7 * 5 + 42, (30 + 70 + 7) * 4, 42 * 4}));
}

TEST_F(CostTest, GroupedConvolutionWithPrologue) {
  // A[2, 6, 10, 9] with relu before, group 3, M = 12, kernel 3 x 2, result 8 x 8.
  step_.domain = {2, 12, 8, 8};
  step_.reads = {AddDense({2, 6, 10, 9}), AddDense({12, 2, 3, 2})};
  step_.writes = {AddDense({2, 12, 8, 8})};
  Contract contract;
  contract.form = Contract::Form::kConv;
  contract.inner = {2, 3, 2};
  contract.a_spatial = {10, 9};
  contract.group = 3;
  contract.a_prologue = Maximum(LoadOf(0), Constant(program_.exprs, kFloat, 0)).id();
  contract.roots = {Accumulator(program_.exprs, kFloat).id()};
  step_.body = std::move(contract);
  EXPECT_EQ(Cost(), (StepCost{2 * 1536 * 12 + 1080, (1080 + 144) * 4, 1536 * 4}));
}

TEST_F(CostTest, TransposedConvolutionSpreadsEveryElementOfA) {
  // A[2, 6, 5, 4], group 2, M = 8, kernel 3 x 2.
  step_.domain = {2, 8, 11, 8};
  step_.reads = {AddDense({2, 6, 5, 4}), AddDense({6, 4, 3, 2})};
  step_.writes = {AddDense({2, 8, 11, 8})};
  Contract contract;
  contract.form = Contract::Form::kConvTranspose;
  contract.inner = {3, 3, 2};
  contract.a_spatial = {5, 4};
  contract.group = 2;
  contract.roots = {Accumulator(program_.exprs, kFloat).id()};
  step_.body = std::move(contract);
  EXPECT_EQ(Cost(), (StepCost{2 * 240 * 4 * 6, (240 + 144) * 4, 1408 * 4}));
}

TEST_F(CostTest, WindowCountsItsElements) {
  step_.domain = {1, 3, 4, 5};
  step_.reads = {AddDense({1, 3, 8, 11})};
  step_.writes = {AddDense({1, 3, 4, 5})};
  Window window;
  window.in_spatial = {8, 11};
  window.kernel = {2, 3};
  window.roots = {Accumulator(program_.exprs, kFloat).id()};
  step_.body = window;
  EXPECT_EQ(Cost(), (StepCost{60 * 6, 264 * 4, 60 * 4}));
  window.kind = Window::Kind::kLp;
  step_.body = window;
  EXPECT_EQ(Cost().flops, 2 * 60 * 6);
}

TEST_F(CostTest, AttentionHasNoScoresInMemory) {
  // 2 batches of 3 queries, 7 keys of width 5, 11 values; a mask [7] and a factor [11].
  step_.domain = {2, 3, 11};
  View mask = AddDense({7});
  mask.strides = {0, 0, 1};
  View factor = AddDense({11});
  factor.strides = {0, 0, 1};
  step_.reads = {AddDense({2, 3, 5}), AddDense({2, 5, 7}), AddDense({2, 7, 11}), mask, factor};
  step_.writes = {AddDense({2, 3, 11})};
  const Expr sum = Accumulator(program_.exprs, kFloat);
  Attention attention;
  attention.keys = 7;
  attention.width = 5;
  attention.query_prologue = LoadOf(0).id();
  attention.key_prologue = (-LoadOf(1)).id();
  attention.value_prologue = LoadOf(2).id();
  attention.score = (sum + LoadOf(3)).id();
  attention.roots = {(sum * LoadOf(4)).id()};
  step_.body = std::move(attention);
  constexpr int64_t kScores = 2 * 3 * 7, kOutputs = 2 * 3 * 11;
  // Both products, the softmax, the sign of K, the mask, the factor.
  EXPECT_EQ(Cost(), (StepCost{2 * kScores * 5 + 2 * kOutputs * 7 + 4 * kScores + kOutputs + 70 +
                                  kScores + kOutputs,
                              (30 + 70 + 154 + 7 + 11) * 4, kOutputs * 4}));
}

TEST_F(CostTest, TakesTheNumbersOfSymbols) {
  const Dim rows = program_.dims->NewSymbol("N", /*is_data=*/false);
  step_.domain = {rows, 3};
  step_.reads = {AddDense({rows, 3})};
  step_.writes = {AddDense({rows, 3})};
  step_.body = Map{{Unary(ExprOp::kNeg, LoadOf(0)).id()}};
  std::vector<int64_t> numbers(static_cast<size_t>(program_.dims->node_count()));
  for (const int64_t n : {4, 0}) {
    program_.dims->Evaluate(std::vector<int64_t>{n}, 0, 1, numbers);
    EXPECT_EQ(Cost(numbers), (StepCost{3 * n, 12 * n, 12 * n}));
  }
}

TEST_F(CostTest, EmptyDomainsCostNothingThoughViewsStandStill) {
  step_.domain = {0, 3};
  View scalar = AddDense({});
  scalar.strides = {0, 0};
  step_.reads = {scalar};
  step_.writes = {AddDense({0, 3})};
  step_.body = Map{{LoadOf(0).id()}};
  EXPECT_EQ(Cost(), StepCost{});
}

TEST_F(CostTest, HugeExtentsSaturate) {
  const int64_t huge = int64_t{1} << 40;
  step_.domain = {huge, huge};
  step_.reads = {AddDense({huge, huge})};
  step_.writes = {AddDense({huge, huge})};
  step_.body = Map{{Unary(ExprOp::kNeg, LoadOf(0)).id()}};
  EXPECT_EQ(Cost().flops, std::numeric_limits<int64_t>::max());
  EXPECT_GT(Cost().read_bytes, int64_t{1} << 60);
}

}  // namespace
}  // namespace onnxifi::program

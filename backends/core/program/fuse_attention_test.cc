// SPDX-License-Identifier: Apache-2.0
//
// FuseAttention: what becomes one step computes the same as before, on the reference; what is no
// attention, or is wanted by others, stays as it is.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

using execution::RunOnNumbers;

bool PreferAll(const Program&, const Step&) { return true; }

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kBatch = 2, kQueries = 5, kKeys = 7, kWidth = 3, kValues = 4;

// The pieces of attention, each with a part that a test may exchange.
class AttentionMaker : public ProgramMaker {
 public:
  using Epilogue = std::function<Expr(ExprPool&, Expr)>;

  // a[batch, m, k] x b[batch, k, n] -> [batch, m, n] or, in memory, [m, batch, n].
  Operand Product(const Operand& a, const Operand& b, const Epilogue& epilogue = {},
                  bool is_permuted = false) {
    ExprPool& pool = program.exprs;
    Contract contract;
    contract.batch_axes = contract.m_axes = contract.n_axes = 1;
    contract.inner = {a.shape[2]};
    contract.a_prologue = Cast(Load(pool, a.type(), 0), kFloat).id();
    contract.b_prologue = Cast(Load(pool, b.type(), 1), kFloat).id();
    const Expr sum = Accumulator(pool, kFloat);
    const Expr result = epilogue ? epilogue(pool, sum) : sum;
    contract.roots = {result.id()};
    const Shape shape = {a.shape[0], a.shape[1], b.shape[2]};
    const Operand out =
        is_permuted ? Permute(Temporary({shape[1], shape[0], shape[2]}, result.type()), {1, 0, 2})
                    : Temporary(shape, result.type());
    AddStep({shape, {a.view, b.view}, {out.view}, std::move(contract)});
    return out;
  }
  // Of the last axis of `x`, each element changed first, in the order of `x`. `rounding` is what
  // every operation is rounded to.
  Operand Softmax(const Operand& x, const std::vector<Operand>& others = {},
                  const Formula& score = {}, ElementType rounding = kFloat,
                  ExprOp fold = ExprOp::kAdd) {
    ExprPool& pool = program.exprs;
    Step step;
    step.domain = x.shape;
    step.reads = {x.view};
    std::vector<Expr> loads = {Cast(Load(pool, x.type(), 0), kFloat)};
    for (const Operand& other : others) {
      loads.push_back(Load(pool, other.type(), static_cast<int>(step.reads.size())));
      step.reads.push_back(BroadcastTo(other, x.shape));
    }
    const auto rounded = [&](Expr e) { return Cast(Cast(e, rounding), kFloat); };
    const Expr element = score ? score(pool, loads) : loads[0];
    const Expr state = State(pool, kFloat, 0);
    const Expr other = Other(pool, kFloat, 0);
    Row row;
    row.axes = 1;
    Row::Pass highest;
    highest.reduction.states = {{kFloat, program::Constant(pool, kFloat, -kInfinity).id(),
                                 Maximum(state, element).id(), Maximum(state, other).id()}};
    highest.results = {state.id()};
    const Expr weight =
        rounded(Unary(ExprOp::kExp, rounded(element - RowResult(pool, kFloat, 0, 0))));
    Row::Pass total;
    total.reduction.states = {{kFloat, program::Constant(pool, kFloat, 0).id(),
                               Binary(fold, state, weight).id(), Binary(fold, state, other).id()}};
    total.results = {rounded(state).id()};
    row.passes = {highest, total};
    row.roots = {Cast(weight / RowResult(pool, kFloat, 1, 0), rounding).id()};
    const Operand out = Temporary(x.shape, rounding);
    step.writes = {out.view};
    step.body = std::move(row);
    AddStep(std::move(step));
    return out;
  }

  Operand Queries() { return Input({batch_, queries_, kWidth}); }
  // As they are made, [batch, key, width], seen as [batch, width, key].
  Operand Keys() { return Permute(Input({batch_, keys_, kWidth}), {0, 2, 1}); }
  Operand Values() { return Input({batch_, keys_, kValues}); }

  // From here on these extents are unknown.
  void UseSymbols() {
    batch_ = program.dims->NewSymbol("batch", /*is_data=*/false);
    queries_ = program.dims->NewSymbol("queries", /*is_data=*/false);
    keys_ = program.dims->NewSymbol("keys", /*is_data=*/false);
  }

 private:
  Dim batch_ = kBatch, queries_ = kQueries, keys_ = kKeys;
};

Expr Scaled(ExprPool&, Expr sum) { return sum * Like(sum, 0.25); }

// The families of the steps that are left, which compute the same.
std::vector<std::string_view> Fused(const std::function<void(AttentionMaker&)>& make,
                                    const PrefersAttention& prefers = PreferAll,
                                    double tolerance = 1e-5, bool has_fast_algorithms = true) {
  AttentionMaker plain, fused;
  make(plain);
  make(fused);
  fused.program.has_fast_algorithms = has_fast_algorithms;
  FuseAttention(fused.program, prefers);
  RemoveDeadSteps(fused.program);
  const base::Status verdict = Verify(fused.program);
  EXPECT_TRUE(verdict.ok()) << verdict.Text();
  const auto expected = RunOnNumbers(plain.program);
  const auto actual = RunOnNumbers(fused.program);
  EXPECT_EQ(expected.size(), actual.size());
  for (size_t n = 0; n < std::min(expected.size(), actual.size()); ++n) {
    EXPECT_EQ(expected[n].size(), actual[n].size());
    for (size_t k = 0; k < std::min(expected[n].size(), actual[n].size()); ++k) {
      EXPECT_NEAR(actual[n][k], expected[n][k], tolerance) << n << ", " << k;
    }
  }
  std::vector<std::string_view> families;
  for (const Step& step : fused.program.steps) families.push_back(FamilyName(step));
  return families;
}

const std::vector<std::string_view> kOne = {"Attention"};
const std::vector<std::string_view> kThree = {"Contract", "Row", "Contract"};

TEST(FuseAttentionTest, ProductSoftmaxProductBecomeOneStep) {
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              make.Output(make.Product(
                  make.Softmax(make.Product(make.Queries(), make.Keys(), Scaled)), make.Values()));
            }),
            kOne);
}

TEST(FuseAttentionTest, TakesMasksInTheSoftmaxAndWhatFollowsTheSums) {
  EXPECT_EQ(
      Fused([](AttentionMaker& make) {
        const Operand scores = make.Product(make.Queries(), make.Keys(), Scaled);
        const Operand weights = make.Softmax(
            scores, {make.Input({kBatch, 1, kKeys}), make.Input({kQueries, kKeys})},
            [](ExprPool& pool, const std::vector<Expr>& loads) {
              const Expr masked = loads[0] + loads[1] - loads[2];
              return Select(Coordinate(pool, 2) <=
                                Coordinate(pool, 1) + IntConstant(pool, ElementType::kInt64, 1),
                            masked, Like(masked, -kInfinity));
            });
        make.Output(make.Product(weights, make.Values(),
                                 [](ExprPool&, Expr sum) { return Maximum(sum, Like(sum, 0)); }));
      }),
      kOne);
}

TEST(FuseAttentionTest, ReadsThatFollowTheOperandsKeepTheirPlaces) {
  EXPECT_EQ(
      Fused([](AttentionMaker& make) {
        ExprPool& pool = make.program.exprs;
        const Operand q = make.Queries();
        const Operand k = make.Keys();
        const Operand v = make.Values();
        const Operand scores = make.Product(q, k);
        const Operand out = make.Product(make.Softmax(scores), v);
        // A bias for each operand, for the scores and for the results.
        const auto add = [&](Step& step, ExprId& root, const Operand& bias, const Shape& shape) {
          step.reads.push_back(BroadcastTo(bias, shape));
          root = (Expr(&pool, root) + Load(pool, kFloat, static_cast<int>(step.reads.size()) - 1))
                     .id();
        };
        Step& first = make.program.steps[0];
        Contract& a = *first.As<Contract>();
        add(first, a.a_prologue, make.Input({kWidth}), q.shape);
        add(first, a.b_prologue, make.Input({kWidth, 1}), k.shape);
        add(first, a.roots[0], make.Input({kKeys}), scores.shape);
        Step& last = make.program.steps[2];
        Contract& b = *last.As<Contract>();
        add(last, b.b_prologue, make.Input({kKeys, 1}), v.shape);
        add(last, b.roots[0], make.Input({kValues}), out.shape);
        make.Output(out);
      }),
      kOne);
}

TEST(FuseAttentionTest, ResultsMayLieInAnyOrder) {
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              make.Output(make.Product(make.Softmax(make.Product(make.Queries(), make.Keys())),
                                       make.Values(), {}, /*is_permuted=*/true));
            }),
            kOne);
  // So may the scores, where the softmax finds them.
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              make.Output(make.Product(
                  make.Softmax(make.Product(make.Queries(), make.Keys(), {}, /*is_permuted=*/true)),
                  make.Values()));
            }),
            kOne);
}

TEST(FuseAttentionTest, AMaskMayRepeatTheScores) {
  // One key for all of a longer mask, one query for all rows of it.
  const auto add = [](ExprPool&, const std::vector<Expr>& loads) { return loads[0] + loads[1]; };
  for (const auto& [queries, keys] : {std::pair{kQueries, 1}, std::pair{1, kKeys}}) {
    EXPECT_EQ(
        Fused([&, queries = queries, keys = keys](AttentionMaker& make) {
          const Operand k = Permute(make.Input({kBatch, keys, kWidth}), {0, 2, 1});
          const Operand scores = make.Product(make.Input({kBatch, queries, kWidth}), k, Scaled);
          const Shape shape = {kBatch, kQueries, kKeys};
          const Operand all = {BroadcastTo(scores, shape), shape};
          const Operand weights = make.Softmax(all, {make.Input({kQueries, kKeys})}, add);
          make.Output(make.Product(weights, make.Values()));
        }),
        kOne);
  }
}

// Zeroes rows of the weights by a number per row.
Operand Zeroed(AttentionMaker& make, const Operand& weights, double zero, bool is_by_row = true,
               bool is_loaded = true) {
  const Operand by = make.Input({is_by_row ? kQueries : 1, is_by_row ? 1 : kKeys});
  const float value[] = {static_cast<float>(zero)};
  const Operand constant =
      make.ProgramMaker::Constant(tensor::Tensor::FromValues<float>(kFloat, {}, value));
  return make.Map(weights.shape, {weights, constant, by},
                  [&](ExprPool&, const std::vector<Expr>& loads) {
                    return Select(loads[2] < Like(loads[2], 0),
                                  is_loaded ? loads[1] : Like(loads[0], zero), loads[0]);
                  });
}

TEST(FuseAttentionTest, RowsOfWeightsMayBeZeroed) {
  for (const bool is_loaded : {true, false}) {
    EXPECT_EQ(Fused([&](AttentionMaker& make) {
                const Operand scores = make.Product(make.Queries(), make.Keys(), Scaled);
                make.Output(make.Product(
                    Zeroed(make, make.Softmax(scores), 0, /*is_by_row=*/true, is_loaded),
                    make.Values(), Scaled));
              }),
              kOne);
  }
  const std::vector<std::string_view> four = {"Contract", "Row", "Map", "Contract"};
  // By something else than zeros, and here and there in a row.
  for (const auto& [zero, is_by_row] : {std::pair{0.5, true}, std::pair{0.0, false}}) {
    EXPECT_EQ(Fused([&, zero = zero, is_by_row = is_by_row](AttentionMaker& make) {
                const Operand scores = make.Product(make.Queries(), make.Keys(), Scaled);
                make.Output(make.Product(Zeroed(make, make.Softmax(scores), zero, is_by_row),
                                         make.Values()));
              }),
              four);
  }
}

// Masks that mask nothing, as constants of each row or of all rows together, leave nothing to do.
TEST(FuseAttentionTest, RowsThatAreNeverZeroedCostNothing) {
  const auto make = [](AttentionMaker& make, const tensor::Extents& extents, bool is_zeroed) {
    const std::vector<std::byte> mask(static_cast<size_t>(tensor::ElementCount(extents)),
                                      std::byte{is_zeroed});
    const Operand by =
        make.ProgramMaker::Constant(tensor::Tensor::FromBytes(ElementType::kBool, extents, mask));
    const Operand scores = make.Product(make.Queries(), make.Keys(), Scaled);
    const Operand weights = make.Softmax(scores);
    const auto zero = [](ExprPool&, const std::vector<Expr>& loads) {
      return Select(loads[1], Like(loads[0], 0), loads[0]);
    };
    make.Output(make.Product(make.Map(weights.shape, {weights, by}, zero), make.Values()));
  };
  for (const tensor::Extents& extents : {tensor::Extents{kQueries, 1}, tensor::Extents{1}}) {
    for (const bool is_zeroed : {false, true}) {
      EXPECT_EQ(Fused([&](AttentionMaker& maker) { make(maker, extents, is_zeroed); }), kOne);
      AttentionMaker maker;
      make(maker, extents, is_zeroed);
      FuseAttention(maker.program, PreferAll);
      EXPECT_EQ(maker.program.steps.back().reads.size(), is_zeroed ? 4U : 3U);
    }
  }
}

// Rows without a score are no numbers before they are zeroed; the values of the others count.
TEST(FuseAttentionTest, ZeroedRowsMayBeNoNumbers) {
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand scores = make.Product(make.Queries(), make.Keys(), Scaled);
              const auto mask = [](ExprPool& pool, const std::vector<Expr>& loads) {
                return Select(Coordinate(pool, 1) < IntConstant(pool, ElementType::kInt64, 2),
                              Like(loads[0], -kInfinity), loads[0]);
              };
              const Operand weights = make.Softmax(scores, {}, mask);
              const Operand zeroed = make.Map(
                  weights.shape, {weights}, [](ExprPool& pool, const std::vector<Expr>& loads) {
                    return Select(Coordinate(pool, 1) < IntConstant(pool, ElementType::kInt64, 2),
                                  Like(loads[0], 0), loads[0]);
                  });
              make.Output(make.Product(zeroed, make.Values()));
            }),
            kOne);
}

TEST(FuseAttentionTest, RoundingsWithinTheSoftmaxGoOnlyWhereSumsMayRoundDifferently) {
  const auto make_half = [](AttentionMaker& make) {
    const auto rounded = [](ExprPool&, Expr sum) {
      return Cast(sum * Like(sum, 0.125), ElementType::kFloat16);
    };
    make.Output(make.Product(make.Softmax(make.Product(make.Queries(), make.Keys(), rounded), {},
                                          {}, ElementType::kFloat16),
                             make.Values()));
  };
  EXPECT_EQ(Fused(make_half, PreferAll, 5e-3), kOne);
  EXPECT_EQ(Fused(make_half, PreferAll, 5e-3, /*has_fast_algorithms=*/false), kThree);
}

TEST(FuseAttentionTest, DevicesThatDoNotPreferItKeepTheirSteps) {
  int asked = 0;
  EXPECT_EQ(Fused(
                [](AttentionMaker& make) {
                  make.Output(make.Product(make.Softmax(make.Product(make.Queries(), make.Keys())),
                                           make.Values()));
                },
                [&](const Program&, const Step& step) {
                  ++asked;
                  EXPECT_NE(step.As<Attention>(), nullptr);
                  return false;
                }),
            kThree);
  EXPECT_EQ(asked, 1);
}

TEST(FuseAttentionTest, WhatOthersReadStays) {
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand scores = make.Product(make.Queries(), make.Keys());
              make.Output(make.Product(make.Softmax(scores), make.Values()));
              make.Output(scores);
            }),
            kThree);
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand weights = make.Softmax(make.Product(make.Queries(), make.Keys()));
              make.Output(make.Product(weights, make.Values()));
              make.Output(weights);
            }),
            kThree);
  // Another step, not an output.
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand weights = make.Softmax(make.Product(make.Queries(), make.Keys()));
              make.Output(make.Product(weights, make.Values()));
              make.Output(make.SumRows(weights));
            }),
            (std::vector<std::string_view>{"Contract", "Row", "Contract", "Reduce"}));
}

TEST(FuseAttentionTest, ASoftmaxOverTheQueriesIsNone) {
  // Square, so that nothing but the strides tells.
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand x = make.Input({kBatch, kKeys, kWidth});
              const Operand scores = make.Product(x, make.Keys());
              const Operand weights = make.Softmax(Permute(scores, {0, 2, 1}));
              make.Output(make.Product(Permute(weights, {0, 2, 1}), make.Values()));
            }),
            kThree);
}

TEST(FuseAttentionTest, TransposedWeightsAreNone) {
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand x = make.Input({kBatch, kKeys, kWidth});
              const Operand weights = make.Softmax(make.Product(x, make.Keys()));
              make.Output(make.Product(Permute(weights, {0, 2, 1}), make.Values()));
            }),
            kThree);
  // On the other side of the product.
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand x = make.Input({kBatch, kKeys, kWidth});
              const Operand weights = make.Softmax(make.Product(x, make.Keys()));
              make.Output(make.Product(Permute(make.Values(), {0, 2, 1}), weights));
            }),
            kThree);
}

TEST(FuseAttentionTest, OtherFoldsAreNoSoftmax) {
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              make.Output(make.Product(make.Softmax(make.Product(make.Queries(), make.Keys()), {},
                                                    {}, kFloat, ExprOp::kMax),
                                       make.Values()));
            }),
            kThree);
}

TEST(FuseAttentionTest, APartOfTheKeysIsNone) {
  // The weights of the first keys alone, though of the right sum.
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const Operand weights = make.Softmax(make.Product(make.Queries(), make.Keys()));
              make.Output(make.Product(Slice(weights, 2, 0, 1, kKeys - 1),
                                       make.Input({kBatch, kKeys - 1, kValues})));
            }),
            kThree);
}

TEST(FuseAttentionTest, WhatIsOverwrittenMeanwhileIsReadBefore) {
  // The queries lie in a temporary that a Map writes anew behind the product.
  EXPECT_EQ(Fused([](AttentionMaker& make) {
              const auto copy = [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; };
              const Operand place = make.Temporary({kBatch, kQueries, kWidth});
              make.MapTo(place, {make.Queries()}, copy);
              const Operand scores = make.Product(place, make.Keys());
              make.MapTo(place, {make.Queries()}, copy);
              make.Output(make.Product(make.Softmax(scores), make.Values()));
              make.Output(place);
            }),
            (std::vector<std::string_view>{"Map", "Contract", "Map", "Row", "Contract"}));
}

// What follows is a copy to [query, batch, value], which attention writes itself; or one of another
// kind, which stays.
TEST(FuseAttentionTest, WritesWhereItsResultIsCopiedTo) {
  struct Case {
    std::vector<int> order;  // of the copy's axes
    bool is_output;          // the result itself, too
    size_t steps;
    bool has_symbols = false;
  };
  for (const Case& of :
       {Case{{1, 0, 2}, false, 1}, Case{{2, 1, 0}, false, 2}, Case{{1, 0, 2}, true, 2},
        Case{{0, 1, 2}, false, 1}, Case{{1, 0, 2}, false, 1, /*has_symbols=*/true}}) {
    const auto make = [&of](AttentionMaker& maker) {
      const Operand sums = maker.Product(maker.Queries(), maker.Keys(), Scaled);
      const Operand result = maker.Product(maker.Softmax(sums), maker.Values());
      const Operand seen = Permute(result, of.order);
      const auto same = [](ExprPool&, const std::vector<Expr>& loads) { return loads[0]; };
      maker.Output(maker.Map(seen.shape, {seen}, same));
      if (of.is_output) maker.Output(result);
    };
    AttentionMaker plain, fused, refused;
    make(plain);
    if (of.has_symbols) fused.UseSymbols();
    make(fused);
    make(refused);
    const auto accept_all = [](const Program&, const Step&, const Step&) { return true; };
    const auto refuse_all = [](const Program&, const Step&, const Step&) { return false; };
    FuseAttention(fused.program, PreferAll);
    FuseAttention(refused.program, PreferAll);
    RemoveDeadSteps(fused.program);
    RemoveDeadSteps(refused.program);
    const auto inputs = execution::MakeNumbers(plain.program);
    const auto expected = execution::RunProgram(fused.program, inputs);
    ForwardCopies(fused.program, accept_all);
    ForwardCopies(refused.program, refuse_all);
    ASSERT_TRUE(Verify(fused.program).ok()) << ToString(fused.program);
    EXPECT_EQ(fused.program.steps.size(), of.steps) << ToString(fused.program);
    EXPECT_EQ(refused.program.steps.size(), 2u) << ToString(refused.program);
    const auto actual = execution::RunProgram(fused.program, inputs);
    ASSERT_TRUE(expected.ok() && actual.ok()) << ToString(fused.program);
    for (size_t k = 0; k < expected->size(); ++k) {
      const auto values = [k](const auto& outputs) {
        return (*outputs)[k].template values<float>();
      };
      EXPECT_TRUE(std::ranges::equal(values(actual), values(expected))) << ToString(fused.program);
    }
  }
}

}  // namespace
}  // namespace onnxifi::program

// SPDX-License-Identifier: Apache-2.0
//
// InlineAttentionOperands: attention computes the same from keys and values that are neither
// repeated nor scaled, on the reference; where something else is done to them, or the step tells
// heads apart by their number, the Map stays.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "backends/core/execution/testing/run_on_numbers.h"
#include "backends/core/program/passes.h"
#include "backends/core/program/testing/program_maker.h"
#include "backends/core/program/verify.h"

namespace onnxifi::program {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;
constexpr int kBatch = 2, kGroups = 3, kShared = 2, kQueries = 2, kKeys = 5, kWidth = 4;
constexpr int kHeads = kGroups * kShared;

bool PreferAll(const Program& /*of*/, const Step& /*step*/) { return true; }

struct Options {
  Dim keys = kKeys;
  bool adds_to_keys = false;         // the copy does more than that
  bool adds_to_read_keys = false;    // the step itself does
  bool adds_to_read_values = false;  // likewise
  bool casts_keys = false;           // the step rounds them to a type of fewer bits and back
  bool has_scales = false;           // of keys, in a Map of its own that turns them, and of values
  bool knows_heads = false;          // the scores read the number of the head
  bool has_few_axes = false;         // batch and heads are one axis
  bool is_shared_last = true;        // which of the two axes repeats
};

// Queries [batch, heads, queries, width], keys and values [batch, groups, keys, width] that a Map
// repeats first, as Unsqueeze, Expand and Reshape do.
void Make(ProgramMaker& make, const Options& options) {
  ExprPool& pool = make.program.exprs;
  const Dim& keys = options.keys;
  const auto repeated = [&](const std::function<Expr(Expr)>& change) {
    const Operand cache = make.Input({kBatch, kGroups, keys, kWidth});
    const Operand source = InsertAxis(cache, options.is_shared_last ? 2 : 1);
    Shape shape = {kBatch, kGroups, kShared, keys, kWidth};
    if (!options.is_shared_last) std::swap(shape[1], shape[2]);
    return make
        .Map(shape, {source}, [&](ExprPool&, const std::vector<Expr>& x) { return change(x[0]); })
        .view.buffer;
  };
  Shape batch = {kBatch, kHeads};
  if (options.has_few_axes) batch = {kBatch * kHeads};
  const auto over = [&](const Dim& rows, const Dim& columns) {
    Shape shape = batch;
    shape.push_back(rows);
    shape.push_back(columns);
    return shape;
  };
  const int rank = static_cast<int>(batch.size()) + 2;
  const Operand q = make.Input(over(kQueries, kWidth));
  const Shape rows = over(keys, kWidth);
  const BufferId key_buffer =
      repeated([&](Expr x) { return options.adds_to_keys ? x + Like(x, 0.5) : x; });
  const BufferId value_buffer =
      repeated([&](Expr x) { return options.has_scales ? x * Like(x, 2) : x; });
  const Operand v = {DenseView(value_buffer, kFloat, rows), rows};
  const Operand mask = make.Input(over(kQueries, keys));
  std::vector<int> turned(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) turned[static_cast<size_t>(axis)] = axis;
  std::swap(turned[static_cast<size_t>(rank) - 1], turned[static_cast<size_t>(rank) - 2]);
  Operand k = Permute({DenseView(key_buffer, kFloat, rows), rows}, turned);
  if (options.has_scales) {
    k = make.Map(k.shape, {k},
                 [](ExprPool&, const std::vector<Expr>& x) { return Like(x[0], 0.25) * x[0]; });
  }
  Attention attention;
  attention.keys = keys;
  attention.width = kWidth;
  attention.query_prologue = Load(pool, kFloat, 0).id();
  Expr key = Load(pool, kFloat, 1), value = Load(pool, kFloat, 2);
  if (options.adds_to_read_keys) key = key + Like(key, 0.5);
  if (options.adds_to_read_values) value = value + Like(value, 0.5);
  if (options.casts_keys) key = Cast(Cast(key, ElementType::kFloat64), kFloat);
  attention.key_prologue = key.id();
  attention.value_prologue = value.id();
  Expr score = Accumulator(pool, kFloat) + Load(pool, kFloat, 3);
  // Of the queries, which keep their meaning wherever the axis of heads has gone.
  score = score * Cast(Coordinate(pool, rank - 2), kFloat);
  if (options.knows_heads) score = score + Cast(Coordinate(pool, 1), kFloat);
  attention.score = score.id();
  attention.roots = {Accumulator(pool, kFloat).id()};
  const Operand out = make.Temporary(over(kQueries, kWidth));
  make.AddStep({out.shape, {q.view, k.view, v.view, mask.view}, {out.view}, std::move(attention)});
  make.Output(out);
}

// The steps that are left, which compute the same.
size_t Inlined(const Options& options, const PrefersAttention& prefers = PreferAll,
               bool has_symbol = false, bool has_fast_algorithms = true) {
  ProgramMaker plain, shared;
  Make(plain, options);
  Options of_shared = options;
  if (has_symbol) of_shared.keys = shared.program.dims->NewSymbol("keys", /*is_data=*/false);
  Make(shared, of_shared);
  shared.program.has_fast_algorithms = has_fast_algorithms;
  InlineAttentionOperands(shared.program, prefers);
  const base::Status verdict = Verify(shared.program);
  EXPECT_TRUE(verdict.ok()) << verdict.Text();
  const std::vector<tensor::Tensor> inputs = execution::MakeNumbers(plain.program);
  const auto expected = execution::RunProgram(plain.program, inputs);
  const auto actual = execution::RunProgram(shared.program, inputs);
  EXPECT_TRUE(expected.ok() && actual.ok());
  if (expected.ok() && actual.ok()) {
    EXPECT_TRUE(std::ranges::equal((*expected)[0].bytes(), (*actual)[0].bytes()));
  }
  return shared.program.steps.size();
}

TEST(InlineAttentionOperandsTest, ReadsWhatIsRepeatedWhereItLies) {
  EXPECT_EQ(Inlined(Options{}), 1U);
  EXPECT_EQ(Inlined({.is_shared_last = false}), 1U);
  EXPECT_EQ(Inlined({.has_few_axes = true}), 1U);
  EXPECT_EQ(Inlined({.has_few_axes = true, .is_shared_last = false}), 1U);
}

TEST(InlineAttentionOperandsTest, KeysMayBeASymbol) {
  EXPECT_EQ(Inlined(Options{}, PreferAll, /*has_symbol=*/true), 1U);
}

TEST(InlineAttentionOperandsTest, WhatElseIsComputedStays) {
  EXPECT_EQ(Inlined({.adds_to_keys = true}), 2U);
}

TEST(InlineAttentionOperandsTest, ANumberMovesToTheSums) {
  EXPECT_EQ(Inlined({.has_scales = true}), 1U);
  EXPECT_EQ(Inlined({.has_scales = true}, PreferAll, /*has_symbol=*/true), 1U);
  EXPECT_EQ(Inlined({.has_scales = true}, PreferAll, /*has_symbol=*/false,
                    /*has_fast_algorithms=*/false),
            4U);
}

// (2 x + 0.5) y is not 2 ((x + 0.5) y).
TEST(InlineAttentionOperandsTest, ANumberStaysWhereMoreIsDoneToWhatIsRead) {
  EXPECT_EQ(Inlined({.adds_to_read_keys = true, .has_scales = true}), 3U);
  EXPECT_EQ(Inlined({.adds_to_read_values = true, .has_scales = true}), 2U);
  EXPECT_EQ(Inlined({.casts_keys = true, .has_scales = true}), 1U);
}

TEST(InlineAttentionOperandsTest, ScoresThatReadTheNumberOfAHeadKeepTheCopy) {
  EXPECT_EQ(Inlined({.knows_heads = true}), 3U);
}

TEST(InlineAttentionOperandsTest, TheDeviceMayPreferTheCopy) {
  EXPECT_EQ(Inlined(Options{}, [](const Program&, const Step&) { return false; }), 3U);
}

}  // namespace
}  // namespace onnxifi::program

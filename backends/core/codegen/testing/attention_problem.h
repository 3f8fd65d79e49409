// SPDX-License-Identifier: Apache-2.0
//
// AttentionProblem: for tests: an Attention step of one description, with seeded data.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_ATTENTION_PROBLEM_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_ATTENTION_PROBLEM_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "backends/core/codegen/testing/step_fixture.h"
#include "backends/core/program/verify.h"

namespace onnxifi::codegen {

struct AttentionProblem {
  int64_t heads = 1, sharing = 1;  // heads of K and V, and heads of Q for each of them
  int64_t queries = 1, keys = 1, width = 1, values = 1;
  bool has_rows_of_keys = true;  // K lies as [keys, width]
  bool is_transposed = false;    // the results lie as [queries, heads, values]
  tensor::ElementType type = kFloat;
  double scale = 0.25;
  double cap = 0;         // softcap, unless 0
  bool has_bias = false;  // added, of `type`, per query and key
  bool has_mask = false;  // bool, per head and key
  int64_t past = -1;      // causal behind so many keys, unless negative
  double masked = -std::numeric_limits<double>::infinity();  // the score of what is masked
  bool has_epilogue = false;                                 // a residual, at least 0
  bool is_growing = false;  // each key has a score above those before it
};

inline reference::RandomStep MakeAttention(const AttentionProblem& p, uint32_t seed) {
  StepMaker make(seed);
  using program::Expr;
  using program::ExprOp;
  using program::View;
  using tensor::ElementType;
  using tensor::Extents;
  program::ExprPool& pool = make.pool();
  make.step.domain = {p.heads, p.sharing, p.queries, p.values};
  program::Attention attention;
  attention.keys = p.keys;
  attention.width = p.width;
  const auto load = [&](const View& view) { return Cast(make.Read(view), kFloat); };
  attention.query_prologue =
      load(make.Buffer({p.heads, p.sharing, p.queries, p.width}, p.type)).id();
  View keys = make.Buffer(
      p.has_rows_of_keys ? Extents{p.heads, p.keys, p.width} : Extents{p.heads, p.width, p.keys},
      p.type);
  if (p.has_rows_of_keys) std::swap(keys.strides[1], keys.strides[2]);
  keys.strides.insert(keys.strides.begin() + 1, 0);
  attention.key_prologue = load(keys).id();
  View values = make.Buffer({p.heads, p.keys, p.values}, p.type);
  values.strides.insert(values.strides.begin() + 1, 0);
  attention.value_prologue = load(values).id();
  Expr score = Accumulator(pool, kFloat);
  score = score * Like(score, p.scale);
  if (p.cap != 0) score = Unary(ExprOp::kTanh, score / Like(score, p.cap)) * Like(score, p.cap);
  if (p.has_bias) {
    View bias = make.Buffer({p.queries, p.keys}, p.type);
    bias.strides.insert(bias.strides.begin(), {0, 0});
    score = score + load(bias);
  }
  if (p.is_growing) score = score + Cast(Coordinate(pool, 3), kFloat) * Like(score, 0.1);
  if (p.has_mask) {
    View mask = make.Buffer({p.heads, p.keys}, ElementType::kInt8);
    mask.strides = {mask.strides[0], 0, 0, 1};
    const Expr is_seen = Cast(make.Read(mask), ElementType::kBool);
    score = Select(is_seen, score, Like(score, p.masked));
  }
  if (p.past >= 0) {
    const Expr past = IntConstant(pool, ElementType::kInt64, p.past);
    score = Select(Coordinate(pool, 3) <= Coordinate(pool, 2) + past, score, Like(score, p.masked));
  }
  attention.score = score.id();
  Expr result = Accumulator(pool, kFloat);
  const Extents domain = {p.heads, p.sharing, p.queries, p.values};
  if (p.has_epilogue) {
    result = Maximum(result + load(make.Buffer(domain, p.type)), Like(result, 0));
  }
  attention.roots = {Cast(result, p.type).id()};
  View out = make.Buffer(domain, p.type);
  if (p.is_transposed) {
    out.strides = {p.sharing * p.values, p.values, p.heads * p.sharing * p.values, 1};
  }
  make.step.writes = {out};
  make.step.body = std::move(attention);
  make.FinishStep(1e-4);
  const base::Status verified = Verify(make.made.program);
  EXPECT_TRUE(verified.ok()) << verified.Text();
  return std::move(make.made);
}

// The elements of buffer `buffer` become `value`, from one on and so many apart.
inline void SetElements(reference::RandomStep& step, size_t buffer, int64_t first, int64_t apart,
                        double value) {
  tensor::Tensor& tensor = step.buffers[buffer];
  for (int64_t k = first; k < tensor.element_count(); k += apart) {
    tensor::StoreScalar(tensor.type(), tensor.mutable_data(), k, {.f = value});
  }
}

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_ATTENTION_PROBLEM_H_

// SPDX-License-Identifier: Apache-2.0
//
// Attention on the whole device against sums in float64: odd extents around the blocks of both
// kernels, keys in any order of memory, heads in groups, every form of score, on every instruction
// set; and what follows from the definition where there is nothing to weigh.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"
#include "backends/cpu/testing/attention_problem.h"

namespace onnxifi::cpu {
namespace {

using program::Expr;
using program::ExprOp;
using tensor::ElementType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

double Plain(double sum, int64_t, int64_t, int64_t, int64_t) { return sum; }

// Both kernels: few rows of queries, and blocks of them.
const AttentionSize kSizes[] = {
    {.batch = 2, .groups = 3, .queries = 1, .keys = 37, .width = 20, .values = 17},
    {.batch = 1, .groups = 2, .members = 3, .queries = 2, .keys = 1100, .width = 33, .values = 40},
    {.batch = 2, .groups = 2, .members = 2, .queries = 70, .keys = 131, .width = 24, .values = 31},
    {.batch = 1, .groups = 1, .members = 5, .queries = 11, .keys = 300, .width = 9, .values = 5},
};

TEST(AttentionTest, WeighsValuesOfAnyExtents) {
  processor::ForEachTarget([](const char* target) {
    uint32_t seed = 1;
    for (const int64_t queries : {1, 3, 9, 50, 113}) {
      for (const int64_t keys : {1, 2, 15, 33, 128, 129, 400}) {
        for (const int64_t width : {1, 16, 67}) {
          const AttentionSize size = {.batch = 2,
                                      .groups = 2,
                                      .queries = queries,
                                      .keys = keys,
                                      .width = width,
                                      .values = width == 16 ? 130 : width + 2};
          SCOPED_TRACE(testing::Message() << target << " " << queries << " queries, " << keys
                                          << " keys, width " << width);
          AttentionProblem problem(size, seed++);
          problem.Check(problem.sum(), Plain);
        }
      }
    }
  });
}

TEST(AttentionTest, TakesKeysInAnyOrderOfMemory) {
  for (const AttentionSize& size : kSizes) {
    for (const KeyLayout layout : {KeyLayout::kInRows, KeyLayout::kInColumns, KeyLayout::kApart}) {
      AttentionProblem problem(size, 2);
      problem.layout = layout;
      problem.Check(problem.sum(), Plain);
    }
  }
}

// Without keys, too.
TEST(AttentionTest, TakesOperandsOf16BitsAndGivesThem) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const ElementType type : {ElementType::kFloat16, ElementType::kBfloat16}) {
      for (AttentionSize size : kSizes) {
        for (const int64_t keys : {size.keys, int64_t{0}}) {
          size.keys = keys;
          for (const KeyLayout layout :
               {KeyLayout::kInRows, KeyLayout::kInColumns, KeyLayout::kApart}) {
            AttentionProblem problem(size, 13);
            problem.layout = layout;
            problem.Narrow(type);
            problem.Check(problem.sum(), Plain);
          }
        }
      }
    }
  });
}

TEST(AttentionTest, HasTwoKernels) {
  AttentionProblem few(kSizes[1], 3);
  few.Run(few.sum());
  EXPECT_EQ(few.detail(), "keys where they lie, 3 spans");
  AttentionProblem many(kSizes[2], 3);
  many.Run(many.sum());
  EXPECT_NE(many.detail().find("blocks of"), std::string::npos) << many.detail();
}

TEST(AttentionTest, ScalesByNumbersInAnyWay) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const AttentionSize& size : kSizes) {
      AttentionProblem problem(size, 4);
      const Expr sum = problem.sum();
      const Expr read =
          problem.Read(ElementType::kFloat32, std::vector<float>{1.7F}, {0, 0, 0, 0, 0});
      const double wide = static_cast<double>(1.7F);
      problem.Check(
          sum * Like(sum, 0.375), [](double s, auto...) { return s * 0.375; }, 0.375);
      problem.Check(
          Like(sum, -2) * sum, [](double s, auto...) { return s * -2; }, 2);
      problem.Check(
          sum / Like(sum, 3), [](double s, auto...) { return s / 3; }, 1);
      problem.Check(
          sum / Like(sum, 8), [](double s, auto...) { return s / 8; }, 1);
      problem.Check(
          sum * read, [&](double s, auto...) { return s * wide; }, 1.7);
      problem.Check(
          sum / read, [&](double s, auto...) { return s / wide; }, 1);
    }
  });
}

// Masks that are added: of a batch and key, of a query and key, of a query alone; narrow ones.
TEST(AttentionTest, AddsMasksOfAnyExtents) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const AttentionSize& size : kSizes) {
      AttentionProblem problem(size, 5);
      const Expr sum = problem.sum();
      const auto at = [](const std::vector<float>& values, int64_t index) {
        return static_cast<double>(values[static_cast<size_t>(index)]);
      };
      const std::vector<float> keys = problem.Floats(size.batch * size.keys);
      const Expr of_keys = problem.Read(ElementType::kFloat32, keys, {size.keys, 0, 0, 0, 1});
      problem.Check(sum * Like(sum, 0.25) + of_keys,
                    [&](double s, int64_t b, int64_t, int64_t, int64_t k) {
                      return s / 4 + at(keys, b * size.keys + k);
                    });
      const std::vector<float> both = problem.Floats(size.queries * size.keys);
      const Expr of_both = problem.Read(ElementType::kFloat32, both, {0, 0, 0, size.keys, 1});
      problem.Check(of_both + sum, [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
        return s + at(both, q * size.keys + k);
      });
      const Expr of_queries = problem.Read(ElementType::kFloat32, both, {0, 0, 0, 1, 0});
      problem.Check(sum / Like(sum, 3) + of_queries, [&](double s, int64_t, int64_t, int64_t q,
                                                         int64_t) { return s / 3 + at(both, q); });
      // Keys that are no neighbours, and two masks.
      const std::vector<float> apart = problem.Floats(2 * size.keys);
      const Expr of_apart = problem.Read(ElementType::kFloat32, apart, {0, 0, 0, 0, 2});
      problem.Check(sum + of_apart, [&](double s, int64_t, int64_t, int64_t, int64_t k) {
        return s + at(apart, 2 * k);
      });
      problem.Check(sum + of_both + of_keys,
                    [&](double s, int64_t b, int64_t, int64_t q, int64_t k) {
                      return s + at(both, q * size.keys + k) + at(keys, b * size.keys + k);
                    });
    }
  });
}

TEST(AttentionTest, SelectsByMasksInMemory) {
  for (const AttentionSize& size : kSizes) {
    for (const double masked : {-kInfinity, -1e30}) {
      AttentionProblem problem(size, 6);
      const Expr sum = problem.sum();
      std::vector<uint8_t> seen(static_cast<size_t>(size.queries * size.keys), 0);
      for (size_t n = 0; n < seen.size(); ++n) seen[n] = n % 3 == 0 || n % 7 == 2 ? 1 : 0;
      // The first key is for all, so that something is left of every row.
      for (int64_t q = 0; q < size.queries; ++q) seen[static_cast<size_t>(q * size.keys)] = 1;
      const Expr is_seen = problem.Read(ElementType::kBool, seen, {0, 0, 0, size.keys, 1});
      problem.Check(Select(is_seen, sum, Like(sum, masked)),
                    [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
                      return seen[static_cast<size_t>(q * size.keys + k)] != 0 ? s : masked;
                    });
    }
  }
}

// Masks of coordinates: each way in which one is written, and windows. Blocks that they mask are
// left out, which changes nothing.
TEST(AttentionTest, MasksByCoordinates) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const AttentionSize& size : kSizes) {
      for (const double masked : {-kInfinity, -1e30, -10000.0}) {
        AttentionProblem problem(size, 7);
        const Expr sum = problem.sum();
        const int64_t past = size.keys / 5;
        const Expr newest = problem.query() + problem.number(past);
        const auto causal = [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
          return k <= q + past ? s : masked;
        };
        const Expr is_seen = problem.key() <= newest;
        problem.Check(Select(is_seen, sum, Like(sum, masked)), causal);
        problem.Check(Select(!is_seen, Like(sum, masked), sum), causal);
        problem.Check(sum + Select(is_seen, Like(sum, 0), Like(sum, masked)),
                      [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
                        return k <= q + past ? s : s + masked;
                      });
        const Expr is_near = is_seen && problem.key() > newest - problem.number(40);
        problem.Check(Select(is_near, sum / Like(sum, 2), Like(sum, masked)),
                      [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
                        return k <= q + past && k > q + past - 40 ? s / 2 : masked;
                      });
        const std::vector<float> keys = problem.Floats(size.keys);
        const Expr of_keys = problem.Read(ElementType::kFloat32, keys, {0, 0, 0, 0, 1});
        const Expr capped = Unary(ExprOp::kTanh, sum / Like(sum, 2)) * Like(sum, 2);
        problem.Check(Select(is_seen, capped + of_keys, Like(sum, masked)),
                      [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
                        if (k > q + past) return masked;
                        return std::tanh(s / 2) * 2 +
                               static_cast<double>(keys[static_cast<size_t>(k)]);
                      });
      }
    }
  });
}

// With a finite score of masked keys, a row whose keys are all masked weighs them all alike: they
// may not be left out.
TEST(AttentionTest, LeavesOutNoMaskedKeysThatCount) {
  const AttentionSize size = {.groups = 2, .queries = 60, .keys = 300, .width = 8, .values = 6};
  for (const double masked : {static_cast<double>(-1e30F), -2000.0}) {
    AttentionProblem problem(size, 8);
    const Expr sum = problem.sum();
    // Queries below 20 see nothing, the last ones the first 40 keys.
    const Expr is_seen = problem.key() <= problem.query() - problem.number(20);
    problem.Check(
        Select(is_seen, sum, Like(sum, masked)),
        [&](double s, int64_t, int64_t, int64_t q, int64_t k) { return k <= q - 20 ? s : masked; });
    // What is seen has scores as low as those that are not.
    problem.Check(
        Select(is_seen, sum + Like(sum, masked), Like(sum, masked)),
        [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
          return k <= q - 20 ? static_cast<double>(static_cast<float>(s + masked)) : masked;
        },
        masked < -1e6 ? 1 : 1000);
  }
}

// A weight of 0 times an infinite value is no number, and so is a masked score that was none.
TEST(AttentionTest, LeavesOutNoInfinitiesAndNan) {
  const AttentionSize size = {.queries = 60, .keys = 300, .width = 8, .values = 6};
  for (const float special : {kNan, std::numeric_limits<float>::infinity()}) {
    for (const bool is_added : {false, true}) {
      AttentionProblem problem(size, 9);
      const Expr sum = problem.sum();
      const Expr is_seen = problem.key() <= problem.query();
      const Expr score = is_added ? sum + Select(is_seen, Like(sum, 0), Like(sum, -kInfinity))
                                  : Select(is_seen, sum, Like(sum, -kInfinity));
      const auto expected = [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
        if (is_added) return s + (k <= q ? 0 : -kInfinity);
        return k <= q ? s : -kInfinity;
      };
      const float value = problem.v[problem.VIndex(0, 290, 0, 2)];
      problem.v[problem.VIndex(0, 290, 0, 2)] = special;
      problem.Check(score, expected);
      problem.v[problem.VIndex(0, 290, 0, 2)] = value;
      problem.k[problem.KIndex(0, 280, 0, 3)] = special;
      problem.Check(score, expected);
    }
  }
}

TEST(AttentionTest, RowsWithoutScoresAreNan) {
  for (const AttentionSize& size : kSizes) {
    AttentionProblem problem(size, 10);
    const Expr sum = problem.sum();
    std::vector<float> mask(static_cast<size_t>(size.queries * size.keys), 0);
    // The first query sees nothing, the last one only the last key.
    for (int64_t k = 0; k < size.keys; ++k) {
      mask[static_cast<size_t>((size.queries - 1) * size.keys + k)] =
          k + 1 < size.keys ? -std::numeric_limits<float>::infinity() : 0.0F;
      mask[static_cast<size_t>(k)] = -std::numeric_limits<float>::infinity();
    }
    const Expr read = problem.Read(ElementType::kFloat32, mask, {0, 0, 0, size.keys, 1});
    const auto masked = [&](double s, int64_t, int64_t, int64_t q, int64_t k) {
      return s + static_cast<double>(mask[static_cast<size_t>(q * size.keys + k)]);
    };
    problem.Check(sum + read, masked);
    problem.Check(
        Select(problem.key() < problem.query(), sum, Like(sum, -kInfinity)),
        [](double s, int64_t, int64_t, int64_t q, int64_t k) { return k < q ? s : -kInfinity; });
  }
}

TEST(AttentionTest, InfiniteScoresAndNanMakeTheirRowNan) {
  for (const AttentionSize& size : kSizes) {
    for (const float special : {kNan, std::numeric_limits<float>::infinity()}) {
      AttentionProblem problem(size, 11);
      const int64_t query = size.queries / 2;
      for (int64_t c = 0; c < size.width; ++c) {
        problem.q[problem.QIndex(0, query, 0, c)] = special;
      }
      problem.Check(problem.sum(), Plain);
      // Of one key of many, which may come after others.
      AttentionProblem late(size, 12);
      late.k[late.KIndex(0, size.keys - 1, 0, 0)] = special;
      late.Check(late.sum(), Plain);
      AttentionProblem early(size, 13);
      early.k[early.KIndex(0, 0, 0, 0)] = special;
      early.Check(early.sum(), Plain);
    }
  }
}

TEST(AttentionTest, LargeScoresOverflowNothing) {
  for (const AttentionSize& size : kSizes) {
    AttentionProblem problem(size, 14);
    for (float& element : problem.q) element *= 1000;
    problem.Check(
        problem.sum() * Like(problem.sum(), 4), [](double s, auto...) { return s * 4; }, 4);
  }
}

TEST(AttentionTest, WithoutKeysTheSumsAreZeroAndWithoutWidthKeysWeighTheSame) {
  for (const int64_t queries : {1, 30}) {
    AttentionProblem no_keys({.groups = 2, .queries = queries, .keys = 0, .width = 3, .values = 2},
                             15);
    no_keys.Check(no_keys.sum(), Plain);
    AttentionProblem no_width(
        {.groups = 2, .queries = queries, .keys = 140, .width = 0, .values = 5}, 16);
    no_width.Check(no_width.sum(), Plain);
    AttentionProblem no_values(
        {.groups = 2, .queries = queries, .keys = 4, .width = 3, .values = 0}, 17);
    EXPECT_TRUE(no_values.Run(no_values.sum()).empty());
    AttentionProblem no_queries({.groups = 2, .queries = 0, .keys = 4, .width = 3, .values = 2},
                                18);
    EXPECT_TRUE(no_queries.Run(no_queries.sum()).empty());
  }
}

TEST(AttentionTest, ResultsDoNotDependOnThreads) {
  const AttentionSize sizes[] = {
      {.queries = 333, .keys = 700, .width = 64, .values = 64},
      {.groups = 3, .members = 2, .queries = 100, .keys = 333, .width = 80, .values = 80},
      {.groups = 2, .queries = 2, .keys = 5000, .width = 64, .values = 64}};
  for (const AttentionSize& size : sizes) {
    AttentionProblem problem(size, 19);
    const std::vector<float> alone = problem.Run(problem.sum(), /*threads=*/1);
    for (const int threads : {2, 3, 7}) {
      EXPECT_EQ(problem.Run(problem.sum(), threads), alone) << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace onnxifi::cpu

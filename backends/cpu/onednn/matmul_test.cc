// SPDX-License-Identifier: Apache-2.0
//
// Matrix products whose operands lie as oneDNN reads or writes them wrong: the smallest of each
// class is brought into order first, one just outside the class is taken as it lies, and both are
// right.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>

#include "backends/cpu/onednn/recipe.h"
#include "backends/cpu/onednn/testing/one_step.h"

namespace onnxifi::onednn {
namespace {

using program::Contract;
using testing::HasSubstr;
using testing::Not;

// Strides of A[batch, m, k], B[batch, k, n] and the result [batch, m, n]; dense where empty.
struct Strides {
  Extents a, b, result;
};

struct Product {
  Extents batch;
  int64_t m, k, n;
  bool has_summand = false;  // a dense operand of the epilogue
};

OneStep MakeStep(const Product& product, const Strides& strides) {
  const auto extents = [&product](int64_t rows, int64_t columns) {
    Extents all = product.batch;
    all.insert(all.end(), {rows, columns});
    return all;
  };
  OneStep one;
  Contract contract;
  contract.batch_axes = static_cast<int>(product.batch.size());
  contract.m_axes = contract.n_axes = 1;
  contract.inner = {product.k};
  contract.a_prologue = one.LoadOf(one.Read(extents(product.m, product.k), strides.a)).id();
  contract.b_prologue = one.LoadOf(one.Read(extents(product.k, product.n), strides.b)).id();
  program::Expr root = one.Accumulated();
  if (product.has_summand) root = root + one.LoadOf(one.Read(extents(product.m, product.n)));
  contract.roots = {root.id()};
  one.Write(extents(product.m, product.n), strides.result);
  one.step.body = std::move(contract);
  return one;
}

struct Case {
  const char* name;
  Product product;
  Strides reordered;
  Strides taken;  // just outside the class
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MatMulClassTest : public testing::TestWithParam<Case> {};

TEST_P(MatMulClassTest, IsBroughtIntoOrderForOneDnn) {
  const Case& c = GetParam();
  const OneStep::Outcome reordered = MakeStep(c.product, c.reordered).Run(SelectMatMul);
  EXPECT_THAT(reordered.detail, HasSubstr("reorder")) << "given to oneDNN as it lies";
  EXPECT_THAT(reordered.detail, Not(HasSubstr("loops")));
  EXPECT_EQ(reordered.different, 0) << reordered.detail;
  const OneStep::Outcome taken = MakeStep(c.product, c.taken).Run(SelectMatMul);
  EXPECT_THAT(taken.detail, Not(HasSubstr("reorder")));
  EXPECT_THAT(taken.detail, Not(HasSubstr("loops")));
  EXPECT_EQ(taken.different, 0) << taken.detail;
}

INSTANTIATE_TEST_SUITE_P(
    All, MatMulClassTest,
    testing::Values(
        // The outer batches lie further apart than the inner ones take.
        Case{"UnevenBatchesOfA", {{2, 3}, 1, 1, 2}, {{8, 2, 1, 1}, {}, {}}, {{6, 2, 1, 1}, {}, {}}},
        Case{"UnevenBatchesOfB", {{2, 3}, 1, 1, 2}, {{}, {8, 2, 2, 1}, {}}, {{}, {9, 3, 3, 1}, {}}},
        Case{"UnevenBatchesOfTheResult",
             {{2, 3}, 1, 1, 2},
             {{}, {}, {8, 2, 2, 1}},
             {{}, {}, {9, 3, 3, 1}}},
        Case{"UnevenBatchesOfBothFactors",
             {{2, 3}, 1, 1, 2},
             {{8, 2, 1, 1}, {12, 2, 2, 1}, {}},
             {{6, 2, 1, 1}, {9, 3, 3, 1}, {}}},
        // The batches of an operand are the elements between those of a row or column.
        Case{"BatchesInsideAColumnOfA",
             {{2, 2}, 2, 1, 1},
             {{0, 1, 2, 1}, {}, {}},
             {{0, 2, 1, 1}, {}, {}}},
        Case{"BatchesInsideARowOfB",
             {{2, 2}, 1, 1, 2},
             {{}, {0, 1, 1, 2}, {}},
             {{}, {0, 2, 2, 1}, {}}},
        Case{"OneColumnWithGaps", {{}, 3, 4, 1}, {{}, {}, {2, 1}}, {{}, {}, {1, 1}}},
        Case{"GapsUnderAnAppendedOperand",
             {{}, 3, 4, 5, /*has_summand=*/true},
             {{}, {}, {8, 1}},
             {{}, {}, {5, 1}}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

// Gaps alone are no reason.
TEST(MatMulTest, WritesRowsWithGapsAsTheyLie) {
  const OneStep::Outcome outcome = MakeStep({{}, 3, 4, 5}, {{}, {}, {8, 1}}).Run(SelectMatMul);
  EXPECT_THAT(outcome.detail, Not(HasSubstr("reorder")));
  EXPECT_EQ(outcome.different, 0) << outcome.detail;
}

}  // namespace
}  // namespace onnxifi::onednn

// SPDX-License-Identifier: Apache-2.0
//
// Batches of small products against sums in float64: heads inside rows, matrices shared by several
// products, every way of scaling, extents on both sides of what is small.

#include "backends/cpu/matmul/small_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/cpu/matmul/testing/float_buffers.h"

namespace onnxifi::matmul {
namespace {

using program::Contract;
using tensor::ElementType;

enum class Scale : uint8_t {
  kNone,
  kTimes,
  kTimesFirst,
  kDividedBy,
  kTimesRead,
  kDividedByRead,
  kPlus
};

struct Case {
  int64_t batch, heads, rows, depth, columns;
  bool is_transposed = false;  // B
  bool is_shared = false;      // one B for all heads
  Scale scale = Scale::kNone;
  bool is_small = true;
};

constexpr float kNumber = 0.7f;

// A[batch, rows, heads, depth], B[batch, columns, heads, depth] or its like, C as A: each product
// is a head, whose rows lie a whole row of heads apart.
class Attention : public FloatBuffers {
 public:
  explicit Attention(const Case& test) : test_(test) {
    const auto& [batch, heads, rows, depth, columns, is_transposed, is_shared, scale, is_small] =
        test;
    const int64_t b_heads = is_shared ? 1 : heads;
    Add({batch * rows * heads * depth}, batch * rows * heads * depth);
    Add({batch * columns * b_heads * depth}, batch * columns * b_heads * depth);
    Add({batch * rows * heads * columns}, batch * rows * heads * columns);
    Add({1}, 1);
    step.reads.push_back(View(0, {rows * heads * depth, depth, heads * depth, 1}));
    const int64_t head = is_shared ? 0 : (is_transposed ? depth : columns);
    step.reads.push_back(is_transposed
                             ? View(1, {columns * b_heads * depth, head, 1, b_heads * depth})
                             : View(1, {columns * b_heads * depth, head, b_heads * columns, 1}));
    step.reads.push_back(View(3, {0, 0, 0, 0}));
    step.writes.push_back(View(2, {rows * heads * columns, columns, heads * columns, 1}));
    step.domain = {batch, heads, rows, columns};
    Contract contract;
    contract.batch_axes = 2;
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {depth};
    contract.a_prologue = program::Load(program.exprs, ElementType::kFloat32, 0).id();
    contract.b_prologue = program::Load(program.exprs, ElementType::kFloat32, 1).id();
    const program::Expr sum = program::Accumulator(program.exprs, ElementType::kFloat32);
    const program::Expr read = program::Load(program.exprs, ElementType::kFloat32, 2);
    switch (scale) {
      case Scale::kNone:
        contract.roots = {sum.id()};
        break;
      case Scale::kTimes:
        contract.roots = {(sum * Like(sum, kNumber)).id()};
        break;
      case Scale::kTimesFirst:
        contract.roots = {(Like(sum, kNumber) * sum).id()};
        break;
      case Scale::kDividedBy:
        contract.roots = {(sum / Like(sum, kNumber)).id()};
        break;
      case Scale::kTimesRead:
        contract.roots = {(sum * read).id()};
        break;
      case Scale::kDividedByRead:
        contract.roots = {(sum / read).id()};
        break;
      case Scale::kPlus:
        contract.roots = {(sum + read).id()};
        break;
    }
    step.body = std::move(contract);
    data[3][0] = kNumber;
  }

  base::Status Run(std::string& detail) {
    threads::ThreadPool pool(2);
    reference::Device reference;
    runtime::Runtime runtime(reference.memory(), pool);
    const device::Facts facts{program, step};
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Method> method, DescribeSmallProducts(facts));
    ONNXIFI_ASSIGN_OR_RETURN(device::Selection selection, reference.Select(facts));
    const Recipe recipe({std::move(method)}, std::move(selection.recipe));
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> otherwise,
                             reference.Build(*recipe.otherwise()));
    const std::unique_ptr<device::Kernel> kernel =
        recipe.BuildKernel(runtime, std::move(otherwise));
    const std::vector<std::byte*> addresses = Addresses();
    const std::vector<std::byte*> constants(addresses.size(), nullptr);
    const std::vector<int64_t> dims(static_cast<size_t>(program.dims->node_count()), 0);
    ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<device::BoundKernel> bound,
                             kernel->Bind(device::Bind(program, step, dims), constants));
    detail = bound->Detail();
    return bound->Run(addresses);
  }

  double Expected(int64_t batch, int64_t head, int64_t row, int64_t column) const {
    const int64_t b_heads = test_.is_shared ? 1 : test_.heads;
    const int64_t b_head = test_.is_shared ? 0 : head;
    double sum = 0;
    for (int64_t k = 0; k < test_.depth; ++k) {
      const int64_t a_at = ((batch * test_.rows + row) * test_.heads + head) * test_.depth + k;
      const int64_t b_at = batch * test_.columns * b_heads * test_.depth +
                           (test_.is_transposed ? (column * b_heads + b_head) * test_.depth + k
                                                : (k * b_heads + b_head) * test_.columns + column);
      sum += static_cast<double>(data[0][static_cast<size_t>(a_at)]) *
             static_cast<double>(data[1][static_cast<size_t>(b_at)]);
    }
    switch (test_.scale) {
      case Scale::kNone:
        return sum;
      case Scale::kTimes:
      case Scale::kTimesFirst:
      case Scale::kTimesRead:
        return sum * static_cast<double>(kNumber);
      case Scale::kDividedBy:
      case Scale::kDividedByRead:
        return sum / static_cast<double>(kNumber);
      case Scale::kPlus:
        return sum + static_cast<double>(kNumber);
    }
    return sum;
  }
  double Actual(int64_t batch, int64_t head, int64_t row, int64_t column) const {
    return data[2][static_cast<size_t>(
        ((batch * test_.rows + row) * test_.heads + head) * test_.columns + column)];
  }

  program::Step step;

 private:
  const Case test_;
};

void Check(const Case& test) {
  Attention attention(test);
  std::string detail;
  const base::Status status = attention.Run(detail);
  ASSERT_TRUE(status.ok()) << status.Text();
  EXPECT_EQ(detail.find("products where they lie") != std::string::npos, test.is_small) << detail;
  for (int64_t batch = 0; batch < test.batch; ++batch) {
    for (int64_t head = 0; head < test.heads; ++head) {
      for (int64_t row = 0; row < test.rows; ++row) {
        for (int64_t column = 0; column < test.columns; ++column) {
          const double expected = attention.Expected(batch, head, row, column);
          ASSERT_NEAR(attention.Actual(batch, head, row, column), expected,
                      2e-6 * static_cast<double>(test.depth))
              << batch << " " << head << " " << row << " " << column;
        }
      }
    }
  }
}

TEST(SmallProductsTest, MultipliesHeadsWhereTheyLie) {
  for (const bool is_transposed : {false, true}) {
    for (const int64_t rows : {1, 2, 15, 17, 40}) {
      for (const int64_t depth : {1, 2, 16, 33}) {
        for (const int64_t columns : {1, 12, 31, 32, 33, 100}) {
          SCOPED_TRACE(testing::Message() << rows << " x " << depth << " x " << columns);
          Check({3, 5, rows, depth, columns, is_transposed});
        }
      }
    }
  }
}

TEST(SmallProductsTest, SharesAMatrixBetweenHeads) {
  for (const bool is_transposed : {false, true}) {
    Check({2, 6, 7, 9, 34, is_transposed, /*is_shared=*/true});
  }
}

TEST(SmallProductsTest, ScalesByANumber) {
  for (const Scale scale : {Scale::kTimes, Scale::kTimesFirst, Scale::kDividedBy, Scale::kTimesRead,
                            Scale::kDividedByRead}) {
    SCOPED_TRACE(static_cast<int>(scale));
    Check({2, 4, 5, 8, 37, true, false, scale});
  }
}

TEST(SmallProductsTest, LeavesToAnotherWhatItDoesNotDo) {
  Check({2, 4, 5, 8, 37, true, false, Scale::kPlus, /*is_small=*/false});
  Check({2, 2, 3, 200, 100, true, false, Scale::kNone, /*is_small=*/false});  // too large
  Check({1, 2, 300, 64, 64, true, false, Scale::kNone, /*is_small=*/false});  // too few
  Check({1, 2, 3, 8, 8, true, false, Scale::kNone, /*is_small=*/true});
}

TEST(SmallProductsTest, TakesEmptyExtents) {
  Check({0, 4, 5, 8, 37, true, false, Scale::kNone, /*is_small=*/false});
  Check({2, 4, 0, 8, 37, true, false, Scale::kNone, /*is_small=*/false});
  Check({2, 4, 5, 0, 37, true, false, Scale::kDividedBy, /*is_small=*/false});
}

TEST(SmallProductsTest, RefusesWhatCannotBe) {
  Attention constant({2, 4, 5, 8, 37});
  constant.program.buffers[1].kind = program::Buffer::Kind::kConstant;
  EXPECT_FALSE(DescribeSmallProducts({constant.program, constant.step}).ok());
  Attention column({2, 4, 5, 8, 37});
  column.step.reads[0].strides[3] = program::Dim(2);
  EXPECT_FALSE(DescribeSmallProducts({column.program, column.step}).ok());
  Attention result({2, 4, 5, 8, 37});
  result.step.writes[0].strides[3] = program::Dim(2);
  EXPECT_FALSE(DescribeSmallProducts({result.program, result.step}).ok());
}

}  // namespace
}  // namespace onnxifi::matmul

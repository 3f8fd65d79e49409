// SPDX-License-Identifier: Apache-2.0
//
// Few rows times a constant matrix against sums in float64: both orders of the matrix, every number
// of rows, bias, addend and bounds, matrices at any address of a model, and rows that are known
// only once the step is bound.

#include "backends/cpu/matmul/few_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/cpu/matmul/testing/float_buffers.h"

namespace onnxifi::matmul {
namespace {

using program::Contract;
using program::Dim;
using tensor::ElementType;

struct Case {
  int64_t rows, depth, columns;
  bool is_transposed = false;  // the matrix: columns x depth
  bool has_epilogue = false;   // max(sum + bias + addend, -1)
  size_t shift = 0;            // bytes of the matrix from a line of the cache
  bool is_symbolic = false;    // the number of rows
  int threads = 2;
  bool is_uniform = false;  // the matrix: its last number everywhere
  bool is_scalar = false;   // of one row and column, without axes for them
};

// X[rows, depth], the matrix, Y[rows, columns], a bias and an addend like Y.
class Product : private FloatBuffers {
 public:
  explicit Product(const Case& test) : test_(test) {
    const auto& [rows, depth, columns, is_transposed, has_epilogue, shift, is_symbolic, threads,
                 is_uniform, is_scalar] = test;
    Dim row_dim(rows);
    if (is_symbolic) row_dim = program.dims->NewSymbol("rows", /*is_data=*/false);
    Add({row_dim, depth}, rows * depth);
    Add({is_transposed ? columns : depth, is_transposed ? depth : columns}, depth * columns);
    program.buffers[1].kind = program::Buffer::Kind::kConstant;
    Add({row_dim, columns}, rows * columns);
    Add({columns}, columns);
    Add({row_dim, columns}, rows * columns);
    step_.domain = {row_dim, columns};
    step_.reads.push_back(View(0, {depth, 1}));
    step_.reads.push_back(is_transposed ? View(1, {1, depth}) : View(1, {columns, 1}));
    if (is_uniform) {
      step_.reads[1] = View(1, {0, 0});
      step_.reads[1].offset = depth * columns - 1;
    }
    if (has_epilogue) {
      step_.reads.push_back(View(3, {0, 1}));
      step_.reads.push_back(View(4, {columns, 1}));
    }
    step_.writes.push_back(View(2, {columns, 1}));
    Contract contract;
    contract.m_axes = contract.n_axes = 1;
    contract.inner = {depth};
    contract.a_prologue = program::Load(program.exprs, ElementType::kFloat32, 0).id();
    contract.b_prologue = program::Load(program.exprs, ElementType::kFloat32, 1).id();
    program::Expr sum = program::Accumulator(program.exprs, ElementType::kFloat32);
    if (has_epilogue) {
      const program::Expr bias = program::Load(program.exprs, ElementType::kFloat32, 2);
      const program::Expr addend = program::Load(program.exprs, ElementType::kFloat32, 3);
      sum = sum + bias + addend;
      sum = program::Maximum(sum, program::Like(sum, -1.0));
    }
    contract.roots = {sum.id()};
    if (is_scalar) {
      step_.domain = {};
      for (size_t read = 0; read < 2; ++read) step_.reads[read].strides = {Dim(1)};
      for (size_t read = 2; read < step_.reads.size(); ++read) step_.reads[read].strides = {};
      step_.writes[0].strides = {};
      contract.m_axes = contract.n_axes = 0;
    }
    step_.body = std::move(contract);
    matrix_.resize(data[1].size() * sizeof(float) + 128);
    void* place = matrix_.data();
    size_t room = matrix_.size();
    std::align(64, room - 64, place, room);
    matrix_at_ = static_cast<std::byte*>(place) + shift;
    std::memcpy(matrix_at_, data[1].data(), data[1].size() * sizeof(float));
  }

  // Runs it, and compares.
  void Check() {
    threads::ThreadPool pool(test_.threads);
    reference::Device reference;
    runtime::Runtime runtime(reference.memory(), pool);
    const device::Facts facts{program, step_};
    const auto matrix = DescribeConstantMatrix(facts);
    ASSERT_TRUE(matrix.ok()) << matrix.status().Text();
    const auto described = DescribeFewRows(facts, *matrix);
    ASSERT_TRUE(described.ok()) << described.status().Text();
    EXPECT_EQ(described->has_whole_rows, !test_.is_transposed && !test_.is_uniform);
    EXPECT_EQ(described->rows.has_value(), !test_.is_symbolic);
    const Recipe recipe({MakeMethod(*described)});
    EXPECT_TRUE(recipe.TakesAnyAddress(1));
    const std::unique_ptr<device::Kernel> kernel = recipe.BuildKernel(runtime, nullptr);
    std::vector<std::byte*> addresses = Addresses();
    addresses[1] = matrix_at_;
    std::vector<std::byte*> constants(addresses.size(), nullptr);
    constants[1] = matrix_at_;
    std::vector<int64_t> dims(static_cast<size_t>(program.dims->node_count()), test_.rows);
    const auto bound = kernel->Bind(device::Bind(program, step_, dims), constants);
    ASSERT_TRUE(bound.ok()) << bound.status().Text();
    // A matrix that is part of a model was copied, and is not looked at any more.
    const bool is_copied = test_.shift != 0 || test_.is_uniform;
    EXPECT_EQ((*bound)->ReadsAtRun(1), !is_copied);
    if (is_copied) {
      std::fill(matrix_.begin(), matrix_.end(), std::byte{0x77});
      addresses[1] = nullptr;
    }
    for (int run = 0; run < 2; ++run) {
      std::fill(data[2].begin(), data[2].end(), -777.0F);
      ASSERT_TRUE((*bound)->Run(addresses).ok());
      for (int64_t row = 0; row < test_.rows; ++row) {
        for (int64_t column = 0; column < test_.columns; ++column) {
          ASSERT_NEAR(data[2][static_cast<size_t>(row * test_.columns + column)],
                      Expected(row, column), 2e-6 * static_cast<double>(test_.depth))
              << row << ", " << column;
        }
      }
    }
  }

  const std::vector<float>& result() const { return data[2]; }

 private:
  double Expected(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < test_.depth; ++k) {
      int64_t at = test_.is_transposed ? column * test_.depth + k : k * test_.columns + column;
      if (test_.is_uniform) at = test_.depth * test_.columns - 1;
      sum += static_cast<double>(data[0][static_cast<size_t>(row * test_.depth + k)]) *
             static_cast<double>(data[1][static_cast<size_t>(at)]);
    }
    if (!test_.has_epilogue) return sum;
    sum += static_cast<double>(data[3][static_cast<size_t>(column)]) +
           static_cast<double>(data[4][static_cast<size_t>(row * test_.columns + column)]);
    return std::max(sum, -1.0);
  }
  const Case test_;
  program::Step step_;
  std::vector<std::byte> matrix_;
  std::byte* matrix_at_ = nullptr;
};

// Large enough for threads, and no multiples of what it takes at a time.
constexpr int64_t kDepth = 517, kColumns = 1043;

TEST(FewRowsTest, MultipliesEveryNumberOfRowsInBothOrders) {
  for (const bool is_transposed : {false, true}) {
    for (int64_t rows = 1; rows <= (is_transposed ? 4 : 2); ++rows) {
      for (const bool has_epilogue : {false, true}) {
        SCOPED_TRACE(std::to_string(rows) + (is_transposed ? " columns" : " rows"));
        Product({rows, kDepth, kColumns, is_transposed, has_epilogue}).Check();
      }
    }
  }
}

TEST(FewRowsTest, TakesMatricesOfAnyForm) {
  // Few inner elements; few columns; more columns than sums that a thread keeps.
  const std::pair<int64_t, int64_t> forms[] = {{3, 90001}, {40009, 7}, {129, 9001}, {70003, 1},
                                               {2, 5},     {64, 10},   {31, 33}};
  for (const auto& [depth, columns] : forms) {
    SCOPED_TRACE(std::to_string(depth) + " x " + std::to_string(columns));
    for (const bool is_transposed : {false, true}) {
      // One column is a column whichever way it lies.
      if (columns == 1 && !is_transposed) continue;
      Product({2, depth, columns, is_transposed, /*has_epilogue=*/true}).Check();
    }
  }
}

TEST(FewRowsTest, MultipliesTwoVectorsThatHaveNoOtherAxes) {
  for (const size_t shift : {0, 4}) {
    Case test{1, kDepth, 1, /*is_transposed=*/true, /*has_epilogue=*/false, shift};
    test.is_scalar = true;
    Product(test).Check();
  }
}

TEST(FewRowsTest, CopiesAMatrixThatIsPartOfAModel) {
  for (const size_t shift : {1, 4, 30}) {
    for (const bool is_transposed : {false, true}) {
      Product({2, kDepth, kColumns, is_transposed, /*has_epilogue=*/false, shift}).Check();
    }
  }
}

// As ConstantOfShape makes it.
TEST(FewRowsTest, MultipliesAMatrixOfOneNumberThatIsNeverMade) {
  for (const size_t shift : {0, 3}) {
    Case test{3, kDepth, kColumns, /*is_transposed=*/false, /*has_epilogue=*/true, shift};
    test.is_uniform = true;
    Product(test).Check();
  }
}

TEST(FewRowsTest, BindsToRowsThatWereNotKnown) {
  for (int64_t rows = 1; rows <= 2; ++rows) {
    Product({.rows = rows,
             .depth = kDepth,
             .columns = kColumns,
             .has_epilogue = true,
             .is_symbolic = true})
        .Check();
  }
}

TEST(FewRowsTest, GivesTheSameResultOnAnyNumberOfThreads) {
  for (const bool is_transposed : {false, true}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5, 16}) {
      Case test{2, kDepth, kColumns, is_transposed};
      test.threads = threads;
      Product product(test);
      product.Check();
      results.push_back(product.result());
      EXPECT_EQ(results.back(), results.front()) << threads;
    }
  }
}

}  // namespace
}  // namespace onnxifi::matmul

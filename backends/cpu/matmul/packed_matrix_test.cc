// SPDX-License-Identifier: Apache-2.0
//
// Rows times a packed matrix against sums in float64: rows along several axes and with gaps, any
// order of the matrix, bias, addend and bounds, memory at any address, and extents that are known
// only once the step is bound.

#include "backends/cpu/matmul/packed_matrix.h"

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
  int64_t outer, inner;  // axes of rows
  int64_t outer_gap,
      inner_gap;  // floats after what each of them steps over, in X, Y and the addend
  int64_t depth, columns;
  bool is_transposed = false;  // the matrix: columns x depth
  bool has_epilogue = false;   // max(sum + bias + addend, -1)
  bool is_outer_a_batch = false;
  bool is_symbolic = false;  // the axes of rows
  int threads = 2;
  size_t shift = 0;  // bytes of every tensor from an address of floats
};

class Product : private FloatBuffers {
 public:
  explicit Product(const Case& test) : test_(test) {
    Dim outer(test.outer), inner(test.inner);
    if (test.is_symbolic) {
      outer = program.dims->NewSymbol("outer", /*is_data=*/false);
      inner = program.dims->NewSymbol("inner", /*is_data=*/false);
    }
    Add({outer, inner, test.depth}, test.outer * OuterStride(test.depth));
    Add({test.is_transposed ? test.columns : test.depth,
         test.is_transposed ? test.depth : test.columns},
        test.depth * test.columns);
    program.buffers[1].kind = program::Buffer::Kind::kConstant;
    Add({outer, inner, test.columns}, test.outer * OuterStride(test.columns));
    Add({test.columns}, test.columns);
    Add({outer, inner, test.columns}, test.outer * OuterStride(test.columns));
    step_.domain = {outer, inner, test.columns};
    step_.reads.push_back(Rows(0, test.depth));
    const int64_t k_step = test.is_transposed ? 1 : test.columns;
    const int64_t n_step = test.is_transposed ? test.depth : 1;
    step_.reads.push_back(test.is_outer_a_batch ? View(1, {0, k_step, n_step})
                                                : View(1, {k_step, n_step}));
    if (test.has_epilogue) {
      step_.reads.push_back(View(3, {0, 0, 1}));
      step_.reads.push_back(Rows(4, test.columns));
    }
    step_.writes.push_back(Rows(2, test.columns));
    Contract contract;
    contract.batch_axes = test.is_outer_a_batch ? 1 : 0;
    contract.m_axes = test.is_outer_a_batch ? 1 : 2;
    contract.n_axes = 1;
    contract.inner = {test.depth};
    contract.a_prologue = program::Load(program.exprs, ElementType::kFloat32, 0).id();
    contract.b_prologue = program::Load(program.exprs, ElementType::kFloat32, 1).id();
    program::Expr sum = program::Accumulator(program.exprs, ElementType::kFloat32);
    if (test.has_epilogue) {
      const program::Expr bias = program::Load(program.exprs, ElementType::kFloat32, 2);
      const program::Expr addend = program::Load(program.exprs, ElementType::kFloat32, 3);
      sum = sum + bias + addend;
      sum = program::Maximum(sum, program::Like(sum, -1.0));
    }
    contract.roots = {sum.id()};
    step_.body = std::move(contract);
  }

  // Runs it, and compares.
  void Check() {
    threads::ThreadPool pool(test_.threads);
    reference::Device reference;
    runtime::Runtime runtime(reference.memory(), pool);
    const auto matrix = DescribeConstantMatrix({program, step_});
    ASSERT_TRUE(matrix.ok()) << matrix.status().Text();
    const Recipe recipe({MakePackedMatrix(*matrix)});
    EXPECT_TRUE(recipe.TakesAnyAddress(1));
    const std::unique_ptr<device::Kernel> kernel = recipe.BuildKernel(runtime, nullptr);
    std::fill(data[2].begin(), data[2].end(), kUntouched);
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::byte*> addresses;
    for (const std::vector<float>& buffer : data) {
      std::vector<std::byte>& bytes =
          memory.emplace_back(buffer.size() * sizeof(float) + test_.shift);
      if (!buffer.empty()) {
        std::memcpy(bytes.data() + test_.shift, buffer.data(), bytes.size() - test_.shift);
      }
      addresses.push_back(bytes.data() + test_.shift);
    }
    std::vector<std::byte*> constants(addresses.size(), nullptr);
    constants[1] = addresses[1];
    std::vector<int64_t> dims(static_cast<size_t>(program.dims->node_count()), test_.inner);
    if (test_.is_symbolic) dims[0] = test_.outer;
    const auto bound = kernel->Bind(device::Bind(program, step_, dims), constants);
    ASSERT_TRUE(bound.ok()) << bound.status().Text();
    // It was packed, and is not looked at any more.
    EXPECT_FALSE((*bound)->ReadsAtRun(1));
    addresses[1] = nullptr;
    ASSERT_TRUE((*bound)->Run(addresses).ok());
    if (!data[2].empty()) {
      std::memcpy(data[2].data(), addresses[2], data[2].size() * sizeof(float));
    }
    std::vector<float> rest = data[2];
    for (int64_t outer = 0; outer < test_.outer; ++outer) {
      for (int64_t inner = 0; inner < test_.inner; ++inner) {
        for (int64_t column = 0; column < test_.columns; ++column) {
          const auto at = static_cast<size_t>(At(outer, inner, test_.columns) + column);
          ASSERT_NEAR(data[2][at], Expected(outer, inner, column),
                      2e-6 * static_cast<double>(test_.depth))
              << outer << ", " << inner << ", " << column;
          rest[at] = kUntouched;
        }
      }
    }
    EXPECT_EQ(rest, std::vector<float>(rest.size(), kUntouched)) << "between the rows";
  }

  const std::vector<float>& result() const { return data[2]; }

 private:
  static constexpr float kUntouched = -777;

  int64_t OuterStride(int64_t row) const {
    return test_.inner * (row + test_.inner_gap) + test_.outer_gap;
  }
  int64_t At(int64_t outer, int64_t inner, int64_t row) const {
    return outer * OuterStride(row) + inner * (row + test_.inner_gap);
  }
  program::View Rows(program::BufferId buffer, int64_t row) const {
    return View(buffer, {OuterStride(row), row + test_.inner_gap, 1});
  }
  double Expected(int64_t outer, int64_t inner, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < test_.depth; ++k) {
      const int64_t at =
          test_.is_transposed ? column * test_.depth + k : k * test_.columns + column;
      sum += static_cast<double>(data[0][static_cast<size_t>(At(outer, inner, test_.depth) + k)]) *
             static_cast<double>(data[1][static_cast<size_t>(at)]);
    }
    if (!test_.has_epilogue) return sum;
    sum +=
        static_cast<double>(data[3][static_cast<size_t>(column)]) +
        static_cast<double>(data[4][static_cast<size_t>(At(outer, inner, test_.columns) + column)]);
    return std::max(sum, -1.0);
  }

  const Case test_;
  program::Step step_;
};

TEST(PackedMatrixTest, MultipliesRowsAlongSeveralAxes) {
  const std::pair<int64_t, int64_t> gaps[] = {{0, 0}, {0, 3}, {5, 0}, {7, 2}};
  for (const auto& [outer_gap, inner_gap] : gaps) {
    for (const bool is_outer_a_batch : {false, true}) {
      SCOPED_TRACE(std::to_string(outer_gap) + " " + std::to_string(inner_gap));
      Case test{7, 19, outer_gap, inner_gap, 37, 83};
      test.is_outer_a_batch = is_outer_a_batch;
      test.has_epilogue = true;
      Product(test).Check();
    }
  }
}

TEST(PackedMatrixTest, TakesExtentsOfOneAndNone) {
  for (const int64_t outer : {0, 1, 2}) {
    for (const int64_t inner : {0, 1, 3}) {
      SCOPED_TRACE(std::to_string(outer) + " x " + std::to_string(inner));
      for (const int64_t columns : {1, 2, 33}) {
        for (const int64_t depth : {1, 2, 65}) {
          Case test{outer, inner, 1, 1, depth, columns};
          test.has_epilogue = true;
          Product(test).Check();
        }
      }
    }
  }
}

TEST(PackedMatrixTest, TakesAMatrixInBothOrders) {
  for (const bool is_transposed : {false, true}) {
    for (const bool has_epilogue : {false, true}) {
      Case test{1, 61, 0, 0, 517, 259, is_transposed, has_epilogue};
      Product(test).Check();
    }
  }
}

TEST(PackedMatrixTest, TakesMemoryAtAnyAddress) {
  for (const size_t shift : {1, 2, 3}) {
    Case test{3, 23, 2, 1, 31, 70};
    test.has_epilogue = true;
    test.shift = shift;
    Product(test).Check();
  }
}

TEST(PackedMatrixTest, BindsToExtentsThatWereNotKnown) {
  for (const int64_t outer : {0, 1, 5}) {
    Case test{outer, 11, 0, 0, 64, 48};
    test.has_epilogue = true;
    test.is_symbolic = true;
    Product(test).Check();
  }
}

TEST(PackedMatrixTest, GivesTheSameResultOnAnyNumberOfThreads) {
  for (const int64_t outer : {1, 9}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5, 16}) {
      Case test{outer, 130, 0, outer == 1 ? 0 : 1, 129, 515};
      test.outer_gap = outer == 1 ? 0 : 3;
      test.threads = threads;
      Product product(test);
      product.Check();
      results.push_back(product.result());
      EXPECT_EQ(results.back(), results.front()) << threads;
    }
  }
}

// Two matrices, one per element of the outer axis.
TEST(PackedMatrixTest, RefusesAMatrixPerBatch) {
  FloatBuffers buffers;
  buffers.Add({2, 3, 4}, 24);
  buffers.Add({2, 4, 5}, 40);
  buffers.program.buffers[1].kind = program::Buffer::Kind::kConstant;
  buffers.Add({2, 3, 5}, 30);
  program::Step step;
  step.domain = {2, 3, 5};
  step.reads = {FloatBuffers::View(0, {12, 4, 1}), FloatBuffers::View(1, {20, 5, 1})};
  step.writes = {FloatBuffers::View(2, {15, 5, 1})};
  Contract contract;
  contract.batch_axes = contract.m_axes = contract.n_axes = 1;
  contract.inner = {4};
  program::ExprPool& pool = buffers.program.exprs;
  contract.a_prologue = program::Load(pool, ElementType::kFloat32, 0).id();
  contract.b_prologue = program::Load(pool, ElementType::kFloat32, 1).id();
  contract.roots = {program::Accumulator(pool, ElementType::kFloat32).id()};
  step.body = std::move(contract);
  const auto matrix = DescribeConstantMatrix({buffers.program, step});
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(matrix.status().code(), base::Code::kUnsupportedShape);
  EXPECT_NE(matrix.status().Text().find("a matrix of its own"), std::string::npos);
}

}  // namespace
}  // namespace onnxifi::matmul

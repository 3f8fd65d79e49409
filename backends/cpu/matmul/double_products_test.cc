// SPDX-License-Identifier: Apache-2.0
//
// DoubleProducts against sums in long double: batches, rows along several axes, operands and
// results in any order, depths of several blocks, on any number of threads.

#include "backends/cpu/matmul/double_products.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/cpu/engine/runtime.h"
#include "backends/cpu/matmul/recipe.h"

namespace onnxifi::matmul {
namespace {

using program::Contract;
using tensor::ElementType;
using tensor::Extents;

// A[batch, rows, depth] * B[batch, depth, columns], of which each is laid out in one of the orders
// of its axes.
struct Case {
  Extents batch, rows;
  int64_t depth = 1;
  int64_t columns = 1;
  uint64_t order = 0;        // seed of the orders of axes in memory
  bool is_b_shared = false;  // by all of the batch
  bool has_no_columns = false;
  int threads = 2;
  bool is_affine = false;  // -0.5 * sum + 3 * addend, which is the same for all rows
};

class Product {
 public:
  explicit Product(const Case& test) : test_(test), random_(test.order + 1) {
    Extents a_extents = test.batch, b_extents = test.batch, c_extents = test.batch;
    a_extents.insert(a_extents.end(), test.rows.begin(), test.rows.end());
    c_extents.insert(c_extents.end(), test.rows.begin(), test.rows.end());
    a_extents.push_back(test.depth);
    b_extents.push_back(test.depth);
    if (!test.has_no_columns) {
      b_extents.push_back(test.columns);
      c_extents.push_back(test.columns);
    }
    step_.reads = {MakeView(a_extents, false), MakeView(b_extents, test.is_b_shared)};
    step_.writes = {MakeView(c_extents, false)};
    step_.domain = {c_extents.begin(), c_extents.end()};
    Contract contract;
    contract.batch_axes = static_cast<int>(test.batch.size());
    contract.m_axes = static_cast<int>(test.rows.size());
    contract.n_axes = test.has_no_columns ? 0 : 1;
    contract.inner = {test.depth};
    contract.accumulator = ElementType::kFloat64;
    contract.a_prologue = program::Load(program_.exprs, ElementType::kFloat64, 0).id();
    contract.b_prologue = program::Load(program_.exprs, ElementType::kFloat64, 1).id();
    program::Expr sum = program::Accumulator(program_.exprs, ElementType::kFloat64);
    if (test.is_affine) {
      program::View addend = MakeView({test.columns}, false);
      addend.strides.insert(addend.strides.begin(), step_.domain.size() - 1, program::Dim(0));
      step_.reads.push_back(std::move(addend));
      const program::Expr load = program::Load(program_.exprs, ElementType::kFloat64, 2);
      sum = load * Like(load, 3) + Like(sum, -0.5) * sum;
    }
    contract.roots = {sum.id()};
    step_.body = std::move(contract);
  }

  program::Program& program() { return program_; }
  program::Step& step() { return step_; }

  const std::vector<double>& Run() {
    threads::ThreadPool pool(test_.threads);
    reference::Device reference;
    runtime::Runtime runtime(reference.memory(), pool);
    const auto recipe = SelectDoubleProducts({program_, step_});
    EXPECT_TRUE(recipe.ok()) << recipe.status().Text();
    const auto kernel = dynamic_cast<const Recipe&>(**recipe).BuildKernel(runtime, nullptr);
    std::vector<std::byte*> addresses;
    for (std::vector<double>& buffer : data_) {
      addresses.push_back(reinterpret_cast<std::byte*>(buffer.data()));
    }
    const std::vector<std::byte*> constants(addresses.size(), nullptr);
    const auto bound = kernel->Bind(device::Bind(program_, step_, {}), constants);
    EXPECT_TRUE(bound.ok()) << bound.status().Text();
    std::fill(data_[2].begin(), data_[2].end(), -777.0);
    EXPECT_TRUE((*bound)->Run(addresses).ok());
    return data_[2];
  }

  void Check() {
    Run();
    const Extents& batch = test_.batch;
    const auto count = [](const Extents& extents) { return tensor::ElementCount(extents); };
    for (int64_t n = 0; n < count(batch) * count(test_.rows) * test_.columns; ++n) {
      Extents at = Coordinates(n);
      const Extents of_batch(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(batch.size()));
      Extents of_a(at.begin(), at.end() - 1), of_b = of_batch;
      long double sum = 0;
      for (int64_t k = 0; k < test_.depth; ++k) {
        Extents a_at = of_a, b_at = of_b;
        a_at.push_back(k);
        b_at.push_back(k);
        if (!test_.has_no_columns) b_at.push_back(at.back());
        sum += static_cast<long double>(ElementAt(0, step_.reads[0], a_at)) *
               static_cast<long double>(ElementAt(1, step_.reads[1], b_at));
      }
      if (test_.is_affine) {
        const Extents column(at.size(), at.back());
        sum = 3 * static_cast<long double>(ElementAt(3, step_.reads[2], column)) - sum / 2;
      }
      if (test_.has_no_columns) at.pop_back();
      ASSERT_NEAR(ElementAt(2, step_.writes[0], at), static_cast<double>(sum),
                  1e-15 * static_cast<double>(test_.depth + 1))
          << testing::PrintToString(at);
    }
  }

 private:
  program::View MakeView(const Extents& extents, bool is_shared) {
    std::vector<size_t> order(extents.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    Extents strides(extents.size(), 0);
    int64_t stride = 1;
    for (const size_t axis : order) {
      if (is_shared && axis < test_.batch.size()) continue;
      strides[axis] = stride;
      stride *= std::max<int64_t>(1, extents[axis]);
    }
    program::Buffer buffer;
    buffer.type = ElementType::kFloat64;
    buffer.shape = {stride};
    program::View view;
    view.type = ElementType::kFloat64;
    view.buffer = program_.AddBuffer(std::move(buffer));
    view.strides = {strides.begin(), strides.end()};
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (double& value : data_.emplace_back(static_cast<size_t>(stride))) value = uniform(random_);
    return view;
  }

  // Of batch, rows and columns.
  Extents Coordinates(int64_t number) const {
    Extents extents = test_.batch;
    extents.insert(extents.end(), test_.rows.begin(), test_.rows.end());
    extents.push_back(test_.columns);
    Extents at(extents.size());
    for (size_t axis = extents.size(); axis-- > 0;) {
      at[axis] = number % extents[axis];
      number /= extents[axis];
    }
    return at;
  }

  double ElementAt(size_t buffer, const program::View& view, const Extents& at) const {
    int64_t element = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) {
      element += at[axis] * view.strides[axis].constant();
    }
    return data_[buffer][static_cast<size_t>(element)];
  }

  const Case test_;
  std::mt19937_64 random_;
  program::Program program_;
  program::Step step_;
  std::vector<std::vector<double>> data_;
};

TEST(DoubleProductsTest, TakesAnyOrderOfAxes) {
  for (uint64_t order = 0; order < 40; ++order) {
    SCOPED_TRACE(order);
    Product({{}, {13}, 37, 19, order}).Check();
    Product({{2, 3}, {7}, 5, 17, order, /*is_b_shared=*/order % 2 == 0}).Check();
    Product({{2}, {3, 5, 2}, 11, 9, order}).Check();
  }
}

TEST(DoubleProductsTest, DividesLargeProducts) {
  for (const int threads : {1, 7}) {
    Product({{}, {109}, 520, 37, 1, false, false, threads}).Check();
    Product({{2}, {150}, 257, 8, 2, false, false, threads}).Check();
  }
}

TEST(DoubleProductsTest, ScalesAndAdds) {
  for (uint64_t order = 0; order < 6; ++order) {
    Case test{{2}, {53}, 300, 19, order};
    test.is_affine = true;
    Product(test).Check();
  }
}

TEST(DoubleProductsTest, GivesTheSameOnAnyNumberOfThreads) {
  Case test{{}, {230}, 600, 33, 3};
  test.threads = 1;
  const std::vector<double> expected = Product(test).Run();
  for (const int threads : {2, 5, 16}) {
    test.threads = threads;
    EXPECT_EQ(Product(test).Run(), expected) << threads;
  }
}

TEST(DoubleProductsTest, TakesVectorsAndEmptyExtents) {
  Product({{}, {}, 300, 70}).Check();
  Product({{}, {70}, 300, 1, 0, false, /*has_no_columns=*/true}).Check();
  Product({{3}, {}, 30, 1, 0, false, /*has_no_columns=*/true}).Check();
  Product({{}, {5}, 0, 7}).Check();  // sums of nothing
  for (const Case& test : {Case{{}, {0}, 3, 7}, Case{{}, {5}, 3, 0}, Case{{0}, {5}, 3, 7}}) {
    Product product(test);
    for (const double number : product.Run()) EXPECT_EQ(number, -777.0);
  }
}

TEST(DoubleProductsTest, RefusesWhatItDoesNotDo) {
  Product more({{}, {3}, 4, 5});
  auto& contract = std::get<Contract>(more.step().body);
  const program::Expr sum = program::Accumulator(more.program().exprs, ElementType::kFloat64);
  contract.roots = {(sum * sum).id()};
  EXPECT_FALSE(SelectDoubleProducts({more.program(), more.step()}).ok());
  Product padded({{}, {3}, 4, 5});
  padded.step().reads[0].guards.emplace_back();
  EXPECT_FALSE(SelectDoubleProducts({padded.program(), padded.step()}).ok());
  Product wide({{}, {3}, 4, 5});
  wide.step().reads[1].type = ElementType::kFloat32;
  EXPECT_FALSE(SelectDoubleProducts({wide.program(), wide.step()}).ok());
}

}  // namespace
}  // namespace onnxifi::matmul

// SPDX-License-Identifier: Apache-2.0
//
// Sums of products on the CPU device, against sums in float64.

#include "backends/cpu/summed_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/core/reference/random_step.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {
namespace {

using program::Contract;
using program::Expr;
using tensor::ElementType;

constexpr ElementType kFloat = ElementType::kFloat32;

// result[b] = sum over i and j of A[b, i, j] * (B[b, j, i] + 1), and at times + addend[b]; `ones`
// axes of rows and of columns.
struct SumOfProducts {
  int64_t batch, outer, inner;
  bool has_addend;
  int ones = 0;
};

std::string Check(Device& device, const SumOfProducts& sum) {
  reference::RandomStep made;
  std::mt19937 random(5);
  std::vector<std::vector<float>> data;
  program::Step step;
  auto add = [&](int64_t count, program::Dims strides) {
    std::normal_distribution<float> normal(0, 1);
    std::vector<float>& values = data.emplace_back(static_cast<size_t>(count));
    for (float& value : values) value = normal(random);
    made.buffers.push_back(tensor::Tensor::FromValues<float>(kFloat, {count}, values));
    program::Buffer buffer;
    buffer.type = kFloat;
    buffer.shape = {count};
    program::View view;
    view.buffer = made.program.AddBuffer(buffer);
    view.type = kFloat;
    view.strides = std::move(strides);
    return view;
  };
  const auto ones = static_cast<size_t>(sum.ones);
  const int64_t depth = sum.outer * sum.inner;
  program::Dims of_a(1 + ones, 3), of_b = {depth, 1, sum.outer}, of_result(1 + 2 * ones, 5);
  of_a[0] = depth;
  of_a.insert(of_a.end(), {sum.inner, 1});
  of_b.insert(of_b.end(), ones, 2);
  of_result[0] = 1;
  step.domain = program::Shape(1 + 2 * ones, 1);
  step.domain[0] = sum.batch;
  step.reads = {add(sum.batch * depth, of_a), add(sum.batch * depth, of_b)};
  if (sum.has_addend) step.reads.push_back(add(sum.batch, of_result));
  step.writes = {add(sum.batch, of_result)};
  program::ExprPool& pool = made.program.exprs;
  Contract contract;
  contract.batch_axes = 1;
  contract.m_axes = contract.n_axes = sum.ones;
  contract.inner = {sum.outer, sum.inner};
  contract.a_prologue = Load(pool, kFloat, 0).id();
  contract.b_prologue = (Load(pool, kFloat, 1) + program::Constant(pool, kFloat, 1)).id();
  Expr root = program::Accumulator(pool, kFloat);
  if (sum.has_addend) root = root + Load(pool, kFloat, 2);
  contract.roots = {root.id()};
  step.body = contract;
  made.program.steps.push_back(std::move(step));

  const device::Selection selection = *device.Select({made.program, made.program.steps[0]});
  const auto result = RunStep(device, made);
  if (!result.ok()) return result.status().Text();
  const auto* const found = reinterpret_cast<const float*>(result->back().data());
  for (int64_t b = 0; b < sum.batch; ++b) {
    double expected = sum.has_addend ? data[2][static_cast<size_t>(b)] : 0;
    double size = 0;
    for (int64_t i = 0; i < sum.outer; ++i) {
      for (int64_t j = 0; j < sum.inner; ++j) {
        const double product =
            double{data[0][static_cast<size_t>(b * depth + i * sum.inner + j)]} *
            (double{data[1][static_cast<size_t>(b * depth + j * sum.outer + i)]} + 1);
        expected += product;
        size += std::abs(product);
      }
    }
    EXPECT_NEAR(found[b], expected, 1e-6 * (size + 1)) << b;
  }
  return std::string(selection.recipe->implementation());
}

TEST(SummedProductsTest, EachProductOfABatchIsASum) {
  const std::unique_ptr<Device> device = *Device::Create(std::make_shared<threads::ThreadPool>(2),
                                                         base::Log(base::LogLevel::kWarning));
  for (const int64_t batch : {1, 3, 70}) {
    for (const int64_t outer : {1, 5, 64}) {
      for (const int64_t inner : {1, 37, 300}) {
        for (const bool has_addend : {false, true}) {
          for (const int ones : {0, 1}) {
            SCOPED_TRACE(std::to_string(batch) + " sums of " + std::to_string(outer) + " x " +
                         std::to_string(inner) + (has_addend ? ", added" : "") +
                         (ones > 0 ? ", a row and a column" : ""));
            EXPECT_EQ(Check(*device, {batch, outer, inner, has_addend, ones}), "summed products");
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxifi::cpu

// SPDX-License-Identifier: Apache-2.0
//
// OneStep: for tests: a step over operands of float32, or all of bfloat16, with strides of any
// kind, bound by an implementation of this folder and run beside the reference's loops.

#ifndef ONNXIFI_BACKENDS_CPU_ONEDNN_TESTING_ONE_STEP_H_
#define ONNXIFI_BACKENDS_CPU_ONEDNN_TESTING_ONE_STEP_H_

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/reference/device.h"
#include "backends/core/tensor/convert.h"
#include "backends/cpu/onednn/recipe.h"

namespace onnxifi::onednn {

class OneStep {
 public:
  using Select = runtime::RecipeResult (*)(const device::Facts& facts, EdgePlacement edge_placement,
                                           std::string_view implementation);

  explicit OneStep(tensor::ElementType type = tensor::ElementType::kFloat32) : type_(type) {}

  program::Program program;
  program::Step step;

  // A new buffer as a read or as the result, which is the step's domain too. Without strides it is
  // dense; it ends with the last element that the strides reach.
  int Read(const Extents& extents, const Extents& strides = {}) {
    step.reads.push_back(Add(extents, strides));
    return static_cast<int>(step.reads.size()) - 1;
  }
  void Write(const Extents& extents, const Extents& strides = {}) {
    step.writes.push_back(Add(extents, strides));
    step.domain = {extents.begin(), extents.end()};
  }
  // In float32, in which everything is computed.
  program::Expr LoadOf(int read) { return Cast(program::Load(program.exprs, type_, read), kFloat); }
  // What is stored of it.
  program::ExprId Rounded(program::Expr sum) const { return Cast(sum, type_).id(); }
  program::Expr Accumulated() { return program::Accumulator(program.exprs, kFloat); }

  // What a binding became, and whether it did the step.
  struct Outcome {
    std::string detail;  // primitives in order, or why there are none
    // Elements of the result's buffer, gaps too, that differ from the reference's.
    int64_t different = 0;
  };

  // Runs the step as primitives alone, as `select` has it.
  Outcome Run(Select select) const {
    threads::ThreadPool pool(2);
    reference::Device expected_device;
    runtime::Runtime shared(expected_device.memory(), pool);
    const auto runtime = *Runtime::Create(shared, base::Log(base::LogLevel::kWarning));
    runtime::RecipeResult recipe = select({program, step}, EdgePlacement::kInPrimitive, "tested");
    EXPECT_TRUE(recipe.ok()) << recipe.status().Text();
    if (!recipe.ok()) return {};
    const auto kernel = *dynamic_cast<const Recipe&>(**recipe).BuildKernel(*runtime);
    const device::Selection expected_selection = *expected_device.Select({program, step});
    const auto expected_kernel = *expected_device.Build(*expected_selection.recipe);
    Outcome outcome;
    const std::vector<std::vector<double>> expected = RunKernel(*expected_kernel, nullptr);
    const std::vector<std::vector<double>> actual = RunKernel(*kernel, &outcome.detail);
    for (size_t buffer = 0; buffer < actual.size(); ++buffer) {
      for (size_t k = 0; k < actual[buffer].size(); ++k) {
        outcome.different += IsClose(actual[buffer][k], expected[buffer][k]) ? 0 : 1;
      }
    }
    return outcome;
  }

 private:
  static constexpr tensor::ElementType kFloat = tensor::ElementType::kFloat32;

  static bool IsClose(double actual, double expected) {
    return actual == expected || std::fabs(actual - expected) <= 1e-5 * (1 + std::fabs(expected));
  }

  program::View Add(const Extents& extents, const Extents& strides) {
    program::View view;
    const Extents in_elements = strides.empty() ? tensor::DenseStrides(extents) : strides;
    int64_t elements = 1;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      elements += (extents[axis] - 1) * in_elements[axis];
    }
    program::Buffer buffer;
    buffer.type = view.type = type_;
    buffer.shape = {elements};
    view.buffer = program.AddBuffer(std::move(buffer));
    view.strides = {in_elements.begin(), in_elements.end()};
    return view;
  }

  // What all buffers hold afterwards. They start as small integers, whose sums are exact.
  std::vector<std::vector<double>> RunKernel(device::Kernel& kernel, std::string* detail) const {
    std::mt19937 random(1);
    std::vector<tensor::Tensor> tensors;
    std::vector<std::byte*> addresses;
    for (const program::Buffer& buffer : program.buffers) {
      const int64_t count = buffer.shape[0].constant();
      tensor::Tensor& values = tensors.emplace_back(*tensor::Tensor::Allocate(type_, {count}));
      for (int64_t k = 0; k < count; ++k) {
        const auto value = static_cast<double>(static_cast<int>(random() % 9) - 4);
        tensor::StoreScalar(type_, values.mutable_data(), k,
                            tensor::CastScalar(tensor::ElementType::kFloat64, type_, {.f = value}));
      }
      addresses.push_back(values.mutable_data());
    }
    const std::vector<std::byte*> constants(addresses.size(), nullptr);
    const base::Result<std::unique_ptr<device::BoundKernel>> bound =
        kernel.Bind(device::Bind(program, step, /*dims=*/{}), constants);
    EXPECT_TRUE(bound.ok()) << bound.status().Text();
    if (!bound.ok()) return {};
    const base::Status status = (*bound)->Run(addresses);
    EXPECT_TRUE(status.ok()) << status.Text();
    if (detail != nullptr) *detail = (*bound)->Detail();
    std::vector<std::vector<double>> contents;
    for (const tensor::Tensor& values : tensors) {
      std::vector<double>& content = contents.emplace_back();
      for (int64_t k = 0; k < values.element_count(); ++k) content.push_back(values.AsDouble(k));
    }
    return contents;
  }

  const tensor::ElementType type_;
};

}  // namespace onnxifi::onednn

#endif  // ONNXIFI_BACKENDS_CPU_ONEDNN_TESTING_ONE_STEP_H_

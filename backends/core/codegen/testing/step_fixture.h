// SPDX-License-Identifier: Apache-2.0
//
// StepFixture: for tests: a step with seeded data, done by the tested device and by the reference.
// Skipped, with the reason, where there is no device.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_STEP_FIXTURE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_STEP_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/codegen/testing/tested_device.h"
#include "backends/core/reference/device.h"
#include "backends/core/reference/random_step.h"

namespace onnxifi::codegen {

inline constexpr tensor::ElementType kFloat = tensor::ElementType::kFloat32;

// A step that grows read by read, with seeded data: multiples of 1/4 from -4 to 4.
class StepMaker {
 public:
  explicit StepMaker(uint32_t seed) : random_(seed) {}

  reference::RandomStep made;
  program::Step step;

  program::ExprPool& pool() { return made.program.exprs; }

  program::View Buffer(const tensor::Extents& extents, tensor::ElementType type = kFloat,
                       program::Buffer::Kind kind = program::Buffer::Kind::kTemporary) {
    const program::Shape shape(extents.begin(), extents.end());
    tensor::Tensor tensor = *tensor::Tensor::Allocate(type, extents);
    for (int64_t k = 0; k < tensor.element_count(); ++k) {
      const auto value = static_cast<int64_t>(random_() % 33) - 16;
      const auto whole = value / 4;
      const tensor::Scalar scalar = tensor::IsFloat(type) ? tensor::Scalar{.f = value / 4.0}
                                    : tensor::IsUnsigned(type)
                                        ? tensor::Scalar{.u = static_cast<uint64_t>(whole + 4)}
                                        : tensor::Scalar{.i = whole};
      tensor::StoreScalar(type, tensor.mutable_data(), k, scalar);
    }
    made.buffers.push_back(std::move(tensor));
    program::Buffer buffer{.kind = kind, .type = type, .shape = shape};
    return program::DenseView(made.program.AddBuffer(buffer), type, shape);
  }
  program::Expr Read(const program::View& view) {
    step.reads.push_back(view);
    return Load(pool(), view.type, static_cast<int>(step.reads.size()) - 1);
  }
  // The sum, a bias per row of the output's axis `axis`, an addend like the output, at least 0.
  void Finish(program::Contract contract, const tensor::Extents& domain, size_t axis) {
    step.domain = program::Shape(domain.begin(), domain.end());
    program::Expr value = Accumulator(pool(), contract.accumulator);
    if (!domain.empty()) {
      program::View bias = Buffer({domain[axis]}, contract.accumulator);
      bias.strides.assign(domain.size(), 0);
      bias.strides[axis] = 1;
      value = value + Read(bias);
    }
    value = Maximum(value + Read(Buffer(domain, contract.accumulator)), Like(value, 0));
    contract.roots = {value.id()};
    step.writes = {Buffer(domain, contract.accumulator)};
    step.body = std::move(contract);
    FinishStep(1e-3);
  }
  // `step` has its body.
  void FinishStep(double tolerance) {
    made.program.steps.push_back(std::move(step));
    made.tolerance = tolerance;
  }

 private:
  std::mt19937 random_;
};

class StepTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tested = OpenTestedDevice(/*cache_folder=*/{});
    if (!tested.ok()) GTEST_SKIP() << tested.status().Text();
    tested_ = *std::move(tested);
    device_ = &tested_->device();
    has_float64_ = tested_->HasFloat64();
  }

  void ExpectRight(const reference::RandomStep& step, std::string_view implementation) {
    const auto selection = device_->Select({step.program, step.program.steps[0]});
    ASSERT_TRUE(selection.ok()) << selection.status().Text();
    EXPECT_EQ(selection->recipe->implementation(), implementation);
    reference::Device reference;
    const auto expected = RunStep(reference, step);
    const auto actual = RunStep(*device_, step);
    ASSERT_TRUE(expected.ok()) << expected.status().Text();
    ASSERT_TRUE(actual.ok()) << actual.status().Text();
    const std::optional<std::string> difference = FindDifference(step, *expected, *actual);
    EXPECT_FALSE(difference) << *difference << '\n' << ToString(step.program);
  }
  // What the bound kernel says of itself, and which reads it wants to see at each run.
  std::string DetailOf(const reference::RandomStep& step, std::vector<bool>& reads_at_run) {
    const program::Step& body = step.program.steps[0];
    const auto selection = device_->Select({step.program, body});
    const auto kernel = device_->Build(*selection->recipe);
    std::vector<std::unique_ptr<device::Allocation>> held;
    std::vector<std::byte*> constants;
    for (const tensor::Tensor& buffer : step.buffers) {
      held.push_back(*device_->memory().Hold(buffer));
      constants.push_back(held.back()->data());
    }
    const auto bound = (*kernel)->Bind(device::Bind(step.program, body, step.dims), constants);
    EXPECT_TRUE(bound.ok());
    reads_at_run.clear();
    for (size_t read = 0; read < body.reads.size(); ++read) {
      reads_at_run.push_back((*bound)->ReadsAtRun(static_cast<int>(read)));
    }
    return (*bound)->Detail();
  }

  std::unique_ptr<TestedDevice> tested_;
  device::Device* device_ = nullptr;  // of tested_
  bool has_float64_ = false;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_STEP_FIXTURE_H_

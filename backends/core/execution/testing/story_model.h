// SPDX-License-Identifier: Apache-2.0
//
// StoryModel: the model of the stories that tests of a backend's faults tell: what a plugin does
// with a driver, from the first question to the end of a run, while calls of the driver fail.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_STORY_MODEL_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_STORY_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/run_program.h"
#include "backends/core/program/testing/program_maker.h"

namespace onnxifi::execution {

// Of N rows x of 5: the sums of x + c over a row, and the product of x and weights, which a device
// lays out when they are first used. Not for two threads at a time.
class StoryModel {
 public:
  static constexpr int64_t kDepth = 5;
  static constexpr int64_t kColumns = 40;

  // Onto `device`, which outlives what is loaded; what was loaded goes first.
  base::Status Load(device::Device& device) {
    boundary_.reset();
    executor_.reset();
    plan_.reset();
    ONNXIFI_ASSIGN_OR_RETURN(plan_, plan::Plan::Create(maker_.program, device, counters_));
    executor_ = std::make_unique<Executor>(*plan_);
    ONNXIFI_ASSIGN_OR_RETURN(boundary_, HostBoundary::Create(*executor_));
    return base::Ok();
  }

  // INTERNAL_ERROR if a result is wrong, unless the device computes nothing.
  base::Status Run(int64_t rows, bool computes = true, RunProfile* profile = nullptr) {
    const std::vector<float> values = Values(rows);
    const std::vector<tensor::Tensor> inputs = {
        tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, {rows, kDepth}, values)};
    TensorOutputs places(maker_.program);
    ONNXIFI_RETURN_IF_ERROR(boundary_->Run(AsInputs(inputs), places, profile));
    if (!computes) return base::Ok();
    return Check(places.tensors[0].values<float>(), places.tensors[1].values<float>());
  }

  static std::vector<float> Values(int64_t rows) {
    return std::vector<float>(static_cast<size_t>(rows * kDepth), 2);
  }
  // Of a run on Values.
  static base::Status Check(std::span<const float> sums, std::span<const float> products) {
    const auto is_sum = [](float sum) { return sum == 25; };
    const auto is_product = [](float product) { return product == 5; };
    if (std::ranges::all_of(sums, is_sum) && std::ranges::all_of(products, is_product)) {
      return base::Ok();
    }
    return base::Status(base::Code::kInternalError, "A sum is wrong.");
  }

  HostBoundary& boundary() { return *boundary_; }

 private:
  static program::ProgramMaker Make() {
    program::ProgramMaker maker;
    const program::Dim n = maker.program.dims->NewSymbol("N", false);
    const program::Operand x = maker.Input({n, kDepth});
    const std::vector<float> values = {1, 2, 3, 4, 5};
    const program::Operand c = maker.Constant(
        tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, {kDepth}, values));
    const program::Operand more = maker.Map(
        {n, kDepth}, {x, c}, [](program::ExprPool&, const std::vector<program::Expr>& loads) {
          return loads[0] + loads[1];
        });
    maker.Output(maker.SumRows(more));
    const std::vector<float> weights(static_cast<size_t>(kDepth * kColumns), 0.5F);
    maker.Output(maker.MatMul(x, maker.Constant(tensor::Tensor::FromValues<float>(
                                     tensor::ElementType::kFloat32, {kDepth, kColumns}, weights))));
    return maker;
  }

  program::ProgramMaker maker_ = Make();
  plan::Counters counters_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<HostBoundary> boundary_;
};

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_STORY_MODEL_H_

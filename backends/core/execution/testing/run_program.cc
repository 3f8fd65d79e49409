// SPDX-License-Identifier: Apache-2.0
//
// RunProgram: verified, planned and run once on each device.

#include "backends/core/execution/testing/run_program.h"

#include <cstring>
#include <string>
#include <utility>

#include "backends/core/execution/host_boundary.h"
#include "backends/core/execution/testing/far_device.h"
#include "backends/core/execution/whole_run.h"
#include "backends/core/program/host_function.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::execution {

using base::Code;
using base::Result;
using base::Status;
using tensor::Tensor;

Result<std::byte*> TensorOutputs::Allocate(int output, const tensor::Extents& extents) {
  const auto k = static_cast<size_t>(output);
  const auto buffer = static_cast<size_t>(program_.outputs[k].buffer);
  ONNXIFI_ASSIGN_OR_RETURN(tensors[k], Tensor::Allocate(program_.buffers[buffer].type, extents));
  return tensors[k].mutable_data();
}

std::vector<InputTensor> AsInputs(const std::vector<Tensor>& tensors) {
  std::vector<InputTensor> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back({tensor.data(), tensor.extents()});
  return inputs;
}

namespace {

// One run of a program on a device.
class Run {
 public:
  static Result<std::unique_ptr<Run>> Create(const program::Program& program,
                                             device::Device& device) {
    std::unique_ptr<Run> run(new Run);
    ONNXIFI_ASSIGN_OR_RETURN(run->plan_, plan::Plan::Create(program, device, run->counters_));
    run->executor_ = std::make_unique<Executor>(*run->plan_);
    ONNXIFI_ASSIGN_OR_RETURN(run->boundary_, HostBoundary::Create(*run->executor_));
    return run;
  }
  HostBoundary& boundary() { return *boundary_; }

 private:
  Run() = default;

  plan::Counters counters_;
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<HostBoundary> boundary_;
};

Result<std::vector<Tensor>> RunOn(device::Device& device, const program::Program& program,
                                  const std::vector<Tensor>& inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Run> run, Run::Create(program, device));
  TensorOutputs places(program);
  ONNXIFI_RETURN_IF_ERROR(run->boundary().Run(AsInputs(inputs), places));
  return std::move(places.tensors);
}

Result<std::vector<tensor::Value>> RunOn(device::Device& device, const program::Program& program,
                                         const std::vector<tensor::Value>& inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::unique_ptr<Run> run, Run::Create(program, device));
  tensor::StringTable strings(program.strings.get());
  std::vector<InputTensor> given;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const program::Port& port = program.inputs[k];
    ONNXIFI_ASSIGN_OR_RETURN(
        InputTensor input,
        AsInput(program.buffers[port.buffer], std::make_shared<const tensor::Value>(inputs[k]),
                "Input '" + port.name + "'", strings));
    given.push_back(std::move(input));
  }
  KeptOutputs outputs(program);
  ONNXIFI_RETURN_IF_ERROR(run->boundary().Run(given, outputs, /*profile=*/nullptr, &strings));
  std::vector<tensor::Value> values;
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    values.push_back(*outputs.Get(static_cast<int>(k), strings));
  }
  return values;
}

// Whether all bits of all elements are the same.
bool AreSame(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || a.extents() != b.extents()) return false;
  if (a.type() == tensor::ElementType::kString) return a.strings() == b.strings();
  if (tensor::IsPacked(a.type())) {  // bits behind the last element are anything
    for (int64_t k = 0; k < a.element_count(); ++k) {
      if (tensor::LoadScalar(a.type(), a.data(), k).u !=
          tensor::LoadScalar(b.type(), b.data(), k).u) {
        return false;
      }
    }
    return true;
  }
  return a.size_bytes() == 0 ||
         std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size_bytes())) == 0;
}

bool AreSame(const tensor::Value& a, const tensor::Value& b) {
  if (a.kind != b.kind || a.element_count() != b.element_count()) return false;
  const bool has_tensor =
      a.kind == tensor::Value::Kind::kTensor || a.kind == tensor::Value::Kind::kMap;
  if (has_tensor && !AreSame(a.tensor, b.tensor)) return false;
  for (size_t k = 0; k < a.elements().size(); ++k) {
    if (!AreSame(*a.elements()[k], *b.elements()[k])) return false;
  }
  return true;
}

// On the reference, and on a device with memory of its own, which must come to the same.
template <typename Value>
Result<std::vector<Value>> RunNearAndFar(const program::Program& program,
                                         const std::vector<Value>& inputs) {
  ONNXIFI_RETURN_IF_ERROR(program::Verify(program));
  reference::Device near_device;
  Result<std::vector<Value>> near = RunOn(near_device, program, inputs);
  program.draws->next = 0;  // the second run is to draw what the first drew
  FarDevice far_device;
  const Result<std::vector<Value>> far = RunOn(far_device, program, inputs);
  const auto differs = [](const std::string& how) {
    return Status(Code::kInternalError, "On a device with memory of its own " + how);
  };
  if (near.ok() != far.ok()) {
    return differs(far.ok() ? "the run does not fail." : "it fails: " + far.status().Text());
  }
  if (!near.ok()) {
    if (near.status().Text() == far.status().Text()) return near;
    return differs("it fails otherwise: " + far.status().Text());
  }
  for (size_t k = 0; k < near->size(); ++k) {
    if (!AreSame((*near)[k], (*far)[k])) {
      return differs("output " + std::to_string(k) + " is another.");
    }
  }
  return near;
}

}  // namespace

Result<std::vector<Tensor>> RunProgram(const program::Program& program,
                                       const std::vector<Tensor>& inputs) {
  return RunNearAndFar(program, inputs);
}

Result<std::vector<tensor::Value>> RunOnValues(const program::Program& program,
                                               const std::vector<tensor::Value>& inputs) {
  return RunNearAndFar(program, inputs);
}

}  // namespace onnxifi::execution

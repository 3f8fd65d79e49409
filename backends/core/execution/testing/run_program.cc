// SPDX-License-Identifier: Apache-2.0
//
// RunProgram: verified, planned for the reference and run once.

#include "backends/core/execution/testing/run_program.h"

#include "backends/core/execution/whole_run.h"
#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"

namespace onnxifi::execution {

using base::Result;
using tensor::Tensor;

Result<std::byte*> TensorPlaces::Place(int output, const tensor::Extents& extents) {
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

Result<std::vector<Tensor>> RunProgram(const program::Program& program,
                                       const std::vector<Tensor>& inputs) {
  ONNXIFI_RETURN_IF_ERROR(program::Verify(program));
  reference::Device device;
  plan::Counters counters;
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<plan::Plan> plan,
                           plan::Plan::Create(program, device, counters));
  Executor executor(*plan);
  TensorPlaces places(program);
  ONNXIFI_RETURN_IF_ERROR(executor.Run(AsInputs(inputs), places));
  return std::move(places.tensors);
}

Result<std::vector<tensor::Value>> RunOnValues(const program::Program& program,
                                               const std::vector<tensor::Value>& inputs) {
  ONNXIFI_RETURN_IF_ERROR(program::Verify(program));
  reference::Device device;
  plan::Counters counters;
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<plan::Plan> plan,
                           plan::Plan::Create(program, device, counters));
  Executor executor(*plan);
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
  ONNXIFI_RETURN_IF_ERROR(executor.Run(given, outputs, /*profile=*/nullptr, &strings));
  std::vector<tensor::Value> values;
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    values.push_back(*outputs.Get(static_cast<int>(k), strings));
  }
  return values;
}

}  // namespace onnxifi::execution

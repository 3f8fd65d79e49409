// SPDX-License-Identifier: Apache-2.0
//
// RunOnNumbers: for tests that compare a program with what a pass made of it: both run on the
// reference with the same seeded inputs.

#ifndef ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_RUN_ON_NUMBERS_H_
#define ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_RUN_ON_NUMBERS_H_

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "backends/core/execution/testing/run_program.h"

namespace onnxifi::execution {

// For inputs of float32 whose extents are numbers: multiples of 1/8, so that sums come out the same
// in any order.
inline std::vector<tensor::Tensor> MakeNumbers(const program::Program& program) {
  std::mt19937 random(5);
  std::vector<tensor::Tensor> inputs;
  for (const program::Port& port : program.inputs) {
    tensor::Extents extents;
    for (const program::Dim& dim : port.shape) extents.push_back(dim.constant());
    std::vector<float> values(static_cast<size_t>(tensor::ElementCount(extents)));
    for (float& value : values) value = static_cast<float>(random() % 64) / 8.0F - 4.0F;
    inputs.push_back(
        tensor::Tensor::FromValues<float>(tensor::ElementType::kFloat32, extents, values));
  }
  return inputs;
}

// The outputs, of float32 too. A failure of the running test where the program cannot run.
inline std::vector<std::vector<float>> RunOnNumbers(const program::Program& program) {
  const std::vector<tensor::Tensor> inputs = MakeNumbers(program);
  const auto outputs = RunProgram(program, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().Text() << ToString(program);
  std::vector<std::vector<float>> values;
  if (!outputs.ok()) return values;
  for (const tensor::Tensor& output : *outputs) {
    values.emplace_back(output.values<float>().begin(), output.values<float>().end());
  }
  return values;
}

}  // namespace onnxifi::execution

#endif  // ONNXIFI_BACKENDS_CORE_EXECUTION_TESTING_RUN_ON_NUMBERS_H_

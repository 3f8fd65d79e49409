// SPDX-License-Identifier: Apache-2.0
//
// OneStep: for tests: a program of one step over typed arrays, run on the reference; and numbers to
// fill the arrays with.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_TESTING_ONE_STEP_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_TESTING_ONE_STEP_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "backends/core/program/verify.h"
#include "backends/core/reference/device.h"

namespace onnxifi::reference {

// In [-1, 1).
inline std::vector<float> RandomFloats(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

class OneStep {
 public:
  program::Program program;
  program::Step step;

  program::ExprPool& pool() { return program.exprs; }

  // A buffer holding `values`, as a dense read or write of the step: returns its position there.
  template <typename T>
  int Read(tensor::ElementType type, const program::Shape& shape, const std::vector<T>& values) {
    step.reads.push_back(program::DenseView(Add(type, shape, values), type, shape));
    return static_cast<int>(step.reads.size()) - 1;
  }
  template <typename T>
  int Write(tensor::ElementType type, const program::Shape& shape, const std::vector<T>& values) {
    step.writes.push_back(program::DenseView(Add(type, shape, values), type, shape));
    return static_cast<int>(step.writes.size()) - 1;
  }

  // What a write's buffer holds after the step ran.
  template <typename T>
  std::vector<T> Run(int write = 0) {
    if (program.steps.empty()) program.steps.push_back(std::move(step));
    const base::Status verified = Verify(program);
    EXPECT_TRUE(verified.ok()) << verified.Text();
    std::vector<std::byte*> addresses;
    for (std::vector<std::byte>& buffer : buffers_) addresses.push_back(buffer.data());
    Device device;
    base::Result<device::Selection> selection = device.Select({program, program.steps[0]});
    EXPECT_TRUE(selection.ok()) << selection.status().Text();
    if (!selection.ok()) return {};
    base::Result<std::unique_ptr<device::Kernel>> kernel = device.Build(*selection->recipe);
    const std::vector<int64_t> dims;
    base::Result<std::unique_ptr<device::BoundKernel>> bound =
        (*kernel)->Bind(device::Bind(program, program.steps[0], dims), addresses);
    const base::Status status = (*bound)->Run(addresses);
    EXPECT_TRUE(status.ok()) << status.Text();
    const std::vector<std::byte>& bytes =
        buffers_[static_cast<size_t>(program.steps[0].writes[static_cast<size_t>(write)].buffer)];
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

 private:
  template <typename T>
  program::BufferId Add(tensor::ElementType type, const program::Shape& shape,
                        const std::vector<T>& values) {
    program::Buffer buffer;
    buffer.type = type;
    buffer.shape = shape;
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    buffers_.push_back(std::move(bytes));
    return program.AddBuffer(std::move(buffer));
  }

  std::vector<std::vector<std::byte>> buffers_;
};

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_TESTING_ONE_STEP_H_

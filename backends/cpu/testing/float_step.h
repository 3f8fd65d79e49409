// SPDX-License-Identifier: Apache-2.0
//
// FloatStep: for tests, a step of float32 on random operands, of which each test makes its own, run
// on the CPU device into memory whose gaps are to stay as they are.

#ifndef ONNXIFI_BACKENDS_CPU_TESTING_FLOAT_STEP_H_
#define ONNXIFI_BACKENDS_CPU_TESTING_FLOAT_STEP_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/device/device.h"
#include "backends/core/program/program.h"
#include "backends/cpu/device.h"

namespace onnxifi::cpu {

inline constexpr tensor::ElementType kFloat = tensor::ElementType::kFloat32;

class FloatStep {
 protected:
  using Kind = program::Buffer::Kind;

  // What a step does not write keeps it.
  static constexpr float kUntouched = -777.0F;

  explicit FloatStep(uint32_t seed) : random_(seed) {}
  ~FloatStep() = default;

  int64_t Roll(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Chance(int percent) { return Roll(1, 100) <= percent; }

  static program::Dims ToDims(std::span<const int64_t> numbers) {
    program::Dims dims;
    for (const int64_t number : numbers) dims.emplace_back(number);
    return dims;
  }

  // The number of the read.
  int AddRead(int64_t size, Kind kind, program::Dims strides, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float>& values = data_.emplace_back(static_cast<size_t>(size));
    for (float& value : values) value = normal(random_);
    step_.reads.push_back(MakeView(kind, size, std::move(strides)));
    return static_cast<int>(step_.reads.size()) - 1;
  }
  // After all reads.
  void AddWrite(int64_t size, program::Dims strides) {
    data_.emplace_back(static_cast<size_t>(size), kUntouched);
    step_.writes = {MakeView(Kind::kTemporary, size, std::move(strides))};
  }

  double Element(int read, int64_t at) const {
    return static_cast<double>(data_[static_cast<size_t>(read)][static_cast<size_t>(at)]);
  }

  // Runs twice and tells what the bound kernel says of itself.
  void Run(Device& device, const device::Recipe& recipe, std::string& out_detail) {
    const auto kernel = device.Build(recipe);
    ASSERT_TRUE(kernel.ok()) << kernel.status().Text();
    std::vector<std::byte*> addresses, constants;
    for (size_t k = 0; k < data_.size(); ++k) {
      addresses.push_back(reinterpret_cast<std::byte*>(data_[k].data()));
      const bool is_constant = program_.buffers[k].kind == Kind::kConstant;
      constants.push_back(is_constant ? addresses.back() : nullptr);
    }
    const std::vector<int64_t> dims(static_cast<size_t>(program_.dims->node_count()), 0);
    auto bound = (*kernel)->Bind(device::Bind(program_, step_, dims), constants);
    ASSERT_TRUE(bound.ok()) << bound.status().Text();
    for (int run = 0; run < 2; ++run) {
      const base::Status status = (*bound)->Run(addresses);
      ASSERT_TRUE(status.ok()) << status.Text();
    }
    out_detail = (*bound)->Detail();
  }

  std::mt19937 random_;
  program::Program program_;
  program::Step step_;
  std::vector<std::vector<float>> data_;  // by buffer: what is read, and then the result

 private:
  program::View MakeView(Kind kind, int64_t size, program::Dims strides) {
    program::Buffer buffer;
    buffer.kind = kind;
    buffer.type = kFloat;
    buffer.shape = {size};
    if (kind == Kind::kConstant) {
      buffer.index = static_cast<int>(program_.constants.size());
      program_.constants.push_back(tensor::Tensor::FromValues<float>(kFloat, {size}, data_.back()));
    }
    program::View view;
    view.buffer = program_.AddBuffer(buffer);
    view.type = kFloat;
    view.strides = std::move(strides);
    return view;
  }
};

}  // namespace onnxifi::cpu

#endif  // ONNXIFI_BACKENDS_CPU_TESTING_FLOAT_STEP_H_

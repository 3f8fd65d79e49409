// SPDX-License-Identifier: Apache-2.0
//
// FloatBuffers: a program's buffers of random floats, for tests of single products.

#ifndef ONNXIFI_BACKENDS_CPU_MATMUL_TESTING_FLOAT_BUFFERS_H_
#define ONNXIFI_BACKENDS_CPU_MATMUL_TESTING_FLOAT_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "backends/core/program/program.h"

namespace onnxifi::matmul {

struct FloatBuffers {
  program::Program program;
  std::vector<std::vector<float>> data;  // per buffer

  // A buffer of `count` floats between -1 and 1.
  program::BufferId Add(program::Shape shape, int64_t count) {
    program::Buffer buffer;
    buffer.type = tensor::ElementType::kFloat32;
    buffer.shape = std::move(shape);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : data.emplace_back(static_cast<size_t>(count))) value = uniform(random);
    return program.AddBuffer(std::move(buffer));
  }

  static program::View View(program::BufferId buffer, const tensor::Extents& strides) {
    program::View view;
    view.type = tensor::ElementType::kFloat32;
    view.buffer = buffer;
    view.strides = {strides.begin(), strides.end()};
    return view;
  }

  std::vector<std::byte*> Addresses() {
    std::vector<std::byte*> addresses;
    for (std::vector<float>& buffer : data) {
      addresses.push_back(reinterpret_cast<std::byte*>(buffer.data()));
    }
    return addresses;
  }

  std::mt19937 random{7};
};

}  // namespace onnxifi::matmul

#endif  // ONNXIFI_BACKENDS_CPU_MATMUL_TESTING_FLOAT_BUFFERS_H_

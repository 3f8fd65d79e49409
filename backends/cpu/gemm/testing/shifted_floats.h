// SPDX-License-Identifier: Apache-2.0
//
// ShiftedFloats: for tests: random floats at an address that need not be one of floats.

#ifndef ONNXIFI_BACKENDS_CPU_GEMM_TESTING_SHIFTED_FLOATS_H_
#define ONNXIFI_BACKENDS_CPU_GEMM_TESTING_SHIFTED_FLOATS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace onnxifi::gemm {

// In [-1, 1), `shift` bytes beyond an address of floats.
class ShiftedFloats {
 public:
  ShiftedFloats(int64_t count, size_t shift, uint32_t seed)
      : bytes_(static_cast<size_t>(count) * sizeof(float) + shift), shift_(shift) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
    for (int64_t k = 0; k < count; ++k) Set(k, uniform(generator));
  }
  float* data() { return reinterpret_cast<float*>(bytes_.data() + shift_); }
  float At(int64_t k) const {
    float value = 0;
    std::memcpy(&value, bytes_.data() + shift_ + static_cast<size_t>(k) * sizeof(float),
                sizeof(float));
    return value;
  }
  void Set(int64_t k, float value) {
    std::memcpy(bytes_.data() + shift_ + static_cast<size_t>(k) * sizeof(float), &value,
                sizeof(float));
  }

 private:
  std::vector<std::byte> bytes_;
  const size_t shift_;
};

}  // namespace onnxifi::gemm

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_TESTING_SHIFTED_FLOATS_H_

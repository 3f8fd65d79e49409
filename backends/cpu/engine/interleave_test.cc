// SPDX-License-Identifier: Apache-2.0
//
// Interleave: planes of every element size, in numbers around the vector's length, at
// any address, on every instruction set; elements beside those that are written stay as they are.

#include "backends/cpu/engine/interleave.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

void Check(int64_t planes, int64_t count, size_t element_bytes, size_t shift) {
  SCOPED_TRACE(testing::Message() << planes << " planes of " << count << " elements of "
                                  << element_bytes << " bytes, behind " << shift);
  constexpr std::byte kUntouched{0xEE};
  const int64_t plane_step = count + 5;
  std::vector<std::byte> source(static_cast<size_t>(planes * plane_step) * element_bytes + shift);
  for (size_t k = 0; k < source.size(); ++k) source[k] = static_cast<std::byte>(k * 37 % 229);
  std::vector<std::byte> expected(static_cast<size_t>(planes * count) * element_bytes + shift + 1,
                                  kUntouched);
  std::vector<std::byte> pixels(expected);
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t p = 0; p < planes; ++p) {
      std::memcpy(expected.data() + shift + static_cast<size_t>(k * planes + p) * element_bytes,
                  source.data() + shift + static_cast<size_t>(p * plane_step + k) * element_bytes,
                  element_bytes);
    }
  }
  Interleave(source.data() + shift, plane_step, planes, count, pixels.data() + shift,
             static_cast<int64_t>(element_bytes));
  EXPECT_EQ(pixels, expected);
}

TEST(InterleaveTest, TakesPlanesOfEverySize) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    for (const int64_t planes : {kMinInterleavedPlanes, kMaxInterleavedPlanes}) {
      for (const size_t element_bytes : {1, 2, 4, 8}) {
        for (const int64_t count : {0, 1, 3, 8, 15, 16, 17, 63, 64, 65, 130, 300}) {
          for (const size_t shift : {0, 1, 4}) Check(planes, count, element_bytes, shift);
        }
      }
    }
  });
}

}  // namespace
}  // namespace onnxifi::engine

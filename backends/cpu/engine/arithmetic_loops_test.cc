// SPDX-License-Identifier: Apache-2.0
//
// Quotients of integers of 32 bits, which are computed in float64: those of the language, for every
// pair of numbers around the ends and powers of two and for random ones, by zero 0, wrapped where
// no integer holds one.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/engine/loop.h"
#include "backends/cpu/processor/testing/each_target.h"

namespace onnxifi::engine {
namespace {

using tensor::ElementType;

template <typename T>
T Expected(T a, T b) {
  if (b == 0) return 0;
  return static_cast<T>(int64_t{a} / int64_t{b});
}

template <typename T>
void ExpectQuotients(ElementType type) {
  std::vector<T> numbers = {0,
                            1,
                            2,
                            3,
                            7,
                            std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::lowest(),
                            static_cast<T>(-1)};
  for (int bit = 2; bit < 32; ++bit) {
    for (int64_t more = -1; more <= 1; ++more) {
      numbers.push_back(static_cast<T>((int64_t{1} << bit) + more));
      numbers.push_back(static_cast<T>(-(int64_t{1} << bit) + more));
    }
  }
  std::mt19937 random(5);
  for (int k = 0; k < 60; ++k) numbers.push_back(static_cast<T>(random() >> (k % 30)));
  std::vector<T> a, b;
  for (const T dividend : numbers) {
    for (const T divisor : numbers) {
      a.push_back(dividend);
      b.push_back(divisor);
    }
  }
  const Loop loop = FindArithmeticLoop(program::ExprOp::kDiv, type, type);
  ASSERT_NE(loop, nullptr);
  std::vector<T> result(a.size());
  loop({reinterpret_cast<std::byte*>(result.data()),
        {reinterpret_cast<const std::byte*>(a.data()), reinterpret_cast<const std::byte*>(b.data()),
         nullptr},
        static_cast<int64_t>(a.size()),
        0,
        type,
        type});
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(result[k], Expected(a[k], b[k])) << a[k] << " / " << b[k];
  }
}

TEST(ArithmeticLoopsTest, QuotientsOf32BitsAreExact) {
  processor::ForEachTarget([](const char* target) {
    SCOPED_TRACE(target);
    ExpectQuotients<int32_t>(ElementType::kInt32);
    ExpectQuotients<uint32_t>(ElementType::kUint32);
  });
}

}  // namespace
}  // namespace onnxifi::engine

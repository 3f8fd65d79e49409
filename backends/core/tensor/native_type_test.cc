// SPDX-License-Identifier: Apache-2.0
//
// Native types: as wide and of the class that the element type says, and none for the others.

#include "backends/core/tensor/native_type.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace onnxifi::tensor {
namespace {

TEST(NativeTypeTest, IsTheTypeThatArithmeticIsDoneIn) {
  int native_count = 0;
  for (int number = 1; number < kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    const bool is_native = ArithmeticType(type) == type && (IsFloat(type) || IsInteger(type));
    const int bits = VisitNative(type, [type]<typename T>(T) {
      EXPECT_EQ(std::is_floating_point_v<T>, IsFloat(type)) << Name(type);
      EXPECT_EQ(std::is_unsigned_v<T>, IsUnsigned(type)) << Name(type);
      return static_cast<int>(sizeof(T)) * 8;
    });
    EXPECT_EQ(bits, is_native ? BitWidth(type) : 0) << Name(type);
    native_count += is_native ? 1 : 0;
    const bool is_integer = VisitInteger(type, [](auto) { return true; });
    EXPECT_EQ(is_integer, is_native && IsInteger(type)) << Name(type);
  }
  EXPECT_EQ(native_count, 10);
}

}  // namespace
}  // namespace onnxifi::tensor

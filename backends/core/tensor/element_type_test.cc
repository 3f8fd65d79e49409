// SPDX-License-Identifier: Apache-2.0
//
// ElementType: numbers, widths and classes as ONNX's TensorProto lists them.

#include "backends/core/tensor/element_type.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace onnxifi::tensor {
namespace {

TEST(ElementTypeTest, RefusesNumbersThatOnnxDoesNotHave) {
  EXPECT_FALSE(ElementTypeFromOnnx(0));
  EXPECT_FALSE(ElementTypeFromOnnx(-1));
  EXPECT_FALSE(ElementTypeFromOnnx(29));
  EXPECT_FALSE(ElementTypeFromOnnx(INT64_MAX));
  EXPECT_EQ(ElementTypeFromOnnx(16), ElementType::kBfloat16);
  EXPECT_EQ(ElementTypeFromOnnx(26), ElementType::kInt2);
  EXPECT_EQ(ElementTypeFromOnnx(28), ElementType::kFloat6E3M2);
}

TEST(ElementTypeTest, EveryTypeHasItsOwnNameAndOneClass) {
  std::set<std::string_view> names;
  for (int number = 1; number < kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    EXPECT_TRUE(names.insert(Name(type)).second) << Name(type);
    const int classes =
        IsFloat(type) + IsSigned(type) + IsUnsigned(type) + IsBool(type) + IsComplex(type);
    EXPECT_EQ(classes, type == ElementType::kString ? 0 : 1) << Name(type);
    EXPECT_EQ(IsPacked(type), Name(type).ends_with("int4") || Name(type).ends_with("int2") ||
                                  Name(type).starts_with("float6") ||
                                  type == ElementType::kFloat4E2M1);
  }
}

TEST(ElementTypeTest, SizesRoundUpToWholeBytes) {
  EXPECT_EQ(SizeBytes(ElementType::kFloat32, 3), 12);
  EXPECT_EQ(SizeBytes(ElementType::kComplex128, 3), 48);
  EXPECT_EQ(SizeBytes(ElementType::kInt4, 0), 0);
  EXPECT_EQ(SizeBytes(ElementType::kInt4, 3), 2);
  EXPECT_EQ(SizeBytes(ElementType::kUint2, 5), 2);
  EXPECT_EQ(SizeBytes(ElementType::kUint2, INT64_MAX), (INT64_MAX / 4) + 1);
  const std::array<int64_t, 10> of_six_bits = {0, 1, 2, 3, 3, 4, 5, 6, 6, 7};
  for (size_t count = 0; count < of_six_bits.size(); ++count) {
    EXPECT_EQ(SizeBytes(ElementType::kFloat6E2M3, static_cast<int64_t>(count)), of_six_bits[count]);
  }
  // 2^63 elements would be 3 * 2^61 bytes; one fewer ends in the last of them.
  EXPECT_EQ(SizeBytes(ElementType::kFloat6E3M2, INT64_MAX), int64_t{3} << 61);
  EXPECT_EQ(SizeBytes(ElementType::kFloat64, INT64_MAX / 4), INT64_MAX);
}

TEST(ElementTypeTest, GroupsFillWholeBytes) {
  for (int number = 1; number < kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    const int per_group = ElementsPerGroup(type);
    EXPECT_EQ(per_group == 0, type == ElementType::kString);
    EXPECT_EQ(per_group * BitWidth(type) % 8, 0) << Name(type);
    for (int count = 1; count < per_group; ++count) {
      EXPECT_NE(count * BitWidth(type) % 8, 0) << Name(type);
    }
  }
}

TEST(ElementTypeTest, ArithmeticIsDoneInATypeOfTheSameClass) {
  for (int number = 1; number < kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    const ElementType arithmetic = ArithmeticType(type);
    EXPECT_EQ(IsFloat(arithmetic), IsFloat(type));
    EXPECT_EQ(IsSigned(arithmetic), IsSigned(type));
    EXPECT_EQ(ArithmeticType(arithmetic), arithmetic);
    EXPECT_FALSE(IsPacked(arithmetic));
  }
  EXPECT_EQ(ArithmeticType(ElementType::kFloat16), ElementType::kFloat32);
  EXPECT_EQ(ArithmeticType(ElementType::kInt2), ElementType::kInt8);
}

}  // namespace
}  // namespace onnxifi::tensor

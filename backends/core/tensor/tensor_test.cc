// SPDX-License-Identifier: Apache-2.0
//
// Tensor: sizes that overflow, ownership, alignment and element access.

#include "backends/core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace onnxifi::tensor {
namespace {

TEST(TensorTest, CountsElementsWithoutOverflow) {
  EXPECT_EQ(ElementCount(Extents{}), 1);
  EXPECT_EQ(ElementCount(Extents{2, 3, 4}), 24);
  EXPECT_EQ(ElementCount(Extents{INT64_MAX, 2}), INT64_MAX);
  EXPECT_EQ(ElementCount(Extents{INT64_MAX, 2, 0}), 0);
  EXPECT_EQ(ElementCount(Extents{int64_t{1} << 32, int64_t{1} << 32}), INT64_MAX);
}

TEST(TensorTest, StridesAreRowMajor) {
  EXPECT_EQ(DenseStrides(Extents{2, 3, 4}), (Extents{12, 4, 1}));
  EXPECT_EQ(DenseStrides(Extents{}), Extents{});
}

TEST(TensorTest, AllocatesZeroedAndAligned) {
  const auto tensor = Tensor::Allocate(ElementType::kFloat32, {1000, 7});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->data()) % 64, 0u);
  for (const float value : tensor->values<float>()) EXPECT_EQ(value, 0);
}

TEST(TensorTest, AllocatesEmptyAndStringTensors) {
  const auto empty = Tensor::Allocate(ElementType::kInt4, {0, 5});
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->size_bytes(), 0);
  const auto strings = Tensor::Allocate(ElementType::kString, {2, 2});
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ(strings->strings().size(), 4u);
}

TEST(TensorTest, RefusesSizesThatOverflow) {
  for (const ElementType type : {ElementType::kFloat64, ElementType::kInt2, ElementType::kString}) {
    const auto tensor = Tensor::Allocate(type, {INT64_MAX, INT64_MAX});
    ASSERT_FALSE(tensor.ok());
    EXPECT_EQ(tensor.status().code(), base::Code::kNoSystemMemory);
    EXPECT_NE(tensor.status().sentence().find("9223372036854775807"), std::string_view::npos);
  }
}

TEST(TensorTest, CopiesValuesAndReadsThemAsAnyType) {
  const std::array<int16_t, 4> values = {-3, 0, 7, 32767};
  const Tensor tensor = Tensor::FromValues<int16_t>(ElementType::kInt16, {2, 2}, std::span(values));
  EXPECT_EQ(tensor.AsInt(0), -3);
  EXPECT_EQ(tensor.AsDouble(3), 32767.0);
  const std::array<uint16_t, 2> halves = {0x3e00, 0xc500};  // 1.5, -5
  const Tensor half = Tensor::FromValues<uint16_t>(ElementType::kFloat16, {2}, std::span(halves));
  EXPECT_EQ(half.AsDouble(0), 1.5);
  EXPECT_EQ(half.AsInt(1), -5);
}

TEST(TensorTest, BorrowedDataLiveAsLongAsTheLastTensor) {
  auto owner = std::make_shared<std::array<float, 6>>(std::array<float, 6>{0, 1, 2, 3, 4, 5});
  const std::weak_ptr<std::array<float, 6>> watch = owner;
  auto tensor = std::make_unique<Tensor>(Tensor::Borrow(
      ElementType::kFloat32, {6}, reinterpret_cast<const std::byte*>(owner->data()), owner));
  owner.reset();
  auto reshaped = std::make_unique<Tensor>(tensor->Reshaped({2, 3}));
  tensor.reset();
  EXPECT_EQ(reshaped->values<float>()[5], 5);
  EXPECT_FALSE(watch.expired());
  reshaped.reset();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace onnxifi::tensor

// SPDX-License-Identifier: Apache-2.0
//
// Place: memory as large as it has to be, and what a run may leave there.

#include "onnxifi/boundary/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onnxifi::boundary {
namespace {

using testing::HasSubstr;

abi::TensorDescriptor Floats(std::vector<uint64_t> shape) {
  abi::TensorDescriptor descriptor;
  descriptor.name = "t";
  descriptor.data_type = ONNXIFI_DATATYPE_FLOAT32;
  descriptor.shape = std::move(shape);
  return descriptor;
}

TEST(SizeBytes, CountsPackedElementsAndRefusesWhatNoMemoryHolds) {
  EXPECT_EQ(*SizeBytes(Floats({3, 5})), 60U);
  EXPECT_EQ(*SizeBytes(Floats({})), 4U);
  EXPECT_EQ(*SizeBytes(Floats({uint64_t{1} << 63, 0})), 0U);
  EXPECT_FALSE(SizeBytes(Floats({uint64_t{1} << 32, uint64_t{1} << 32})).ok());
  EXPECT_FALSE(SizeBytes(Floats({uint64_t{1} << 62})).ok());
  abi::TensorDescriptor nibbles = Floats({3});
  nibbles.data_type = static_cast<onnxEnum>(tensor::ElementType::kInt4);
  EXPECT_EQ(*SizeBytes(nibbles), 2U);
}

TEST(Place, KeepsItsMemoryWhereThatIsEnough) {
  Place place;
  place.descriptor = Floats({2, 3});
  ASSERT_TRUE(place.Reserve().ok());
  const onnxPointer first = place.descriptor.buffer;
  EXPECT_NE(first, 0U);
  EXPECT_EQ(first % 64, 0U);
  place.descriptor.shape = {5};
  ASSERT_TRUE(place.Reserve().ok());
  EXPECT_EQ(place.descriptor.buffer, first);
  EXPECT_EQ(place.capacity_bytes, 24U);
  place.descriptor.shape = {7};
  ASSERT_TRUE(place.Reserve().ok());
  EXPECT_EQ(place.capacity_bytes, 28U);
  EXPECT_EQ(place.descriptor.buffer, reinterpret_cast<onnxPointer>(place.memory.get()));
}

TEST(Place, HasAnAddressForNoElements) {
  Place place;
  place.descriptor = Floats({0, 3});
  ASSERT_TRUE(place.Reserve().ok());
  EXPECT_NE(place.descriptor.buffer, 0U);
}

TEST(Place, DoesNotGrowBeyondTheCallersMemory) {
  Place place;
  place.descriptor = Floats({4});
  place.is_callers = true;
  place.capacity_bytes = 16;
  place.descriptor.buffer = 4096;
  EXPECT_TRUE(place.Reserve().ok());
  place.descriptor.shape = {5};
  const base::Status status = place.Reserve();
  EXPECT_EQ(status.code(), base::Code::kMismatchingShape);
  EXPECT_THAT(status.Text(), HasSubstr("takes 20 bytes, more than the 16"));
  EXPECT_EQ(place.descriptor.buffer, 4096U);
}

TEST(Place, HoldsADeviceToWhatWasBound) {
  Place place;
  place.descriptor = Floats({4, 2});
  place.capacity_bytes = 32;
  const auto answer = [&](onnxEnum type, std::vector<int64_t> extents) {
    return place.CheckAfterRun({"t", type, true, std::move(extents)}).ok();
  };
  EXPECT_TRUE(answer(ONNXIFI_DATATYPE_FLOAT32, {4, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_INT32, {4, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_FLOAT32, {3, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_FLOAT32, {4, -1}));
  place.is_callers = true;
  EXPECT_TRUE(answer(ONNXIFI_DATATYPE_FLOAT32, {3, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_FLOAT32, {5, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_INT32, {3, 2}));
  EXPECT_FALSE(place.CheckAfterRun({"t", ONNXIFI_DATATYPE_FLOAT32, false, {}}).ok());
}

}  // namespace
}  // namespace onnxifi::boundary

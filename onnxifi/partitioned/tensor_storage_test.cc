// SPDX-License-Identifier: Apache-2.0
//
// TensorStorage: memory as large as it has to be, and what a run may leave there.

#include "onnxifi/partitioned/tensor_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace onnxifi::partitioned {

using plugins::SharedSource;

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

TEST(TensorStorage, KeepsItsMemoryWhereThatIsEnough) {
  TensorStorage place;
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
  EXPECT_EQ(place.descriptor.buffer, place.memory.address);
}

// A device with memory that it shares, as often as it is asked, or with none.
class Source final : public SharedSource {
 public:
  explicit Source(int most_pieces) : most_pieces_(most_pieces) {}

  base::Result<abi::SharedMemory> AllocateShared(int64_t size_bytes) const override {
    if (pieces_ >= most_pieces_) return base::Status(base::Code::kNoDeviceMemory, "No more.");
    ++pieces_;
    auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(size_bytes));
    return abi::SharedMemory{reinterpret_cast<onnxPointer>(bytes->data()),
                             ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER, kFirstBuffer + pieces_, bytes};
  }
  int pieces() const { return pieces_; }
  static constexpr onnxPointer kFirstBuffer = 7000;

 private:
  const int most_pieces_;
  mutable int pieces_ = 0;
};

TEST(TensorStorage, LiesWhereADeviceSharesMemoryIfThatSavesACopyWorthIt) {
  const Source none(0);
  const Source some(2);
  const Source more(9);
  const std::vector<const SharedSource*> sources = {&none, &some, &more};
  TensorStorage place;
  place.descriptor = Floats({100});
  ASSERT_TRUE(place.Reserve(sources).ok());
  EXPECT_EQ(place.sharer, nullptr);
  place.descriptor.shape = {20'000};
  ASSERT_TRUE(place.Reserve(sources).ok());
  EXPECT_EQ(some.pieces(), 1);
  EXPECT_EQ(more.pieces(), 0);
  // For the host, and for all devices but the one, it is memory of the host.
  const onnxPointer address = place.descriptor.buffer;
  for (const SharedSource* device : {&none, &more, static_cast<const Source*>(nullptr)}) {
    EXPECT_EQ(place.DescriptorFor(device).buffer, address);
    EXPECT_EQ(place.DescriptorFor(device).memory_type, onnxEnum{ONNXIFI_MEMORY_TYPE_CPU});
  }
  const abi::TensorDescriptor inside = place.DescriptorFor(&some);
  EXPECT_EQ(inside.buffer, Source::kFirstBuffer + 1);
  EXPECT_EQ(inside.memory_type, onnxEnum{ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER});
  EXPECT_EQ(inside.shape, place.descriptor.shape);
  // It is as much memory as any: enough for less, and made anew for more.
  place.descriptor.shape = {300};
  ASSERT_TRUE(place.Reserve(sources).ok());
  EXPECT_EQ(place.descriptor.buffer, address);
  place.descriptor.shape = {30'000};
  ASSERT_TRUE(place.Reserve(sources).ok());
  EXPECT_EQ(place.DescriptorFor(&some).buffer, Source::kFirstBuffer + 2);
  place.descriptor.shape = {40'000};
  ASSERT_TRUE(place.Reserve(sources).ok());
  EXPECT_EQ(place.sharer, &more);
  place.descriptor.shape = {50'000};
  ASSERT_TRUE(place.Reserve({}).ok());
  EXPECT_EQ(place.sharer, nullptr);
  EXPECT_EQ(place.DescriptorFor(&more).memory_type, onnxEnum{ONNXIFI_MEMORY_TYPE_CPU});
}

TEST(TensorStorage, LeavesItsMemoryToThoseThatHaveItBound) {
  const Source source(2);
  const std::vector<const SharedSource*> sources = {&source};
  TensorStorage place;
  place.descriptor = Floats({20'000});
  ASSERT_TRUE(place.Reserve(sources).ok());
  const abi::TensorDescriptor bound = place.DescriptorFor(&source);
  const std::weak_ptr<const void> first = place.memory.owner;
  place.descriptor.shape = {30'000};
  ASSERT_TRUE(place.Reserve(sources).ok());
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(bound.owner, first.lock());
}

TEST(TensorStorage, HasAnAddressForNoElements) {
  TensorStorage place;
  place.descriptor = Floats({0, 3});
  ASSERT_TRUE(place.Reserve().ok());
  EXPECT_NE(place.descriptor.buffer, 0U);
}

TEST(TensorStorage, DoesNotGrowBeyondTheCallersMemory) {
  TensorStorage place;
  place.descriptor = Floats({4});
  place.location = Location::kCallerMemory;
  place.capacity_bytes = 16;
  place.descriptor.buffer = 4096;
  EXPECT_TRUE(place.Reserve().ok());
  place.descriptor.shape = {5};
  const base::Status status = place.Reserve();
  EXPECT_EQ(status.code(), base::Code::kMismatchingShape);
  EXPECT_THAT(status.Text(), HasSubstr("takes 20 bytes, more than the 16"));
  EXPECT_EQ(place.descriptor.buffer, 4096U);
}

TEST(TensorStorage, LivesInTheWorkspaceWhereItsExtentsAreKnownBeforeItsIslandRuns) {
  const abi::TensorShape known = {"t", ONNXIFI_DATATYPE_FLOAT32, true, {2, 3}};
  const abi::TensorShape open = {"t", ONNXIFI_DATATYPE_FLOAT32, true, {2, -1}};
  TensorStorage place;
  EXPECT_FALSE(place.has_known_extents());
  EXPECT_FALSE(place.varies_by_run());
  place.TakeInference(&open, /*varies=*/false);
  EXPECT_EQ(place.location, Location::kRunResult);
  EXPECT_EQ(place.extent_source, ExtentSource::kRun);
  EXPECT_TRUE(place.is_kept());
  EXPECT_FALSE(place.has_known_extents());
  EXPECT_TRUE(place.varies_by_run());
  place.TakeInference(&known, /*varies=*/true);
  EXPECT_EQ(place.location, Location::kWorkspace);
  EXPECT_EQ(place.extent_source, ExtentSource::kInference);
  EXPECT_TRUE(place.has_known_extents());
  EXPECT_TRUE(place.varies_by_run());
  place.TakeInference(&known, /*varies=*/false);
  EXPECT_EQ(place.extent_source, ExtentSource::kBinding);
  EXPECT_FALSE(place.varies_by_run());
  place.TakeInference(nullptr, /*varies=*/false);
  EXPECT_EQ(place.location, Location::kRunResult);
}

TEST(TensorStorage, StaysWhereTheCallerBoundIt) {
  const abi::TensorShape known = {"t", ONNXIFI_DATATYPE_FLOAT32, true, {2, 3}};
  for (const Location location : {Location::kCallerMemory, Location::kCallerResult}) {
    TensorStorage place;
    place.location = location;
    place.TakeInference(nullptr, /*varies=*/false);
    EXPECT_EQ(place.location, location);
    EXPECT_EQ(place.extent_source, ExtentSource::kRun);
    place.TakeInference(&known, /*varies=*/true);
    EXPECT_EQ(place.location, location);
    EXPECT_EQ(place.extent_source, ExtentSource::kInference);
    EXPECT_EQ(place.is_kept(), location == Location::kCallerResult);
  }
}

TEST(TensorStorage, HoldsADeviceToWhatWasBound) {
  TensorStorage place;
  place.descriptor = Floats({4, 2});
  place.capacity_bytes = 32;
  const auto answer = [&](onnxEnum type, std::vector<int64_t> extents) {
    return place.CheckAfterRun({"t", type, true, std::move(extents)}).ok();
  };
  EXPECT_TRUE(answer(ONNXIFI_DATATYPE_FLOAT32, {4, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_INT32, {4, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_FLOAT32, {3, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_FLOAT32, {4, -1}));
  place.location = Location::kCallerMemory;
  EXPECT_TRUE(answer(ONNXIFI_DATATYPE_FLOAT32, {3, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_FLOAT32, {5, 2}));
  EXPECT_FALSE(answer(ONNXIFI_DATATYPE_INT32, {3, 2}));
  EXPECT_FALSE(place.CheckAfterRun({"t", ONNXIFI_DATATYPE_FLOAT32, false, {}}).ok());
}

}  // namespace
}  // namespace onnxifi::partitioned

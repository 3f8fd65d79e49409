// SPDX-License-Identifier: Apache-2.0
//
// HostRanges: against comparing each two tensors, and with the many tensors of a large graph.

#include "backends/core/abi/tensor_descriptor.h"

#include <gtest/gtest.h>

#include <random>

namespace onnxifi::abi {
namespace {

std::byte memory[1 << 20];

TensorDescriptor Bytes(size_t begin, size_t count) {
  TensorDescriptor tensor;
  tensor.data_type = ONNXIFI_DATATYPE_UINT8;
  tensor.shape = {count};
  tensor.buffer = static_cast<onnxPointer>(reinterpret_cast<uintptr_t>(memory + begin));
  return tensor;
}

TEST(HostRangesTest, OverlapWhereTwoTensorsDo) {
  std::mt19937 random(3);
  int overlapping = 0;
  for (int round = 0; round < 200; ++round) {
    // A range may lie within another one, and there may be none.
    std::vector<TensorDescriptor> tensors;
    for (uint32_t k = 0; k < random() % 8; ++k) {
      tensors.push_back(Bytes(random() % 200, random() % 3 == 0 ? random() % 100 : random() % 4));
    }
    const HostRanges ranges(tensors);
    for (int probe = 0; probe < 20; ++probe) {
      const size_t begin = random() % 200, count = random() % 12;
      bool expected = false;
      for (const TensorDescriptor& tensor : tensors) {
        const auto first = static_cast<size_t>(HostBytesOf(tensor).data() - memory);
        for (size_t at = begin; at < begin + count; ++at) {
          expected = expected || (at >= first && at < first + tensor.shape[0]);
        }
      }
      EXPECT_EQ(ranges.Overlap(Bytes(begin, count)), expected);
      overlapping += expected ? 1 : 0;
    }
  }
  EXPECT_GT(overlapping, 500);
  EXPECT_LT(overlapping, 3500);
}

TEST(HostRangesTest, LeaveOutWhatIsNotInTheHostsMemory) {
  TensorDescriptor elsewhere = Bytes(0, 16);
  elsewhere.memory_type = ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
  TensorDescriptor kept = Bytes(0, 16);
  kept.is_kept = true;
  EXPECT_FALSE(HostRanges(std::vector{elsewhere, kept}).Overlap(Bytes(0, 16)));
  const HostRanges ranges(std::vector{Bytes(0, 16)});
  EXPECT_FALSE(ranges.Overlap(elsewhere));
  EXPECT_FALSE(ranges.Overlap(kept));
}

// A cache for each layer and head, of which one is written in place.
TEST(HostRangesTest, FindOneOfThousands) {
  constexpr size_t kTensors = 2000, kBytes = 256;
  std::vector<TensorDescriptor> outputs;
  for (size_t k = 0; k < kTensors; ++k) outputs.push_back(Bytes(2 * k * kBytes, kBytes));
  std::shuffle(outputs.begin(), outputs.end(), std::mt19937(5));
  const HostRanges ranges(outputs);
  for (size_t k = 0; k < kTensors; ++k) {
    EXPECT_FALSE(ranges.Overlap(Bytes((2 * k + 1) * kBytes, kBytes)));
    EXPECT_TRUE(ranges.Overlap(Bytes((2 * k + 1) * kBytes - 1, kBytes)));
  }
}

}  // namespace
}  // namespace onnxifi::abi

// SPDX-License-Identifier: Apache-2.0
//
// WeightStore: weights are packed once for all who have them, and go with the last of these.

#include "backends/cpu/runtime/packed_weights.h"

#include <gtest/gtest.h>

#include "backends/core/base/status.h"
#include "backends/core/reference/host_memory.h"

namespace onnxifi::runtime {
namespace {

TEST(WeightStoreTest, PacksOnceAsLongAsAnybodyHasTheWeights) {
  reference::HostMemory memory;
  WeightStore store;
  int packed = 0;
  const auto find = [&](int layout) {
    return *store.Find(layout, memory, 4, [&](float* floats) {
      floats[3] = static_cast<float>(layout);
      ++packed;
      return base::Ok();
    });
  };
  EXPECT_EQ(store.Peek(7), nullptr);
  PackedWeights first = find(7);
  const PackedWeights other = find(8);
  EXPECT_EQ(find(7), first);
  EXPECT_EQ(store.Peek(7), first);
  EXPECT_EQ(packed, 2);
  EXPECT_EQ(Floats(first)[3], 7);
  first = nullptr;
  EXPECT_EQ(store.Peek(7), nullptr);
  EXPECT_EQ(store.Peek(8), other);
  EXPECT_EQ(Floats(find(7))[3], 7);
  EXPECT_EQ(packed, 3);
}

TEST(WeightStoreTest, KeepsNothingThatCouldNotBePacked) {
  reference::HostMemory memory;
  WeightStore store;
  const auto failed = store.Find(1, memory, 4, [](float*) {
    return base::Status(base::Code::kNoSystemMemory, "There is none.");
  });
  EXPECT_EQ(failed.status().code(), base::Code::kNoSystemMemory);
  EXPECT_EQ(store.Peek(1), nullptr);
}

}  // namespace
}  // namespace onnxifi::runtime

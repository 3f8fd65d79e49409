// SPDX-License-Identifier: Apache-2.0
//
// HostBlock: alignment, contents, and that large blocks leave the process when they are released.

#include "backends/core/tensor/host_block.h"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace onnxifi::tensor {
namespace {

// Around every bound: nothing, a vector, heap and mapping, pages, one and several huge pages.
const std::vector<size_t> kSizes = {0,
                                    1,
                                    63,
                                    65,
                                    4096,
                                    (size_t{1} << 20) - 1,
                                    size_t{1} << 20,
                                    (size_t{1} << 20) + 1,
                                    kHugePageBytes - 1,
                                    kHugePageBytes,
                                    kHugePageBytes + 1,
                                    3 * kHugePageBytes + 4097};

TEST(HostBlock, IsAligned) {
  std::vector<HostBlock> blocks;
  for (const size_t size_bytes : kSizes) {
    // Several at a time, so that not all lie where the first did.
    for (int k = 0; k < 3; ++k) {
      blocks.push_back(AllocateHostBlock(size_bytes, Fill::kNothing));
      ASSERT_NE(blocks.back(), nullptr) << size_bytes;
      const auto address = reinterpret_cast<uintptr_t>(blocks.back().get());
      EXPECT_EQ(address % (size_bytes >= kHugePageBytes ? kHugePageBytes : kBlockAlignment), 0u)
          << size_bytes;
    }
  }
}

TEST(HostBlock, HoldsZerosWhereAskedForAndCanBeWrittenWhole) {
  for (const size_t size_bytes : kSizes) {
    // The second may lie where the first left something else.
    for (int k = 0; k < 2; ++k) {
      const HostBlock block = AllocateHostBlock(size_bytes, Fill::kZeros);
      ASSERT_NE(block, nullptr);
      size_t others = 0;
      for (size_t at = 0; at < size_bytes; ++at) others += block.get()[at] != std::byte{0} ? 1 : 0;
      EXPECT_EQ(others, 0u) << size_bytes;
      std::memset(block.get(), 0x5A, size_bytes);
    }
  }
}

TEST(HostBlock, RefusesWhatNoProcessHas) {
  EXPECT_EQ(AllocateHostBlock(std::numeric_limits<size_t>::max(), Fill::kZeros), nullptr);
  EXPECT_EQ(AllocateHostBlock(std::numeric_limits<size_t>::max() / 2, Fill::kNothing), nullptr);
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
TEST(HostBlock, GoesBackToTheSystemWhenItIsLarge) {
  for (const size_t size_bytes : {kHugePageBytes, 5 * kHugePageBytes + 12345}) {
    HostBlock block = AllocateHostBlock(size_bytes, Fill::kNothing);
    ASSERT_NE(block, nullptr);
    std::memset(block.get(), 1, size_bytes);
    std::byte* const first = block.get();
    std::byte* const last = first + (size_bytes - 1) / 4096 * 4096;
    unsigned char resident = 0;
    EXPECT_EQ(mincore(first, 1, &resident), 0);
    EXPECT_EQ(mincore(last, 1, &resident), 0);
    // Nothing is left mapped behind it.
    block.reset();
    for (std::byte* page : {first, last}) {
      EXPECT_EQ(mincore(page, 1, &resident), -1);
      EXPECT_EQ(errno, ENOMEM);
    }
  }
}
#endif

}  // namespace
}  // namespace onnxifi::tensor

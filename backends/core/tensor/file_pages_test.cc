// SPDX-License-Identifier: Apache-2.0
//
// Pages of a mapped file: what is copied, what stays in memory, what is read again.

#include "backends/core/tensor/file_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/core/tensor/testing/file_mapping.h"

namespace onnxifi::tensor {
namespace {

using testing::FileMapping;
using testing::SeededBytes;

constexpr size_t kMiB = size_t{1} << 20;

TEST(FilePagesTest, CopiesAllAndLeavesLittleInMemory) {
  const std::string content = SeededBytes(9 * kMiB + 4321, 5);
  const FileMapping mapping(content);
  for (const size_t begin : {size_t{0}, size_t{1}, size_t{4097}}) {
    const auto source = mapping.bytes().subspan(begin, 9 * kMiB + 17);
    std::vector<std::byte> copy(source.size());
    CopyAndGiveBack(copy.data(), source);
    EXPECT_EQ(std::memcmp(copy.data(), content.data() + begin, copy.size()), 0);
    EXPECT_LT(mapping.InMemory(), kMiB / 2);
  }
  EXPECT_EQ(std::memcmp(mapping.bytes().data(), content.data(), content.size()), 0);
  EXPECT_GT(mapping.InMemory(), 9 * kMiB);
}

TEST(FilePagesTest, LessThanAPageStays) {
  const std::string content = SeededBytes(3 * kMiB, 6);
  const FileMapping mapping(content);
  EXPECT_EQ(std::memcmp(mapping.bytes().data(), content.data(), content.size()), 0);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = mapping.InMemory();
  GiveBackPages({});
  GiveBackPages(mapping.bytes().subspan(0, page - 1));
  GiveBackPages(mapping.bytes().subspan(100, page));
  EXPECT_EQ(mapping.InMemory(), before);
  GiveBackPages(mapping.bytes().subspan(100, 2 * page));
  EXPECT_LE(mapping.InMemory(), before - page);  // a huge page goes as a whole
}

}  // namespace
}  // namespace onnxifi::tensor

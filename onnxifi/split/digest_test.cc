// SPDX-License-Identifier: Apache-2.0
//
// Digest: what tells things apart, and that files written by one process mean the same to the next.

#include "onnxifi/split/digest.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace onnxifi::split {
namespace {

Digest Of(std::string_view bytes) { return Digester().Add(bytes).Get(); }

TEST(Digest, IsTheSameForever) {
  // Tables on disk are found by it.
  EXPECT_EQ(Of("").Text(), "b24493c3e84d273c7c22ad458eb6d0e2");
  EXPECT_EQ(Of("Conv and nine more").Text(), "db4bc084e77e61fbc7ebc16ce197964e");
  EXPECT_EQ(Digester().Add(7).Add(Of("x")).Get().Text(), "79e80b14a79e7d30955d3288da5a5fd2");
}

TEST(Digest, TellsPiecesApart) {
  EXPECT_NE(Digester().Add("ab").Add("c").Get(), Digester().Add("a").Add("bc").Get());
  EXPECT_NE(Digester().Add("").Add("a").Get(), Digester().Add("a").Add("").Get());
  EXPECT_NE(Of(std::string_view("\0", 1)), Of(std::string_view("\0\0", 2)));
  EXPECT_NE(Digester().Add(1).Add(2).Get(), Digester().Add(2).Add(1).Get());
}

TEST(Digest, SharesNoHalfAmongManyLikeThings) {
  std::unordered_set<uint64_t> highs;
  std::unordered_set<uint64_t> lows;
  constexpr int kCount = 100'000;
  for (int number = 0; number < kCount; ++number) {
    // Differs in a few bits, now early and now late.
    const Digest digest = number % 2 == 0
                              ? Digester().Add(static_cast<uint64_t>(number)).Add("tail").Get()
                              : Of("node" + std::to_string(number));
    highs.insert(digest.high);
    lows.insert(digest.low);
  }
  EXPECT_EQ(highs.size(), kCount);
  EXPECT_EQ(lows.size(), kCount);
}

}  // namespace
}  // namespace onnxifi::split

// SPDX-License-Identifier: Apache-2.0
//
// Entries of ONNXIFI_DISABLE and what they are about.

#include "discovery/search/name_pattern.h"

#include <gtest/gtest.h>

namespace onnxifi::search {
namespace {

TEST(NamePattern, StandsForNames) {
  EXPECT_TRUE(MatchesPattern("cpu", "cpu"));
  EXPECT_TRUE(MatchesPattern("CPU", "cpu"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("open*", "opencl"));
  EXPECT_TRUE(MatchesPattern("*e*l", "opencl-intel"));
  EXPECT_TRUE(MatchesPattern("c?u", "cpu"));
  EXPECT_FALSE(MatchesPattern("c?u", "cu"));
  EXPECT_FALSE(MatchesPattern("cpu", "cpu2"));
  EXPECT_FALSE(MatchesPattern("open*x", "opencl"));
  EXPECT_FALSE(MatchesPattern("", "cpu"));
}

TEST(NamePattern, OfAListIsAboutANameOrAPath) {
  EXPECT_TRUE(IsListed("null:open*", "/lib/libonnxifi-opencl.so", "opencl"));
  EXPECT_TRUE(IsListed("::/lib/*.so", "/lib/libonnxifi-opencl.so", "opencl"));
  EXPECT_FALSE(IsListed("null:cpu", "/lib/libonnxifi-opencl.so", "opencl"));
  EXPECT_FALSE(IsListed("libonnxifi-opencl.so", "/lib/libonnxifi-opencl.so", "opencl"));
  EXPECT_FALSE(IsListed("", "/lib/libonnxifi-opencl.so", "opencl"));
}

TEST(NamePattern, OfAPathIsAboutThatFile) {
  for (const char* path : {"/lib/libonnxifi-a.so", "/a:b/libonnxifi-c*.so"}) {
    EXPECT_TRUE(IsListed("x:" + MakePattern(path), path, "y")) << path;
    EXPECT_FALSE(IsListed(MakePattern(path), std::string(path) + "2", "y")) << path;
  }
}

}  // namespace
}  // namespace onnxifi::search

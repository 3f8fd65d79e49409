// SPDX-License-Identifier: Apache-2.0
//
// Manifests: what is read, and that no text does more harm than being refused.

#include "discovery/manifest/manifest.h"

#include <gtest/gtest.h>

#include <string>

namespace onnxifi::manifest {
namespace {

using base::Code;

TEST(Manifest, ReadsItsFieldsAndSkipsOthers) {
  const auto manifest = ParseManifest(
      R"({"format_version": 1, "name": "x", "priority": -7, "dialect": "foxi", "vendor": []})");
  ASSERT_TRUE(manifest.ok()) << manifest.status().Text();
  EXPECT_EQ(manifest->name, "x");
  EXPECT_EQ(manifest->priority, -7);
  EXPECT_EQ(manifest->dialect, "foxi");
}

TEST(Manifest, HasDefaults) {
  const auto manifest = ParseManifest(R"({"format_version": 1})");
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->name, "");
  EXPECT_EQ(manifest->priority, 0);
  EXPECT_EQ(manifest->dialect, "onnx");
}

class RefusedManifest : public testing::TestWithParam<const char*> {};

TEST_P(RefusedManifest, HasAReason) {
  const auto manifest = ParseManifest(GetParam());
  ASSERT_FALSE(manifest.ok());
  EXPECT_EQ(manifest.status().code(), Code::kInvalidProperty);
  EXPECT_FALSE(manifest.status().sentence().empty());
}

INSTANTIATE_TEST_SUITE_P(
    Texts, RefusedManifest,
    testing::Values("", "{", "[]", "null", "{}", R"({"format_version": "1"})",
                    R"({"format_version": 2})", R"({"format_version": 1.0})",
                    R"({"format_version": 18446744073709551615})",
                    R"({"format_version": 1, "name": 3})",
                    R"({"format_version": 1, "dialect": null})",
                    R"({"format_version": 1, "priority": "high"})",
                    R"({"format_version": 1, "priority": 2147483648})",
                    R"({"format_version": 1, "priority": -2147483649})",
                    R"({"format_version": 1, "priority": 18446744073709551615})", "\xFF\xFE"));

TEST(Manifest, SurvivesDeepNesting) {
  constexpr size_t kDepth = 100000;
  EXPECT_FALSE(ParseManifest(std::string(kDepth, '[')).ok());
  EXPECT_FALSE(ParseManifest(std::string(kDepth, '[') + std::string(kDepth, ']')).ok());
}

TEST(Manifest, BesideAFileThatHasNoneIsNothing) {
  const auto manifest = ReadManifestBeside("/nonexistent/libonnxifi-x.so");
  ASSERT_TRUE(manifest.ok());
  EXPECT_FALSE(manifest->has_value());
}

}  // namespace
}  // namespace onnxifi::manifest

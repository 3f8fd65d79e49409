// SPDX-License-Identifier: Apache-2.0
//
// Names of cases with their variants, both ways.

#include "conformance/cases/variant.h"

#include <gtest/gtest.h>

#include <set>

namespace onnxifi::cases {
namespace {

TEST(VariantTest, EveryVariantHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Variant variant : kVariants) {
    EXPECT_FALSE(NameOf(variant).empty());
    EXPECT_TRUE(names.insert(NameOf(variant)).second) << NameOf(variant);
    EXPECT_EQ(FindVariant(NameOf(variant)), variant);
  }
  EXPECT_EQ(FindVariant(""), std::nullopt);
  EXPECT_EQ(FindVariant("symbol"), std::nullopt);
}

TEST(VariantTest, NamesAreSplitAsTheyWereJoined) {
  EXPECT_EQ(WithVariant("node/test_add", Variant::kPlain), "node/test_add");
  EXPECT_EQ(WithVariant("node/test_add", Variant::kTiled), "node/test_add@tiled");
  for (const Variant variant : kVariants) {
    const NameAndVariant split = SplitVariant(WithVariant("test_a@b", variant));
    EXPECT_EQ(split.name, "test_a@b");
    EXPECT_EQ(split.variant, variant);
  }
  EXPECT_EQ(SplitVariant("test_a@b").name, "test_a@b");
  EXPECT_EQ(SplitVariant("test_a@b").variant, Variant::kPlain);
}

}  // namespace
}  // namespace onnxifi::cases

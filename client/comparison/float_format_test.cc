// SPDX-License-Identifier: Apache-2.0
//
// Landmarks of each format, from its specification.

#include "client/comparison/float_format.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace onnxifi::comparison {
namespace {

using onnx_file::ElementType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Landmark {
  ElementType type;
  uint32_t bits;
  double value;
};

class LandmarkTest : public ::testing::TestWithParam<Landmark> {};

TEST_P(LandmarkTest, Decodes) {
  EXPECT_EQ(DecodeSmallFloat(GetParam().type, GetParam().bits), GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(Formats, LandmarkTest,
                         ::testing::Values(Landmark{ElementType::kFloat16, 0x3C00, 1.0},
                                           Landmark{ElementType::kFloat16, 0xC000, -2.0},
                                           Landmark{ElementType::kFloat16, 0x7BFF, 65504.0},
                                           Landmark{ElementType::kFloat16, 0x0001, 0x1p-24},
                                           Landmark{ElementType::kFloat16, 0xFC00, -kInfinity},
                                           Landmark{ElementType::kBfloat16, 0x3F80, 1.0},
                                           Landmark{ElementType::kBfloat16, 0x7F7F, 0x1.FEp127},
                                           Landmark{ElementType::kBfloat16, 0x7F80, kInfinity},
                                           Landmark{ElementType::kFloat8E4M3Fn, 0x7E, 448.0},
                                           Landmark{ElementType::kFloat8E4M3Fn, 0x01, 0x1p-9},
                                           Landmark{ElementType::kFloat8E4M3Fnuz, 0x7F, 240.0},
                                           Landmark{ElementType::kFloat8E4M3Fnuz, 0x01, 0x1p-10},
                                           Landmark{ElementType::kFloat8E5M2, 0x7B, 57344.0},
                                           Landmark{ElementType::kFloat8E5M2, 0x7C, kInfinity},
                                           Landmark{ElementType::kFloat8E5M2, 0x01, 0x1p-16},
                                           Landmark{ElementType::kFloat8E5M2Fnuz, 0x7F, 57344.0},
                                           Landmark{ElementType::kFloat8E5M2Fnuz, 0x01, 0x1p-17},
                                           Landmark{ElementType::kFloat6E2M3, 0x1F, 7.5},
                                           Landmark{ElementType::kFloat6E2M3, 0x01, 0.125},
                                           Landmark{ElementType::kFloat6E2M3, 0x28, -1.0},
                                           Landmark{ElementType::kFloat6E3M2, 0x1F, 28.0},
                                           Landmark{ElementType::kFloat6E3M2, 0x01, 0.0625},
                                           Landmark{ElementType::kFloat6E3M2, 0x2C, -1.0},
                                           Landmark{ElementType::kFloat4E2M1, 0x7, 6.0},
                                           Landmark{ElementType::kFloat4E2M1, 0x1, 0.5},
                                           Landmark{ElementType::kFloat4E2M1, 0xA, -1.0},
                                           Landmark{ElementType::kFloat8E8M0, 127, 1.0},
                                           Landmark{ElementType::kFloat8E8M0, 0, 0x1p-127}));

TEST(FloatFormatTest, NotANumberHasItsPatterns) {
  for (const auto& [type, bits] :
       std::array<std::pair<ElementType, uint32_t>, 7>{{{ElementType::kFloat16, 0x7C01},
                                                        {ElementType::kBfloat16, 0xFFC0},
                                                        {ElementType::kFloat8E4M3Fn, 0xFF},
                                                        {ElementType::kFloat8E4M3Fnuz, 0x80},
                                                        {ElementType::kFloat8E5M2, 0x7D},
                                                        {ElementType::kFloat8E5M2Fnuz, 0x80},
                                                        {ElementType::kFloat8E8M0, 0xFF}}}) {
    EXPECT_TRUE(std::isnan(DecodeSmallFloat(type, bits))) << onnx_file::NameOf(type);
  }
}

TEST(FloatFormatTest, PackedElementsStartInTheLowBits) {
  const std::array<std::byte, 2> bytes = {std::byte{0xF1}, std::byte{0x08}};
  EXPECT_EQ(LoadNumber(ElementType::kInt4, bytes, 0), 1);
  EXPECT_EQ(LoadNumber(ElementType::kInt4, bytes, 1), -1);
  EXPECT_EQ(LoadNumber(ElementType::kInt4, bytes, 2), -8);
  EXPECT_EQ(LoadNumber(ElementType::kUint4, bytes, 1), 15);
  EXPECT_EQ(LoadNumber(ElementType::kInt2, bytes, 0), 1);
  EXPECT_EQ(LoadNumber(ElementType::kUint2, bytes, 3), 3);
  EXPECT_EQ(LoadNumber(ElementType::kUint2, bytes, 5), 2);
  // Codes 1, 0x3F, 0x15, 0x20 and 3; the last one alone in its byte.
  const std::array<std::byte, 4> bitstream = {std::byte{0xC1}, std::byte{0x5F}, std::byte{0x81},
                                              std::byte{0x03}};
  const std::array<uint64_t, 5> codes = {0x01, 0x3F, 0x15, 0x20, 0x03};
  for (size_t index = 0; index < codes.size(); ++index) {
    EXPECT_EQ(LoadBits(ElementType::kFloat6E2M3, bitstream, static_cast<int64_t>(index)),
              codes[index]);
  }
}

}  // namespace
}  // namespace onnxifi::comparison

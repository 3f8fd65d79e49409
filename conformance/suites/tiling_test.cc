// SPDX-License-Identifier: Apache-2.0
//
// Tiling: which extents are enlarged, and what the elements are.

#include "conformance/suites/tiling.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "client/comparison/float_format.h"
#include "client/onnx_file/model_writer.h"

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::MakeFloatTensor;
using Extents = std::vector<int64_t>;

DenseTensor Bytes(ElementType type, Extents extents, const std::vector<uint8_t>& values) {
  DenseTensor tensor;
  tensor.name = "bytes";
  tensor.type = type;
  tensor.extents = std::move(extents);
  tensor.bytes.resize(values.size());
  std::memcpy(tensor.bytes.data(), values.data(), values.size());
  return tensor;
}

TEST(TilingTest, EqualExtentsOfAllInputsAreEnlargedTogether) {
  const std::vector<DenseTensor> inputs = {MakeFloatTensor("a", {2, 3}, {1, 2, 3, 4, 5, 6}),
                                           MakeFloatTensor("b", {3, 2}, {1, 2, 3, 4, 5, 6})};
  const std::vector<Enlargement> list = ListEnlargements(inputs);
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list[0].from, 3);
  EXPECT_EQ(list[0].to, 131);
  EXPECT_EQ(list[0].inputs[0].extents, (Extents{2, 131}));
  EXPECT_EQ(list[0].inputs[1].extents, (Extents{131, 2}));
  std::set<int64_t> enlarged;
  for (const Enlargement& enlargement : list) {
    enlarged.insert(enlargement.from);
    if (enlargement.to != 131) {
      EXPECT_EQ(enlargement.to % enlargement.from, 0);
    }
  }
  EXPECT_EQ(enlarged, (std::set<int64_t>{2, 3}));
}

TEST(TilingTest, SmallListsAreKeptAtFirst) {
  const std::vector<DenseTensor> inputs = {MakeFloatTensor("a", {2, 2}, {1, 2, 3, 4}),
                                           Bytes(ElementType::kInt8, {2}, {1, 0})};
  const std::vector<Enlargement> list = ListEnlargements(inputs);
  ASSERT_GE(list.size(), 2u);
  ASSERT_EQ(list.front().inputs.size(), 1u);
  ASSERT_EQ(list.front().lists.size(), 1u);
  EXPECT_EQ(list.front().lists[0].extents, Extents{2});
  ASSERT_EQ(list.back().inputs.size(), 2u);
  EXPECT_TRUE(list.back().lists.empty());
  EXPECT_EQ(list.back().inputs[1].extents, Extents{list.back().to});
}

TEST(TilingTest, TilesComeInAnotherOrderAndFloatsShrink) {
  const std::vector<DenseTensor> inputs = {MakeFloatTensor("a", {3}, {1, 2, 4})};
  const DenseTensor tiled = ListEnlargements(inputs).front().inputs[0];
  const auto value = [&](int64_t index) {
    return comparison::LoadNumber(tiled.type, tiled.bytes, index);
  };
  EXPECT_EQ(value(0), 1);
  EXPECT_EQ(value(2), 4);
  // The second tile begins with the second element, and has halves.
  EXPECT_EQ(value(3), 1);
  EXPECT_EQ(value(4), 2);
  EXPECT_EQ(value(5), 0.5);
  // The third has thirds.
  EXPECT_FLOAT_EQ(static_cast<float>(value(6)), 4.F / 3);
}

TEST(TilingTest, PackedElementsKeepTheirValues) {
  // 1, 2, 3 of four bits.
  const std::vector<DenseTensor> inputs = {Bytes(ElementType::kUint4, {3}, {0x21, 0x03})};
  const DenseTensor tiled = ListEnlargements(inputs).front().inputs[0];
  ASSERT_EQ(tiled.bytes.size(), 66u);
  for (int64_t index = 0; index < 131; ++index) {
    EXPECT_EQ(comparison::LoadBits(tiled.type, tiled.bytes, index),
              static_cast<uint64_t>((index + index / 3) % 3 + 1))
        << index;
  }
}

TEST(TilingTest, ElementsInTwoBytesKeepTheirValues) {
  // 1, 0x3F, 0x15 of six bits.
  const std::vector<DenseTensor> inputs = {
      Bytes(ElementType::kFloat6E2M3, {3}, {0xC1, 0x5F, 0x01})};
  const std::array<uint64_t, 3> codes = {0x01, 0x3F, 0x15};
  const DenseTensor tiled = ListEnlargements(inputs).front().inputs[0];
  ASSERT_EQ(tiled.bytes.size(), 99u);
  for (int64_t index = 0; index < 131; ++index) {
    EXPECT_EQ(comparison::LoadBits(tiled.type, tiled.bytes, index),
              codes[static_cast<size_t>((index + index / 3) % 3)])
        << index;
  }
}

TEST(TilingTest, TensorsStayBelowTheLimit) {
  const std::vector<DenseTensor> inputs = {
      MakeFloatTensor("a", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})};
  for (const Enlargement& enlargement : ListEnlargements(inputs)) {
    EXPECT_LE(enlargement.inputs[0].element_count(), kMaxTiledElements);
    EXPECT_GT(enlargement.to, 16);
  }
  EXPECT_FALSE(ListEnlargements(inputs).empty());
}

TEST(TilingTest, ScalarsAndAxesOfOneElementCannotBeEnlarged) {
  EXPECT_TRUE(
      ListEnlargements(std::vector<DenseTensor>{MakeFloatTensor("a", {1, 1}, {1})}).empty());
  EXPECT_TRUE(ListEnlargements(std::vector<DenseTensor>{MakeFloatTensor("a", {}, {1})}).empty());
}

}  // namespace
}  // namespace onnxifi::suites

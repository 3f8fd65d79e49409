// SPDX-License-Identifier: Apache-2.0
//
// ImageDecoder as a node: what it refuses, and that others compute with what it gives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/core/ops/testing/run_operator.h"

namespace onnxifi::ops {
namespace {

using base::Code;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pixmap of one row: red and a dark blue.
const std::string kPixmap("P6 2 1 255\n\xFF\0\0\0\0\x20", 17);

OneNode DecoderOf(const std::string& file, const std::string& pixel_format,
                  NodeInput::Kind kind = NodeInput::Kind::kSymbolic) {
  const Tensor bytes = Tensor::FromBytes(ElementType::kUint8, {static_cast<int64_t>(file.size())},
                                         std::as_bytes(std::span(file)));
  OneNode node{.op_type = "ImageDecoder", .version = 20, .inputs = {{bytes, kind}}};
  if (!pixel_format.empty()) node.attributes.emplace("pixel_format", pixel_format);
  return node;
}

TEST(ImageDecoderTest, DecodesInEachPixelFormat) {
  for (const auto kind :
       {NodeInput::Kind::kGiven, NodeInput::Kind::kSymbolic, NodeInput::Kind::kConstant}) {
    const auto rgb = RunOperator(DecoderOf(kPixmap, "", kind));
    ASSERT_TRUE(rgb.ok()) << rgb.status().Text();
    EXPECT_EQ((*rgb)[0].extents(), (Extents{1, 2, 3}));
    EXPECT_THAT(Numbers((*rgb)[0]), ElementsAre(255, 0, 0, 0, 0, 32));
    const auto bgr = RunOperator(DecoderOf(kPixmap, "BGR", kind));
    ASSERT_TRUE(bgr.ok()) << bgr.status().Text();
    EXPECT_THAT(Numbers((*bgr)[0]), ElementsAre(0, 0, 255, 32, 0, 0));
    const auto gray = RunOperator(DecoderOf(kPixmap, "Grayscale", kind));
    ASSERT_TRUE(gray.ok()) << gray.status().Text();
    EXPECT_EQ((*gray)[0].extents(), (Extents{1, 2, 1}));
    EXPECT_THAT(Numbers((*gray)[0]), ElementsAre(76, 4));
  }
}

TEST(ImageDecoderTest, DamagedBytesAreAnEmptyMatrix) {
  const auto none = RunOperator(DecoderOf(kPixmap.substr(0, 15), "Grayscale"));
  ASSERT_TRUE(none.ok()) << none.status().Text();
  EXPECT_EQ((*none)[0].extents(), (Extents{0, 0, 1}));
}

TEST(ImageDecoderTest, OtherAttributesAndInputsAreRefused) {
  const auto format = RunOperator(DecoderOf(kPixmap, "RGBA"));
  EXPECT_EQ(format.status().code(), Code::kInvalidModel);
  EXPECT_THAT(std::string(format.status().sentence()),
              HasSubstr("pixel_format is 'RGBA'; it is one of RGB, BGR and Grayscale."));
  OneNode floats = DecoderOf(kPixmap, "RGB");
  floats.inputs = {Given({2}, {1, 2})};
  EXPECT_EQ(RunOperator(floats).status().code(), Code::kUnsupportedDatatype);
  floats.inputs = {Given({1, 2}, {1, 2}, ElementType::kUint8)};
  EXPECT_EQ(RunOperator(floats).status().code(), Code::kInvalidModel);
}

TEST(ImageDecoderTest, TooManyPixelsFailTheRun) {
  // The limit is found before the damage behind the header.
  std::string large("\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x40\0\0\0\x40\0\x08\x02\0\0\0", 29);
  large += std::string("\x26\xAA\x87\xD3\0\x10\0\0IDAT", 12) + std::string(1 << 20, '\0');
  const auto result = RunOperator(DecoderOf(large, "RGB"));
  EXPECT_EQ(result.status().code(), Code::kUnsupportedShape);
  EXPECT_THAT(result.status().Text(), HasSubstr("16384 x 16384 pixels"));
  EXPECT_THAT(result.status().Text(), HasSubstr("while running"));
}

// The extents come from the data of a run; what reads the image takes them from there.
TEST(ImageDecoderTest, OthersComputeWithTheImage) {
  graph::Graph graph;
  graph::Type type{.kind = graph::Type::Kind::kTensor, .element = ElementType::kUint8};
  type.extents.emplace();
  type.extents->push_back({-1, "bytes"});
  graph.inputs.push_back(graph.AddValue({.name = "file", .type = std::move(type)}));
  graph::Node decode{.op_type = "ImageDecoder", .since_version = 20};
  decode.inputs = graph.inputs;
  decode.outputs.push_back(graph.AddValue({.name = "image"}));
  graph::Node transpose{.op_type = "Transpose", .since_version = 13};
  transpose.attributes.emplace("perm", std::vector<int64_t>{2, 0, 1});
  transpose.inputs = decode.outputs;
  transpose.outputs.push_back(graph.AddValue({.name = "planes"}));
  graph::Node cast{.op_type = "Cast", .since_version = 13};
  cast.attributes.emplace("to", int64_t{1});
  cast.inputs = transpose.outputs;
  cast.outputs.push_back(graph.AddValue({.name = "floats"}));
  graph.outputs = cast.outputs;
  graph.nodes = {decode, transpose, cast};
  const auto result = RunGraph(graph, {*DecoderOf(kPixmap, "").inputs[0].tensor});
  ASSERT_TRUE(result.ok()) << result.status().Text();
  EXPECT_EQ((*result)[0].extents(), (Extents{3, 1, 2}));
  EXPECT_THAT(Numbers((*result)[0]), ElementsAre(255, 0, 0, 0, 0, 32));
}

}  // namespace
}  // namespace onnxifi::ops

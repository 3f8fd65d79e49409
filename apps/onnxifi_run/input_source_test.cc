// SPDX-License-Identifier: Apache-2.0
//
// Which file goes to which input, and what is drawn for the others.

#include "apps/onnxifi_run/input_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cstring>

namespace onnxifi::run {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::ModelOutline;
using onnx_file::ValueOutline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ValueOutline Value(std::string name, ElementType type,
                   std::vector<onnx_file::DimensionOutline> shape) {
  ValueOutline value;
  value.name = std::move(name);
  value.kind = onnx_file::ValueKind::kTensor;
  value.type = type;
  value.shape = std::move(shape);
  return value;
}

class InputSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("input_source_" +
               std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
    model_.inputs = {Value("a", ElementType::kUint8, {{.extent = 1, .symbol = {}}}),
                     Value("b", ElementType::kUint8, {{.extent = 1, .symbol = {}}})};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Writes a tensor of one byte, and returns its path.
  std::string WriteByte(const char* file, const char* name, int value) {
    DenseTensor tensor;
    tensor.name = name;
    tensor.type = ElementType::kUint8;
    tensor.extents = {1};
    tensor.bytes = {static_cast<std::byte>(value)};
    EXPECT_TRUE(onnx_file::WriteTensorFile(folder_ / file, tensor).ok());
    return (folder_ / file).string();
  }

  // The first bytes of the inputs.
  std::vector<int> Collect(std::vector<std::string> files) {
    options_.inputs = std::move(files);
    const auto inputs = CollectInputs(options_, model_);
    EXPECT_TRUE(inputs.ok()) << inputs.status().Text();
    std::vector<int> bytes;
    if (!inputs.ok()) return bytes;
    for (const DenseTensor& input : *inputs) bytes.push_back(std::to_integer<int>(input.bytes[0]));
    return bytes;
  }

  std::filesystem::path folder_;
  ModelOutline model_;
  Options options_;
};

TEST_F(InputSourceTest, ANameInTheFileDecides) {
  EXPECT_THAT(Collect({WriteByte("1.pb", "b", 7), WriteByte("2.pb", "a", 8)}), ElementsAre(8, 7));
}

TEST_F(InputSourceTest, ANameOnTheCommandLineDecides) {
  EXPECT_THAT(Collect({"b=" + WriteByte("1.pb", "a", 7), WriteByte("2.pb", "", 8)}),
              ElementsAre(8, 7));
}

TEST_F(InputSourceTest, OtherFilesTakeThePlacesInOrder) {
  EXPECT_THAT(Collect({WriteByte("1.pb", "", 7), WriteByte("2.pb", "x", 8)}), ElementsAre(7, 8));
}

TEST_F(InputSourceTest, AFolderStandsForItsInputs) {
  WriteByte("input_0.pb", "", 5);
  WriteByte("input_1.pb", "", 6);
  EXPECT_THAT(Collect({folder_.string()}), ElementsAre(5, 6));
}

// As cases of the conformance suite have it.
TEST_F(InputSourceTest, AFolderIsEmptyForAModelWithoutInputs) {
  model_.inputs.clear();
  EXPECT_THAT(Collect({folder_.string()}), IsEmpty());
}

TEST_F(InputSourceTest, RefusesWhatFitsNowhere) {
  const auto expect = [&](std::vector<std::string> files, const char* sentence) {
    options_.inputs = std::move(files);
    const auto inputs = CollectInputs(options_, model_);
    ASSERT_FALSE(inputs.ok());
    EXPECT_THAT(inputs.status().Text(), HasSubstr(sentence));
  };
  expect({"c=" + WriteByte("1.pb", "a", 1)}, "no input 'c'");
  expect({WriteByte("1.pb", "a", 1), WriteByte("2.pb", "a", 1)}, "given twice");
  expect({WriteByte("1.pb", "", 1), WriteByte("2.pb", "", 1), WriteByte("3.pb", "", 1)},
         "one file more");
  expect({(folder_ / "missing.pb").string()}, "cannot be read");
  std::filesystem::create_directory(folder_ / "empty");
  expect({(folder_ / "empty").string()}, "has no file input_0.pb");
}

TEST_F(InputSourceTest, DrawsTheSameValuesFromTheSameSeed) {
  model_.inputs = {Value("x", ElementType::kFloat32,
                         {{.extent = {}, .symbol = "N"}, {.extent = 3, .symbol = {}}})};
  options_.dims["N"] = 5;
  const auto first = CollectInputs(options_, model_);
  const auto second = CollectInputs(options_, model_);
  options_.seed = 2;
  const auto other = CollectInputs(options_, model_);
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_THAT(first->front().extents, ElementsAre(5, 3));
  EXPECT_EQ(first->front().bytes, second->front().bytes);
  EXPECT_NE(first->front().bytes, other->front().bytes);
}

TEST_F(InputSourceTest, RefusesANumberForASymbolThatTheModelDoesNotHave) {
  const auto expect = [&](const char* sentence) {
    const auto inputs = CollectInputs(options_, model_);
    ASSERT_FALSE(inputs.ok());
    EXPECT_EQ(inputs.status().Text(), sentence);
  };
  options_.dims["n"] = 5;
  expect("No input or output has the symbolic extent 'n'; the model has none.");
  model_.inputs[0].shape = {{{.extent = {}, .symbol = "N"}, {.extent = {}, .symbol = "M"}}};
  model_.outputs = {Value("y", ElementType::kUint8, {{.extent = {}, .symbol = "found"}})};
  expect("No input or output has the symbolic extent 'n'; there are: N, M, found.");
  options_.dims = {{"M", 2}, {"found", 3}};
  EXPECT_TRUE(CollectInputs(options_, model_).ok());
}

TEST_F(InputSourceTest, DrawsNothingForStrings) {
  model_.inputs = {Value("x", ElementType::kString, {})};
  EXPECT_FALSE(CollectInputs(options_, model_).ok());
}

TEST_F(InputSourceTest, RefusesWhatIsNoTensor) {
  model_.inputs[1].kind = onnx_file::ValueKind::kOptional;
  const auto inputs = CollectInputs(options_, model_);
  ASSERT_FALSE(inputs.ok());
  EXPECT_THAT(inputs.status().Text(),
              HasSubstr("Input 'b' has the kind optional; inputs are read and"));
}

TEST_F(InputSourceTest, APngBecomesPlanesFromZeroToOne) {
  // Two pixels: red and half-grey.
  const std::array<uint8_t, 6> pixels = {255, 0, 0, 51, 51, 51};
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = 2;
  image.height = 1;
  image.format = PNG_FORMAT_RGB;
  const std::string path = (folder_ / "two.png").string();
  ASSERT_NE(png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr), 0);
  options_.inputs = {path};
  model_.inputs = {Value("x", ElementType::kFloat32,
                         {{.extent = {}, .symbol = "N"},
                          {.extent = 3, .symbol = {}},
                          {.extent = 1, .symbol = {}},
                          {.extent = 2, .symbol = {}}})};
  const auto inputs = CollectInputs(options_, model_);
  ASSERT_TRUE(inputs.ok()) << inputs.status().Text();
  EXPECT_THAT(inputs->front().extents, ElementsAre(1, 3, 1, 2));
  std::array<float, 6> values;
  std::memcpy(values.data(), inputs->front().bytes.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1, 0.2f, 0, 0.2f, 0, 0.2f));
  (*model_.inputs[0].shape)[3].extent = 4;
  const auto misfit = CollectInputs(options_, model_);
  ASSERT_FALSE(misfit.ok());
  EXPECT_THAT(misfit.status().Text(), HasSubstr("2 pixels wide and 1 high"));
}

}  // namespace
}  // namespace onnxifi::run

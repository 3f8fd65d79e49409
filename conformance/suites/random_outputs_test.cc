// SPDX-License-Identifier: Apache-2.0
//
// Draws that may be, and draws that may not.

#include "conformance/suites/random_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace onnxifi::suites {
namespace {

using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::ModelOutline;
using ::testing::HasSubstr;

template <typename T>
DenseTensor Make(ElementType type, const std::vector<T>& values) {
  DenseTensor tensor;
  tensor.name = "t";
  tensor.type = type;
  tensor.extents = {static_cast<int64_t>(values.size())};
  tensor.bytes.resize(values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

DenseTensor Floats(const std::vector<float>& values) { return Make(ElementType::kFloat32, values); }
DenseTensor Bools(const std::vector<uint8_t>& values) { return Make(ElementType::kBool, values); }

std::string CheckDropout(const std::vector<float>& y, const std::vector<uint8_t>& mask) {
  ModelOutline model;
  model.operators = {"Dropout"};
  const std::vector<DenseTensor> inputs = {Floats({1, 2, 3, 4}), Floats({0.5f}), Bools({1})};
  const std::vector<DenseTensor> expected = {Floats({0, 4, 6, 0}), Bools({0, 1, 1, 0})};
  const std::vector<DenseTensor> actual = {Floats(y), Bools(mask)};
  EXPECT_TRUE(DrawsRandomNumbers(model, inputs));
  return CheckRandomOutputs(model, inputs, expected, actual).Text();
}

TEST(RandomOutputsTest, AnyDrawOfDropoutIsGood) {
  EXPECT_EQ(CheckDropout({2, 0, 0, 8}, {1, 0, 0, 1}), "");
  EXPECT_EQ(CheckDropout({0, 4, 6, 8}, {0, 1, 1, 1}), "");
}

TEST(RandomOutputsTest, DropoutScalesWhatItKeeps) {
  EXPECT_THAT(CheckDropout({1, 0, 0, 4}, {1, 0, 0, 1}), HasSubstr("neither 0 nor 2"));
}

TEST(RandomOutputsTest, TheMaskOfDropoutAgrees) {
  EXPECT_THAT(CheckDropout({2, 0, 0, 8}, {1, 0, 1, 1}), HasSubstr("contradicts"));
}

TEST(RandomOutputsTest, DropoutOfManyDropsItsShare) {
  ModelOutline model;
  model.operators = {"Dropout"};
  const std::vector<float> ones(1000, 1.0f);
  const std::vector<DenseTensor> inputs = {Floats(ones), Floats({0.5f}), Bools({1})};
  const std::vector<DenseTensor> nothing_dropped = {Floats(std::vector<float>(1000, 2.0f))};
  EXPECT_THAT(CheckRandomOutputs(model, inputs, nothing_dropped, nothing_dropped).Text(),
              HasSubstr("0 zeros among 1000"));
}

TEST(RandomOutputsTest, OutsideTrainingDropoutIsNotRandom) {
  ModelOutline model;
  model.operators = {"Dropout"};
  EXPECT_FALSE(
      DrawsRandomNumbers(model, std::vector<DenseTensor>{Floats({1}), Floats({0.5f}), Bools({0})}));
  EXPECT_FALSE(DrawsRandomNumbers(model, std::vector<DenseTensor>{Floats({1})}));
}

TEST(RandomOutputsTest, BernoulliHasTwoValues) {
  ModelOutline model;
  model.operators = {"Bernoulli"};
  const std::vector<DenseTensor> inputs = {Floats({0.5f, 0.5f})};
  const std::vector<DenseTensor> expected = {Floats({0, 1})};
  EXPECT_TRUE(
      CheckRandomOutputs(model, inputs, expected, std::vector<DenseTensor>{Floats({1, 1})}).ok());
  EXPECT_FALSE(
      CheckRandomOutputs(model, inputs, expected, std::vector<DenseTensor>{Floats({1, 0.5f})})
          .ok());
  EXPECT_FALSE(
      CheckRandomOutputs(model, inputs, expected, std::vector<DenseTensor>{Floats({1})}).ok());
}

}  // namespace
}  // namespace onnxifi::suites

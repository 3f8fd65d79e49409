// SPDX-License-Identifier: Apache-2.0
//
// What tests of a plugin's callers have in common: the model of samples/digits, its tensors, and
// what the reference plugin makes of the same inputs. The test's build names the libraries:
// ONNXIFI_TEST_PLUGIN, ONNXIFI_TEST_REFERENCE, ONNXIFI_TEST_LIBRARY.

#ifndef ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_DIGITS_H_
#define ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_DIGITS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <onnxifi/onnxifi.hpp>
#include <random>
#include <string>
#include <vector>

namespace onnxifi::plugin {

// Images of 8 by 8 to the scores of ten digits.
inline constexpr uint64_t kPixels = 64;
inline constexpr uint64_t kClasses = 10;
inline constexpr uint64_t kBatch = 3;

inline std::vector<std::byte> DigitsModel() {
  std::ifstream file("samples/digits/digits.onnx", std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file),
                               std::istreambuf_iterator<char>()};
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

// A batch of them.
inline std::vector<float> Images(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> level(0, 1);
  std::vector<float> images(kBatch * kPixels);
  for (float& pixel : images) pixel = level(random);
  return images;
}

// Of a batch; `data` is what the memory type calls a buffer.
inline Tensor ImageTensor(void* data, onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU) {
  return {"image", ONNXIFI_DATATYPE_FLOAT32, {kBatch, 1, 8, 8}, data, memory_type};
}
inline Tensor ScoreTensor(void* data, onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU) {
  return {"scores", ONNXIFI_DATATYPE_FLOAT32, {kBatch, kClasses}, data, memory_type};
}

// What the reference plugin makes of the images.
inline std::vector<float> Expected(std::vector<float> images) {
  std::vector<float> scores(kBatch * kClasses);
  const auto library = Library::Open(ONNXIFI_TEST_REFERENCE);
  EXPECT_TRUE(library.ok());
  const auto graph = library->FindDevice("null")->InitBackend()->InitGraph(DigitsModel());
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images.data())}, std::vector{ScoreTensor(scores.data())})
          .ok());
  EXPECT_TRUE(graph->RunAndWait().ok());
  return scores;
}

inline auto IsCloseTo(const std::vector<float>& expected) {
  return testing::Pointwise(testing::FloatNear(1e-4F), expected);
}

// The two libraries that callers open, and their names in tests.
inline auto BothLibraries() { return testing::Values(ONNXIFI_TEST_PLUGIN, ONNXIFI_TEST_LIBRARY); }
inline std::string LibraryName(const testing::TestParamInfo<const char*>& library) {
  return library.param == std::string(ONNXIFI_TEST_PLUGIN) ? "Plugin" : "BehindLibonnxifi";
}

}  // namespace onnxifi::plugin

#endif  // ONNXIFI_BACKENDS_CORE_PLUGIN_TESTING_DIGITS_H_

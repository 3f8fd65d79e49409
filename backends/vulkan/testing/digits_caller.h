// SPDX-License-Identifier: Apache-2.0
//
// DigitsCaller: for tests of sharing through the exported interface: a caller with a device of its
// own, the plugin, and the model of digits with its tensors. Expected values are those of the
// reference plugin.

#ifndef ONNXIFI_BACKENDS_VULKAN_TESTING_DIGITS_CALLER_H_
#define ONNXIFI_BACKENDS_VULKAN_TESTING_DIGITS_CALLER_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <onnxifi/onnxifi.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/testing/caller.h"

namespace onnxifi::vulkan {

inline constexpr uint64_t kPixels = 64;
inline constexpr uint64_t kClasses = 10;
inline constexpr uint64_t kBatch = 3;
inline constexpr uint64_t kImageBytes = kBatch * kPixels * sizeof(float);
inline constexpr uint64_t kScoreBytes = kBatch * kClasses * sizeof(float);

inline std::vector<std::byte> DigitsModel() {
  std::ifstream file("samples/digits/digits.onnx", std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file),
                               std::istreambuf_iterator<char>()};
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

inline std::vector<float> Images(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> level(0, 1);
  std::vector<float> images(kBatch * kPixels);
  for (float& pixel : images) pixel = level(random);
  return images;
}

inline Tensor ImageTensor(void* data, onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU) {
  return {"image", ONNXIFI_DATATYPE_FLOAT32, {kBatch, 1, 8, 8}, data, memory_type};
}
inline Tensor ScoreTensor(void* data, onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU) {
  return {"scores", ONNXIFI_DATATYPE_FLOAT32, {kBatch, kClasses}, data, memory_type};
}
inline Tensor ImageTensor(onnxOpaqueFd& told) {
  return ImageTensor(&told, ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD);
}
inline Tensor ScoreTensor(onnxOpaqueFd& told) {
  return ScoreTensor(&told, ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD);
}
inline Tensor ImageTensor(onnxVulkanBuffer& told) {
  return ImageTensor(&told, ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER);
}
inline Tensor ScoreTensor(onnxVulkanBuffer& told) {
  return ScoreTensor(&told, ONNXIFI_SDK_MEMORY_TYPE_VULKAN_BUFFER);
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

inline std::vector<float> Copy(std::span<const float> values) {
  return {values.begin(), values.end()};
}

// A caller with a device of its own, and the plugin as `GetParam()` names it.
class VulkanSharingTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto library = Library::Open(GetParam());
    ASSERT_TRUE(library.ok()) << library.error().Text();
    library_ = std::make_unique<Library>(*std::move(library));
    auto device = library_->FindDevice("vulkan");
    if (!device.ok()) GTEST_SKIP() << device.error().Text();
    device_ = std::make_unique<onnxifi::Device>(*device);
    const auto uuid = device_->TextInfo(ONNXIFI_SDK_BACKEND_DEVICE_UUID);
    ASSERT_TRUE(uuid.ok()) << uuid.error().Text();
    auto caller = Caller::Create(*uuid);
    ASSERT_TRUE(caller.ok()) << caller.status().Text();
    caller_ = *std::move(caller);
  }

  // Nothing that either side does with the device is against Vulkan's rules.
  void TearDown() override {
    if (caller_ == nullptr) return;
    const base::Status said = caller_->CheckMessages();
    EXPECT_TRUE(said.ok()) << said.Text();
  }

  Result<Backend> TryBackend(const onnxVulkanDevice& told) const {
    const uint64_t properties[] = {ONNXIFI_SDK_BACKEND_PROPERTY_VULKAN_DEVICE,
                                   reinterpret_cast<uintptr_t>(&told)};
    return device_->InitBackend(properties);
  }
  Backend InitBackend() const {
    auto backend = TryBackend(caller_->Told());
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }
  std::unique_ptr<Caller::Buffer> MakeBuffer(uint64_t size_bytes, uint64_t offset = 0) const {
    auto made = caller_->MakeBuffer(size_bytes, offset);
    EXPECT_TRUE(made.ok()) << made.status().Text();
    return *std::move(made);
  }

  std::unique_ptr<Library> library_;
  std::unique_ptr<onnxifi::Device> device_;
  std::unique_ptr<Caller> caller_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_TESTING_DIGITS_CALLER_H_

// SPDX-License-Identifier: Apache-2.0
//
// Memory that the plugin did not make, through the exported interface, of the plugin and of
// libonnxifi in front of it: tensors in the host's memory that are used in place, and tensors
// behind opaque file descriptors. Expected values are those of the reference plugin. Skipped where
// there is no device.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/imports.h"
#include "backends/vulkan/testing/digits_caller.h"

namespace onnxifi::vulkan {
namespace {

using testing::HasSubstr;

// So many that images and scores are large enough to be used in place.
constexpr uint64_t kManyImages = 27'000;
static_assert(kManyImages * kClasses * sizeof(float) > Imports::kMinHostBytes);

struct Freed {
  void operator()(float* memory) const { std::free(memory); }
};
using HostFloats = std::unique_ptr<float, Freed>;

HostFloats MakeFloats(uint64_t count) {
  constexpr uint64_t kPage = 4096;
  const uint64_t bytes = (count * sizeof(float) + kPage) / kPage * kPage;
  return HostFloats(static_cast<float*>(std::aligned_alloc(kPage, bytes + kPage)));
}

Tensor ManyImages(float* data) {
  return {"image", ONNXIFI_DATATYPE_FLOAT32, {kManyImages, 1, 8, 8}, data};
}
Tensor ManyScores(float* data) {
  return {"scores", ONNXIFI_DATATYPE_FLOAT32, {kManyImages, kClasses}, data};
}

// The last ones are those of the seed.
void Fill(float* images, uint32_t seed) {
  std::fill_n(images, kManyImages * kPixels, 0.25F);
  std::ranges::copy(Images(seed), images + (kManyImages - kBatch) * kPixels);
}

std::vector<float> LastScores(const float* scores) {
  return Copy({scores + (kManyImages - kBatch) * kClasses, kBatch * kClasses});
}

class VulkanMemoryTest : public VulkanSharingTest {
 protected:
  void SetUp() override {
    VulkanSharingTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    takes_fds_ = (*device_->NumberInfo(ONNXIFI_BACKEND_MEMORY_TYPES) &
                  ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD) != 0;
    // A driver for processors is known to take the host's memory, here.
    is_processor_ = *device_->NumberInfo(ONNXIFI_BACKEND_DEVICE_TYPE) == ONNXIFI_DEVICE_TYPE_CPU;
  }

  std::unique_ptr<Caller::Exported> Export(uint64_t size_bytes, uint64_t offset = 0) const {
    auto made = caller_->ExportMemory(size_bytes, offset);
    EXPECT_TRUE(made.ok()) << made.status().Text();
    return *std::move(made);
  }

  bool takes_fds_ = false;
  bool is_processor_ = false;
};

TEST_P(VulkanMemoryTest, DISABLED_LargeTensorsOfTheHostsAreUsedInPlace) {
  for (const bool is_callers : {false, true}) {
    const Backend backend = is_callers ? InitBackend() : *device_->InitBackend();
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    const HostFloats images = MakeFloats(kManyImages * kPixels + 64);
    const HostFloats scores = MakeFloats(kManyImages * kClasses + 64);
    // On pages that are shared with others, and where no driver takes it.
    for (const uint64_t shift : {0, 4, 1}) {
      float* const inputs = images.get() + shift;
      float* const outputs = scores.get() + shift;
      std::fill_n(scores.get(), kManyImages * kClasses + 64, 77.0F);
      const auto bound =
          graph->SetIO(std::vector{ManyImages(inputs)}, std::vector{ManyScores(outputs)});
      ASSERT_TRUE(bound.ok()) << bound.error().Text();
      const uint64_t copies = graph->Counters()->copies;
      // A recording is replayed from the third run on; lavapipe takes seconds for a run.
      const uint32_t runs = shift == 0 && !is_callers ? 3 : 1;
      for (uint32_t run = 0; run < runs; ++run) {
        Fill(inputs, 60 + run);
        const auto ran = graph->RunAndWait();
        ASSERT_TRUE(ran.ok()) << ran.error().Text();
        EXPECT_THAT(LastScores(outputs), IsCloseTo(Expected(Images(60 + run)))) << shift;
      }
      const uint64_t made = graph->Counters()->copies - copies;
      if (is_processor_) {
        EXPECT_EQ(made, shift == 1 ? 2 * runs : 0) << shift;
      }
      for (uint64_t k = 0; k < shift; ++k) EXPECT_EQ(scores.get()[k], 77);
      EXPECT_EQ(outputs[kManyImages * kClasses], 77);
    }
  }
}

// What one graph writes another reads, and each may go first.
TEST_P(VulkanMemoryTest, DISABLED_GraphsUseTheSameMemoryOfTheHosts) {
  const Backend backend = *device_->InitBackend();
  const HostFloats images = MakeFloats(kManyImages * kPixels);
  Fill(images.get(), 65);
  const HostFloats scores = MakeFloats(kManyImages * kClasses);
  for (int round = 0; round < 2; ++round) {
    auto first = backend.InitGraph(DigitsModel());
    const auto second = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(first.ok() && second.ok());
    for (const Graph* graph : std::initializer_list<const Graph*>{&*first, &*second}) {
      ASSERT_TRUE(
          graph->SetIO(std::vector{ManyImages(images.get())}, std::vector{ManyScores(scores.get())})
              .ok());
      ASSERT_TRUE(graph->RunAndWait().ok());
      EXPECT_THAT(LastScores(scores.get()), IsCloseTo(Expected(Images(65))));
    }
    first = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(first.ok());
    std::fill_n(scores.get(), kManyImages * kClasses, 0.0F);
    ASSERT_TRUE(second->RunAndWait().ok());
    EXPECT_THAT(LastScores(scores.get()), IsCloseTo(Expected(Images(65))));
    if (is_processor_) EXPECT_EQ(second->Counters()->copies, 0U);
  }
}

// An output over an input gets its values when the inputs were read.
TEST_P(VulkanMemoryTest, DISABLED_AnOutputOverAnInputIsCopied) {
  const Backend backend = *device_->InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const HostFloats images = MakeFloats(kManyImages * kPixels);
  Fill(images.get(), 66);
  float* const scores = images.get() + (kManyImages - 5000) * kPixels;
  static_assert(5000 * kPixels > kManyImages * kClasses);
  ASSERT_TRUE(
      graph->SetIO(std::vector{ManyImages(images.get())}, std::vector{ManyScores(scores)}).ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(LastScores(scores), IsCloseTo(Expected(Images(66))));
  if (is_processor_) EXPECT_EQ(graph->Counters()->copies, 1U);
}

TEST_P(VulkanMemoryTest, DISABLED_RunsInASharedQueueKeepMemoryOfTheHostsThatIsBoundNoMore) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const HostFloats images = MakeFloats(kManyImages * kPixels);
  const HostFloats scores = MakeFloats(kManyImages * kClasses);
  const HostFloats others = MakeFloats(kManyImages * kClasses);
  Fill(images.get(), 67);
  for (const HostFloats* outputs : {&scores, &others}) {
    ASSERT_TRUE(
        graph->SetIO(std::vector{ManyImages(images.get())}, std::vector{ManyScores(outputs->get())})
            .ok());
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
  }
  caller_->Finish();
  EXPECT_THAT(LastScores(scores.get()), IsCloseTo(Expected(Images(67))));
  EXPECT_THAT(LastScores(others.get()), IsCloseTo(Expected(Images(67))));
}

TEST_P(VulkanMemoryTest, MemoryOfAnotherDeviceIsReadAndWrittenWithoutACopy) {
  if (!takes_fds_) GTEST_SKIP() << "The device takes no opaque file descriptors.";
  // Its own device is another than the caller's; the caller's own takes it, too.
  for (const bool is_callers : {false, true}) {
    const Backend backend = is_callers ? InitBackend() : *device_->InitBackend();
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    const auto images = Export(kImageBytes, /*offset=*/64);
    const auto scores = Export(kScoreBytes, /*offset=*/16);
    std::fill_n(reinterpret_cast<float*>(scores->mapped), 512, 77.0F);
    const auto bound = graph->SetIO(std::vector{ImageTensor(images->told)},
                                    std::vector{ScoreTensor(scores->told)});
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    // The library has its own.
    close(images->told.fd);
    images->told.fd = -1;
    for (uint32_t seed = 1; seed <= 4; ++seed) {
      const std::vector<float> values = Images(seed);
      std::ranges::copy(values, images->floats().begin());
      const auto ran = graph->RunAndWait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
      EXPECT_THAT(Copy(scores->floats()), IsCloseTo(Expected(values)));
    }
    EXPECT_EQ(reinterpret_cast<const float*>(scores->mapped)[3], 77);
    EXPECT_EQ(reinterpret_cast<const float*>(scores->mapped)[4 + kBatch * kClasses], 77);
    EXPECT_EQ(graph->Counters()->copies, 0U);
  }
}

TEST_P(VulkanMemoryTest, FileDescriptorsThatDoNotFitAreRefusedWithTheReason) {
  if (!takes_fds_) GTEST_SKIP() << "The device takes no opaque file descriptors.";
  const Backend backend = *device_->InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const auto images = Export(kImageBytes);
  std::vector<float> results(kBatch * kClasses);
  const auto expect = [&](auto change, const std::vector<std::string>& words) {
    onnxOpaqueFd changed = images->told;
    change(changed);
    const auto bound =
        graph->SetIO(std::vector{ImageTensor(changed)}, std::vector{ScoreTensor(results.data())});
    ASSERT_FALSE(bound.ok()) << words[0];
    EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION) << words[0];
    for (const std::string& word : words) EXPECT_THAT(bound.error().sentence, HasSubstr(word));
  };
  expect([](onnxOpaqueFd& told) { told.struct_size = 16; }, {"16 bytes"});
  expect([](onnxOpaqueFd& told) { told.fd = -1; }, {"-1 is not open", "image"});
  expect([](onnxOpaqueFd& told) { told.size_bytes -= 4; }, {"764 bytes", "needs 768"});
  expect([](onnxOpaqueFd& told) { told.offset = 4; }, {"byte 4", "multiple of 16"});
  expect([](onnxOpaqueFd& told) { told.offset = told.allocation_bytes; }, {"the allocation has"});
  expect([](onnxOpaqueFd& told) { told.device_uuid[0] ^= 1; }, {"another device"});
  expect([](onnxOpaqueFd& told) { told.memory_type_index = 31; }, {"memory of type 31"});
  // What is open and no memory of the driver's.
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {ends[0], null}) {
    expect([&](onnxOpaqueFd& told) { told.fd = fd; }, {"Vulkan cannot import"});
    close(fd);
  }
  close(ends[1]);
  Tensor null_structure = ImageTensor(results.data());
  null_structure.memory_type = ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
  null_structure.data = nullptr;
  const auto bound =
      graph->SetIO(std::vector{null_structure}, std::vector{ScoreTensor(results.data())});
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
}

TEST_P(VulkanMemoryTest, DISABLED_ADeviceWithoutTheExtensionsTakesNeither) {
  auto made = Caller::Create(*device_->TextInfo(ONNXIFI_SDK_BACKEND_DEVICE_UUID),
                             Caller::Extensions::kNone);
  ASSERT_TRUE(made.ok()) << made.status().Text();
  const std::unique_ptr<Caller> plain = *std::move(made);
  const auto backend = TryBackend(plain->Told());
  ASSERT_TRUE(backend.ok()) << backend.error().Text();
  const auto graph = backend->InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const HostFloats images = MakeFloats(kManyImages * kPixels);
  const HostFloats scores = MakeFloats(kManyImages * kClasses);
  Fill(images.get(), 68);
  ASSERT_TRUE(
      graph->SetIO(std::vector{ManyImages(images.get())}, std::vector{ManyScores(scores.get())})
          .ok());
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_EQ(graph->Counters()->copies, 2U);
  EXPECT_THAT(LastScores(scores.get()), IsCloseTo(Expected(Images(68))));
  if (!takes_fds_) return;
  const auto exported = Export(kImageBytes);
  const auto bound =
      graph->SetIO(std::vector{ImageTensor(exported->told)}, std::vector{ManyScores(scores.get())});
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(std::string(bound.error().sentence), HasSubstr("image"));
  std::vector<float> results(kBatch * kClasses);
  const auto refused = graph->SetIO(std::vector{ImageTensor(exported->told)},
                                    std::vector{ScoreTensor(results.data())});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE);
  EXPECT_THAT(refused.error().sentence, HasSubstr("without VK_KHR_external_memory_fd"));
}

INSTANTIATE_TEST_SUITE_P(Libraries, VulkanMemoryTest,
                         testing::Values(ONNXIFI_TEST_PLUGIN, ONNXIFI_TEST_LIBRARY),
                         [](const testing::TestParamInfo<const char*>& library) {
                           return library.param == std::string(ONNXIFI_TEST_PLUGIN)
                                      ? "Plugin"
                                      : "BehindLibonnxifi";
                         });

}  // namespace
}  // namespace onnxifi::vulkan

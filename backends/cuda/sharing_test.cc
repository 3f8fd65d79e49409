// SPDX-License-Identifier: Apache-2.0
//
// Callers who use CUDA themselves: their memory, events and stream, through the exported interface,
// of the plugin and of libonnxifi in front of it. Expected values are those of the reference
// plugin. Runs on whatever libcuda.so.1 comes first: the emulated one, with two devices.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxifi/sdk.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <onnxifi/onnxifi.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/api.h"

namespace onnxifi::cuda {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

constexpr uint64_t kPixels = 64;
constexpr uint64_t kClasses = 10;
constexpr uint64_t kBatch = 3;

std::vector<std::byte> DigitsModel() {
  std::ifstream file("samples/digits/digits.onnx", std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file),
                               std::istreambuf_iterator<char>()};
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

std::vector<float> Images(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> level(0, 1);
  std::vector<float> images(kBatch * kPixels);
  for (float& pixel : images) pixel = level(random);
  return images;
}

Tensor ImageTensor(uint64_t at, onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER) {
  return {"image",
          ONNXIFI_DATATYPE_FLOAT32,
          {kBatch, 1, 8, 8},
          reinterpret_cast<void*>(static_cast<uintptr_t>(at)),
          memory_type};
}
Tensor ScoreTensor(uint64_t at, onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CUDA_BUFFER) {
  return {"scores",
          ONNXIFI_DATATYPE_FLOAT32,
          {kBatch, kClasses},
          reinterpret_cast<void*>(static_cast<uintptr_t>(at)),
          memory_type};
}
uint64_t Number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

// What the reference plugin makes of the images.
std::vector<float> Expected(std::vector<float> images) {
  std::vector<float> scores(kBatch * kClasses);
  const auto library = Library::Open(ONNXIFI_TEST_REFERENCE);
  EXPECT_TRUE(library.ok());
  const auto graph = library->FindDevice("null")->InitBackend()->InitGraph(DigitsModel());
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(Number(images.data()), ONNXIFI_MEMORY_TYPE_CPU)},
                          std::vector{ScoreTensor(Number(scores.data()), ONNXIFI_MEMORY_TYPE_CPU)})
                  .ok());
  EXPECT_TRUE(graph->RunAndWait().ok());
  return scores;
}

auto IsCloseTo(const std::vector<float>& expected) { return Pointwise(FloatNear(1e-4F), expected); }

// Runs a function when it goes.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> work) : work_(std::move(work)) {}
  ~AtEnd() { work_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const std::function<void()> work_;
};

// A caller whose thread has the first device's primary context, and the plugin as `GetParam()`
// names it.
class SharingTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    setenv("ONNXIFI_EMULATED_DEVICES", "2", /*replace=*/1);
    // Loaded by this program, whose search path has the emulated ones; the plugin finds them
    // loaded.
    const auto api = LoadApi();
    if (!api.ok()) GTEST_SKIP() << api.status().Text();
    ASSERT_TRUE(LoadCompilerApi().ok());
    api_ = *api;
    auto library = Library::Open(GetParam());
    ASSERT_TRUE(library.ok()) << library.error().Text();
    library_ = std::make_unique<Library>(*std::move(library));
    ASSERT_EQ(onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, GetParam(), &functions_), 1);
    auto device = library_->FindDevice("cuda");
    if (!device.ok()) GTEST_SKIP() << device.error().Text();
    device_ = std::make_unique<Device>(*device);
    ASSERT_EQ(api_.DevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(api_.CtxPushCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(api_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (context_ == nullptr) return;
    for (const CUdeviceptr memory : memory_) api_.MemFree(memory);
    api_.StreamDestroy(stream_);
    // The caller's own context is what it was.
    CUcontext left = nullptr;
    EXPECT_EQ(api_.CtxPopCurrent(&left), CUDA_SUCCESS);
    EXPECT_EQ(left, context_);
    EXPECT_EQ(api_.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  CUdeviceptr Allocate(size_t floats) {
    CUdeviceptr memory = 0;
    EXPECT_EQ(api_.MemAlloc(&memory, floats * sizeof(float)), CUDA_SUCCESS);
    memory_.push_back(memory);
    return memory;
  }
  void Write(CUdeviceptr to, const std::vector<float>& values) const {
    ASSERT_EQ(api_.MemcpyHtoDAsync(to, values.data(), values.size() * sizeof(float), stream_),
              CUDA_SUCCESS);
    ASSERT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
  }
  std::vector<float> Read(CUdeviceptr from, size_t floats) const {
    std::vector<float> values(floats);
    EXPECT_EQ(api_.MemcpyDtoHAsync(values.data(), from, floats * sizeof(float), stream_),
              CUDA_SUCCESS);
    EXPECT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
    return values;
  }
  // A stream that does nothing more until `*word` is 1.
  uint32_t* Hold(CUstream stream) const {
    void* word = nullptr;
    EXPECT_EQ(api_.MemHostAlloc(&word, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
    CUdeviceptr address = 0;
    EXPECT_EQ(api_.MemHostGetDevicePointer(&address, word, 0), CUDA_SUCCESS);
    *static_cast<uint32_t*>(word) = 0;
    EXPECT_EQ(api_.StreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
    return static_cast<uint32_t*>(word);
  }
  static void LetGo(uint32_t* word) { std::atomic_ref(*word).store(1); }

  Backend InitBackend() const {
    auto backend = device_->InitBackend();
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }
  Backend InitBackendOn(CUstream stream) const {
    const uint64_t properties[] = {ONNXIFI_BACKEND_CUDA_STREAM, Number(stream)};
    auto backend = device_->InitBackend(properties);
    EXPECT_TRUE(backend.ok()) << backend.error().Text();
    return *std::move(backend);
  }

  Api api_;
  // For what the wrapper has no words for; the same library, which stays.
  struct onnxifi_library functions_ = {};
  std::unique_ptr<Library> library_;
  std::unique_ptr<Device> device_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

TEST_P(SharingTest, QueriesTellWhatIsTaken) {
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_MEMORY_TYPES),
            uint64_t{ONNXIFI_MEMORY_TYPE_CUDA_BUFFER});
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES),
            uint64_t{ONNXIFI_SYNCHRONIZATION_IMPLICIT});
  EXPECT_EQ(*device_->NumberInfo(ONNXIFI_BACKEND_CUDA_INDEX), 0U);
  EXPECT_EQ(*library_->FindDevice("cuda:1")->NumberInfo(ONNXIFI_BACKEND_CUDA_INDEX), 1U);
}

TEST_P(SharingTest, MemoryIsReadAndWrittenWithoutACopy) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const CUdeviceptr images = Allocate(kBatch * kPixels);
  // Begins within an allocation, and what is around it stays as it is.
  const CUdeviceptr around = Allocate(kBatch * kClasses + 9);
  Write(around, std::vector<float>(kBatch * kClasses + 9, 77));
  const Outcome bound = graph->SetIO(std::vector{ImageTensor(images)},
                                     std::vector{ScoreTensor(around + 4 * sizeof(float))});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  onnxGraphCounters steady = {};
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const std::vector<float> values = Images(seed);
    Write(images, values);
    const Outcome ran = graph->RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    const std::vector<float> all = Read(around, kBatch * kClasses + 9);
    EXPECT_THAT(std::vector<float>(all.begin() + 4, all.end() - 5), IsCloseTo(Expected(values)));
    for (const size_t k : {0, 3, 34, 38}) EXPECT_EQ(all[k], 77) << k;
    if (seed == 3) steady = *graph->Counters();
  }
  const onnxGraphCounters last = *graph->Counters();
  EXPECT_EQ(last.copies, 0U);
  EXPECT_EQ(last.waits, 0U);
  EXPECT_EQ(last.allocations, steady.allocations);
  EXPECT_EQ(last.recordings, steady.recordings);
  // One launch each.
  EXPECT_EQ(last.submissions - steady.submissions, 2U);
}

TEST_P(SharingTest, UnfitMemoryIsRefusedWithTheReason) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const CUdeviceptr images = Allocate(kBatch * kPixels);
  const CUdeviceptr scores = Allocate(kBatch * kClasses);
  const auto expect = [&](uint64_t in, uint64_t out, const std::vector<std::string>& words) {
    const Outcome bound = graph->SetIO(std::vector{ImageTensor(in)}, std::vector{ScoreTensor(out)});
    ASSERT_FALSE(bound.ok()) << words.front();
    EXPECT_EQ(bound.error().status, ONNXIFI_STATUS_INVALID_MEMORY_LOCATION);
    for (const std::string& word : words) EXPECT_THAT(bound.error().sentence, HasSubstr(word));
  };
  expect(0, scores, {"NULL", "image"});
  expect(images, scores + 4, {"multiple of 16", "scores"});
  expect(images + 16, scores, {"752 bytes", "needs 768", "image"});
  expect(images, Allocate(1), {"4 bytes", "needs 120", "scores"});
  const CUdeviceptr freed = Allocate(kBatch * kPixels);
  memory_.pop_back();
  ASSERT_EQ(api_.MemFree(freed), CUDA_SUCCESS);
  expect(freed, scores, {"no memory of CUDA's", "image"});
  alignas(16) static float host[kBatch * kPixels];
  expect(Number(host), scores, {"no memory of CUDA's"});
  void* pinned = nullptr;
  ASSERT_EQ(api_.MemHostAlloc(&pinned, sizeof(host), CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
  expect(Number(pinned), scores, {"memory of the host", "ONNXIFI_MEMORY_TYPE_CPU"});
  EXPECT_EQ(api_.MemFreeHost(pinned), CUDA_SUCCESS);
  CUcontext second = nullptr;
  CUdeviceptr foreign = 0;
  ASSERT_EQ(api_.DevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(api_.CtxPushCurrent(second), CUDA_SUCCESS);
  ASSERT_EQ(api_.MemAlloc(&foreign, sizeof(host)), CUDA_SUCCESS);
  expect(foreign, scores, {"lies on device 1", "is device 0"});
  EXPECT_EQ(api_.MemFree(foreign), CUDA_SUCCESS);
  EXPECT_EQ(api_.CtxPopCurrent(&second), CUDA_SUCCESS);
  EXPECT_EQ(api_.DevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  // What was refused is forgotten, and what fits still runs.
  EXPECT_FALSE(graph->RunAndWait().ok());
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(scores)}).ok());
  const std::vector<float> values = Images(7);
  Write(images, values);
  ASSERT_TRUE(graph->RunAndWait().ok());
  EXPECT_THAT(Read(scores, kBatch * kClasses), IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, RunsInTheCallersStreamAreOrderedByIt) {
  for (CUstream stream : {stream_, CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD}) {
    const Backend backend = InitBackendOn(stream);
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok());
    const CUdeviceptr images = Allocate(kBatch * kPixels);
    const CUdeviceptr scores = Allocate(kBatch * kClasses);
    ASSERT_TRUE(
        graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(scores)}).ok());
    constexpr uint32_t kRuns = 6;
    const size_t image_bytes = kBatch * kPixels * sizeof(float);
    const size_t score_bytes = kBatch * kClasses * sizeof(float);
    // Pinned, as the driver waits for the rest.
    void* given = nullptr;
    void* results = nullptr;
    ASSERT_EQ(api_.MemHostAlloc(&given, kRuns * image_bytes, 0), CUDA_SUCCESS);
    ASSERT_EQ(api_.MemHostAlloc(&results, kRuns * score_bytes, 0), CUDA_SUCCESS);
    const AtEnd release([&] {
      api_.MemFreeHost(given);
      api_.MemFreeHost(results);
    });
    // Nothing is done before everything is in the stream, and nobody waits.
    uint32_t* const word = stream == stream_ ? Hold(stream) : nullptr;
    for (uint32_t run = 0; run < kRuns; ++run) {
      auto* const image = static_cast<float*>(given) + run * kBatch * kPixels;
      std::ranges::copy(Images(20 + run), image);
      ASSERT_EQ(api_.MemcpyHtoDAsync(images, image, image_bytes, stream), CUDA_SUCCESS);
      const Outcome queued = graph->RunInSharedQueue();
      ASSERT_TRUE(queued.ok()) << queued.error().Text();
      ASSERT_EQ(api_.MemcpyDtoHAsync(static_cast<float*>(results) + run * kBatch * kClasses, scores,
                                     score_bytes, stream),
                CUDA_SUCCESS);
    }
    if (word != nullptr) {
      EXPECT_EQ(api_.StreamQuery(stream), CUDA_ERROR_NOT_READY);
      LetGo(word);
    }
    ASSERT_EQ(api_.StreamSynchronize(stream), CUDA_SUCCESS);
    for (uint32_t run = 0; run < kRuns; ++run) {
      const auto* const at = static_cast<const float*>(results) + run * kBatch * kClasses;
      EXPECT_THAT(std::vector<float>(at, at + kBatch * kClasses),
                  IsCloseTo(Expected(Images(20 + run))))
          << run;
    }
    EXPECT_EQ(graph->Counters()->copies, 0U);
    EXPECT_EQ(graph->Counters()->waits, 0U);
    if (word != nullptr) api_.MemFreeHost(word);
  }
}

TEST_P(SharingTest, ImplicitFencesNeedTheCallersStream) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(Allocate(kBatch * kPixels))},
                          std::vector{ScoreTensor(Allocate(kBatch * kClasses))})
                  .ok());
  const Outcome refused = graph->RunInSharedQueue();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
  EXPECT_FALSE(refused.error().sentence.empty());
}

TEST_P(SharingTest, AStreamThatIsCapturedIsRefusedAndItsCaptureGoesOn) {
  const Backend backend = InitBackendOn(stream_);
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const CUdeviceptr images = Allocate(kBatch * kPixels);
  const CUdeviceptr scores = Allocate(kBatch * kClasses);
  const std::vector<float> values = Images(8);
  Write(images, values);
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(scores)}).ok());
  ASSERT_EQ(api_.StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  const Outcome refused = graph->RunInSharedQueue();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().sentence, HasSubstr("is being captured"));
  CUgraph captured = nullptr;
  EXPECT_EQ(api_.StreamEndCapture(stream_, &captured), CUDA_SUCCESS);
  EXPECT_EQ(api_.GraphDestroy(captured), CUDA_SUCCESS);
  const Outcome ran = graph->RunInSharedQueue();
  ASSERT_TRUE(ran.ok()) << ran.error().Text();
  EXPECT_THAT(Read(scores, kBatch * kClasses), IsCloseTo(Expected(values)));
}

TEST_P(SharingTest, UnfitStreamsAreRefusedWithTheReason) {
  CUcontext second = nullptr;
  CUstream foreign = nullptr;
  ASSERT_EQ(api_.DevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  ASSERT_EQ(api_.CtxPushCurrent(second), CUDA_SUCCESS);
  ASSERT_EQ(api_.StreamCreate(&foreign, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(api_.CtxPopCurrent(&second), CUDA_SUCCESS);
  const uint64_t properties[] = {ONNXIFI_BACKEND_CUDA_STREAM, Number(foreign)};
  const auto backend = device_->InitBackend(properties);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().status, ONNXIFI_STATUS_INVALID_PROPERTY);
  EXPECT_THAT(backend.error().sentence, HasSubstr("primary context"));
  EXPECT_TRUE(library_->FindDevice("cuda:1")->InitBackend(properties).ok());
  EXPECT_EQ(api_.StreamDestroy(foreign), CUDA_SUCCESS);
  EXPECT_EQ(api_.DevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

TEST_P(SharingTest, RunsWaitForEventsOfTheCallers) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const CUdeviceptr images = Allocate(kBatch * kPixels);
  std::vector<float> results(kBatch * kClasses);
  ASSERT_TRUE(graph
                  ->SetIO(std::vector{ImageTensor(images)},
                          std::vector{ScoreTensor(Number(results.data()), ONNXIFI_MEMORY_TYPE_CPU)})
                  .ok());
  void* pinned = nullptr;
  const size_t image_bytes = kBatch * kPixels * sizeof(float);
  ASSERT_EQ(api_.MemHostAlloc(&pinned, image_bytes, 0), CUDA_SUCCESS);
  const AtEnd release([&] { api_.MemFreeHost(pinned); });
  for (uint32_t seed = 40; seed < 43; ++seed) {
    const std::vector<float> values = Images(seed);
    std::ranges::copy(values, static_cast<float*>(pinned));
    uint32_t* const word = Hold(stream_);
    ASSERT_EQ(api_.MemcpyHtoDAsync(images, pinned, image_bytes, stream_), CUDA_SUCCESS);
    CUevent event = nullptr;
    ASSERT_EQ(api_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(api_.EventRecord(event, stream_), CUDA_SUCCESS);
    const auto output = [&] {
      const auto imported = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_CUDA, Number(event));
      EXPECT_TRUE(imported.ok()) << imported.error().Text();
      // It was recorded behind what it was recorded behind.
      EXPECT_EQ(api_.EventDestroy(event), CUDA_SUCCESS);
      return graph->Run(*imported);
    }();
    ASSERT_TRUE(output.ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(*output->IsSignalled());
    LetGo(word);
    const Outcome waited = output->Wait();
    ASSERT_TRUE(waited.ok()) << waited.error().Text();
    EXPECT_THAT(results, IsCloseTo(Expected(values)));
    EXPECT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
    api_.MemFreeHost(word);
  }
}

TEST_P(SharingTest, WorkOfTheCallersWaitsForRuns) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  const CUdeviceptr scores = Allocate(kBatch * kClasses);
  for (uint32_t seed = 50; seed < 53; ++seed) {
    std::vector<float> values = Images(seed);
    ASSERT_TRUE(
        graph
            ->SetIO(std::vector{ImageTensor(Number(values.data()), ONNXIFI_MEMORY_TYPE_CPU)},
                    std::vector{ScoreTensor(scores)})
            .ok());
    auto input = backend.NewEvent();
    const auto output = graph->Run(*input);
    ASSERT_TRUE(output.ok());
    const auto exported = output->Export(ONNXIFI_SDK_NATIVE_EVENT_CUDA);
    ASSERT_TRUE(exported.ok()) << exported.error().Text();
    auto* const event = reinterpret_cast<CUevent>(static_cast<uintptr_t>(*exported));
    EXPECT_EQ(api_.EventQuery(event), CUDA_ERROR_NOT_READY);
    ASSERT_EQ(api_.StreamWaitEvent(stream_, event, 0), CUDA_SUCCESS);
    ASSERT_TRUE(input->Signal().ok());
    EXPECT_THAT(Read(scores, kBatch * kClasses), IsCloseTo(Expected(values)));
    EXPECT_EQ(api_.EventDestroy(event), CUDA_SUCCESS);
  }
}

TEST_P(SharingTest, TheExportedEventOfARunThatFailsIsCompleteAllTheSame) {
  CUevent event = nullptr;
  {
    const Backend backend = InitBackend();
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok());
    std::vector<float> values = Images(60);
    ASSERT_TRUE(
        graph
            ->SetIO(std::vector{ImageTensor(Number(values.data()), ONNXIFI_MEMORY_TYPE_CPU)},
                    std::vector{ScoreTensor(Allocate(kBatch * kClasses))})
            .ok());
    const auto input = backend.NewEvent();
    const auto output = graph->Run(*input);
    ASSERT_TRUE(output.ok());
    const auto exported = output->Export(ONNXIFI_SDK_NATIVE_EVENT_CUDA);
    ASSERT_TRUE(exported.ok()) << exported.error().Text();
    event = reinterpret_cast<CUevent>(static_cast<uintptr_t>(*exported));
    // The input event goes unsignalled.
  }
  EXPECT_EQ(api_.EventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(api_.EventDestroy(event), CUDA_SUCCESS);
}

TEST_P(SharingTest, UnfitEventsAreRefusedWithTheReason) {
  const Backend backend = InitBackend();
  const auto null = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_CUDA, 0);
  ASSERT_FALSE(null.ok());
  EXPECT_EQ(null.error().status, ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_THAT(null.error().sentence, HasSubstr("NULL"));
  const auto opencl = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_OPENCL, 64);
  ASSERT_FALSE(opencl.ok());
  EXPECT_EQ(opencl.error().status, ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE);
  CUevent event = nullptr;
  ASSERT_EQ(api_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(api_.StreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(api_.EventRecord(event, stream_), CUDA_SUCCESS);
  const auto captured = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_CUDA, Number(event));
  ASSERT_FALSE(captured.ok());
  EXPECT_EQ(captured.error().status, ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_THAT(captured.error().sentence, HasSubstr("captured"));
  CUgraph graph = nullptr;
  EXPECT_EQ(api_.StreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  EXPECT_EQ(api_.GraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(api_.EventDestroy(event), CUDA_SUCCESS);
}

TEST_P(SharingTest, SharedMemoryIsTheHostsAndTheDevicesWithoutACopy) {
  const Backend backend = InitBackend();
  const auto images = backend.AllocateSharedMemory(kBatch * kPixels * sizeof(float));
  ASSERT_TRUE(images.ok()) << images.error().Text();
  const auto scores = backend.AllocateSharedMemory(kBatch * kClasses * sizeof(float));
  ASSERT_TRUE(scores.ok()) << scores.error().Text();
  EXPECT_EQ(Number(images->data()) % 64, 0U);
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const Outcome bound = graph->SetIO(
      std::vector{images->MakeTensor("image", ONNXIFI_DATATYPE_FLOAT32, {kBatch, 1, 8, 8})},
      std::vector{scores->MakeTensor("scores", ONNXIFI_DATATYPE_FLOAT32, {kBatch, kClasses})});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  for (uint32_t seed = 31; seed <= 34; ++seed) {
    const std::vector<float> values = Images(seed);
    std::ranges::copy(values, static_cast<float*>(images->data()));
    const Outcome ran = graph->RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    const auto* results = static_cast<const float*>(scores->data());
    EXPECT_THAT(std::vector<float>(results, results + kBatch * kClasses),
                IsCloseTo(Expected(values)));
  }
  EXPECT_EQ(graph->Counters()->copies, 0U);
}

TEST_P(SharingTest, TwoDevicesShareNothing) {
  const auto other = library_->FindDevice("cuda:1");
  ASSERT_TRUE(other.ok());
  const Backend first = InitBackend();
  const auto second = other->InitBackend();
  ASSERT_TRUE(second.ok()) << second.error().Text();
  const auto run = [&](const Backend& backend, uint32_t seed) {
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok());
    for (uint32_t k = 0; k < 20; ++k) {
      std::vector<float> values = Images(seed + k);
      std::vector<float> results(kBatch * kClasses);
      ASSERT_TRUE(
          graph
              ->SetIO(std::vector{ImageTensor(Number(values.data()), ONNXIFI_MEMORY_TYPE_CPU)},
                      std::vector{ScoreTensor(Number(results.data()), ONNXIFI_MEMORY_TYPE_CPU)})
              .ok());
      ASSERT_TRUE(graph->RunAndWait().ok());
      ASSERT_THAT(results, IsCloseTo(Expected(values)));
    }
  };
  std::thread one([&] { run(first, 100); });
  std::thread two([&] { run(*second, 200); });
  one.join();
  two.join();
}

INSTANTIATE_TEST_SUITE_P(Libraries, SharingTest,
                         testing::Values(ONNXIFI_TEST_PLUGIN, ONNXIFI_TEST_LIBRARY),
                         [](const testing::TestParamInfo<const char*>& library) {
                           return library.param == std::string(ONNXIFI_TEST_PLUGIN)
                                      ? "Plugin"
                                      : "BehindLibonnxifi";
                         });

}  // namespace
}  // namespace onnxifi::cuda

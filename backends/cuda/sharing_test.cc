// SPDX-License-Identifier: Apache-2.0
//
// Callers who use CUDA themselves: their memory, events and stream, through the exported interface,
// of the plugin and of libonnxifi in front of it. Expected values are those of the reference
// plugin.

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "backends/cuda/testing/caller_fixture.h"

namespace onnxifi::cuda {
namespace {

using testing::HasSubstr;

using SharingTest = CallerTest;

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

// Callers who name the same memory for each run get the runs of a binding: one launch each.
TEST_P(SharingTest, RunsOfTheSameMemoryAreRecordedOnce) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  const CUdeviceptr images = Allocate(kBatch * kPixels);
  const CUdeviceptr scores[] = {Allocate(kBatch * kClasses), Allocate(kBatch * kClasses)};
  const auto run_to = [&](CUdeviceptr to, uint32_t seed) {
    const std::vector<float> values = Images(seed);
    Write(images, values);
    const Outcome bound =
        graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(to)});
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    const Outcome ran = graph->RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    EXPECT_THAT(Read(to, kBatch * kClasses), IsCloseTo(Expected(values)));
  };
  for (uint32_t seed = 1; seed <= 4; ++seed) run_to(scores[0], seed);
  const onnxGraphCounters before = *graph->Counters();
  for (uint32_t seed = 5; seed <= 8; ++seed) run_to(scores[0], seed);
  const onnxGraphCounters after = *graph->Counters();
  EXPECT_EQ(after.recordings, before.recordings);
  EXPECT_EQ(after.submissions - before.submissions, 4U);
}

// So do those who go through two, three or four buffers in turn. Of five nothing is recorded, and
// all is right.
TEST_P(SharingTest, BuffersInTurnAreRecordedOnceEach) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<CUdeviceptr> images;
  std::vector<CUdeviceptr> scores;
  for (const size_t buffers : {2, 3, 4, 5}) {
    while (images.size() < buffers) {
      images.push_back(Allocate(kBatch * kPixels));
      scores.push_back(Allocate(kBatch * kClasses));
    }
    onnxGraphCounters steady = {};
    for (uint32_t run = 0; run < 5 * buffers; ++run) {
      if (run == 3 * buffers) steady = *graph->Counters();
      const size_t k = run % buffers;
      const std::vector<float> values = Images(run + 1);
      Write(images[k], values);
      const Outcome bound =
          graph->SetIO(std::vector{ImageTensor(images[k])}, std::vector{ScoreTensor(scores[k])});
      ASSERT_TRUE(bound.ok()) << bound.error().Text();
      const Outcome ran = graph->RunAndWait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
      EXPECT_THAT(Read(scores[k], kBatch * kClasses), IsCloseTo(Expected(values)));
    }
    const onnxGraphCounters last = *graph->Counters();
    EXPECT_EQ(last.recordings, steady.recordings) << buffers << " buffers";
    if (buffers < 5) {
      EXPECT_EQ(last.submissions - steady.submissions, 2 * buffers);
    }
  }
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
  CUdeviceptr managed = 0;
  ASSERT_EQ(Function<decltype(cuMemAllocManaged)>("cuMemAllocManaged")(&managed, sizeof(host),
                                                                       CU_MEM_ATTACH_GLOBAL),
            CUDA_SUCCESS);
  expect(managed, scores, {"managed memory", "image"});
  expect(images, managed, {"managed memory", "scores"});
  EXPECT_EQ(api_.MemFree(managed), CUDA_SUCCESS);
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
  ASSERT_TRUE(
      graph->SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(results.data())})
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
        graph->SetIO(std::vector{ImageTensor(values.data())}, std::vector{ScoreTensor(scores)})
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
    ASSERT_TRUE(graph
                    ->SetIO(std::vector{ImageTensor(values.data())},
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
  ASSERT_EQ(BeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(api_.EventRecord(event, stream_), CUDA_SUCCESS);
  const auto captured = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_CUDA, Number(event));
  ASSERT_FALSE(captured.ok());
  EXPECT_EQ(captured.error().status, ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_THAT(captured.error().sentence, HasSubstr("captured"));
  CUgraph graph = nullptr;
  EXPECT_EQ(EndCapture(stream_, &graph), CUDA_SUCCESS);
  EXPECT_EQ(api_.GraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(api_.EventDestroy(event), CUDA_SUCCESS);
}

// Of what was destroyed with its context, a driver need not know that it was an event.
TEST_P(SharingTest, EventsOfADestroyedContextAreRefused) {
  if (Function<int(const char*)>("emulated_live") == nullptr) {
    GTEST_SKIP() << "The driver is not the emulated one.";
  }
  const Backend backend = InitBackend();
  CUcontext context = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ((Function<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context, 0, 0)),
            CUDA_SUCCESS);
  ASSERT_EQ(api_.EventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(api_.EventRecord(event, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(Function<CUresult(CUcontext)>("cuCtxDestroy_v2")(context), CUDA_SUCCESS);
  const auto refused = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_CUDA, Number(event));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().status, ONNXIFI_STATUS_INVALID_EVENT);
  EXPECT_THAT(refused.error().sentence, HasSubstr("no event of CUDA"));
  // As drivers may say it.
  CUevent known = nullptr;
  ASSERT_EQ(api_.EventCreate(&known, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  Function<void(const char*, int, int, int)>("emulated_fail")(
      "cuEventQuery", CUDA_ERROR_CONTEXT_IS_DESTROYED, 0, 1);
  const auto told = backend.ImportEvent(ONNXIFI_SDK_NATIVE_EVENT_CUDA, Number(known));
  EXPECT_EQ(api_.EventDestroy(known), CUDA_SUCCESS);
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().status, ONNXIFI_STATUS_INVALID_EVENT);
  // The backend goes on.
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
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
      ASSERT_TRUE(graph
                      ->SetIO(std::vector{ImageTensor(values.data())},
                              std::vector{ScoreTensor(results.data())})
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

// Products are timed by our kernels and by cuBLASLt; the property is the interface's, through
// libonnxifi, too.
TEST_P(SharingTest, ImplementationsAreMeasuredWhereTheCallerWants) {
  // Nothing is known from another run of the test.
  setenv("ONNXIFI_CACHE_DIR", "", /*replace=*/1);
  const AtEnd forget([] { unsetenv("ONNXIFI_CACHE_DIR"); });
  const Backend backend = InitBackend();
  for (const bool is_measured : {false, true}) {
    const auto graph = backend.InitGraph(DigitsModel(), {.profile = true, .measure = is_measured});
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    std::vector<float> values = Images(7);
    std::vector<float> results(kBatch * kClasses);
    ASSERT_TRUE(graph
                    ->SetIO(std::vector{ImageTensor(values.data())},
                            std::vector{ScoreTensor(results.data())})
                    .ok());
    ASSERT_TRUE(graph->RunAndWait().ok());
    EXPECT_THAT(results, IsCloseTo(Expected(values)));
    int measured_count = 0;
    const auto profile = graph->Profile();
    ASSERT_TRUE(profile.ok()) << profile.error().Text();
    for (const StepRecord& step : *profile) {
      if (step.detail.find("measured: ") != std::string::npos) ++measured_count;
    }
    EXPECT_EQ(measured_count > 0, is_measured);
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, SharingTest, BothLibraries(), LibraryName);

}  // namespace
}  // namespace onnxifi::cuda

// SPDX-License-Identifier: Apache-2.0
//
// Callers who capture their stream: runs become part of their graphs, or are refused with the
// reason, and what they captured before goes on. Expected values are those of the reference plugin.

#include <algorithm>
#include <thread>

#include "backends/core/plugin/testing/nonzero_model.h"
#include "backends/cuda/testing/caller_fixture.h"

namespace onnxifi::cuda {
namespace {

using testing::HasSubstr;

constexpr size_t kImageBytes = kBatch * kPixels * sizeof(float);
constexpr size_t kScoreBytes = kBatch * kClasses * sizeof(float);

class CaptureTest : public CallerTest {
 protected:
  void SetUp() override {
    CallerTest::SetUp();
    if (context_ == nullptr) return;
    images_ = Allocate(kBatch * kPixels);
    scores_ = Allocate(kBatch * kClasses);
    void* pinned = nullptr;
    ASSERT_EQ(api_.MemHostAlloc(&pinned, kImageBytes + kScoreBytes, 0), CUDA_SUCCESS);
    given_ = static_cast<float*>(pinned);
    results_ = given_ + kBatch * kPixels;
  }
  void TearDown() override {
    if (given_ != nullptr) {
      EXPECT_EQ(api_.MemFreeHost(given_), CUDA_SUCCESS);
    }
    CallerTest::TearDown();
  }

  static Outcome Bind(const Graph& graph, CUdeviceptr images, CUdeviceptr scores) {
    return graph.SetIO(std::vector{ImageTensor(images)}, std::vector{ScoreTensor(scores)});
  }
  // Images from pinned memory, the run, scores to pinned memory.
  CUgraph Capture(const Graph& graph, CUstreamCaptureMode mode) const {
    EXPECT_EQ(BeginCapture(stream_, mode), CUDA_SUCCESS);
    EXPECT_EQ(api_.MemcpyHtoDAsync(images_, given_, kImageBytes, stream_), CUDA_SUCCESS);
    const Outcome captured = graph.RunInSharedQueue();
    EXPECT_TRUE(captured.ok()) << captured.error().Text();
    EXPECT_EQ(api_.MemcpyDtoHAsync(results_, scores_, kScoreBytes, stream_), CUDA_SUCCESS);
    CUgraph graph_of_caller = nullptr;
    EXPECT_EQ(EndCapture(stream_, &graph_of_caller), CUDA_SUCCESS);
    return graph_of_caller;
  }
  CUgraphExec Instantiate(CUgraph graph) const {
    CUgraphExec executable = nullptr;
    EXPECT_EQ(api_.GraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(api_.GraphDestroy(graph), CUDA_SUCCESS);
    return executable;
  }
  void ExpectRight(CUgraphExec executable, uint32_t seed) const {
    std::ranges::copy(Images(seed), given_);
    std::fill_n(results_, kBatch * kClasses, 77.0F);
    ASSERT_EQ(api_.GraphLaunch(executable, stream_), CUDA_SUCCESS);
    ASSERT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_THAT(std::vector<float>(results_, results_ + kBatch * kClasses),
                IsCloseTo(Expected(Images(seed))))
        << seed;
  }
  static size_t NodeCount(CUgraph graph) {
    size_t count = 0;
    EXPECT_EQ(Function<decltype(cuGraphGetNodes)>("cuGraphGetNodes")(graph, nullptr, &count),
              CUDA_SUCCESS);
    return count;
  }
  // Of the emulated driver; -1 on another one.
  static int LiveCount(const char* kind) {
    auto* const live = Function<int(const char*)>("emulated_live");
    return live == nullptr ? -1 : live(kind);
  }
  void ExpectRefused(const Outcome& outcome, const std::string& words) const {
    ASSERT_FALSE(outcome.ok()) << words;
    // The interface's calls have no INVALID_STATE to answer with.
    EXPECT_EQ(outcome.error().status, ONNXIFI_STATUS_INTERNAL_ERROR) << outcome.error().Text();
    EXPECT_THAT(outcome.error().sentence, HasSubstr("being captured"));
    EXPECT_THAT(outcome.error().sentence, HasSubstr(words));
  }

  CUdeviceptr images_ = 0;
  CUdeviceptr scores_ = 0;
  float* given_ = nullptr;    // pinned
  float* results_ = nullptr;  // pinned
};

constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                          CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                          CU_STREAM_CAPTURE_MODE_RELAXED};

TEST_P(CaptureTest, ARunBecomesPartOfTheCallersGraph) {
  for (const CUstreamCaptureMode mode : kModes) {
    for (const int runs_before : {0, 1, 3}) {
      const Backend backend = InitBackendOn(stream_);
      const auto graph = backend.InitGraph(DigitsModel());
      ASSERT_TRUE(graph.ok()) << graph.error().Text();
      ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
      for (int run = 0; run < runs_before; ++run) ASSERT_TRUE(graph->RunInSharedQueue().ok());
      CUgraph captured = Capture(*graph, mode);
      // The caller's two copies, and the run between them as one node.
      EXPECT_EQ(NodeCount(captured), 3U);
      CUgraphExec executable = Instantiate(captured);
      for (uint32_t seed = 70; seed < 73; ++seed) ExpectRight(executable, seed);
      // Runs go on beside it.
      Write(images_, Images(75));
      ASSERT_TRUE(graph->RunInSharedQueue().ok());
      EXPECT_THAT(Read(scores_, kBatch * kClasses), IsCloseTo(Expected(Images(75))));
      ExpectRight(executable, 74);
      EXPECT_EQ(api_.GraphExecDestroy(executable), CUDA_SUCCESS);
    }
  }
}

TEST_P(CaptureTest, ManyRunsInOneGraphAreInTheirOrder) {
  const Backend backend = InitBackendOn(stream_);
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
  ASSERT_EQ(BeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  constexpr uint32_t kRuns = 5;
  void* pinned = nullptr;
  ASSERT_EQ(api_.MemHostAlloc(&pinned, kRuns * (kImageBytes + kScoreBytes), 0),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph captured = nullptr;
  ASSERT_EQ(EndCapture(stream_, &captured), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ASSERT_EQ(api_.MemHostAlloc(&pinned, kRuns * (kImageBytes + kScoreBytes), 0), CUDA_SUCCESS);
  auto* const given = static_cast<float*>(pinned);
  float* const results = given + kRuns * kBatch * kPixels;
  ASSERT_EQ(BeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  for (uint32_t run = 0; run < kRuns; ++run) {
    ASSERT_EQ(api_.MemcpyHtoDAsync(images_, given + run * kBatch * kPixels, kImageBytes, stream_),
              CUDA_SUCCESS);
    const Outcome ran = graph->RunInSharedQueue();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    ASSERT_EQ(
        api_.MemcpyDtoHAsync(results + run * kBatch * kClasses, scores_, kScoreBytes, stream_),
        CUDA_SUCCESS);
  }
  ASSERT_EQ(EndCapture(stream_, &captured), CUDA_SUCCESS);
  EXPECT_EQ(NodeCount(captured), 3 * kRuns);
  CUgraphExec executable = Instantiate(captured);
  for (uint32_t run = 0; run < kRuns; ++run) {
    std::ranges::copy(Images(80 + run), given + run * kBatch * kPixels);
  }
  ASSERT_EQ(api_.GraphLaunch(executable, stream_), CUDA_SUCCESS);
  ASSERT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
  for (uint32_t run = 0; run < kRuns; ++run) {
    const float* const at = results + run * kBatch * kClasses;
    EXPECT_THAT(std::vector<float>(at, at + kBatch * kClasses),
                IsCloseTo(Expected(Images(80 + run))))
        << run;
  }
  EXPECT_EQ(api_.GraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(api_.MemFreeHost(pinned), CUDA_SUCCESS);
}

// Recordings that are pushed out and bindings that are replaced take nothing from the caller's
// graph; when that is gone, the next run lets go what it needed.
TEST_P(CaptureTest, WhatACapturedRunNeedsStaysAsLongAsTheCallersGraph) {
  const Backend backend = InitBackendOn(stream_);
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
  CUgraphExec executable = Instantiate(Capture(*graph, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::vector<std::vector<float>> tensors;
  for (uint64_t batch = 1; batch < 14; ++batch) {
    const CUdeviceptr images = Allocate(batch * kPixels);
    const CUdeviceptr scores = Allocate(batch * kClasses);
    Tensor in = ImageTensor(images);
    Tensor out = ScoreTensor(scores);
    in.shape[0] = out.shape[0] = batch;
    const Outcome bound = graph->SetIO(std::vector{in}, std::vector{out});
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(graph->RunInSharedQueue().ok());
    ExpectRight(executable, static_cast<uint32_t>(90 + batch));
  }
  ASSERT_EQ(api_.StreamSynchronize(stream_), CUDA_SUCCESS);
  const int before = LiveCount("executable");
  EXPECT_EQ(api_.GraphExecDestroy(executable), CUDA_SUCCESS);
  // A thread of the driver's tells it.
  for (int wait = 0; wait < 500 && LiveCount("executable") > before - 2; ++wait) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
  }
  if (before >= 0) {
    EXPECT_EQ(LiveCount("executable"), before - 2);
  }
}

TEST_P(CaptureTest, WhatCannotBeCapturedIsRefusedWithTheReasonAndTheCaptureGoesOn) {
  const Backend backend = InitBackendOn(stream_);
  const auto graph = backend.InitGraph(DigitsModel());
  const auto counted = backend.InitGraph(plugin::NonZeroModel());
  GraphOptions options;
  options.profile = true;
  const auto profiled = backend.InitGraph(DigitsModel(), options);
  ASSERT_TRUE(graph.ok() && counted.ok() && profiled.ok());
  ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
  ASSERT_TRUE(Bind(*profiled, images_, scores_).ok());
  const CUdeviceptr x = Allocate(7);
  const CUdeviceptr y = Allocate(2 * 7);
  const auto memory = [](CUdeviceptr at) {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(at));
  };
  const Outcome bound = counted->SetIO(
      std::vector{
          Tensor{"x", ONNXIFI_DATATYPE_FLOAT32, {7}, memory(x), ONNXIFI_MEMORY_TYPE_CUDA_BUFFER}},
      std::vector{
          Tensor{"y", ONNXIFI_DATATYPE_INT64, {1, 7}, memory(y), ONNXIFI_MEMORY_TYPE_CUDA_BUFFER}});
  ASSERT_TRUE(bound.ok()) << bound.error().Text();
  std::vector<float> host_images = Images(1);
  std::vector<float> host_scores(kBatch * kClasses);
  for (const CUstreamCaptureMode mode : kModes) {
    ASSERT_EQ(BeginCapture(stream_, mode), CUDA_SUCCESS);
    ExpectRefused(counted->RunInSharedQueue(), "numbers that only data tell");
    ExpectRefused(profiled->RunInSharedQueue(), "profiled");
    ExpectRefused(graph->RunAndWait(), "wait for its end");
    ASSERT_TRUE(
        graph
            ->SetIO(std::vector{ImageTensor(host_images.data())}, std::vector{ScoreTensor(scores_)})
            .ok());
    ExpectRefused(graph->RunInSharedQueue(), "input 'image' is not in the device's memory");
    ASSERT_TRUE(
        graph
            ->SetIO(std::vector{ImageTensor(images_)}, std::vector{ScoreTensor(host_scores.data())})
            .ok());
    ExpectRefused(graph->RunInSharedQueue(), "output 'scores' is not in the device's memory");
    ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
    // A load puts constants where kernels want them, now and not whenever the graph is launched.
    const auto late = backend.InitGraph(DigitsModel());
    ExpectRefused(late.ok() ? Bind(*late, images_, scores_) : Outcome(late.error()), "CUDA cannot");
    CUgraph captured = nullptr;
    ASSERT_EQ(EndCapture(stream_, &captured), CUDA_SUCCESS);
    EXPECT_EQ(NodeCount(captured), 0U);
    EXPECT_EQ(api_.GraphDestroy(captured), CUDA_SUCCESS);
    // And what was refused runs.
    Write(images_, Images(2));
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
    EXPECT_THAT(Read(scores_, kBatch * kClasses), IsCloseTo(Expected(Images(2))));
  }
}

// Extents that nobody has run are bound during a capture all the same: that puts nothing into it.
// Nor is anything measured meanwhile.
TEST_P(CaptureTest, NewExtentsMayBeBoundWhileTheStreamIsCaptured) {
  const CUdeviceptr other = Allocate(8 * kPixels);
  Tensor in = ImageTensor(other);
  Tensor out = ScoreTensor(Allocate(8 * kClasses));
  in.shape[0] = out.shape[0] = 8;
  for (const bool measures : {false, true}) {
    // Nothing is known from another run of the test.
    setenv("ONNXIFI_CACHE_DIR", "", /*replace=*/1);
    const Backend backend = InitBackendOn(stream_);
    const auto graph = backend.InitGraph(DigitsModel(), {.measure = measures});
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    ASSERT_TRUE(graph->SetIO(std::vector{in}, std::vector{out}).ok());
    ASSERT_EQ(BeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    const Outcome bound = Bind(*graph, images_, scores_);
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    const Outcome ran = graph->RunInSharedQueue();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    CUgraph captured = nullptr;
    ASSERT_EQ(EndCapture(stream_, &captured), CUDA_SUCCESS);
    CUgraphExec executable = Instantiate(captured);
    Write(images_, Images(3));
    ASSERT_EQ(api_.GraphLaunch(executable, stream_), CUDA_SUCCESS);
    EXPECT_THAT(Read(scores_, kBatch * kClasses), IsCloseTo(Expected(Images(3))));
    EXPECT_EQ(api_.GraphExecDestroy(executable), CUDA_SUCCESS);
    unsetenv("ONNXIFI_CACHE_DIR");
  }
}

TEST_P(CaptureTest, OtherBackendsWorkWhileAStreamIsCaptured) {
  const Backend backend = InitBackend();
  ASSERT_EQ(BeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  {
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    std::vector<float> values = Images(4);
    std::vector<float> results(kBatch * kClasses);
    ASSERT_TRUE(graph
                    ->SetIO(std::vector{ImageTensor(values.data())},
                            std::vector{ScoreTensor(results.data())})
                    .ok());
    for (int run = 0; run < 3; ++run) {
      const Outcome ran = graph->RunAndWait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
    }
    EXPECT_THAT(results, IsCloseTo(Expected(values)));
  }
  CUgraph captured = nullptr;
  EXPECT_EQ(EndCapture(stream_, &captured), CUDA_SUCCESS);
  EXPECT_EQ(api_.GraphDestroy(captured), CUDA_SUCCESS);
}

// Neither the end of a graph nor that of a backend touches the capture.
TEST_P(CaptureTest, ABackendMayGoWhileItsStreamIsCaptured) {
  {
    const Backend backend = InitBackendOn(stream_);
    const auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok());
    ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
    ASSERT_EQ(BeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    ASSERT_TRUE(graph->RunInSharedQueue().ok());
  }
  CUgraph captured = nullptr;
  EXPECT_EQ(EndCapture(stream_, &captured), CUDA_SUCCESS);
  EXPECT_EQ(api_.GraphDestroy(captured), CUDA_SUCCESS);
}

TEST_P(CaptureTest, TheLegacyStreamIsRefusedWhileABlockingStreamIsCaptured) {
  const Backend backend = InitBackendOn(nullptr);
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(Bind(*graph, images_, scores_).ok());
  CUstream blocking = nullptr;
  ASSERT_EQ(api_.StreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(BeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  const Outcome refused = graph->RunInSharedQueue();
  ExpectRefused(refused, "legacy stream");
  CUgraph captured = nullptr;
  EXPECT_EQ(EndCapture(blocking, &captured), CUDA_SUCCESS);
  EXPECT_EQ(api_.GraphDestroy(captured), CUDA_SUCCESS);
  EXPECT_TRUE(graph->RunInSharedQueue().ok());
  EXPECT_EQ(api_.StreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(api_.StreamDestroy(blocking), CUDA_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(Libraries, CaptureTest, BothLibraries(), LibraryName);

}  // namespace
}  // namespace onnxifi::cuda

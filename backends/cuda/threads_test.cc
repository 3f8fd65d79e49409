// SPDX-License-Identifier: Apache-2.0
//
// Callers of many threads: of one graph, of several graphs in one stream, and of graphs that are
// made and released beside runs. Every result is held to that of the reference plugin; the same
// tests under ThreadSanitizer find what races without a wrong result.

#include <atomic>
#include <functional>
#include <thread>

#include "backends/cuda/testing/caller_fixture.h"

namespace onnxifi::cuda {
namespace {

constexpr uint32_t kThreads = 8;
constexpr uint32_t kRunsOfAThread = 12;
constexpr uint32_t kSeeds = 16;

class ThreadsTest : public CallerTest {
 protected:
  void SetUp() override {
    CallerTest::SetUp();
    for (uint32_t seed = 0; seed < kSeeds; ++seed) expected_.push_back(Expected(Images(seed)));
  }

  // Calls `work` with 0, 1, … on that many threads at once, and waits for all.
  static void OnThreads(uint32_t count, const std::function<void(uint32_t)>& work) {
    std::atomic<uint32_t> waiting = count;
    std::vector<std::thread> threads;
    for (uint32_t k = 0; k < count; ++k) {
      threads.emplace_back([&, k] {
        waiting.fetch_sub(1);
        while (waiting.load() > 0) std::this_thread::yield();
        work(k);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // One run with tensors in the host's memory.
  void RunOnHostTensors(const Graph& graph, uint32_t seed) const {
    std::vector<float> images = Images(seed);
    std::vector<float> scores(kBatch * kClasses);
    const Outcome bound = graph.SetIO(std::vector{ImageTensor(images.data())},
                                      std::vector{ScoreTensor(scores.data())});
    ASSERT_TRUE(bound.ok()) << bound.error().Text();
    const Outcome ran = graph.RunAndWait();
    ASSERT_TRUE(ran.ok()) << ran.error().Text();
    ASSERT_THAT(scores, IsCloseTo(expected_[seed])) << seed;
  }

  std::vector<std::vector<float>> expected_;
};

// Each run has tensors and values of its own, in the host's memory or in the device's, so that what
// gets another run's inputs, or another run's place, is seen.
TEST_P(ThreadsTest, EightThreadsRunOneGraph) {
  const Backend backend = InitBackend();
  const auto graph = backend.InitGraph(DigitsModel());
  ASSERT_TRUE(graph.ok()) << graph.error().Text();
  std::vector<CUdeviceptr> images;
  std::vector<CUdeviceptr> scores;
  for (uint32_t k = 0; k < kThreads; ++k) {
    images.push_back(Allocate(kBatch * kPixels));
    scores.push_back(Allocate(kBatch * kClasses));
  }
  OnThreads(kThreads, [&](uint32_t thread) {
    ASSERT_EQ(api_.CtxPushCurrent(context_), CUDA_SUCCESS);
    for (uint32_t run = 0; run < kRunsOfAThread; ++run) {
      const uint32_t seed = (5 * thread + 3 * run) % kSeeds;
      const bool is_on_host = (thread + run) % 3 == 0;
      std::vector<float> given = Images(seed);
      std::vector<float> results(kBatch * kClasses);
      if (!is_on_host) Write(images[thread], given);
      const auto output = is_on_host ? graph->RunWith(std::vector{ImageTensor(given.data())},
                                                      std::vector{ScoreTensor(results.data())})
                                     : graph->RunWith(std::vector{ImageTensor(images[thread])},
                                                      std::vector{ScoreTensor(scores[thread])});
      ASSERT_TRUE(output.ok()) << output.error().Text();
      const Outcome ran = output->Wait();
      ASSERT_TRUE(ran.ok()) << ran.error().Text();
      if (!is_on_host) results = Read(scores[thread], kBatch * kClasses);
      ASSERT_THAT(results, IsCloseTo(expected_[seed])) << "thread " << thread << ", run " << run;
    }
    CUcontext left = nullptr;
    EXPECT_EQ(api_.CtxPopCurrent(&left), CUDA_SUCCESS);
  });
  const onnxGraphCounters counters = *graph->Counters();
  EXPECT_EQ(counters.runs, kThreads * kRunsOfAThread);
  // Two of each run with tensors of the host's.
  EXPECT_EQ(counters.copies, 2 * kThreads * kRunsOfAThread / 3);
}

TEST_P(ThreadsTest, FourGraphsRunInOneStream) {
  const Backend backend = InitBackendOn(stream_);
  constexpr uint32_t kGraphs = 4;
  std::vector<Graph> graphs;
  std::vector<CUdeviceptr> images;
  std::vector<CUdeviceptr> scores;
  for (uint32_t k = 0; k < kGraphs; ++k) {
    auto graph = backend.InitGraph(DigitsModel());
    ASSERT_TRUE(graph.ok()) << graph.error().Text();
    images.push_back(Allocate(kBatch * kPixels));
    scores.push_back(Allocate(kBatch * kClasses));
    ASSERT_TRUE(
        graph->SetIO(std::vector{ImageTensor(images[k])}, std::vector{ScoreTensor(scores[k])})
            .ok());
    Write(images[k], Images(k));
    graphs.push_back(*std::move(graph));
  }
  OnThreads(kGraphs, [&](uint32_t k) {
    for (uint32_t run = 0; run < kRunsOfAThread; ++run) {
      const Outcome queued = graphs[k].RunInSharedQueue();
      ASSERT_TRUE(queued.ok()) << queued.error().Text();
    }
  });
  for (uint32_t k = 0; k < kGraphs; ++k) {
    EXPECT_THAT(Read(scores[k], kBatch * kClasses), IsCloseTo(expected_[k])) << k;
  }
}

TEST_P(ThreadsTest, GraphsComeAndGoBesideRuns) {
  const Backend backend = InitBackend();
  OnThreads(kThreads, [&](uint32_t thread) {
    for (uint32_t life = 0; life < 3; ++life) {
      const auto graph = backend.InitGraph(DigitsModel());
      ASSERT_TRUE(graph.ok()) << graph.error().Text();
      for (uint32_t run = 0; run < 4; ++run) {
        ASSERT_NO_FATAL_FAILURE(RunOnHostTensors(*graph, (thread + run * life) % kSeeds));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Libraries, ThreadsTest, BothLibraries(), LibraryName);

}  // namespace
}  // namespace onnxifi::cuda

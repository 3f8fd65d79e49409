// SPDX-License-Identifier: Apache-2.0
//
// Recorded graphs carried out by the emulated device, in the recorded order and in the one that is
// farthest from it and still allowed. Expected bytes are those of copies one behind the other.

#include "backends/cuda/graph_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "backends/cuda/driver.h"
#include "backends/cuda/testing/emulated/control.h"

namespace onnxifi::cuda {
namespace {

constexpr size_t kBytes = 512;

class GraphRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    emulated_recover();
    const auto api = LoadApi();
    ASSERT_TRUE(api.ok());
    const auto devices = FindDevices(*api);
    ASSERT_TRUE(devices.ok());
    auto runtime = Runtime::Open(*api, devices->fit[0]);
    ASSERT_TRUE(runtime.ok());
    runtime_ = *std::move(runtime);
    Do([&] { return runtime_->api().MemAlloc(&memory_, kBytes); });
  }
  void TearDown() override {
    Do([&] { return runtime_->api().MemFree(memory_); });
    emulated_run_twice(0);
  }
  template <typename Call>
  void Do(const Call& call) const {
    const base::Status status = runtime_->Do("test", call);
    EXPECT_TRUE(status.ok()) << status.Text();
  }
  std::byte* At(size_t offset) const {
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(memory_) + offset);
  }
  // What the graph makes of the bytes.
  std::vector<uint8_t> Launch(CUgraphExec graph, const std::vector<uint8_t>& bytes) const {
    std::vector<uint8_t> results(kBytes);
    const Api& api = runtime_->api();
    CUstream stream = runtime_->stream();
    Do([&] { return api.MemcpyHtoDAsync(memory_, bytes.data(), kBytes, stream); });
    Do([&] { return api.GraphLaunch(graph, stream); });
    Do([&] { return api.MemcpyDtoHAsync(results.data(), memory_, kBytes, stream); });
    Do([&] { return api.StreamSynchronize(stream); });
    return results;
  }

  std::unique_ptr<Runtime> runtime_;
  CUdeviceptr memory_ = 0;
};

TEST_F(GraphRecorderTest, RandomCopiesInAnyOrderThatIsAllowed) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    std::vector<uint8_t> bytes(kBytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    std::vector<uint8_t> expected = bytes;
    auto recorder = GraphRecorder::Begin(*runtime_);
    ASSERT_TRUE(recorder.ok()) << recorder.status().Text();
    for (int copy = 0; copy < 40; ++copy) {
      const size_t size = 1 + random() % 24;
      const size_t from = random() % (kBytes - size);
      const size_t to = random() % (kBytes - size);
      std::memmove(&expected[to], &expected[from], size);
      const base::Status added =
          (*recorder)->AddCopy("copy", At(from), At(to), static_cast<int64_t>(size));
      ASSERT_TRUE(added.ok()) << added.Text();
    }
    const auto graph = (*recorder)->End();
    ASSERT_TRUE(graph.ok()) << graph.status().Text();
    recorder->reset();
    for (const int is_opposite : {0, 1}) {
      emulated_run_twice(is_opposite);
      ASSERT_EQ(Launch(graph->executable.get(), bytes), expected) << round << ", " << is_opposite;
    }
  }
}

TEST_F(GraphRecorderTest, AGraphOfNothingChangesNothing) {
  const auto recorder = GraphRecorder::Begin(*runtime_);
  ASSERT_TRUE(recorder.ok());
  const auto graph = (*recorder)->End();
  ASSERT_TRUE(graph.ok()) << graph.status().Text();
  const std::vector<uint8_t> bytes(kBytes, 3);
  EXPECT_EQ(Launch(graph->executable.get(), bytes), bytes);
}

}  // namespace
}  // namespace onnxifi::cuda

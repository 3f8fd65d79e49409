// SPDX-License-Identifier: Apache-2.0
//
// 64 threads run graphs over three devices in every way there is, each checking what it gets.
// ONNXIFI_TEST_SECONDS sets for how long (default 3). At the end the process may not have grown.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "onnxifi/testing/planned_sandbox.h"

namespace onnxifi::partitioned {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 64;
constexpr uint64_t kColumns = 4;

// Of x and of nothing else: every output element is a function of its row.
struct Kind {
  const char* text;
  // What `y` is for row r of x.
  float (*expected)(float x);
};

// A chain there and back, a diamond with two devices at work at the same time, and all in one.
const std::vector<Kind> kKinds = {
    {R"(graph (float[N, 4] x) => (float[N, 4] y) {
          a = Abs(x)  b = Neg(a)  c = Ceil(b)  d = Neg(c)  y = Sub(a, d) })",
     [](float x) { return std::abs(x) + std::ceil(-std::abs(x)); }},
    {R"(graph (float[N, 4] x) => (float[N, 4] y) {
          a = Abs(x)  b = Neg(a)  c = Ceil(a)  y = Sub(c, b) })",
     [](float x) { return std::ceil(std::abs(x)) + std::abs(x); }},
    {R"(graph (float[N, 4] x) => (float[N, 4] y) { a = Abs(x)  y = Sub(x, a) })",
     [](float x) { return x - std::abs(x); }},
};

// Kind and size of the tensors of one run.
struct Data {
  Data(const Kind& kind, uint64_t rows, std::mt19937& random)
      : source(rows * kColumns), target(rows * kColumns, -99) {
    for (float& value : source) value = static_cast<float>(random() % 4000) / 16 - 125;
    for (const float value : source) expected.push_back(kind.expected(value));
    x = {"x", ONNXIFI_DATATYPE_FLOAT32, {rows, kColumns}, source.data()};
    y = {"y", ONNXIFI_DATATYPE_FLOAT32, {rows, kColumns}, target.data()};
  }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;

  std::vector<float> source;
  std::vector<float> target;
  std::vector<float> expected;
  Tensor x;
  Tensor y;
};

// The first errors, and how many runs there were.
class Tally {
 public:
  void Count() { ++runs_; }
  void Fail(const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    if (errors_.size() < 5) errors_.push_back(sentence);
  }
  void Check(const Outcome& outcome, const Data& data, const char* way) {
    Count();
    if (!outcome.ok()) {
      Fail(std::string(way) + ": " + outcome.error().Text());
    } else if (data.target != data.expected) {
      Fail(std::string(way) + ": the outputs are others.");
    }
  }
  uint64_t runs() const { return runs_; }
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::atomic<uint64_t> runs_ = 0;
  std::mutex mutex_;
  std::vector<std::string> errors_;
};

// Bytes of the process in memory.
size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class Rig {
 public:
  explicit Rig(const Library& library)
      : device_(*library.FindDevice("auto")), backend_(*device_.InitBackend()) {
    for (const Kind& kind : kKinds) {
      models_.push_back(ParseModel(kind.text));
      shared_.push_back(*backend_.InitGraph(models_.back()));
    }
  }

  void Work(uint32_t seed, Clock::time_point end, Tally& tally) const {
    std::mt19937 random(seed);
    // A graph of its own, bound for good.
    const size_t own_kind = seed % kKinds.size();
    const auto own = backend_.InitGraph(models_[own_kind]);
    if (!own.ok()) return tally.Fail(own.error().Text());
    while (Clock::now() < end) {
      const size_t kind = random() % kKinds.size();
      const uint64_t rows = 1 + random() % 40;
      switch (random() % 8) {
        case 0:
          BindAndRun(*own, kKinds[own_kind], rows, random, tally);
          break;
        case 1:
          RunChain(*own, kKinds[own_kind], rows, random, tally);
          break;
        case 2:
          RunLateInput(kind, rows, random, tally);
          break;
        case 3:
          if (random() % 16 == 0) RunNewGraph(kind, rows, random, tally);
          break;
        default:
          RunShared(kind, rows, random, tally);
      }
    }
  }

 private:
  // Each of these is a way to run.
  static void BindAndRun(const Graph& graph, const Kind& kind, uint64_t rows, std::mt19937& random,
                         Tally& tally) {
    Data data(kind, rows, random);
    Outcome outcome = graph.SetIO({&data.x, 1}, {&data.y, 1});
    if (outcome.ok()) outcome = graph.RunAndWait();
    tally.Check(outcome, data, "bind and run");
  }

  // Three runs in flight, each waiting for the one before.
  void RunChain(const Graph& graph, const Kind& kind, uint64_t rows, std::mt19937& random,
                Tally& tally) const {
    Data data(kind, rows, random);
    if (Outcome bound = graph.SetIO({&data.x, 1}, {&data.y, 1}); !bound) {
      return tally.Fail(bound.error().Text());
    }
    const auto input = backend_.NewEvent();
    if (!input.ok()) return tally.Fail(input.error().Text());
    const auto first = graph.Run(*input);
    if (!first.ok()) return tally.Fail(first.error().Text());
    const auto second = graph.Run(*first);
    if (!second.ok()) return tally.Fail(second.error().Text());
    // Another binding leaves those that are accepted with theirs.
    Data other(kind, rows + 1, random);
    if (Outcome bound = graph.SetIO({&other.x, 1}, {&other.y, 1}); !bound) {
      tally.Fail(bound.error().Text());
    }
    const auto third = graph.Run(*second);
    if (Outcome signalled = input->Signal(); !signalled) tally.Fail(signalled.error().Text());
    if (!third.ok()) return tally.Fail(third.error().Text());
    tally.Check(third->Wait(), other, "the third of a chain");
    tally.Check(first->Wait(), data, "the first of a chain");
  }

  // On a graph that others use at the same time, with inputs that are complete later.
  void RunLateInput(size_t kind, uint64_t rows, std::mt19937& random, Tally& tally) const {
    const auto graph = backend_.InitGraph(models_[kind]);
    if (!graph.ok()) return tally.Fail(graph.error().Text());
    Data data(kKinds[kind], rows, random);
    const std::vector<float> values = data.source;
    data.source.assign(values.size(), 0);
    if (Outcome bound = graph->SetIO({&data.x, 1}, {&data.y, 1}); !bound) {
      return tally.Fail(bound.error().Text());
    }
    const auto input = backend_.NewEvent();
    const auto end = graph->Run(*input);
    std::copy(values.begin(), values.end(), data.source.begin());
    if (Outcome signalled = input->Signal(); !signalled) tally.Fail(signalled.error().Text());
    if (!end.ok()) return tally.Fail(end.error().Text());
    tally.Check(end->Wait(), data, "an input that comes late");
  }

  void RunNewGraph(size_t kind, uint64_t rows, std::mt19937& random, Tally& tally) const {
    const auto backend = device_.InitBackend();
    if (!backend.ok()) return tally.Fail(backend.error().Text());
    const auto graph = backend->InitGraph(models_[kind]);
    if (!graph.ok()) return tally.Fail(graph.error().Text());
    BindAndRun(*graph, kKinds[kind], rows, random, tally);
  }

  void RunShared(size_t kind, uint64_t rows, std::mt19937& random, Tally& tally) const {
    Data data(kKinds[kind], rows, random);
    const auto end = shared_[kind].RunWith({&data.x, 1}, {&data.y, 1});
    if (!end.ok()) return tally.Fail(end.error().Text());
    tally.Check(end->Wait(), data, "bind and run in one step");
  }

  const Device device_;
  const Backend backend_;
  std::vector<std::vector<std::byte>> models_;
  std::vector<Graph> shared_;
};

void RunThreads(const Rig& rig, double seconds, uint32_t seed, Tally& tally) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  std::vector<std::thread> threads;
  for (uint32_t k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] { rig.Work(seed * kThreads + k, end, tally); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PlannedStress, RunsOf64ThreadsOnThreeDevicesAreRightAndMemoryIsFlat) {
  const char* text = std::getenv("ONNXIFI_TEST_SECONDS");
  const double seconds = text == nullptr ? 3 : std::strtod(text, nullptr);
  PlannedSandbox sandbox;
  sandbox.AddMock("abs", R"({"operators": ["Abs", "Sub"]})")
      .AddMock("neg", R"({"operators": ["Neg"]})")
      .AddMock("round", R"({"operators": ["Ceil"]})");
  const Library library = sandbox.Open();
  const Rig rig(library);
  Tally tally;
  // The first third settles what allocators and threads keep.
  RunThreads(rig, seconds / 3, 1, tally);
  const size_t before = ResidentBytes();
  const uint64_t runs_before = tally.runs();
  RunThreads(rig, seconds * 2 / 3, 2, tally);
  const size_t after = ResidentBytes();
  std::cout << tally.runs() << " runs; " << before / 1000000 << " MB after " << runs_before
            << " of them, " << after / 1000000 << " MB at the end\n";
  for (const std::string& error : tally.errors()) ADD_FAILURE() << error;
  EXPECT_GT(tally.runs(), static_cast<uint64_t>(kThreads));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  constexpr size_t kMaxGrowth = 24'000'000;
  EXPECT_LT(after, before + kMaxGrowth);
#endif
}

}  // namespace
}  // namespace onnxifi::partitioned

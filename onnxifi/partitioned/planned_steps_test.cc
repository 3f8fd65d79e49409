// SPDX-License-Identifier: Apache-2.0
//
// PlannedSteps: which runs of a graph are under way at the same time. Its islands are doubles whose
// runs end when the test says so.

#include "onnxifi/partitioned/planned_steps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "backends/core/abi/event.h"

namespace onnxifi::partitioned {
namespace {

constexpr std::chrono::seconds kLong(30);
// Enough for what should not happen to happen mostly.
constexpr std::chrono::milliseconds kShort(60);

class GatedGraph final : public abi::Graph {
 public:
  explicit GatedGraph(std::string output) : output_(std::move(output)) {}

  const abi::Signature* signature() const override { return nullptr; }
  base::Result<std::shared_ptr<const abi::Binding>> Bind(abi::GraphTensors tensors) override {
    return std::shared_ptr<const abi::Binding>(std::make_shared<abi::Binding>(std::move(tensors)));
  }
  base::Result<std::shared_ptr<abi::Event>> Run(std::shared_ptr<const abi::Binding> /*binding*/,
                                                std::shared_ptr<abi::Event> /*input*/) override {
    auto event = std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kRun);
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    }
    changed_.notify_all();
    return std::shared_ptr<abi::Event>(std::move(event));
  }
  void Close() override {}
  base::Result<std::vector<abi::TensorShape>> InferOutputShapes(
      std::span<const abi::TensorDescriptor> /*inputs*/) override {
    return std::vector<abi::TensorShape>{{output_, ONNXIFI_DATATYPE_FLOAT32, true, {4}}};
  }
  base::Result<abi::GraphCounters> Counters() override { return abi::GraphCounters(); }
  base::Result<std::vector<abi::StepRecord>> Profile() override {
    return std::vector<abi::StepRecord>();
  }
  base::Result<std::vector<abi::LoadRecord>> LoadProfile() override {
    return std::vector<abi::LoadRecord>();
  }

  // Whether so many runs were started, now or soon.
  bool Awaits(size_t count, std::chrono::milliseconds time = kLong) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return events_.size() >= count; });
  }
  void Finish(size_t run) {
    std::shared_ptr<abi::LocalEvent> event;
    {
      const std::lock_guard lock(mutex_);
      event = events_.at(run);
    }
    event->Complete(base::Ok());
  }

 private:
  const std::string output_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<abi::LocalEvent>> events_;
};

// x -> t -> y, each of 4 floats, on two devices.
struct Chain {
  explicit Chain(size_t most_runs) {
    std::vector<PlannedStep> islands(2);
    for (size_t k = 0; k < 2; ++k) {
      auto graph = std::make_unique<GatedGraph>(k == 0 ? "t" : "y");
      graphs[k] = graph.get();
      islands[k].graph = std::move(graph);
      islands[k].inputs = {static_cast<int32_t>(k)};
      islands[k].outputs = {static_cast<int32_t>(k + 1)};
    }
    islands[0].before = {1};
    islands[1].needs = 1;
    std::vector<CrossingValue> values;
    for (const char* name : {"x", "t", "y"}) {
      values.push_back({name, ONNXIFI_DATATYPE_FLOAT32, {4}, true, true, false});
    }
    values[1].is_handed_on = true;
    EXPECT_TRUE(pool.Start(2).ok());
    steps = std::make_shared<PlannedSteps>(std::move(islands), std::move(values),
                                           std::vector<int32_t>{0}, std::vector<int32_t>{2}, pool,
                                           PlannedSteps::Runner::kPool, most_runs);
  }
  ~Chain() { steps->Close(); }
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  std::shared_ptr<const Binding> Bind(const float* x, const float* y,
                                      onnxEnum memory_type = ONNXIFI_MEMORY_TYPE_CPU) const {
    abi::GraphTensors tensors;
    for (const auto& [name, data] : {std::pair("x", x), std::pair("y", y)}) {
      abi::TensorDescriptor tensor;
      tensor.name = name;
      tensor.data_type = ONNXIFI_DATATYPE_FLOAT32;
      tensor.memory_type = memory_type;
      tensor.shape = {4};
      tensor.buffer = reinterpret_cast<onnxPointer>(data);
      (tensor.name == "x" ? tensors.inputs : tensors.outputs).push_back(std::move(tensor));
    }
    auto binding = steps->Bind(std::move(tensors));
    EXPECT_TRUE(binding.ok()) << binding.status().Text();
    return *binding;
  }

  // Lets everything end, run by run, and expects `count` runs.
  void FinishAll(size_t count) const {
    for (size_t run = 0; run < count; ++run) {
      for (GatedGraph* graph : graphs) {
        ASSERT_TRUE(graph->Awaits(run + 1));
        graph->Finish(run);
      }
    }
  }

  TaskPool pool;
  GatedGraph* graphs[2] = {};
  std::shared_ptr<PlannedSteps> steps;
};

struct Buffers {
  float x[2][4] = {};
  float y[2][4] = {};
};

TEST(PlannedSteps, HasRunsOfDifferentMemoryUnderWayTogether) {
  Chain chain(/*most_runs=*/2);
  const Buffers memory;
  const auto first = chain.steps->Run(chain.Bind(memory.x[0], memory.y[0]), nullptr);
  const auto second = chain.steps->Run(chain.Bind(memory.x[1], memory.y[1]), nullptr);
  // Both in the first island, then one in each: nothing waits for the whole of another run.
  ASSERT_TRUE(chain.graphs[0]->Awaits(2));
  chain.graphs[0]->Finish(0);
  ASSERT_TRUE(chain.graphs[1]->Awaits(1));
  EXPECT_FALSE(*second->IsSignalled());
  chain.graphs[0]->Finish(1);
  ASSERT_TRUE(chain.graphs[1]->Awaits(2));
  chain.graphs[1]->Finish(1);
  chain.graphs[1]->Finish(0);
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
}

TEST(PlannedSteps, ReadsTheSameInSeveralRuns) {
  Chain chain(/*most_runs=*/2);
  const Buffers memory;
  const auto first = chain.steps->Run(chain.Bind(memory.x[0], memory.y[0]), nullptr);
  const auto second = chain.steps->Run(chain.Bind(memory.x[0], memory.y[1]), nullptr);
  ASSERT_TRUE(chain.graphs[0]->Awaits(2));
  chain.FinishAll(2);
}

TEST(PlannedSteps, HasOneRunAtATimeWhereMemoryIsShared) {
  const Buffers memory;
  struct Case {
    const char* what;
    const float* x;
    const float* y;
    onnxEnum memory_type;
    size_t most_runs;
  };
  const Case cases[] = {
      {"the same memory", memory.x[0], memory.y[0], ONNXIFI_MEMORY_TYPE_CPU, 2},
      {"reads what the other writes", memory.y[0], memory.y[1], ONNXIFI_MEMORY_TYPE_CPU, 2},
      {"writes what the other reads", memory.x[1], memory.x[0], ONNXIFI_MEMORY_TYPE_CPU, 2},
      {"writes some of the same", memory.x[1], memory.y[0] + 3, ONNXIFI_MEMORY_TYPE_CPU, 2},
      {"of another device", memory.x[1], memory.y[1], ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER, 2},
      {"no room for two", memory.x[1], memory.y[1], ONNXIFI_MEMORY_TYPE_CPU, 1},
  };
  for (const Case& shared : cases) {
    Chain chain(shared.most_runs);
    const auto binding = chain.Bind(memory.x[0], memory.y[0]);
    const auto first = chain.steps->Run(binding, nullptr);
    const auto second =
        chain.steps->Run(chain.Bind(shared.x, shared.y, shared.memory_type), nullptr);
    ASSERT_TRUE(chain.graphs[0]->Awaits(1));
    EXPECT_FALSE(chain.graphs[0]->Awaits(2, kShort)) << shared.what;
    chain.FinishAll(2);
    EXPECT_TRUE(first->Wait().ok());
    EXPECT_TRUE(second->Wait().ok());
  }
  // Nor do runs of one binding.
  Chain chain(/*most_runs=*/2);
  const auto binding = chain.Bind(memory.x[0], memory.y[0]);
  const auto first = chain.steps->Run(binding, nullptr);
  const auto second = chain.steps->Run(binding, nullptr);
  ASSERT_TRUE(chain.graphs[0]->Awaits(1));
  EXPECT_FALSE(chain.graphs[0]->Awaits(2, kShort));
  chain.FinishAll(2);
  EXPECT_TRUE(second->Wait().ok());
}

TEST(PlannedSteps, StartsRunsInTheOrderOfTheirCalls) {
  Chain chain(/*most_runs=*/2);
  const Buffers memory;
  const auto input = std::make_shared<abi::LocalEvent>(abi::LocalEvent::Origin::kCaller);
  const auto first = chain.steps->Run(chain.Bind(memory.x[0], memory.y[0]), input);
  const auto second = chain.steps->Run(chain.Bind(memory.x[1], memory.y[1]), nullptr);
  EXPECT_FALSE(chain.graphs[0]->Awaits(1, kShort));
  ASSERT_TRUE(input->Signal().ok());
  ASSERT_TRUE(chain.graphs[0]->Awaits(2));
  chain.FinishAll(2);
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
}

}  // namespace
}  // namespace onnxifi::partitioned

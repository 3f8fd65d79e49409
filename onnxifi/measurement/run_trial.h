// SPDX-License-Identifier: Apache-2.0
//
// RunTrial: a graph with inputs that are made up, to be run for the time it takes, through the same
// calls as any run.

#ifndef ONNXIFI_ONNXIFI_MEASUREMENT_RUN_TRIAL_H_
#define ONNXIFI_ONNXIFI_MEASUREMENT_RUN_TRIAL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/abi/provider.h"
#include "backends/core/tensor/element_type.h"
#include "onnxifi/split/whole_model.h"

namespace onnxifi::measurement {

// A clock that never goes back.
using Clock = std::function<std::chrono::nanoseconds()>;
std::chrono::nanoseconds SteadyTime();

class RunTrial {
 public:
  // What a graph reads or writes: `extents` are all known.
  struct Tensor {
    std::string name;
    tensor::ElementType type = tensor::ElementType::kFloat32;
    std::vector<uint64_t> extents;
  };

  // `graph` and `clock` outlive it. Nothing where the graph takes no such tensors, or where they
  // are larger than what is set aside for an experiment.
  static std::optional<RunTrial> Prepare(abi::Graph& graph, std::span<const Tensor> inputs,
                                         std::span<const Tensor> outputs, const Clock& clock);
  // `inputs` and `outputs`: positions among the values of `whole`, in the graph's order; extents
  // that are not known are taken as 1. Nothing where only a run tells the shape of an output, too.
  static std::optional<RunTrial> Prepare(abi::Graph& graph, const split::WholeModel& whole,
                                         std::span<const int32_t> inputs,
                                         std::span<const int32_t> outputs, const Clock& clock);

  // Nanoseconds from the call to run until the outputs are there, the least of a few runs after one
  // that prepares what they find; nothing where a run fails.
  std::optional<int64_t> LeastTime();

  // How many times as long as a run of `other` a run of this takes: of pairs of runs, one of each,
  // the one in the middle. Whatever else the machine does meanwhile slows down both. Nothing where
  // a run of either fails.
  std::optional<double> RatioTo(RunTrial& other);

 private:
  RunTrial(abi::Graph& graph, const Clock& clock) : graph_(&graph), clock_(&clock) {}

  // False where it is more than an experiment may have.
  bool AddInput(const Tensor& tensor);
  bool AddOutput(const Tensor& tensor);
  bool Add(const Tensor& tensor, std::vector<abi::TensorDescriptor>& tensors);
  bool Bind();
  std::optional<int64_t> TimeRun();

  abi::Graph* graph_;
  const Clock* clock_;
  // Of inputs and outputs.
  std::vector<std::vector<std::byte>> memories_;
  int64_t all_bytes_ = 0;
  abi::GraphTensors tensors_;
  std::shared_ptr<const abi::Binding> binding_;
};

}  // namespace onnxifi::measurement

#endif  // ONNXIFI_ONNXIFI_MEASUREMENT_RUN_TRIAL_H_

// SPDX-License-Identifier: Apache-2.0
//
// Meter: chains of one operator and models of one node, in graphs of their own.

#include "onnxifi/measurement/meter.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/measurement/run_trial.h"
#include "onnxifi/plugins/forwarded_graph.h"
#include "onnxifi/split/chain_model.h"
#include "onnxifi/split/model_problem.h"

namespace onnxifi::measurement {

using plugins::ForwardedGraph;

std::optional<Meter::ChainTime> Meter::TimeChain(std::string_view operator_type, int length,
                                                 int64_t element_count) const {
  const std::string model = split::MakeChainModel(operator_type, length, element_count);
  abi::GraphRequest request = request_;
  request.model = {reinterpret_cast<const std::byte*>(model.data()), model.size()};
  request.weights = {};
  const auto graph = ForwardedGraph::Init(backend_, request);
  if (!graph.ok()) return std::nullopt;
  RunTrial::Tensor x{"x", tensor::ElementType::kFloat32, {static_cast<uint64_t>(element_count)}};
  RunTrial::Tensor y = x;
  y.name = "y";
  auto trial = RunTrial::Prepare(**graph, {&x, 1}, {&y, 1}, clock_);
  const auto run_ns = trial ? trial->LeastTime() : std::nullopt;
  if (!run_ns) return std::nullopt;
  const auto counters = (*graph)->Counters();
  return ChainTime{*run_ns, !counters.ok() || counters->copies > 0};
}

std::optional<partition::DeviceCost> Meter::TimeEdges() const {
  constexpr std::array<std::string_view, 6> kOperators = {"Abs", "Neg",     "Relu",
                                                          "Exp", "Sigmoid", "Sqrt"};
  constexpr int kLongChain = 3;
  constexpr int64_t kFewElements = 64;
  constexpr int64_t kManyElements = int64_t{1} << 20;
  for (const std::string_view operator_type : kOperators) {
    const std::string question = split::MakeChainModel(operator_type, 1, kFewElements);
    if (!device_
             .CheckCompatibility(
                 {reinterpret_cast<const std::byte*>(question.data()), question.size()})
             .ok()) {
      continue;
    }
    const auto one = TimeChain(operator_type, 1, kFewElements);
    const auto three = TimeChain(operator_type, kLongChain, kFewElements);
    const auto large = TimeChain(operator_type, 1, kManyElements);
    const auto large_three = TimeChain(operator_type, kLongChain, kManyElements);
    if (!one || !three || !large || !large_three) continue;
    const auto node_ns = [](const ChainTime& single, const ChainTime& triple) {
      return std::clamp<int64_t>((triple.run_ns - single.run_ns) / (kLongChain - 1), 0,
                                 single.run_ns);
    };
    partition::DeviceCost cost;
    cost.launch_ns = one->run_ns - node_ns(*one, *three);
    if (!large->copies) return cost;
    constexpr int64_t kPicosecondsPerNanosecond = 1000;
    const int64_t copies_ns =
        std::max<int64_t>(0, large->run_ns - node_ns(*large, *large_three) - cost.launch_ns);
    // Both ways the same.
    const int64_t bytes = 2 * tensor::SizeBytes(tensor::ElementType::kFloat32, kManyElements);
    cost.enter.picoseconds_per_byte = copies_ns * kPicosecondsPerNanosecond / bytes;
    cost.leave = cost.enter;
    return cost;
  }
  return std::nullopt;
}

std::optional<int64_t> Meter::TimeNode(const split::WholeModel& whole, int32_t node,
                                       const partition::DeviceCost& edges) const {
  const split::IslandModel island = whole.Extract({&node, 1});
  if (island.outputs.empty()) return std::nullopt;
  abi::GraphRequest request = request_;
  request.model = {reinterpret_cast<const std::byte*>(island.bytes.data()), island.bytes.size()};
  std::vector<abi::TensorDescriptor> weights;
  for (const int32_t weight : island.weights) weights.push_back(request_.weights[weight]);
  request.weights = weights;
  const auto graph = ForwardedGraph::Init(backend_, request);
  if (!graph.ok()) return std::nullopt;
  auto trial = RunTrial::Prepare(**graph, whole, island.inputs, island.outputs, clock_);
  const auto run_ns = trial ? trial->LeastTime() : std::nullopt;
  if (!run_ns) return std::nullopt;
  int64_t edges_ns = edges.launch_ns;
  for (const int32_t input : island.inputs) {
    edges_ns += edges.enter.TimeNs(split::SizeBytes(whole.values()[input]));
  }
  for (const int32_t output : island.outputs) {
    edges_ns += edges.leave.TimeNs(split::SizeBytes(whole.values()[output]));
  }
  return std::max<int64_t>(*run_ns - edges_ns, 0);
}

}  // namespace onnxifi::measurement

// SPDX-License-Identifier: Apache-2.0
//
// Meter: a run to warm up, then a few as a short time allows.

#include "onnxifi/dispatch/meter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/core/tensor/element_type.h"
#include "onnxifi/dispatch/forwarded_graph.h"
#include "onnxifi/split/chain_model.h"
#include "onnxifi/split/model_problem.h"

namespace onnxifi::dispatch {

using tensor::ElementType;

namespace {

constexpr int kFewestRuns = 3;
constexpr int kMostRuns = 9;
constexpr std::chrono::milliseconds kEnoughTime(60);

// Memory of tensors of the caller's, aligned as callers are asked to.
class Tensors {
 public:
  abi::TensorDescriptor Add(const std::string& name, ElementType type, std::vector<uint64_t> shape,
                            int64_t size_bytes) {
    constexpr size_t kAlignment = 64;
    std::vector<std::byte>& memory =
        memories_.emplace_back(static_cast<size_t>(size_bytes) + kAlignment);
    void* start = memory.data();
    size_t space = memory.size();
    std::align(kAlignment, static_cast<size_t>(size_bytes), start, space);
    abi::TensorDescriptor descriptor;
    descriptor.name = name;
    descriptor.data_type = static_cast<onnxEnum>(type);
    descriptor.shape = std::move(shape);
    descriptor.buffer = reinterpret_cast<onnxPointer>(start);
    return descriptor;
  }

 private:
  std::vector<std::vector<std::byte>> memories_;
};

template <typename T>
void FillAll(void* memory, int64_t size_bytes, T value) {
  auto* bytes = static_cast<std::byte*>(memory);
  for (int64_t at = 0; at + static_cast<int64_t>(sizeof(T)) <= size_bytes;
       at += static_cast<int64_t>(sizeof(T))) {
    std::memcpy(bytes + at, &value, sizeof(T));
  }
}

// Ones, or halves where there are any: neither index nor divisor does harm, and no product grows or
// becomes so small that processors slow down.
void Fill(ElementType type, void* memory, int64_t size_bytes) {
  constexpr uint16_t kHalfOfFloat16 = 0x3800;
  constexpr uint16_t kHalfOfBfloat16 = 0x3f00;
  switch (type) {
    case ElementType::kFloat32:
      return FillAll(memory, size_bytes, 0.5F);
    case ElementType::kFloat64:
      return FillAll(memory, size_bytes, 0.5);
    case ElementType::kFloat16:
      return FillAll(memory, size_bytes, kHalfOfFloat16);
    case ElementType::kBfloat16:
      return FillAll(memory, size_bytes, kHalfOfBfloat16);
    case ElementType::kInt64:
    case ElementType::kUint64:
      return FillAll(memory, size_bytes, uint64_t{1});
    case ElementType::kInt32:
    case ElementType::kUint32:
      return FillAll(memory, size_bytes, uint32_t{1});
    case ElementType::kInt16:
    case ElementType::kUint16:
      return FillAll(memory, size_bytes, uint16_t{1});
    case ElementType::kInt8:
    case ElementType::kUint8:
    case ElementType::kBool:
      return FillAll(memory, size_bytes, uint8_t{1});
    default:
      return FillAll(memory, size_bytes, uint8_t{0});
  }
}

std::optional<int64_t> TimeBound(abi::Graph& graph, abi::GraphTensors tensors, const Clock& clock) {
  const auto binding = graph.Bind(std::move(tensors));
  if (!binding.ok()) return std::nullopt;
  // The first prepares what later ones find. Of these the least: whatever else happens on the
  // machine only adds.
  int64_t least_ns = std::numeric_limits<int64_t>::max();
  const auto start = clock();
  for (int run = 0; run <= kMostRuns; ++run) {
    const auto run_start = clock();
    const auto event = graph.Run(*binding, /*input=*/nullptr);
    if (!event.ok() || !(*event)->Wait().ok()) return std::nullopt;
    const auto now = clock();
    if (run > 0) least_ns = std::min<int64_t>(least_ns, (now - run_start).count());
    if (run >= kFewestRuns && now - start >= kEnoughTime) break;
  }
  return least_ns;
}

std::vector<uint64_t> ShapeOf(const split::FlowingValue& value) {
  std::vector<uint64_t> shape;
  for (const split::Dimension& dimension : *value.dimensions) {
    shape.push_back(dimension.number < 0 ? 1 : static_cast<uint64_t>(dimension.number));
  }
  return shape;
}

}  // namespace

std::chrono::nanoseconds SteadyTime() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

std::optional<int64_t> TimeRuns(abi::Graph& graph, const split::WholeModel& whole,
                                std::span<const int32_t> inputs, std::span<const int32_t> outputs,
                                const Clock& clock) {
  // More than this is not set aside for an experiment.
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  Tensors memory;
  abi::GraphTensors tensors;
  int64_t all_bytes = 0;
  for (const int32_t input : inputs) {
    const split::FlowingValue& value = whole.values()[input];
    const int64_t size_bytes = split::SizeBytes(value);
    all_bytes = all_bytes > kMostBytes - std::min(size_bytes, kMostBytes) ? kMostBytes
                                                                          : all_bytes + size_bytes;
    if (!value.is_carried() || all_bytes >= kMostBytes) return std::nullopt;
    tensors.inputs.push_back(memory.Add(value.name, value.type, ShapeOf(value), size_bytes));
    Fill(value.type, tensors.inputs.back().mutable_cpu_data(), size_bytes);
  }
  std::vector<abi::TensorShape> shapes;
  if (auto inferred = graph.InferOutputShapes(tensors.inputs); inferred.ok()) {
    shapes = *std::move(inferred);
  }
  for (size_t place = 0; place < outputs.size(); ++place) {
    const split::FlowingValue& value = whole.values()[outputs[place]];
    if (!value.is_carried()) return std::nullopt;
    split::FlowingValue sized = value;
    if (place < shapes.size() && shapes[place].has_rank) {
      sized.dimensions.emplace();
      for (const int64_t extent : shapes[place].extents) sized.dimensions->push_back({extent, ""});
    }
    // What only a run tells is not run for this.
    if (!sized.has_fixed_shape()) return std::nullopt;
    const int64_t size_bytes = split::SizeBytes(sized);
    if (size_bytes >= kMostBytes - all_bytes) return std::nullopt;
    all_bytes += size_bytes;
    tensors.outputs.push_back(memory.Add(value.name, value.type, ShapeOf(sized), size_bytes));
  }
  return TimeBound(graph, std::move(tensors), clock);
}

std::optional<Meter::ChainTime> Meter::TimeChain(std::string_view operator_type, int length,
                                                 int64_t element_count) const {
  const std::string model = split::MakeChainModel(operator_type, length, element_count);
  abi::GraphRequest request = request_;
  request.model = {reinterpret_cast<const std::byte*>(model.data()), model.size()};
  request.weights = {};
  const auto graph = ForwardedGraph::Init(backend_, request);
  if (!graph.ok()) return std::nullopt;
  Tensors memory;
  abi::GraphTensors tensors;
  const int64_t size_bytes = tensor::SizeBytes(ElementType::kFloat32, element_count);
  const std::vector<uint64_t> shape = {static_cast<uint64_t>(element_count)};
  tensors.inputs.push_back(memory.Add("x", ElementType::kFloat32, shape, size_bytes));
  tensors.outputs.push_back(memory.Add("y", ElementType::kFloat32, shape, size_bytes));
  Fill(ElementType::kFloat32, tensors.inputs[0].mutable_cpu_data(), size_bytes);
  const auto run_ns = TimeBound(**graph, std::move(tensors), clock_);
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
    const int64_t bytes = 2 * tensor::SizeBytes(ElementType::kFloat32, kManyElements);
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
  const auto run_ns = TimeRuns(**graph, whole, island.inputs, island.outputs, clock_);
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

}  // namespace onnxifi::dispatch

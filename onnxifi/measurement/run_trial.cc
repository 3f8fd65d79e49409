// SPDX-License-Identifier: Apache-2.0
//
// RunTrial: a run to warm up, then as many as a short time allows.

#include "onnxifi/measurement/run_trial.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "onnxifi/split/model_problem.h"

namespace onnxifi::measurement {

using tensor::ElementType;

namespace {

constexpr int kMinRuns = 3;
constexpr int kMaxRuns = 9;
constexpr std::chrono::milliseconds kEnoughTime(60);
// Odd numbers of pairs have one in the middle.
constexpr size_t kMinPairs = 5;
constexpr size_t kMaxPairs = 15;
constexpr std::chrono::milliseconds kEnoughTimeForPairs(200);
// More than this is not set aside for an experiment.
constexpr int64_t kMaxBytes = int64_t{1} << 30;

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

std::vector<uint64_t> ExtentsOf(const split::FlowingValue& value) {
  std::vector<uint64_t> extents;
  for (const split::Dimension& dimension : *value.dimensions) {
    extents.push_back(dimension.number < 0 ? 1 : static_cast<uint64_t>(dimension.number));
  }
  return extents;
}

// Saturates beyond what an experiment may have.
int64_t SizeBytes(const RunTrial::Tensor& tensor) {
  uint64_t count = 1;
  for (const uint64_t extent : tensor.extents) {
    if (extent != 0 && count > kMaxBytes / extent) return kMaxBytes;
    count *= extent;
  }
  return tensor::SizeBytes(tensor.type, static_cast<int64_t>(count));
}

}  // namespace

std::chrono::nanoseconds SteadyTime() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

std::optional<RunTrial> RunTrial::Prepare(abi::Graph& graph, std::span<const Tensor> inputs,
                                          std::span<const Tensor> outputs, const Clock& clock) {
  RunTrial trial(graph, clock);
  for (const Tensor& input : inputs) {
    if (!trial.AddInput(input)) return std::nullopt;
  }
  for (const Tensor& output : outputs) {
    if (!trial.AddOutput(output)) return std::nullopt;
  }
  if (!trial.Bind()) return std::nullopt;
  return trial;
}

std::optional<RunTrial> RunTrial::Prepare(abi::Graph& graph, const split::WholeModel& whole,
                                          std::span<const int32_t> inputs,
                                          std::span<const int32_t> outputs, const Clock& clock) {
  RunTrial trial(graph, clock);
  for (const int32_t input : inputs) {
    const split::FlowingValue& value = whole.values()[input];
    if (!value.is_carried() || !trial.AddInput({value.name, value.type, ExtentsOf(value)})) {
      return std::nullopt;
    }
  }
  std::vector<abi::TensorShape> shapes;
  if (auto inferred = graph.InferOutputShapes(trial.tensors_.inputs); inferred.ok()) {
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
    if (!trial.AddOutput({value.name, value.type, ExtentsOf(sized)})) return std::nullopt;
  }
  if (!trial.Bind()) return std::nullopt;
  return trial;
}

bool RunTrial::AddInput(const Tensor& tensor) {
  if (!Add(tensor, tensors_.inputs)) return false;
  abi::TensorDescriptor& added = tensors_.inputs.back();
  Fill(tensor.type, added.mutable_cpu_data(), SizeBytes(tensor));
  return true;
}

bool RunTrial::AddOutput(const Tensor& tensor) { return Add(tensor, tensors_.outputs); }

bool RunTrial::Add(const Tensor& tensor, std::vector<abi::TensorDescriptor>& tensors) {
  const int64_t size_bytes = SizeBytes(tensor);
  if (size_bytes >= kMaxBytes - all_bytes_) return false;
  all_bytes_ += size_bytes;
  // As callers are asked to align theirs.
  constexpr size_t kAlignment = 64;
  std::vector<std::byte>& memory =
      memories_.emplace_back(static_cast<size_t>(size_bytes) + kAlignment);
  void* start = memory.data();
  size_t space = memory.size();
  std::align(kAlignment, static_cast<size_t>(size_bytes), start, space);
  abi::TensorDescriptor& descriptor = tensors.emplace_back();
  descriptor.name = tensor.name;
  descriptor.data_type = static_cast<onnxEnum>(tensor.type);
  descriptor.shape = tensor.extents;
  descriptor.buffer = reinterpret_cast<onnxPointer>(start);
  return true;
}

bool RunTrial::Bind() {
  auto binding = graph_->Bind(std::move(tensors_));
  if (!binding.ok()) return false;
  binding_ = *std::move(binding);
  return true;
}

std::optional<int64_t> RunTrial::TimeRun() {
  const auto start = (*clock_)();
  const auto event = graph_->Run(binding_, /*input=*/nullptr);
  if (!event.ok() || !(*event)->Wait().ok()) return std::nullopt;
  return ((*clock_)() - start).count();
}

std::optional<int64_t> RunTrial::LeastTime() {
  if (!TimeRun()) return std::nullopt;
  // Whatever else happens on the machine only adds.
  int64_t least_ns = std::numeric_limits<int64_t>::max();
  const auto start = (*clock_)();
  for (int run = 0; run < kMaxRuns; ++run) {
    if (run >= kMinRuns && (*clock_)() - start >= kEnoughTime) break;
    const auto time_ns = TimeRun();
    if (!time_ns) return std::nullopt;
    least_ns = std::min(least_ns, *time_ns);
  }
  return least_ns;
}

std::optional<double> RunTrial::RatioTo(RunTrial& other) {
  if (!TimeRun() || !other.TimeRun()) return std::nullopt;
  std::vector<double> ratios;
  const auto start = (*clock_)();
  while (ratios.size() < kMaxPairs) {
    const bool has_middle = ratios.size() % 2 == 1;
    if (has_middle && ratios.size() >= kMinPairs && (*clock_)() - start >= kEnoughTimeForPairs) {
      break;
    }
    const auto time_ns = TimeRun();
    const auto other_ns = other.TimeRun();
    if (!time_ns || !other_ns) return std::nullopt;
    ratios.push_back(static_cast<double>(*time_ns) /
                     static_cast<double>(std::max<int64_t>(*other_ns, 1)));
  }
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

}  // namespace onnxifi::measurement

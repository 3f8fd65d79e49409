// SPDX-License-Identifier: Apache-2.0
//
// Control: If chooses a body; Loop and Scan run one until they are done, carrying values and
// stacking slices.

#include "backends/core/execution/control.h"

#include <cstring>
#include <limits>

#include "backends/core/tensor/convert.h"

namespace onnxifi::execution {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Control;
using tensor::ElementType;
using tensor::Extents;

// Keeps every output of a body run in memory of its own.
class OwnedPlaces : public OutputPlaces {
 public:
  explicit OwnedPlaces(const plan::Plan& plan)
      : plan_(plan), tensors_(plan.program().outputs.size()) {}

  Result<std::byte*> Place(int output, const Extents& extents) override {
    const program::Program& program = plan_.program();
    ElementType type = program.buffers[program.outputs[output].buffer].type;
    OwnedTensor& tensor = tensors_[output];
    tensor.extents = extents;
    int64_t size_bytes = tensor::SizeBytes(type, tensor::ElementCount(extents));
    if (size_bytes == 0) return static_cast<std::byte*>(nullptr);
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> memory,
                             plan_.device().memory().Allocate(size_bytes));
    ++plan_.counters().allocations;
    tensor.memory = std::move(memory);
    return tensor.memory->data();
  }

  Status Take(int output, tensor::ValueRef value) override {
    tensors_[output].value = std::move(value);
    return base::Ok();
  }

  std::vector<OwnedTensor> TakeAll() { return std::move(tensors_); }

 private:
  const plan::Plan& plan_;
  std::vector<OwnedTensor> tensors_;
};

ElementType OutputType(const Executor& body, size_t output) {
  const program::Program& program = body.plan().program();
  return program.buffers[program.outputs[output].buffer].type;
}

ElementType InputType(const Executor& body, size_t input) {
  const program::Program& program = body.plan().program();
  return program.buffers[program.inputs[input].buffer].type;
}

Result<OwnedTensor> AllocateTensor(const Executor& body, ElementType type, Extents extents) {
  OwnedTensor tensor;
  int64_t size_bytes = tensor::SizeBytes(type, tensor::ElementCount(extents));
  tensor.extents = std::move(extents);
  if (size_bytes == 0) return tensor;
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> memory,
                           body.plan().device().memory().Allocate(size_bytes));
  ++body.plan().counters().allocations;
  tensor.memory = std::move(memory);
  return tensor;
}

// Copies `count` elements; element by element where elements are narrower than a byte.
void CopyElements(ElementType type, const std::byte* from, int64_t from_index, std::byte* to,
                  int64_t to_index, int64_t count) {
  if (tensor::IsPacked(type)) {
    for (int64_t k = 0; k < count; ++k) {
      StoreScalar(type, to, to_index + k, LoadScalar(type, from, from_index + k));
    }
  } else if (count > 0) {
    int64_t width = tensor::BitWidth(type) / 8;
    std::memcpy(to + to_index * width, from + from_index * width,
                static_cast<size_t>(count * width));
  }
}

// Moves slice `position` along `axis` between a tensor of `extents` and a dense slice.
struct SliceLayout {
  int64_t outer = 1;
  int64_t length = 0;
  int64_t inner = 1;

  SliceLayout(const Extents& extents, int axis) : length(extents[axis]) {
    for (int k = 0; k < axis; ++k) outer *= extents[k];
    for (size_t k = static_cast<size_t>(axis) + 1; k < extents.size(); ++k) inner *= extents[k];
  }
  void Extract(ElementType type, const std::byte* whole, int64_t position, std::byte* slice) const {
    for (int64_t o = 0; o < outer; ++o) {
      CopyElements(type, whole, (o * length + position) * inner, slice, o * inner, inner);
    }
  }
  void Insert(ElementType type, const std::byte* slice, int64_t position, std::byte* whole) const {
    for (int64_t o = 0; o < outer; ++o) {
      CopyElements(type, slice, o * inner, whole, (o * length + position) * inner, inner);
    }
  }
};

// The slices of one stacked output, joined at the end.
class Stack {
 public:
  Stack(Control::ScanInput how, ElementType type) : how_(how), type_(type) {}

  Status Add(OwnedTensor slice) {
    if (!slices_.empty() && slice.extents != slices_.front().extents) {
      return Status(Code::kMismatchingShape,
                    "Iteration " + std::to_string(slices_.size()) + " stacks a slice of shape " +
                        tensor::ToString(slice.extents) + " on slices of shape " +
                        tensor::ToString(slices_.front().extents) + ".");
    }
    slices_.push_back(std::move(slice));
    return base::Ok();
  }

  // `empty_extents`: of a slice when there was none.
  Result<OwnedTensor> Join(const Executor& body, const Extents& empty_extents) const {
    Extents extents = slices_.empty() ? empty_extents : slices_.front().extents;
    extents.insert(extents.begin() + how_.axis, static_cast<int64_t>(slices_.size()));
    ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor whole, AllocateTensor(body, type_, extents));
    if (!whole.memory) return whole;
    SliceLayout layout(extents, how_.axis);
    for (size_t k = 0; k < slices_.size(); ++k) {
      size_t position = how_.reverse ? slices_.size() - 1 - k : k;
      layout.Insert(type_, slices_[k].data(), static_cast<int64_t>(position), whole.memory->data());
      ++body.plan().counters().copies;
    }
    return whole;
  }

 private:
  Control::ScanInput how_;
  ElementType type_;
  std::vector<OwnedTensor> slices_;
};

// The extents of a body's output that are numbers; 0 for those that only a run would tell.
Extents DeclaredExtents(const Executor& body, size_t output) {
  Extents extents;
  for (const program::Dim& dim : body.plan().program().outputs[output].shape) {
    extents.push_back(dim.is_constant() ? dim.constant() : 0);
  }
  return extents;
}

void AddCaptures(const Control& control, size_t body, std::span<const InputTensor> reads,
                 std::vector<InputTensor>& inputs) {
  for (int read : control.captures[body]) inputs.push_back(reads[read]);
}

Result<OwnedTensor> CopyOf(const Executor& body, ElementType type, const InputTensor& input) {
  if (input.value != nullptr) return OwnedTensor{nullptr, {}, input.value};
  ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor copy, AllocateTensor(body, type, input.extents));
  if (copy.memory) {
    std::memcpy(copy.memory->data(), input.data,
                static_cast<size_t>(tensor::SizeBytes(type, tensor::ElementCount(input.extents))));
    ++body.plan().counters().copies;
  }
  return copy;
}

Result<std::vector<OwnedTensor>> RunIf(const Control& control,
                                       std::span<const std::unique_ptr<Executor>> bodies,
                                       std::span<const InputTensor> reads,
                                       tensor::StringTable* strings) {
  size_t chosen = *reinterpret_cast<const uint8_t*>(reads[0].data) != 0 ? 0 : 1;
  std::vector<InputTensor> inputs;
  AddCaptures(control, chosen, reads, inputs);
  OwnedPlaces places(bodies[chosen]->plan());
  ONNXIFI_RETURN_IF_ERROR(bodies[chosen]->Run(inputs, places, /*profile=*/nullptr, strings));
  return places.TakeAll();
}

Result<std::vector<OwnedTensor>> RunLoop(const Control& control, Executor& body,
                                         std::span<const InputTensor> reads,
                                         tensor::StringTable* strings) {
  int64_t trip_count = std::numeric_limits<int64_t>::max();
  if (reads[0].data != nullptr) trip_count = *reinterpret_cast<const int64_t*>(reads[0].data);
  uint8_t condition = 1;
  if (reads[1].data != nullptr) condition = *reinterpret_cast<const uint8_t*>(reads[1].data);

  size_t carried_count = static_cast<size_t>(control.carried);
  std::vector<OwnedTensor> carried(carried_count);
  std::vector<InputTensor> current(reads.begin() + 2, reads.begin() + 2 + control.carried);
  std::vector<Stack> stacks;
  for (size_t k = 0; k < control.stacked.size(); ++k) {
    stacks.emplace_back(control.stacked[k], OutputType(body, 1 + carried_count + k));
  }
  bool has_run = false;
  for (int64_t iteration = 0; iteration < trip_count && condition != 0; ++iteration) {
    std::vector<InputTensor> inputs = {{reinterpret_cast<const std::byte*>(&iteration), {}},
                                       {reinterpret_cast<const std::byte*>(&condition), {}}};
    inputs.insert(inputs.end(), current.begin(), current.end());
    AddCaptures(control, 0, reads, inputs);
    OwnedPlaces places(body.plan());
    ONNXIFI_RETURN_IF_ERROR(body.Run(inputs, places, /*profile=*/nullptr, strings));
    std::vector<OwnedTensor> outputs = places.TakeAll();
    condition = *reinterpret_cast<const uint8_t*>(outputs[0].data());
    for (size_t k = 0; k < carried_count; ++k) {
      carried[k] = std::move(outputs[1 + k]);
      current[k] = carried[k].AsInput();
    }
    for (size_t k = 0; k < stacks.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(stacks[k].Add(std::move(outputs[1 + carried_count + k])));
    }
    has_run = true;
  }

  std::vector<OwnedTensor> results;
  for (size_t k = 0; k < carried_count; ++k) {
    if (!has_run) {
      ONNXIFI_ASSIGN_OR_RETURN(carried[k], CopyOf(body, InputType(body, 2 + k), current[k]));
    }
    results.push_back(std::move(carried[k]));
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor stacked,
                             stacks[k].Join(body, DeclaredExtents(body, 1 + carried_count + k)));
    results.push_back(std::move(stacked));
  }
  return results;
}

Result<std::vector<OwnedTensor>> RunScan(const Control& control, Executor& body,
                                         std::span<const InputTensor> reads,
                                         tensor::StringTable* strings) {
  size_t carried_count = static_cast<size_t>(control.carried);
  size_t scanned_count = control.scanned.size();
  std::vector<InputTensor> current(reads.begin(), reads.begin() + control.carried);
  std::vector<OwnedTensor> carried(carried_count);
  std::vector<Stack> stacks;
  for (size_t k = 0; k < control.stacked.size(); ++k) {
    stacks.emplace_back(control.stacked[k], OutputType(body, carried_count + k));
  }
  std::vector<OwnedTensor> slices(scanned_count);
  std::vector<SliceLayout> layouts;
  for (size_t k = 0; k < scanned_count; ++k) {
    const InputTensor& whole = reads[carried_count + k];
    layouts.emplace_back(whole.extents, control.scanned[k].axis);
    Extents extents = whole.extents;
    extents.erase(extents.begin() + control.scanned[k].axis);
    ONNXIFI_ASSIGN_OR_RETURN(slices[k],
                             AllocateTensor(body, InputType(body, carried_count + k), extents));
  }
  int64_t length = layouts.empty() ? 0 : layouts[0].length;
  for (int64_t iteration = 0; iteration < length; ++iteration) {
    std::vector<InputTensor> inputs = current;
    for (size_t k = 0; k < scanned_count; ++k) {
      int64_t position = control.scanned[k].reverse ? length - 1 - iteration : iteration;
      if (slices[k].memory) {
        layouts[k].Extract(InputType(body, carried_count + k), reads[carried_count + k].data,
                           position, slices[k].memory->data());
        ++body.plan().counters().copies;
      }
      inputs.push_back(slices[k].AsInput());
    }
    AddCaptures(control, 0, reads, inputs);
    OwnedPlaces places(body.plan());
    ONNXIFI_RETURN_IF_ERROR(body.Run(inputs, places, /*profile=*/nullptr, strings));
    std::vector<OwnedTensor> outputs = places.TakeAll();
    for (size_t k = 0; k < carried_count; ++k) {
      carried[k] = std::move(outputs[k]);
      current[k] = carried[k].AsInput();
    }
    for (size_t k = 0; k < stacks.size(); ++k) {
      ONNXIFI_RETURN_IF_ERROR(stacks[k].Add(std::move(outputs[carried_count + k])));
    }
  }
  std::vector<OwnedTensor> results;
  for (size_t k = 0; k < carried_count; ++k) {
    if (length == 0) {
      ONNXIFI_ASSIGN_OR_RETURN(carried[k], CopyOf(body, InputType(body, k), current[k]));
    }
    results.push_back(std::move(carried[k]));
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor stacked,
                             stacks[k].Join(body, DeclaredExtents(body, carried_count + k)));
    results.push_back(std::move(stacked));
  }
  return results;
}

}  // namespace

Result<std::vector<OwnedTensor>> RunControlStep(const Control& control,
                                                std::span<const std::unique_ptr<Executor>> bodies,
                                                std::span<const InputTensor> reads,
                                                tensor::StringTable* strings) {
  switch (control.kind) {
    case Control::Kind::kIf:
      return RunIf(control, bodies, reads, strings);
    case Control::Kind::kLoop:
      return RunLoop(control, *bodies[0], reads, strings);
    case Control::Kind::kScan:
      return RunScan(control, *bodies[0], reads, strings);
  }
  return Status(Code::kInternalError, "A control step has an unknown kind.");
}

}  // namespace onnxifi::execution

// SPDX-License-Identifier: Apache-2.0
//
// Control: If chooses a body; Loop and Scan run one until they are done, carrying values and
// stacking slices.

#include "backends/core/execution/control.h"

#include <limits>

#include "backends/core/device/transfer.h"
#include "backends/core/execution/extents_without_run.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::execution {
namespace {

using base::Code;
using base::Result;
using base::Status;
using program::Control;
using tensor::ElementType;
using tensor::Extents;

// Waits for a queue at the end of a scope, whichever way it is left.
class FinishAtEnd {
 public:
  FinishAtEnd(device::Queue* queue, plan::Counters& counters)
      : queue_(queue), counters_(counters) {}
  ~FinishAtEnd() {
    if (queue_ == nullptr) return;
    ++counters_.waits;
    // An error shows in whatever is asked of the queue next.
    static_cast<void>(queue_->Finish());
  }
  FinishAtEnd(const FinishAtEnd&) = delete;
  FinishAtEnd& operator=(const FinishAtEnd&) = delete;

 private:
  device::Queue* const queue_;
  plan::Counters& counters_;
};

// Keeps every output of a body run in memory of its own.
class OwnedOutputs : public OutputAllocator {
 public:
  explicit OwnedOutputs(const plan::Plan& plan)
      : plan_(plan), tensors_(plan.program().outputs.size()) {}

  Result<std::byte*> Allocate(int output, const Extents& extents) override {
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

ElementType OutputType(const PlanRunner& body, size_t output) {
  const program::Program& program = body.plan().program();
  return program.buffers[program.outputs[output].buffer].type;
}

ElementType InputType(const PlanRunner& body, size_t input) {
  const program::Program& program = body.plan().program();
  return program.buffers[program.inputs[input].buffer].type;
}

Result<OwnedTensor> AllocateTensor(const PlanRunner& body, ElementType type, Extents extents) {
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

// Elements narrower than a byte one by one, in the host's memory.
void CopyPacked(ElementType type, const std::byte* from, int64_t from_index, std::byte* to,
                int64_t to_index, int64_t count) {
  for (int64_t k = 0; k < count; ++k) {
    StoreScalar(type, to, to_index + k, LoadScalar(type, from, from_index + k));
  }
}

// The bytes that some consecutive elements lie in, from the first that an element begins with.
struct ByteRange {
  int64_t begin;
  int64_t size_bytes;
  int64_t first_index;  // of the elements, counted from `begin`

  ByteRange(ElementType type, int64_t index, int64_t count) {
    const int64_t per_group = tensor::ElementsPerGroup(type);
    begin = tensor::SizeBytes(type, index / per_group * per_group);
    first_index = index % per_group;
    size_bytes = tensor::SizeBytes(type, first_index + count);
  }
};

// Copies `count` elements.
Status CopyElements(device::Queue* queue, plan::Counters& counters, ElementType type,
                    const std::byte* from, int64_t from_index, std::byte* to, int64_t to_index,
                    int64_t count) {
  if (count <= 0) return base::Ok();
  if (!tensor::IsPacked(type)) {
    const int64_t width = tensor::BitWidth(type) / 8;
    return device::Copy(queue, from + from_index * width, to + to_index * width, count * width);
  }
  if (queue == nullptr) {
    CopyPacked(type, from, from_index, to, to_index, count);
    return base::Ok();
  }
  // By way of the host, which can tell neighbours in a byte apart.
  const ByteRange source(type, from_index, count);
  const ByteRange target(type, to_index, count);
  std::vector<std::byte> source_bytes(static_cast<size_t>(source.size_bytes));
  std::vector<std::byte> target_bytes(static_cast<size_t>(target.size_bytes));
  Status status = queue->Download(from + source.begin, source_bytes.data(), source.size_bytes);
  if (status.ok()) {
    ++counters.waits;
    status = device::Read(queue, to + target.begin, target_bytes.data(), target.size_bytes);
  }
  if (status.ok()) {
    CopyPacked(type, source_bytes.data(), source.first_index, target_bytes.data(),
               target.first_index, count);
    status = queue->Upload(target_bytes.data(), to + target.begin, target.size_bytes);
  }
  // The vectors are to outlive what was put into the queue, whatever went wrong.
  ++counters.waits;
  Status finished = queue->Finish();
  return status.ok() ? finished : status;
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
  Status Extract(device::Queue* queue, plan::Counters& counters, ElementType type,
                 const std::byte* whole, int64_t position, std::byte* slice) const {
    for (int64_t o = 0; o < outer; ++o) {
      ONNXIFI_RETURN_IF_ERROR(CopyElements(
          queue, counters, type, whole, (o * length + position) * inner, slice, o * inner, inner));
    }
    return base::Ok();
  }
  Status Insert(device::Queue* queue, plan::Counters& counters, ElementType type,
                const std::byte* slice, int64_t position, std::byte* whole) const {
    for (int64_t o = 0; o < outer; ++o) {
      ONNXIFI_RETURN_IF_ERROR(CopyElements(queue, counters, type, slice, o * inner, whole,
                                           (o * length + position) * inner, inner));
    }
    return base::Ok();
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
  Result<OwnedTensor> Join(const PlanRunner& body, const Extents& empty_extents,
                           device::Queue* queue) const {
    Extents extents = slices_.empty() ? empty_extents : slices_.front().extents;
    extents.insert(extents.begin() + how_.axis, static_cast<int64_t>(slices_.size()));
    ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor whole, AllocateTensor(body, type_, extents));
    if (!whole.memory) return whole;
    SliceLayout layout(extents, how_.axis);
    for (size_t k = 0; k < slices_.size(); ++k) {
      size_t position = how_.reverse ? slices_.size() - 1 - k : k;
      ONNXIFI_RETURN_IF_ERROR(layout.Insert(queue, body.plan().counters(), type_, slices_[k].data(),
                                            static_cast<int64_t>(position), whole.memory->data()));
      ++body.plan().counters().copies;
    }
    return whole;
  }

 private:
  Control::ScanInput how_;
  ElementType type_;
  std::vector<OwnedTensor> slices_;
};

void AddCaptures(const Control& control, size_t body, std::span<const InputTensor> reads,
                 std::vector<InputTensor>& inputs) {
  for (int read : control.captures[body]) inputs.push_back(reads[read]);
}

// Adds the stacked outputs, of which the body's are [first, ...). Without an iteration they are
// empty, of the extents that the body has for `inputs`.
Status JoinAll(const std::vector<Stack>& stacks, const PlanRunner& body, size_t first,
               std::span<const InputTensor> inputs, bool has_run, device::Queue* queue,
               std::vector<OwnedTensor>& results) {
  std::vector<Extents> empty(stacks.size());
  if (!has_run && !stacks.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(empty, ExtentsWithoutRun(body.plan(), first, inputs));
  }
  for (size_t k = 0; k < stacks.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor stacked, stacks[k].Join(body, empty[k], queue));
    results.push_back(std::move(stacked));
  }
  return base::Ok();
}

Result<OwnedTensor> CopyOf(const PlanRunner& body, ElementType type, const InputTensor& input,
                           device::Queue* queue) {
  if (input.value != nullptr) return OwnedTensor{nullptr, {}, input.value};
  ONNXIFI_ASSIGN_OR_RETURN(OwnedTensor copy, AllocateTensor(body, type, input.extents));
  if (copy.memory) {
    const int64_t size_bytes = tensor::SizeBytes(type, tensor::ElementCount(input.extents));
    ONNXIFI_RETURN_IF_ERROR(device::Copy(queue, input.data, copy.memory->data(), size_bytes));
    ++body.plan().counters().copies;
  }
  return copy;
}

// A number that lies in the device's memory.
template <typename T>
Result<T> ReadNumber(device::Queue* queue, plan::Counters& counters, const std::byte* from) {
  T number;
  if (queue != nullptr) ++counters.waits;
  ONNXIFI_RETURN_IF_ERROR(
      device::Read(queue, from, reinterpret_cast<std::byte*>(&number), sizeof(number)));
  return number;
}

Result<std::vector<OwnedTensor>> RunIf(const Control& control,
                                       std::span<const std::unique_ptr<PlanRunner>> bodies,
                                       std::span<const InputTensor> reads,
                                       tensor::StringTable* strings, device::Queue* queue) {
  ONNXIFI_ASSIGN_OR_RETURN(const uint8_t condition,
                           ReadNumber<uint8_t>(queue, bodies[0]->plan().counters(), reads[0].data));
  size_t chosen = condition != 0 ? 0 : 1;
  std::vector<InputTensor> inputs;
  AddCaptures(control, chosen, reads, inputs);
  OwnedOutputs places(bodies[chosen]->plan());
  ONNXIFI_RETURN_IF_ERROR(bodies[chosen]->Run(inputs, places, /*profile=*/nullptr, strings, queue));
  return places.TakeAll();
}

// A number of the host's as an input: where it lies, or, for a device with memory of its own, as a
// copy there. `number` stays until the queue is finished.
template <typename T>
class NumberInput {
 public:
  static Result<NumberInput> Create(const PlanRunner& body, ElementType type, const T& number,
                                    device::Queue* queue) {
    NumberInput input(number);
    if (queue != nullptr) {
      ONNXIFI_ASSIGN_OR_RETURN(input.copy_, AllocateTensor(body, type, {}));
    }
    return input;
  }
  Result<InputTensor> Give(device::Queue* queue) {
    const auto* bytes = reinterpret_cast<const std::byte*>(number_);
    if (queue == nullptr) return InputTensor{bytes, {}};
    ONNXIFI_RETURN_IF_ERROR(queue->Upload(bytes, copy_.memory->data(), sizeof(T)));
    return copy_.AsInput();
  }

 private:
  explicit NumberInput(const T& number) : number_(&number) {}

  const T* number_;
  OwnedTensor copy_;
};

Result<std::vector<OwnedTensor>> RunLoop(const Control& control, PlanRunner& body,
                                         std::span<const InputTensor> reads,
                                         tensor::StringTable* strings, device::Queue* queue) {
  plan::Counters& counters = body.plan().counters();
  int64_t trip_count = std::numeric_limits<int64_t>::max();
  if (reads[0].data != nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(trip_count, ReadNumber<int64_t>(queue, counters, reads[0].data));
  }
  // What the queue may still read when an iteration fails is to outlive it.
  int64_t iteration = 0;
  uint8_t condition = 1;
  const FinishAtEnd finish(queue, counters);
  if (reads[1].data != nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(condition, ReadNumber<uint8_t>(queue, counters, reads[1].data));
  }
  ONNXIFI_ASSIGN_OR_RETURN(
      NumberInput<int64_t> iteration_input,
      NumberInput<int64_t>::Create(body, ElementType::kInt64, iteration, queue));
  ONNXIFI_ASSIGN_OR_RETURN(
      NumberInput<uint8_t> condition_input,
      NumberInput<uint8_t>::Create(body, ElementType::kBool, condition, queue));

  size_t carried_count = static_cast<size_t>(control.carried);
  std::vector<OwnedTensor> carried(carried_count);
  std::vector<InputTensor> current(reads.begin() + 2, reads.begin() + 2 + control.carried);
  std::vector<Stack> stacks;
  for (size_t k = 0; k < control.stacked.size(); ++k) {
    stacks.emplace_back(control.stacked[k], OutputType(body, 1 + carried_count + k));
  }
  bool has_run = false;
  for (; iteration < trip_count && condition != 0; ++iteration) {
    ONNXIFI_ASSIGN_OR_RETURN(const InputTensor iteration_tensor, iteration_input.Give(queue));
    ONNXIFI_ASSIGN_OR_RETURN(const InputTensor condition_tensor, condition_input.Give(queue));
    std::vector<InputTensor> inputs = {iteration_tensor, condition_tensor};
    inputs.insert(inputs.end(), current.begin(), current.end());
    AddCaptures(control, 0, reads, inputs);
    OwnedOutputs places(body.plan());
    ONNXIFI_RETURN_IF_ERROR(body.Run(inputs, places, /*profile=*/nullptr, strings, queue));
    std::vector<OwnedTensor> outputs = places.TakeAll();
    ONNXIFI_ASSIGN_OR_RETURN(condition, ReadNumber<uint8_t>(queue, counters, outputs[0].data()));
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
      ONNXIFI_ASSIGN_OR_RETURN(carried[k], CopyOf(body, InputType(body, 2 + k), current[k], queue));
    }
    results.push_back(std::move(carried[k]));
  }
  std::vector<InputTensor> inputs = {InputTensor{}, InputTensor{}};
  inputs.insert(inputs.end(), current.begin(), current.end());
  AddCaptures(control, 0, reads, inputs);
  ONNXIFI_RETURN_IF_ERROR(
      JoinAll(stacks, body, 1 + carried_count, inputs, has_run, queue, results));
  return results;
}

Result<std::vector<OwnedTensor>> RunScan(const Control& control, PlanRunner& body,
                                         std::span<const InputTensor> reads,
                                         tensor::StringTable* strings, device::Queue* queue) {
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
        ONNXIFI_RETURN_IF_ERROR(
            layouts[k].Extract(queue, body.plan().counters(), InputType(body, carried_count + k),
                               reads[carried_count + k].data, position, slices[k].memory->data()));
        ++body.plan().counters().copies;
      }
      inputs.push_back(slices[k].AsInput());
    }
    AddCaptures(control, 0, reads, inputs);
    OwnedOutputs places(body.plan());
    ONNXIFI_RETURN_IF_ERROR(body.Run(inputs, places, /*profile=*/nullptr, strings, queue));
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
      ONNXIFI_ASSIGN_OR_RETURN(carried[k], CopyOf(body, InputType(body, k), current[k], queue));
    }
    results.push_back(std::move(carried[k]));
  }
  std::vector<InputTensor> inputs = current;
  for (const OwnedTensor& slice : slices) inputs.push_back(slice.AsInput());
  AddCaptures(control, 0, reads, inputs);
  ONNXIFI_RETURN_IF_ERROR(
      JoinAll(stacks, body, carried_count, inputs, /*has_run=*/length > 0, queue, results));
  return results;
}

}  // namespace

Result<std::vector<OwnedTensor>> RunControlStep(const Control& control,
                                                std::span<const std::unique_ptr<PlanRunner>> bodies,
                                                std::span<const InputTensor> reads,
                                                tensor::StringTable* strings,
                                                device::Queue* queue) {
  switch (control.kind) {
    case Control::Kind::kIf:
      return RunIf(control, bodies, reads, strings, queue);
    case Control::Kind::kLoop:
      return RunLoop(control, *bodies[0], reads, strings, queue);
    case Control::Kind::kScan:
      return RunScan(control, *bodies[0], reads, strings, queue);
  }
  return Status(Code::kInternalError, "A control step has an unknown kind.");
}

}  // namespace onnxifi::execution

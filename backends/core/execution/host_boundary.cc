// SPDX-License-Identifier: Apache-2.0
//
// HostBoundary: a lane is a queue and the device memory that inputs and outputs pass through.

#include "backends/core/execution/host_boundary.h"

#include <string>
#include <utility>

#include "backends/core/device/transfer.h"

namespace onnxifi::execution {
namespace {

using base::Result;
using base::Status;
using tensor::Extents;

// Memory for one input or output, kept from run to run and grown where it is too small.
class Slot {
 public:
  // Null for no bytes.
  Result<std::byte*> Get(const plan::Plan& plan, Recordings& recordings, int64_t size_bytes) {
    if (size_bytes == 0) return static_cast<std::byte*>(nullptr);
    if (memory_ == nullptr || memory_->size_bytes() < size_bytes) {
      if (memory_ != nullptr) recordings.Forget(memory_->data(), memory_->size_bytes());
      memory_.reset();
      ONNXIFI_ASSIGN_OR_RETURN(memory_, plan.device().memory().Allocate(size_bytes));
      ++plan.counters().allocations;
    }
    return memory_->data();
  }

 private:
  std::unique_ptr<device::Allocation> memory_;
};

int64_t BufferBytes(const program::Program& program, program::BufferId buffer,
                    const Extents& extents) {
  return tensor::SizeBytes(program.buffers[static_cast<size_t>(buffer)].type,
                           tensor::ElementCount(extents));
}

}  // namespace

struct HostBoundary::Lane {
  std::unique_ptr<device::Queue> queue;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  int64_t counted_submissions = 0;

  // Device memory in the place of the caller's, which is filled in the end.
  class DeviceOutputs : public OutputAllocator {
   public:
    DeviceOutputs(const plan::Plan& plan, Recordings& recordings, Lane& lane,
                  OutputAllocator& outer)
        : plan_(plan), recordings_(recordings), lane_(lane), outer_(outer) {}

    Result<std::byte*> Allocate(int output, const Extents& extents) override {
      ONNXIFI_ASSIGN_OR_RETURN(std::byte * host, outer_.Allocate(output, extents));
      if (outer_.IsInside(output)) return host;
      const program::Program& program = plan_.program();
      const int64_t size_bytes =
          BufferBytes(program, program.outputs[static_cast<size_t>(output)].buffer, extents);
      ONNXIFI_ASSIGN_OR_RETURN(std::byte * inside, lane_.outputs[static_cast<size_t>(output)].Get(
                                                       plan_, recordings_, size_bytes));
      if (size_bytes == 0) return inside;
      placed_.push_back({inside, host, size_bytes});
      // Steps write packed elements and nothing beside them: what is behind the last one would be
      // what somebody else left in the device's memory.
      const tensor::ElementType type =
          program.buffers[program.outputs[static_cast<size_t>(output)].buffer].type;
      if (tensor::ElementCount(extents) * tensor::BitWidth(type) % 8 != 0) {
        static constexpr std::byte kZeros{0};
        ONNXIFI_RETURN_IF_ERROR(lane_.queue->Upload(&kZeros, inside + size_bytes - 1, 1));
        ++plan_.counters().copies;
      }
      return inside;
    }

    Status Take(int output, tensor::ValueRef value) override {
      return outer_.Take(output, std::move(value));
    }

    Status Download() {
      for (const Placed& placed : placed_) {
        ONNXIFI_RETURN_IF_ERROR(
            lane_.queue->Download(placed.inside, placed.host, placed.size_bytes));
        ++plan_.counters().copies;
      }
      return base::Ok();
    }

   private:
    struct Placed {
      std::byte* inside;
      std::byte* host;
      int64_t size_bytes;
    };
    const plan::Plan& plan_;
    Recordings& recordings_;
    Lane& lane_;
    OutputAllocator& outer_;
    std::vector<Placed> placed_;
  };
};

HostBoundary::HostBoundary(Executor& executor, const device::Queue* queue)
    : executor_(executor),
      has_queue_(queue != nullptr),
      counts_submissions_(queue != nullptr && queue->submission_count() >= 0),
      recordings_(std::make_shared<Recordings>(executor.plan().counters(),
                                               executor.plan().segments().size())) {
  if (has_queue_) executor_.RecordInto(recordings_.get());
}

HostBoundary::~HostBoundary() {
  executor_.RecordInto(nullptr);
  recordings_->Clear();
}

Result<std::unique_ptr<HostBoundary>> HostBoundary::Create(Executor& executor) {
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Queue> queue,
                           executor.plan().device().NewQueue());
  std::unique_ptr<HostBoundary> boundary(new HostBoundary(executor, queue.get()));
  if (queue != nullptr) {
    auto lane = std::make_unique<Lane>();
    lane->queue = std::move(queue);
    boundary->idle_.push_back(std::move(lane));
  }
  return boundary;
}

Result<std::unique_ptr<HostBoundary::Lane>> HostBoundary::TakeLane() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Lane> lane = std::move(idle_.back());
      idle_.pop_back();
      return lane;
    }
  }
  auto lane = std::make_unique<Lane>();
  ONNXIFI_ASSIGN_OR_RETURN(lane->queue, executor_.plan().device().NewQueue());
  return lane;
}

Status HostBoundary::Run(std::span<const InputTensor> inputs, OutputAllocator& allocator,
                         RunProfile* profile, tensor::StringTable* strings, End end,
                         std::span<const std::shared_ptr<const void>> kept) {
  if (!has_queue_) return executor_.Run(inputs, allocator, profile, strings);
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, TakeLane());
  for (const std::shared_ptr<const void>& object : kept) lane->queue->Keep(object);
  Status status = base::Ok();
  if (lane->queue->FindCapture()) {
    status = CheckCapture(inputs, allocator, /*is_profiled=*/profile != nullptr, end);
  }
  if (status.ok()) status = RunOn(*lane, inputs, allocator, profile, strings);
  if (end == End::kQueued && status.ok()) status = lane->queue->Submit();
  if (end == End::kFinished || !status.ok()) {
    // Whatever went wrong, nothing of this run may be under way when the caller has its memory
    // back.
    Status finished = lane->queue->Finish();
    if (status.ok()) status = std::move(finished);
  }
  if (counts_submissions_) {
    const int64_t submissions = lane->queue->submission_count();
    executor_.plan().counters().submissions +=
        static_cast<uint64_t>(submissions - lane->counted_submissions);
    lane->counted_submissions = submissions;
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(lane));
  return status;
}

Status HostBoundary::CheckCapture(std::span<const InputTensor> inputs,
                                  const OutputAllocator& allocator, bool is_profiled,
                                  End end) const {
  const auto refuse = [](const std::string& reason) {
    return Status(
        base::Code::kInvalidState,
        "The caller's queue is being captured, and the run does not become part of that: " +
            reason + ".");
  };
  if (end == End::kFinished) return refuse("it would wait for its end");
  if (is_profiled) return refuse("its graph is profiled");
  const plan::Plan& plan = executor_.plan();
  const program::Program& program = plan.program();
  if (program::FindDraws(program) != program::kNoBuffer) {
    return refuse("its random numbers would be the same each time");
  }
  const int boundary = plan.segments().front().end_step;
  if (boundary < static_cast<int>(program.steps.size())) {
    const program::Step& step = program.steps[static_cast<size_t>(boundary)];
    const bool is_cut = step.As<program::Cut>() != nullptr;
    return refuse("step " + std::to_string(boundary) +
                  (is_cut ? " reads numbers that only data tell"
                          : " (" + std::string(program::FamilyName(step)) + ") needs the host"));
  }
  std::vector<Extents> extents;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const program::Port& port = program.inputs[k];
    extents.push_back(inputs[k].extents);
    if (inputs[k].is_inside) continue;
    if (inputs[k].value == nullptr && BufferBytes(program, port.buffer, extents[k]) == 0) continue;
    return refuse("input '" + port.name + "' is not in the device's memory");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> symbols, plan.SymbolsFor(extents));
  const std::vector<Extents> outputs = plan.OutputExtents(symbols);
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    const program::Port& port = program.outputs[k];
    if (allocator.IsInside(static_cast<int>(k))) continue;
    const bool is_value = program.buffers[static_cast<size_t>(port.buffer)].value.has_value();
    if (!is_value && BufferBytes(program, port.buffer, outputs[k]) == 0) continue;
    return refuse("output '" + port.name + "' is not in the device's memory");
  }
  return base::Ok();
}

Status HostBoundary::RunOn(Lane& lane, std::span<const InputTensor> inputs,
                           OutputAllocator& allocator, RunProfile* profile,
                           tensor::StringTable* strings) {
  const plan::Plan& plan = executor_.plan();
  const program::Program& program = plan.program();
  lane.inputs.resize(program.inputs.size());
  lane.outputs.resize(program.outputs.size());
  std::vector<InputTensor> inside(inputs.begin(), inputs.end());
  for (size_t k = 0; k < inside.size(); ++k) {
    // Non-tensor values stay with the host.
    if (inputs[k].value != nullptr || inputs[k].is_inside) continue;
    const int64_t size_bytes = BufferBytes(program, program.inputs[k].buffer, inputs[k].extents);
    ONNXIFI_ASSIGN_OR_RETURN(std::byte * to, lane.inputs[k].Get(plan, *recordings_, size_bytes));
    inside[k].data = to;
    inside[k].owner = nullptr;
    if (size_bytes == 0) continue;
    ONNXIFI_RETURN_IF_ERROR(lane.queue->Upload(inputs[k].data, to, size_bytes));
    ++plan.counters().copies;
  }
  Lane::DeviceOutputs device_outputs(plan, *recordings_, lane, allocator);
  ONNXIFI_RETURN_IF_ERROR(
      executor_.Run(inside, device_outputs, profile, strings, lane.queue.get()));
  return device_outputs.Download();
}

}  // namespace onnxifi::execution

// SPDX-License-Identifier: Apache-2.0
//
// PreparedBinding: what the device recorded of the memory goes before the memory does.

#include "backends/core/plugin/prepared_binding.h"

#include <onnxifi/sdk.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace onnxifi::plugin {
namespace {

using abi::TensorDescriptor;

// As many as callers have buffers in turn. Each has recordings of its own in every segment, of
// which execution keeps some more.
constexpr size_t kMaxKeptBindings = 4;
static_assert(kMaxKeptBindings < execution::Recordings::kMaxRecordings);

// Whether all tensors are addresses of the device's memory, of which a binding keeps nothing.
bool IsOfAddresses(const abi::GraphTensors& tensors) {
  const auto is_address = [](const TensorDescriptor& tensor) {
    return tensor.memory_type == ONNXIFI_MEMORY_TYPE_CUDA_BUFFER && tensor.owner == nullptr &&
           tensor.value == nullptr && !tensor.is_kept;
  };
  return !tensors.keeps_others && std::ranges::all_of(tensors.inputs, is_address) &&
         std::ranges::all_of(tensors.outputs, is_address);
}

}  // namespace

PreparedBinding::PreparedBinding(abi::GraphTensors bound, bool is_callers, bool is_of_one_run,
                                 int64_t own_bytes, DeviceMemory inputs, DeviceMemory outputs,
                                 std::shared_ptr<execution::Recordings> recordings)
    : abi::Binding(std::move(bound)),
      is_callers_(is_callers),
      is_of_one_run_(is_of_one_run),
      own_bytes_(own_bytes),
      written_(tensors().outputs),
      recordings_({std::move(recordings)}),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {
  NoteImports(tensors().inputs, inputs_);
  NoteImports(tensors().outputs, outputs_);
}

PreparedBinding::~PreparedBinding() {
  for (const DeviceMemory* tensors : {&inputs_, &outputs_}) {
    for (const std::shared_ptr<device::Allocation>& memory : *tensors) {
      if (memory == nullptr) continue;
      for (const auto& recordings : recordings_) {
        recordings->Forget(memory->data(), memory->size_bytes());
      }
    }
  }
}

bool PreparedBinding::ServesLaterRuns() const {
  const auto is_null = [](const auto& memory) { return memory == nullptr; };
  return std::ranges::all_of(inputs_, is_null) && std::ranges::all_of(outputs_, is_null);
}

bool PreparedBinding::IsApartFrom(const RunQueue::Footprint& other) const {
  // Bind makes no others.
  const auto& that = static_cast<const PreparedBinding&>(other);
  const auto is_written = [](const PreparedBinding& by) {
    return [&by](const TensorDescriptor& tensor) { return by.written_.Overlap(tensor); };
  };
  return std::ranges::none_of(tensors().inputs, is_written(that)) &&
         std::ranges::none_of(tensors().outputs, is_written(that)) &&
         std::ranges::none_of(that.tensors().inputs, is_written(*this));
}

void PreparedBinding::NoteRecordings(
    const std::shared_ptr<execution::Recordings>& recordings) const {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(recordings_, recordings) == recordings_.end()) {
    recordings_.push_back(recordings);
  }
}

const std::byte* PreparedBinding::HostData(size_t k) const {
  const auto copy = apart_.find(k);
  const auto* data = static_cast<const std::byte*>(tensors().inputs[k].cpu_data());
  if (copy == apart_.end()) return data;
  std::memcpy(copy->second.mutable_data(), data, static_cast<size_t>(copy->second.size_bytes()));
  return copy->second.data();
}

void PreparedBinding::NoteImports(std::span<const TensorDescriptor> tensors,
                                  const DeviceMemory& memory) {
  for (size_t k = 0; k < tensors.size(); ++k) {
    const bool is_ours = tensors[k].memory_type == ONNXIFI_MEMORY_TYPE_CPU ||
                         tensors[k].memory_type == ONNXIFI_SDK_MEMORY_TYPE_OPAQUE_FD;
    if (is_ours && memory[k] != nullptr) imports_.push_back(memory[k]);
  }
}

std::shared_ptr<const abi::Binding> KeptBindings::Find(const abi::GraphTensors& tensors) {
  if (!IsOfAddresses(tensors)) return nullptr;
  const auto is_same = [](const TensorDescriptor& a, const TensorDescriptor& b) {
    return a.name == b.name && a.data_type == b.data_type && a.memory_type == b.memory_type &&
           a.shape == b.shape && a.buffer == b.buffer;
  };
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(bindings_, [&](const auto& kept) {
    return std::ranges::equal(kept->tensors().inputs, tensors.inputs, is_same) &&
           std::ranges::equal(kept->tensors().outputs, tensors.outputs, is_same);
  });
  if (found == bindings_.end()) return nullptr;
  bindings_.splice(bindings_.begin(), bindings_, found);
  return bindings_.front();
}

void KeptBindings::Keep(std::shared_ptr<const abi::Binding> binding) {
  if (!IsOfAddresses(binding->tensors())) return;
  // What is kept no longer ends behind the lock.
  std::list<std::shared_ptr<const abi::Binding>> oldest;
  const std::lock_guard lock(mutex_);
  bindings_.push_front(std::move(binding));
  if (bindings_.size() > kMaxKeptBindings) {
    oldest.splice(oldest.begin(), bindings_, std::prev(bindings_.end()));
  }
}

}  // namespace onnxifi::plugin

// SPDX-License-Identifier: Apache-2.0
//
// Launch: arguments are set and the kernel is put into the queue under the kernel object's lock.

#include "backends/opencl/launch.h"

#include <optional>
#include <string>
#include <utility>

#include "backends/opencl/queue.h"
#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {

using base::Result;
using base::Status;
using codegen::KernelText;

Result<std::shared_ptr<const Variant>> Variants::Find(Services& services,
                                                      const codegen::LoopForm& form,
                                                      const std::function<KernelText()>& write) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = variants_.find(form); found != variants_.end()) return found->second;
  }
  auto variant = std::make_shared<Variant>();
  variant->text = write();
  ONNXIFI_ASSIGN_OR_RETURN(variant->compiled,
                           services.programs.Get(variant->text.source, codegen::kEntryPoint));
  const std::lock_guard lock(mutex_);
  return variants_.emplace(form, std::move(variant)).first->second;
}

Result<Launch> Launch::Create(Services& services, std::shared_ptr<const Variant> variant,
                              const codegen::LoopNest& loops) {
  Launch launch(services, std::move(variant));
  const KernelText& text = launch.variant_->text;
  launch.count_ = codegen::ItemCount(text.launch, loops);
  if (launch.count_ == 0) return launch;
  for (const codegen::Argument& argument : text.arguments) {
    if (argument.is_scratch) {
      launch.buffers_.push_back(program::kNoBuffer);
      continue;
    }
    const std::vector<device::BoundView>& views = argument.is_write ? loops.writes : loops.reads;
    launch.buffers_.push_back(views[static_cast<size_t>(argument.operand)].buffer);
  }
  const std::vector<int64_t> numbers = codegen::ValuesOf(text.numbers, loops);
  if (!numbers.empty()) {
    cl_int result = CL_SUCCESS;
    launch.numbers_ = {
        services.runtime.api().CreateBuffer(
            services.runtime.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
            numbers.size() * sizeof(int64_t), const_cast<int64_t*>(numbers.data()), &result),
        services.runtime.api().ReleaseMemObject};
    ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "allocate the numbers of a kernel"));
  }
  return launch;
}

Status Launch::Enqueue(device::Queue& queue, device::Addresses addresses,
                       std::span<const Memory::Place> scratch) const {
  return Put(static_cast<Queue*>(&queue), addresses, scratch);
}

Status Launch::Enqueue(device::Addresses addresses, std::span<const Memory::Place> scratch) const {
  return Put(/*queue=*/nullptr, addresses, scratch);
}

Status Launch::Put(Queue* queue, device::Addresses addresses,
                   std::span<const Memory::Place> scratch) const {
  if (count_ == 0) return base::Ok();
  const Api& api = services_->runtime.api();
  const KernelText& text = variant_->text;
  CompiledKernel& compiled = *variant_->compiled;
  const std::lock_guard lock(compiled.mutex);
  cl_uint position = 0;
  cl_int result = CL_SUCCESS;
  const auto set = [&](size_t size, const void* value) {
    const cl_int one = api.SetKernelArg(compiled.kernel.get(), position++, size, value);
    if (result == CL_SUCCESS) result = one;
  };
  for (size_t k = 0; k < buffers_.size(); ++k) {
    const codegen::Argument& argument = text.arguments[k];
    Memory::Place place{nullptr, 0};
    if (argument.is_scratch) {
      place = scratch[static_cast<size_t>(argument.operand)];
    } else {
      ONNXIFI_ASSIGN_OR_RETURN(place,
                               services_->memory.Find(addresses[static_cast<size_t>(buffers_[k])]));
    }
    const auto offset = static_cast<cl_ulong>(place.offset_bytes / argument.unit_bytes);
    set(sizeof(cl_mem), &place.handle);
    set(sizeof(offset), &offset);
  }
  const cl_mem numbers = numbers_.get();
  const auto count = static_cast<cl_ulong>(count_);
  set(sizeof(cl_mem), &numbers);
  set(sizeof(count), &count);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "set the arguments of a kernel"));
  const auto local = static_cast<size_t>(text.launch.group_size);
  const auto items = static_cast<size_t>(count_);
  const size_t groups = text.launch.has_group_per_item ? items : (items + local - 1) / local;
  // What a driver left undone when it built the kernel, it does at the first start.
  std::optional<SignalKeeper> keeper;
  if (!std::exchange(compiled.was_started, true)) keeper.emplace();
  const cl_kernel kernel = compiled.kernel.get();
  if (queue != nullptr) return queue->Start(kernel, groups * local, local);
  return StartKernel(services_->runtime, kernel, groups * local, local);
}

}  // namespace onnxifi::opencl

// SPDX-License-Identifier: Apache-2.0
//
// KernelLaunch: arguments by the buffers that they stand for.

#include "backends/core/codegen/kernel_launch.h"

#include <cstddef>
#include <utility>

namespace onnxifi::codegen {

using base::Result;
using base::Status;

Result<std::shared_ptr<const KernelVariant>> KernelVariants::Find(
    Services& services, const LoopForm& form, const std::function<KernelText()>& write) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = variants_.find(form); found != variants_.end()) return found->second;
  }
  auto variant = std::make_shared<KernelVariant>();
  variant->text = write();
  ONNXIFI_ASSIGN_OR_RETURN(variant->compiled, services.kernels.Get(variant->text.source));
  const std::lock_guard lock(mutex_);
  return variants_.emplace(form, std::move(variant)).first->second;
}

Result<KernelLaunch> KernelLaunch::Create(Services& services,
                                          std::shared_ptr<const KernelVariant> variant,
                                          const LoopNest& loops) {
  KernelLaunch launch(services, std::move(variant));
  const KernelText& text = launch.variant_->text;
  launch.item_count_ = ItemCount(text.launch, loops);
  if (launch.is_empty()) return launch;
  for (const Argument& argument : text.arguments) {
    if (argument.is_scratch) {
      launch.buffers_.push_back(program::kNoBuffer);
      launch.bytes_.push_back(-1);
      continue;
    }
    const std::vector<device::BoundView>& views = argument.is_write ? loops.writes : loops.reads;
    const device::BoundView& view = views[static_cast<size_t>(argument.operand)];
    launch.buffers_.push_back(view.buffer);
    launch.bytes_.push_back(view.buffer_bytes);
  }
  const std::vector<int64_t> numbers = ValuesOf(text.numbers, loops);
  if (!numbers.empty()) {
    ONNXIFI_ASSIGN_OR_RETURN(launch.numbers_, services.driver.Hold(numbers));
  }
  return launch;
}

Status KernelLaunch::Enqueue(device::Queue* queue, device::Addresses addresses,
                             device::Addresses scratch) const {
  if (is_empty()) return base::Ok();
  const KernelText& text = variant_->text;
  const int group_size = text.launch.group_size;
  const int64_t group_count =
      text.launch.has_group_per_item ? item_count_ : (item_count_ + group_size - 1) / group_size;
  return services_->driver.Start(
      queue, *variant_->compiled,
      {.operands = KernelOperands(text.arguments, buffers_, bytes_, addresses, scratch),
       .numbers = numbers_.get(),
       .item_count = item_count_,
       .group_count = group_count,
       .group_size = group_size});
}

}  // namespace onnxifi::codegen

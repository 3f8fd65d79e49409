// SPDX-License-Identifier: Apache-2.0
//
// Generated: a binding finds the form of its loops, and with it the kernel: source is written once
// per form of a step, numbers once per binding.

#include "backends/opencl/generated.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/codegen/kernel_text.h"
#include "backends/opencl/queue.h"
#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {
namespace {

using base::Result;
using base::Status;
using codegen::KernelText;
using codegen::LoopForm;
using codegen::LoopNest;

class Recipe final : public device::Recipe {
 public:
  Recipe(const device::Facts& facts, const codegen::Capabilities& capabilities)
      : program_(facts.program), step_(facts.step), capabilities_(capabilities) {}
  std::string_view implementation() const override { return "generated"; }

  const program::Program& program() const { return program_; }
  const program::Step& step() const { return step_; }
  const codegen::Capabilities& capabilities() const { return capabilities_; }

 private:
  const program::Program& program_;
  const program::Step& step_;
  const codegen::Capabilities capabilities_;
};

// The source of one form of a step, compiled.
struct Variant {
  KernelText text;
  std::shared_ptr<CompiledKernel> compiled;  // shared through the cache of programs
};

class BoundGenerated final : public device::BoundKernel {
 public:
  // Copies the numbers to the device.
  static Result<std::unique_ptr<device::BoundKernel>> Create(Services& services,
                                                             std::shared_ptr<const Variant> variant,
                                                             const LoopNest& loops) {
    std::unique_ptr<BoundGenerated> bound(new BoundGenerated(services, std::move(variant)));
    const KernelText& text = bound->variant_->text;
    bound->count_ = codegen::ItemCount(text.launch, loops);
    if (bound->count_ == 0) return std::unique_ptr<device::BoundKernel>(std::move(bound));
    for (const codegen::Argument& argument : text.arguments) {
      const std::vector<device::BoundView>& views = argument.is_write ? loops.writes : loops.reads;
      bound->buffers_.push_back(views[static_cast<size_t>(argument.operand)].buffer);
    }
    const std::vector<int64_t> numbers = codegen::ValuesOf(text.numbers, loops);
    if (!numbers.empty()) {
      cl_int result = CL_SUCCESS;
      bound->numbers_ = {
          services.runtime.api().CreateBuffer(
              services.runtime.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
              numbers.size() * sizeof(int64_t), const_cast<int64_t*>(numbers.data()), &result),
          services.runtime.api().ReleaseMemObject};
      ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "allocate the numbers of a kernel"));
    }
    return std::unique_ptr<device::BoundKernel>(std::move(bound));
  }

  Status Enqueue(device::Queue& queue, device::Addresses addresses) const override {
    if (count_ == 0) return base::Ok();
    const Api& api = services_.runtime.api();
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
      ONNXIFI_ASSIGN_OR_RETURN(const Memory::Place place,
                               services_.memory.Find(addresses[static_cast<size_t>(buffers_[k])]));
      const cl_ulong offset =
          static_cast<cl_ulong>(place.offset_bytes / text.arguments[k].unit_bytes);
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
    const size_t global = groups * local;
    static_cast<Queue&>(queue).MarkUsed();
    // What a driver left undone when it built the kernel, it does at the first start.
    std::optional<SignalKeeper> keeper;
    if (!std::exchange(compiled.was_started, true)) keeper.emplace();
    return ToStatus(api.EnqueueNDRangeKernel(services_.runtime.queue(), compiled.kernel.get(), 1,
                                             nullptr, &global, &local, 0, nullptr, nullptr),
                    "start a kernel of " + std::to_string(global) + " items");
  }

 private:
  BoundGenerated(Services& services, std::shared_ptr<const Variant> variant)
      : services_(services), variant_(std::move(variant)) {}

  Services& services_;
  const std::shared_ptr<const Variant> variant_;  // shared with the kernel it was bound from
  std::vector<program::BufferId> buffers_;        // by argument
  Handle<cl_mem> numbers_;
  int64_t count_ = 0;
};

class Kernel final : public device::Kernel {
 public:
  Kernel(const Recipe& recipe, Services& services)
      : recipe_(recipe),
        services_(services),
        facts_(codegen::FindLoopFacts(recipe.program(), recipe.step())) {}

  Result<std::unique_ptr<device::BoundKernel>> Bind(const device::BoundStep& step,
                                                    device::Addresses /*constants*/) override {
    const LoopNest loops = codegen::MakeLoopNest(facts_, step);
    ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<const Variant> variant, FindVariant(loops.form));
    return BoundGenerated::Create(services_, std::move(variant), loops);
  }

 private:
  Result<std::shared_ptr<const Variant>> FindVariant(const LoopForm& form) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = variants_.find(form); found != variants_.end()) return found->second;
    }
    auto variant = std::make_shared<Variant>();
    variant->text = codegen::Generate(recipe_.program(), recipe_.step(), form,
                                      recipe_.capabilities(), dialect_);
    ONNXIFI_ASSIGN_OR_RETURN(variant->compiled,
                             services_.programs.Get(variant->text.source, codegen::kEntryPoint));
    const std::lock_guard lock(mutex_);
    return variants_.emplace(form, std::move(variant)).first->second;
  }

  const Recipe recipe_;
  Services& services_;
  const codegen::LoopFacts facts_;
  const codegen::OpenClDialect dialect_;
  std::mutex mutex_;
  // Shared with what is bound from them.
  std::map<LoopForm, std::shared_ptr<const Variant>> variants_;
};

}  // namespace

Result<std::unique_ptr<const device::Recipe>> SelectGenerated(
    const device::Facts& facts, const codegen::Capabilities& capabilities) {
  ONNXIFI_RETURN_IF_ERROR(codegen::Check(facts.program, facts.step, capabilities));
  return std::unique_ptr<const device::Recipe>(std::make_unique<Recipe>(facts, capabilities));
}

std::unique_ptr<device::Kernel> BuildGenerated(const device::Recipe& recipe, Services& services) {
  return std::make_unique<Kernel>(static_cast<const Recipe&>(recipe), services);
}

}  // namespace onnxifi::opencl

// SPDX-License-Identifier: Apache-2.0
//
// Launch: one generated kernel made ready: compiled once per form of its loops, its numbers copied
// to the device once per binding.

#ifndef ONNXIFI_BACKENDS_OPENCL_LAUNCH_H_
#define ONNXIFI_BACKENDS_OPENCL_LAUNCH_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/core/codegen/kernel_text.h"
#include "backends/core/device/device.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/program_cache.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

class Queue;
class Scratch;

// What kernels of this device need; all of it outlives them.
struct Services {
  Runtime& runtime;
  Memory& memory;
  ProgramCache& programs;
  Scratch& scratch;
};

// The source of one form of a step, compiled.
struct Variant {
  codegen::KernelText text;
  std::shared_ptr<CompiledKernel> compiled;  // shared through the cache of programs
};

// The variants of one kernel by the form of its loops. Any thread.
class Variants {
 public:
  // What `write` makes for the form, which is asked only once.
  base::Result<std::shared_ptr<const Variant>> Find(
      Services& services, const codegen::LoopForm& form,
      const std::function<codegen::KernelText()>& write);

 private:
  std::mutex mutex_;
  // Shared with what is bound from them.
  std::map<codegen::LoopForm, std::shared_ptr<const Variant>> variants_;
};

class Launch {
 public:
  // Copies the numbers to the device.
  static base::Result<Launch> Create(Services& services, std::shared_ptr<const Variant> variant,
                                     const codegen::LoopNest& loops);

  // `scratch[k]` is working memory k of the kernel, for those that have some.
  base::Status Enqueue(device::Queue& queue, device::Addresses addresses,
                       std::span<const Memory::Place> scratch = {}) const;
  // Work outside of any run; what runs put in later is done after it.
  base::Status Enqueue(device::Addresses addresses, std::span<const Memory::Place> scratch) const;
  const std::vector<codegen::Number>& numbers() const { return variant_->text.numbers; }
  // The kernel has nothing to do.
  bool is_empty() const { return count_ == 0; }

 private:
  base::Status Put(Queue* queue, device::Addresses addresses,
                   std::span<const Memory::Place> scratch) const;
  Launch(Services& services, std::shared_ptr<const Variant> variant)
      : services_(&services), variant_(std::move(variant)) {}

  Services* services_;
  std::shared_ptr<const Variant> variant_;  // shared with the kernel it was bound from
  std::vector<program::BufferId> buffers_;  // by argument
  Handle<cl_mem> numbers_;
  int64_t count_ = 0;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_LAUNCH_H_

// SPDX-License-Identifier: Apache-2.0
//
// KernelLaunch: one kernel made ready: compiled once per form of its loops, its numbers given to
// the device once per binding.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_LAUNCH_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/core/codegen/kernel_cache.h"
#include "backends/core/codegen/kernel_driver.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/codegen/scratch.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

// What the kernels of a device share; outlives them.
struct Services {
  Services(KernelDriver& of_driver, device::Memory& of_memory, BinaryCache files)
      : driver(of_driver),
        memory(of_memory),
        kernels(of_driver, std::move(files)),
        scratch(of_memory) {}

  KernelDriver& driver;
  device::Memory& memory;
  KernelCache kernels;
  Scratch scratch;
};

// The source of one form of a step, compiled.
struct KernelVariant {
  KernelText text;
  std::shared_ptr<DriverKernel> compiled;  // shared through the cache of kernels
};

// The variants of one kernel by the form of its loops. Any thread.
class KernelVariants {
 public:
  // What `write` makes for the form, which is asked only once.
  base::Result<std::shared_ptr<const KernelVariant>> Find(Services& services, const LoopForm& form,
                                                          const std::function<KernelText()>& write);

 private:
  std::mutex mutex_;
  // Shared with what is bound from them.
  std::map<LoopForm, std::shared_ptr<const KernelVariant>> variants_;
};

class KernelLaunch {
 public:
  // Gives the numbers to the device.
  static base::Result<KernelLaunch> Create(Services& services,
                                           std::shared_ptr<const KernelVariant> variant,
                                           const LoopNest& loops);

  // `scratch[n]` is where working memory n begins, for kernels that have some. Without a queue:
  // work outside of any run.
  base::Status Enqueue(device::Queue* queue, device::Addresses addresses,
                       device::Addresses scratch = {}) const;
  const std::vector<Number>& numbers() const { return variant_->text.numbers; }
  // The kernel has nothing to do.
  bool is_empty() const { return item_count_ == 0; }

 private:
  KernelLaunch(Services& services, std::shared_ptr<const KernelVariant> variant)
      : services_(&services), variant_(std::move(variant)) {}

  Services* services_;
  std::shared_ptr<const KernelVariant> variant_;  // shared with the kernel it was bound from
  std::vector<program::BufferId> buffers_;        // by argument
  std::vector<int64_t> bytes_;                    // of each; -1: not known
  std::unique_ptr<DriverNumbers> numbers_;
  int64_t item_count_ = 0;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_LAUNCH_H_

// SPDX-License-Identifier: Apache-2.0
//
// KernelCache: kernels of a device, each source compiled once, and from one process to the next by
// way of files. Keyed by the whole text, so that two steps which come to the same source share one
// kernel.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_CACHE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_CACHE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/core/codegen/binary_cache.h"
#include "backends/core/codegen/kernel_driver.h"

namespace onnxifi::codegen {

class KernelCache {
 public:
  // `driver` outlives it and the kernels.
  KernelCache(KernelDriver& driver, BinaryCache files)
      : driver_(driver), files_(std::move(files)) {}

  // The kernel of `source`, shared with everybody who asked for the same. As KernelDriver::Compile.
  // Any thread.
  base::Result<std::shared_ptr<DriverKernel>> Get(const std::string& source);

  // Distinct kernels so far, and how many of them were compiled from source.
  int64_t kernel_count() const { return kernel_count_; }
  int64_t compiled_count() const { return compiled_count_; }

 private:
  // Of one source. Whoever has the lock makes the kernel; others wait for it.
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<DriverKernel> kernel;  // null: not made yet, or refused
  };
  base::Result<std::unique_ptr<DriverKernel>> Make(const std::string& source);

  KernelDriver& driver_;
  const BinaryCache files_;
  std::atomic<int64_t> kernel_count_ = 0;
  std::atomic<int64_t> compiled_count_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::string, Slot> slots_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_CACHE_H_

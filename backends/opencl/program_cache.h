// SPDX-License-Identifier: Apache-2.0
//
// ProgramCache: kernels compiled from source, each source once per device, and from one process to
// the next by way of files. Keyed by the whole text, so that two steps which come to the same
// source share one kernel.

#ifndef ONNXIFI_BACKENDS_OPENCL_PROGRAM_CACHE_H_
#define ONNXIFI_BACKENDS_OPENCL_PROGRAM_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/core/codegen/binary_cache.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

// A kernel object. Its arguments are set and it is enqueued under `mutex`: they belong to the
// object until then.
struct CompiledKernel {
  Handle<cl_program> program;
  Handle<cl_kernel> kernel;
  bool was_started = false;  // under mutex
  std::mutex mutex;
};

class ProgramCache {
 public:
  // `runtime` outlives it.
  ProgramCache(Runtime& runtime, codegen::BinaryCache files);

  // The kernel named `entry` of `source`, shared with everybody who asked for the same. Resource
  // codes; INTERNAL_ERROR with the compiler's words if it refuses the source. Any thread.
  base::Result<std::shared_ptr<CompiledKernel>> Get(const std::string& source, const char* entry);

  // Distinct kernels so far, and how many of them were compiled from source.
  int64_t kernel_count() const;
  int64_t compiled_count() const { return compiled_count_; }

 private:
  base::Result<std::shared_ptr<CompiledKernel>> Make(const std::string& source, const char* entry);
  base::Result<Handle<cl_program>> Compile(const std::string& source) const;
  base::Result<Handle<cl_program>> Load(const std::vector<std::byte>& binary) const;
  std::vector<std::byte> BinaryOf(cl_program program) const;

  Runtime& runtime_;
  const codegen::BinaryCache files_;
  std::string options_;
  std::string key_prefix_;  // all that a binary depends on beside its source
  std::atomic<int64_t> compiled_count_ = 0;
  mutable std::mutex mutex_;
  // Shared with the kernels that use it.
  std::unordered_map<std::string, std::shared_ptr<CompiledKernel>> kernels_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_PROGRAM_CACHE_H_

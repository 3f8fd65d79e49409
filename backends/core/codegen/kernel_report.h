// SPDX-License-Identifier: Apache-2.0
//
// KernelReport: what each kernel takes of a multiprocessor, as lines of a CSV file beside the
// cache's entries; and which of them this process asks for, in a file of its own.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_REPORT_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_REPORT_H_

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::codegen {

struct KernelResources {
  int registers = 0;
  int stack_bytes = 0;
  int spill_bytes = 0;  // stored and loaded
  int shared_bytes = 0;
};

// Any thread.
class KernelReport {
 public:
  explicit KernelReport(std::filesystem::path file) : file_(std::move(file)) {}
  // Appends "kernel,family,registers,stack bytes,spill bytes,shared bytes" of a kernel that was
  // compiled, the kernel as a hash of its machine code.
  base::Status Add(std::span<const std::byte> binary, const std::string& source,
                   const KernelResources& resources);
  // Appends the same line to the process's file; INTERNAL_ERROR if nothing is known of the kernel.
  base::Status Use(std::span<const std::byte> binary);

 private:
  const std::filesystem::path file_;
  std::mutex mutex_;
};

// Beside a report, of the process that asks.
std::filesystem::path UsedKernelsFile(const std::filesystem::path& report_file);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_KERNEL_REPORT_H_

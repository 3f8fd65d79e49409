// SPDX-License-Identifier: Apache-2.0
//
// KernelReport: what each compiled kernel takes of a multiprocessor, as lines of a CSV file beside
// the cache's entries.

#ifndef ONNXIFI_BACKENDS_CUDA_KERNEL_REPORT_H_
#define ONNXIFI_BACKENDS_CUDA_KERNEL_REPORT_H_

#include <filesystem>
#include <mutex>
#include <string>

#include "backends/core/base/result.h"

namespace onnxifi::cuda {

struct KernelResources {
  int registers = 0;
  int stack_bytes = 0;
  int spill_bytes = 0;  // stored and loaded
  int shared_bytes = 0;
};
// Of what ptxas says, which NVRTC gives as its log. INTERNAL_ERROR, with the text, if it says
// nothing of registers.
base::Result<KernelResources> ReadResources(const std::string& log);

// Any thread.
class KernelReport {
 public:
  explicit KernelReport(std::filesystem::path file) : file_(std::move(file)) {}
  // Appends "kernel,family,registers,stack bytes,spill bytes,shared bytes", the kernel as a hash of
  // its source, under a heading if it is the first.
  base::Status Add(const std::string& source, const KernelResources& resources);

 private:
  const std::filesystem::path file_;
  std::mutex mutex_;
};

// In a cache folder, for an architecture such as 90.
std::filesystem::path KernelReportFile(const std::filesystem::path& cache_folder, int architecture);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_KERNEL_REPORT_H_

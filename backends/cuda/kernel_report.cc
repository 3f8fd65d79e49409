// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/kernel_report.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace onnxifi::cuda {
namespace {

using base::Code;
using base::Status;

// The number before `words`; 0 if they are not there.
int NumberBefore(const std::string& log, const std::string& words) {
  const size_t at = log.find(" " + words);
  if (at == std::string::npos) return 0;
  const size_t begin = log.find_last_not_of("0123456789", at - 1) + 1;
  return std::atoi(log.substr(begin, at - begin).c_str());
}

uint64_t Digest(const std::string& text) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const char letter : text) {
    digest = (digest ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  }
  return digest;
}

}  // namespace

base::Result<KernelResources> ReadResources(const std::string& log) {
  KernelResources resources;
  resources.registers = NumberBefore(log, "registers");
  if (resources.registers == 0) {
    return Status(Code::kInternalError, "NVRTC tells nothing of registers: " + log);
  }
  resources.stack_bytes = NumberBefore(log, "bytes stack frame");
  resources.spill_bytes =
      NumberBefore(log, "bytes spill stores") + NumberBefore(log, "bytes spill loads");
  resources.shared_bytes = NumberBefore(log, "bytes smem");
  return resources;
}

Status KernelReport::Add(const std::string& source, const KernelResources& resources) {
  // core/codegen's first line names the family.
  const std::string family =
      source.starts_with("// ") ? source.substr(3, source.find('\n') - 3) : "other";
  char digest[24];
  std::snprintf(digest, sizeof(digest), "%016llx", static_cast<unsigned long long>(Digest(source)));
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  const bool is_first = !std::filesystem::exists(file_, ignored);
  std::ofstream file(file_, std::ios::app);
  if (is_first) file << "kernel,family,registers,stack_bytes,spill_bytes,shared_bytes\n";
  file << digest << ',' << family << ',' << resources.registers << ',' << resources.stack_bytes
       << ',' << resources.spill_bytes << ',' << resources.shared_bytes << std::endl;
  if (file) return base::Ok();
  return Status(Code::kInternalError, "'" + file_.string() + "' cannot be written.");
}

std::filesystem::path KernelReportFile(const std::filesystem::path& cache_folder,
                                       int architecture) {
  return cache_folder / ("cuda-kernels-sm_" + std::to_string(architecture) + ".csv");
}

}  // namespace onnxifi::cuda

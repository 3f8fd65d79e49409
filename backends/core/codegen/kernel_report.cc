// SPDX-License-Identifier: Apache-2.0

#include "backends/core/codegen/kernel_report.h"

#include <unistd.h>

#include <fstream>

#include "backends/core/base/fnv_hash.h"

namespace onnxifi::codegen {
namespace {

using base::Code;
using base::Status;

Status Append(const std::filesystem::path& path, const std::string& line) {
  std::ofstream file(path, std::ios::app);
  file << line << std::endl;
  if (file) return base::Ok();
  return Status(Code::kInternalError, "'" + path.string() + "' cannot be written.");
}

}  // namespace

Status KernelReport::Add(std::span<const std::byte> binary, const std::string& source,
                         const KernelResources& resources) {
  // core/codegen's first line names the family.
  const std::string family =
      source.starts_with("// ") ? source.substr(3, source.find('\n') - 3) : "other";
  std::string line = base::HashName(base::FnvHash(binary)) + ',' + family;
  for (const int number : {resources.registers, resources.stack_bytes, resources.spill_bytes,
                           resources.shared_bytes}) {
    line += ',' + std::to_string(number);
  }
  const std::lock_guard lock(mutex_);
  return Append(file_, line);
}

Status KernelReport::Use(std::span<const std::byte> binary) {
  const std::string name = base::HashName(base::FnvHash(binary));
  const std::lock_guard lock(mutex_);
  std::ifstream lines(file_);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ',')) return Append(UsedKernelsFile(file_), line);
  }
  return Status(Code::kInternalError, "'" + file_.string() + "' has no kernel '" + name + "'.");
}

std::filesystem::path UsedKernelsFile(const std::filesystem::path& report_file) {
  return report_file.string() + '.' + std::to_string(getpid());
}

}  // namespace onnxifi::codegen

// SPDX-License-Identifier: Apache-2.0
//
// CompiledKernels: the lines of the plugin's file for this process.

#include "apps/onnxifi_run/compiled_kernels.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/core/base/cache_folder.h"

namespace onnxifi::run {

CompiledKernels::CompiledKernels(std::string architecture, std::filesystem::path folder)
    : architecture_(std::move(architecture)),
      folder_(std::move(folder)),
      file_(folder_ / fmt::format("cuda-kernels-{}.csv.{}", architecture_, getpid())) {}

CompiledKernels::~CompiledKernels() {
  std::error_code ignored;
  std::filesystem::remove(file_, ignored);
}

base::Result<std::unique_ptr<CompiledKernels>> CompiledKernels::Begin(
    const std::string& architecture) {
  const std::filesystem::path folder = base::CacheFolder();
  if (folder.empty()) {
    return base::Status(base::Code::kInvalidName,
                        "There is no cache folder to compile into; set ONNXIFI_CACHE_DIR.");
  }
  std::unique_ptr<CompiledKernels> kernels(new CompiledKernels(architecture, folder));
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  // Of a process that was killed.
  std::filesystem::remove(kernels->file_, ignored);
  setenv("ONNXIFI_CUDA_COMPILE_FOR", architecture.c_str(), /*replace=*/1);
  return kernels;
}

base::Result<std::vector<CompiledKernel>> CompiledKernels::End() const {
  std::vector<CompiledKernel> used;
  std::ifstream lines(file_);
  for (std::string line; std::getline(lines, line);) {
    CompiledKernel kernel;
    const size_t comma = line.find(',');
    const size_t behind = line.find(',', comma + 1);
    kernel.name = line.substr(0, comma);
    kernel.family = line.substr(comma + 1, behind - comma - 1);
    if (behind == std::string::npos ||
        std::sscanf(line.c_str() + behind, ",%d,%d,%d,%d", &kernel.registers, &kernel.stack_bytes,
                    &kernel.spill_bytes, &kernel.shared_bytes) != 4) {
      return base::Status(base::Code::kInternalError,
                          fmt::format("'{}' has an unknown line: {}", file_.string(), line));
    }
    used.push_back(std::move(kernel));
  }
  return used;
}

std::string MakeKernelText(const CompiledKernels& kernels,
                           const std::vector<CompiledKernel>& used) {
  std::string text;
  if (!used.empty()) {
    text += fmt::format("{:16}  {:10}  {:>9}  {:>10}  {:>10}  {:>10}\n", "KERNEL", "FAMILY",
                        "REGISTERS", "STACK", "SPILLS", "SHARED");
  }
  for (const CompiledKernel& kernel : used) {
    text +=
        fmt::format("{:16}  {:10}  {:>9}  {:>8} B  {:>8} B  {:>8} B\n", kernel.name, kernel.family,
                    kernel.registers, kernel.stack_bytes, kernel.spill_bytes, kernel.shared_bytes);
  }
  return text + fmt::format("{} kernel{} for {} in {}.\n", used.size(), used.size() == 1 ? "" : "s",
                            kernels.architecture(), kernels.folder().string());
}

std::string MakeKernelJson(const std::vector<CompiledKernel>& used) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CompiledKernel& kernel : used) {
    list.push_back({{"kernel", kernel.name},
                    {"family", kernel.family},
                    {"registers", kernel.registers},
                    {"stack_bytes", kernel.stack_bytes},
                    {"spill_bytes", kernel.spill_bytes},
                    {"shared_bytes", kernel.shared_bytes}});
  }
  return nlohmann::ordered_json{{"kernels", list}}.dump(2) + "\n";
}

}  // namespace onnxifi::run

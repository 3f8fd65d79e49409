// SPDX-License-Identifier: Apache-2.0
//
// CompiledKernels: the lines that came to the plugin's file.

#include "apps/onnxifi_run/compiled_kernels.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/core/base/cache_folder.h"

namespace onnxifi::run {

base::Result<CompiledKernels> CompiledKernels::Begin(const std::string& architecture) {
  CompiledKernels kernels;
  kernels.architecture_ = architecture;
  kernels.folder_ = base::CacheFolder();
  if (kernels.folder_.empty()) {
    return base::Status(base::Code::kInvalidName,
                        "There is no cache folder to compile into; set ONNXIFI_CACHE_DIR.");
  }
  std::error_code error;
  std::filesystem::create_directories(kernels.folder_, error);
  const uintmax_t size_bytes = std::filesystem::file_size(kernels.file(), error);
  kernels.known_bytes_ = error ? 0 : size_bytes;
  setenv("ONNXIFI_CUDA_COMPILE_FOR", architecture.c_str(), /*replace=*/1);
  return kernels;
}

std::filesystem::path CompiledKernels::file() const {
  return folder_ / ("cuda-kernels-" + architecture_ + ".csv");
}

base::Result<std::vector<CompiledKernel>> CompiledKernels::End() const {
  std::vector<CompiledKernel> made;
  std::ifstream lines(file());
  lines.seekg(static_cast<std::streamoff>(known_bytes_));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("kernel,")) continue;
    CompiledKernel kernel;
    const size_t comma = line.find(',');
    const size_t behind = line.find(',', comma + 1);
    kernel.name = line.substr(0, comma);
    kernel.family = line.substr(comma + 1, behind - comma - 1);
    if (behind == std::string::npos ||
        std::sscanf(line.c_str() + behind, ",%d,%d,%d,%d", &kernel.registers, &kernel.stack_bytes,
                    &kernel.spill_bytes, &kernel.shared_bytes) != 4) {
      return base::Status(base::Code::kInternalError,
                          fmt::format("'{}' has an unknown line: {}", file().string(), line));
    }
    made.push_back(std::move(kernel));
  }
  return made;
}

std::string MakeKernelText(const CompiledKernels& kernels,
                           const std::vector<CompiledKernel>& made) {
  std::string text;
  if (!made.empty()) {
    text += fmt::format("{:16}  {:10}  {:>9}  {:>10}  {:>10}  {:>10}\n", "KERNEL", "FAMILY",
                        "REGISTERS", "STACK", "SPILLS", "SHARED");
  }
  for (const CompiledKernel& kernel : made) {
    text +=
        fmt::format("{:16}  {:10}  {:>9}  {:>8} B  {:>8} B  {:>8} B\n", kernel.name, kernel.family,
                    kernel.registers, kernel.stack_bytes, kernel.spill_bytes, kernel.shared_bytes);
  }
  return text + fmt::format("{} kernel{} compiled for {} into {}; the others were there.\n",
                            made.size(), made.size() == 1 ? "" : "s", kernels.architecture(),
                            kernels.folder().string());
}

std::string MakeKernelJson(const std::vector<CompiledKernel>& made) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CompiledKernel& kernel : made) {
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

// SPDX-License-Identifier: Apache-2.0
//
// CompiledKernels: what --compile-for has in the cache folder for a model. The CUDA plugin reads
// the architecture from the environment, and writes a line for each kernel that the process asks
// for.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_COMPILED_KERNELS_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_COMPILED_KERNELS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::run {

struct CompiledKernel {
  std::string name;    // a hash of its machine code
  std::string family;  // of the step that it is for
  int registers = 0;
  int stack_bytes = 0;
  int spill_bytes = 0;
  int shared_bytes = 0;
};

class CompiledKernels {
 public:
  // Before the library is opened. INVALID_NAME where no cache folder would keep anything.
  static base::Result<std::unique_ptr<CompiledKernels>> Begin(const std::string& architecture);
  // Removes the process's lines.
  ~CompiledKernels();
  CompiledKernels(const CompiledKernels&) = delete;
  CompiledKernels& operator=(const CompiledKernels&) = delete;

  // Those that the process has asked for, compiled then or found.
  base::Result<std::vector<CompiledKernel>> End() const;

  const std::string& architecture() const { return architecture_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  CompiledKernels(std::string architecture, std::filesystem::path folder);

  const std::string architecture_;
  const std::filesystem::path folder_;
  const std::filesystem::path file_;  // as core/codegen/kernel_report.h names it
};

std::string MakeKernelText(const CompiledKernels& kernels, const std::vector<CompiledKernel>& used);
std::string MakeKernelJson(const std::vector<CompiledKernel>& used);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_COMPILED_KERNELS_H_

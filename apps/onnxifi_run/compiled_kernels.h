// SPDX-License-Identifier: Apache-2.0
//
// CompiledKernels: what --compile-for has compiled. The CUDA plugin reads the architecture from the
// environment and keeps a line per kernel in the cache folder.

#ifndef ONNXIFI_APPS_ONNXIFI_RUN_COMPILED_KERNELS_H_
#define ONNXIFI_APPS_ONNXIFI_RUN_COMPILED_KERNELS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/core/base/result.h"

namespace onnxifi::run {

struct CompiledKernel {
  std::string name;    // a hash of its source
  std::string family;  // of the step that it is for
  int registers = 0;
  int stack_bytes = 0;
  int spill_bytes = 0;
  int shared_bytes = 0;
};

class CompiledKernels {
 public:
  // Before the library is opened. INVALID_NAME where no cache folder would keep anything.
  static base::Result<CompiledKernels> Begin(const std::string& architecture);
  // Those compiled since then.
  base::Result<std::vector<CompiledKernel>> End() const;

  const std::string& architecture() const { return architecture_; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path file() const;

  std::string architecture_;
  std::filesystem::path folder_;
  uintmax_t known_bytes_ = 0;
};

std::string MakeKernelText(const CompiledKernels& kernels, const std::vector<CompiledKernel>& made);
std::string MakeKernelJson(const std::vector<CompiledKernel>& made);

}  // namespace onnxifi::run

#endif  // ONNXIFI_APPS_ONNXIFI_RUN_COMPILED_KERNELS_H_

// SPDX-License-Identifier: Apache-2.0
//
// Compiler: CUDA C++ to machine code by NVRTC, which needs no device.

#ifndef ONNXIFI_BACKENDS_CUDA_COMPILER_H_
#define ONNXIFI_BACKENDS_CUDA_COMPILER_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/codegen/kernel_report.h"
#include "backends/cuda/api.h"

namespace onnxifi::cuda {

// Of what ptxas says, which NVRTC gives as its log. INTERNAL_ERROR, with the text, if it says
// nothing of registers.
base::Result<codegen::KernelResources> ReadResources(const std::string& log);

class Compiler {
 public:
  // For an architecture such as 90. One that NVRTC does not know gets PTX of the newest older one
  // that it knows; BACKEND_UNAVAILABLE if there is none.
  // `report_file`: of a KernelReport; empty for none.
  static base::Result<Compiler> Create(const CompilerApi& api, int architecture,
                                       const std::filesystem::path& report_file = {});

  // Version and options: all that the result depends on beside the source.
  const std::string& name() const { return name_; }
  // cubin, or PTX that ends in a zero. INTERNAL_ERROR with NVRTC's words if it refuses the source.
  // Any thread.
  base::Result<std::vector<std::byte>> Compile(const std::string& source) const;
  // Null for none.
  codegen::KernelReport* report() const { return is_machine_code_ ? report_.get() : nullptr; }

 private:
  explicit Compiler(const CompilerApi& api) : api_(api) {}

  CompilerApi api_;
  bool is_machine_code_ = true;
  std::string architecture_;
  std::string name_;
  std::shared_ptr<codegen::KernelReport> report_;  // null for none
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_COMPILER_H_

// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: NVRTC, modules and their starts for core/codegen. Numbers are parameters of
// kernels, not memory.

#ifndef ONNXIFI_BACKENDS_CUDA_KERNEL_DRIVER_H_
#define ONNXIFI_BACKENDS_CUDA_KERNEL_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/kernel_driver.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/runtime.h"

namespace onnxifi::cuda {

class KernelDriver final : public codegen::KernelDriver {
 public:
  // `runtime` outlives it.
  KernelDriver(const Runtime& runtime, Compiler compiler)
      : runtime_(runtime), compiler_(std::move(compiler)) {}

  const codegen::Dialect& dialect() const override { return dialect_; }
  std::string_view product_library() const override;
  // Of no device or driver: machine code serves wherever its architecture is.
  std::string_view binary_key() const override { return compiler_.name(); }
  base::Result<std::unique_ptr<codegen::DriverKernel>> Compile(const std::string& source) override;
  base::Result<std::unique_ptr<codegen::DriverKernel>> Load(
      std::span<const std::byte> binary) override;
  std::vector<std::byte> BinaryOf(const codegen::DriverKernel& kernel) override;
  base::Result<std::unique_ptr<codegen::DriverNumbers>> Hold(
      std::span<const int64_t> numbers) override;
  base::Status Start(device::Queue* queue, codegen::DriverKernel& kernel,
                     const codegen::KernelStart& start) override;

 private:
  const Runtime& runtime_;
  const Compiler compiler_;
  const codegen::CudaDialect dialect_{};
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_KERNEL_DRIVER_H_

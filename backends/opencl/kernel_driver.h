// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: OpenCL's compiler, binaries and kernel objects for core/codegen.

#ifndef ONNXIFI_BACKENDS_OPENCL_KERNEL_DRIVER_H_
#define ONNXIFI_BACKENDS_OPENCL_KERNEL_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/kernel_driver.h"
#include "backends/opencl/memory.h"
#include "backends/opencl/runtime.h"

namespace onnxifi::opencl {

// A kernel object. Its arguments are set and it is enqueued under `mutex`: they belong to the
// object until then.
struct CompiledKernel final : codegen::DriverKernel {
  Handle<cl_program> program;
  Handle<cl_kernel> kernel;
  bool was_started = false;  // under mutex
  std::mutex mutex;
};

class KernelDriver final : public codegen::KernelDriver {
 public:
  // Both outlive it.
  KernelDriver(Runtime& runtime, const Memory& memory);

  const codegen::Dialect& dialect() const override { return dialect_; }
  std::string_view product_library() const override;
  std::string_view binary_key() const override { return binary_key_; }
  base::Result<std::unique_ptr<codegen::DriverKernel>> Compile(const std::string& source) override;
  base::Result<std::unique_ptr<codegen::DriverKernel>> Load(
      std::span<const std::byte> binary) override;
  std::vector<std::byte> BinaryOf(const codegen::DriverKernel& kernel) override;
  base::Result<std::unique_ptr<codegen::DriverNumbers>> Hold(
      std::span<const int64_t> numbers) override;
  base::Status Start(device::Queue* queue, codegen::DriverKernel& kernel,
                     const codegen::KernelStart& start) override;

 private:
  // CL_SUCCESS or what building it ended in, with the compiler's words.
  base::Status Build(cl_program program, std::string_view doing) const;
  base::Result<std::unique_ptr<codegen::DriverKernel>> KernelOf(Handle<cl_program> program) const;

  Runtime& runtime_;
  const Memory& memory_;
  const codegen::OpenClDialect dialect_{};
  std::string options_;
  std::string binary_key_;
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_KERNEL_DRIVER_H_

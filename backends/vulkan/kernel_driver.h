// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: glslang, pipelines and their starts for core/codegen. Kernels get 64-bit addresses
// by push constants; there are no descriptors.

#ifndef ONNXIFI_BACKENDS_VULKAN_KERNEL_DRIVER_H_
#define ONNXIFI_BACKENDS_VULKAN_KERNEL_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/kernel_driver.h"
#include "backends/vulkan/heap.h"
#include "backends/vulkan/loading.h"
#include "backends/vulkan/runtime.h"

namespace onnxifi::vulkan {

class KernelDriver final : public codegen::KernelDriver {
 public:
  // All outlive it.
  KernelDriver(Runtime& runtime, Heap& heap, Loading& loading);

  const codegen::Dialect& dialect() const override { return dialect_; }
  std::string_view product_library() const override;
  std::string_view binary_key() const override { return binary_key_; }
  base::Result<std::unique_ptr<codegen::DriverKernel>> Compile(const std::string& source) override;
  base::Result<std::unique_ptr<codegen::DriverKernel>> Load(
      std::span<const std::byte> binary) override;
  // SPIR-V, and what the driver made of it where it tells.
  std::vector<std::byte> BinaryOf(const codegen::DriverKernel& kernel) override;
  base::Result<std::unique_ptr<codegen::DriverNumbers>> Hold(
      std::span<const int64_t> numbers) override;
  base::Status Start(device::Queue* queue, codegen::DriverKernel& kernel,
                     const codegen::KernelStart& start) override;

 private:
  // `driver_data`: of the driver's pipeline cache, from an earlier time; may be empty.
  base::Result<std::unique_ptr<codegen::DriverKernel>> KernelOf(
      std::vector<uint32_t> words, std::span<const std::byte> driver_data) const;
  // Words that a kernel reads, written before this returns.
  base::Result<std::unique_ptr<device::Allocation>> HoldWords(std::span<const uint64_t> words);

  Runtime& runtime_;
  Heap& heap_;
  Loading& loading_;
  const codegen::GlslDialect dialect_{};
  std::string binary_key_;
};

}  // namespace onnxifi::vulkan

#endif  // ONNXIFI_BACKENDS_VULKAN_KERNEL_DRIVER_H_

// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: one module per kernel.

#include "backends/cuda/kernel_driver.h"

#include <string>
#include <utility>

#include "backends/cuda/kernels/matrix_product.h"
#include "backends/cuda/queue.h"

namespace onnxifi::cuda {
namespace {

using base::Result;
using base::Status;
using codegen::DriverKernel;
using codegen::DriverNumbers;
using device::MemoryUse;

struct CompiledKernel final : DriverKernel {
  Handle<CUmodule> module;
  CUfunction function = nullptr;
  std::vector<std::byte> binary;
};

struct Numbers final : DriverNumbers {
  explicit Numbers(std::vector<int64_t> of_values) : values(std::move(of_values)) {}
  std::vector<int64_t> values;
};

}  // namespace

std::string_view KernelDriver::product_library() const { return MatrixProduct(); }

Result<std::unique_ptr<DriverKernel>> KernelDriver::Compile(const std::string& source) {
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> binary, compiler_.Compile(source));
  return Load(binary);
}

Result<std::unique_ptr<DriverKernel>> KernelDriver::Load(std::span<const std::byte> binary) {
  // What nothing is known of is compiled again.
  if (codegen::KernelReport* const report = compiler_.report()) {
    ONNXIFI_RETURN_IF_ERROR(report->Use(binary));
  }
  auto kernel = std::make_unique<CompiledKernel>();
  kernel->binary.assign(binary.begin(), binary.end());
  // PTX that was cut short has its end here.
  kernel->binary.push_back(std::byte{0});
  CUmodule module = nullptr;
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do("load a kernel", [&] {
    return runtime_.api().ModuleLoadData(&module, kernel->binary.data());
  }));
  kernel->binary.pop_back();
  kernel->module = {runtime_.context(), module, runtime_.api().ModuleUnload};
  ONNXIFI_RETURN_IF_ERROR(runtime_.Do("find a kernel", [&] {
    return runtime_.api().ModuleGetFunction(&kernel->function, module, "run");
  }));
  return std::unique_ptr<DriverKernel>(std::move(kernel));
}

std::vector<std::byte> KernelDriver::BinaryOf(const DriverKernel& kernel) {
  return static_cast<const CompiledKernel&>(kernel).binary;
}

Result<std::unique_ptr<DriverNumbers>> KernelDriver::Hold(std::span<const int64_t> numbers) {
  return std::unique_ptr<DriverNumbers>(
      std::make_unique<Numbers>(std::vector<int64_t>(numbers.begin(), numbers.end())));
}

Status KernelDriver::Start(device::Queue* queue, DriverKernel& kernel,
                           const codegen::KernelStart& start) {
  const std::string doing = "start a kernel of " + std::to_string(start.group_count) + " groups";
  if (start.group_count > INT32_MAX) return ToStatus(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, doing);
  const size_t count = start.operands.count();
  std::vector<const std::byte*> addresses(count);
  std::vector<void*> parameters(count + 2);
  std::vector<MemoryUse> uses;
  uses.reserve(count);
  for (size_t k = 0; k < count; ++k) {
    const std::byte* const address = start.operands.address(k);
    addresses[k] = address;
    parameters[k] = static_cast<void*>(&addresses[k]);
    if (address == nullptr) continue;
    const int64_t size_bytes = start.operands.size_bytes(k);
    const bool is_written = start.operands.is_written(k);
    uses.push_back(size_bytes < 0 ? MemoryUse::From(address, is_written)
                                  : MemoryUse::Of(address, size_bytes, is_written));
  }
  // The structure has one number at least.
  int64_t no_number = 0;
  auto item_count = static_cast<uint64_t>(start.item_count);
  const auto* const numbers = static_cast<const Numbers*>(start.numbers);
  parameters[count] =
      numbers == nullptr ? &no_number : const_cast<int64_t*>(numbers->values.data());
  parameters[count + 1] = &item_count;
  CUDA_KERNEL_NODE_PARAMS launch = {};
  launch.func = static_cast<const CompiledKernel&>(kernel).function;
  launch.gridDimX = static_cast<unsigned>(start.group_count);
  launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = static_cast<unsigned>(start.group_size);
  launch.blockDimY = launch.blockDimZ = 1;
  launch.kernelParams = parameters.data();
  if (queue != nullptr) return static_cast<Queue&>(*queue).Start(doing, launch, uses);
  ONNXIFI_RETURN_IF_ERROR(runtime_.CheckNoCapture(doing));
  return runtime_.Do(doing,
                     [&] { return LaunchKernel(runtime_.api(), launch, runtime_.stream()); });
}

}  // namespace onnxifi::cuda

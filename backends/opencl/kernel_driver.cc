// SPDX-License-Identifier: Apache-2.0
//
// KernelDriver: one program per kernel. Arguments are set and the kernel is put into the queue
// under the kernel object's lock.

#include "backends/opencl/kernel_driver.h"

#include <optional>
#include <utility>

#include "backends/opencl/kernels.h"
#include "backends/opencl/queue.h"
#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {
namespace {

using base::Result;
using base::Status;
using codegen::DriverKernel;
using codegen::DriverNumbers;

// The end of what a compiler says is where it gives up; more than this helps nobody.
constexpr size_t kMaxLogBytes = 2000;

struct Numbers final : DriverNumbers {
  explicit Numbers(Handle<cl_mem> of_buffer) : buffer(std::move(of_buffer)) {}
  const Handle<cl_mem> buffer;
};

}  // namespace

KernelDriver::KernelDriver(Runtime& runtime, const Memory& memory)
    : runtime_(runtime),
      memory_(memory),  // What compilers remark about kernels is nobody's to read.
      options_("-cl-std=CL1.2 -w") {
  const DeviceInfo& info = runtime.info();
  if (info.has_exact_division) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  binary_key_ = info.platform_name + '\n' + info.platform_version + '\n' + info.name + '\n' +
                info.device_version + '\n' + info.driver_version + '\n' + options_ + '\n';
}

std::string_view KernelDriver::product_library() const { return kProductSource; }

Result<std::unique_ptr<DriverKernel>> KernelDriver::Compile(const std::string& source) {
  const SignalKeeper keeper;
  const Api& api = runtime_.api();
  cl_int result = CL_SUCCESS;
  const char* text = source.data();
  const size_t size = source.size();
  Handle<cl_program> program(
      api.CreateProgramWithSource(runtime_.context(), 1, &text, &size, &result),
      api.ReleaseProgram);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "take the source of a kernel"));
  ONNXIFI_RETURN_IF_ERROR(Build(program.get(), "compile a kernel"));
  return KernelOf(std::move(program));
}

Result<std::unique_ptr<DriverKernel>> KernelDriver::Load(std::span<const std::byte> binary) {
  const SignalKeeper keeper;
  const Api& api = runtime_.api();
  const cl_device_id device = runtime_.info().id;
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int state = CL_SUCCESS;
  cl_int result = CL_SUCCESS;
  Handle<cl_program> program(
      api.CreateProgramWithBinary(runtime_.context(), 1, &device, &size, &bytes, &state, &result),
      api.ReleaseProgram);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "take the binary of a kernel"));
  ONNXIFI_RETURN_IF_ERROR(Build(program.get(), "link a kernel"));
  return KernelOf(std::move(program));
}

Status KernelDriver::Build(cl_program program, std::string_view doing) const {
  const Api& api = runtime_.api();
  const cl_device_id device = runtime_.info().id;
  Status status =
      ToStatus(api.BuildProgram(program, 1, &device, options_.c_str(), nullptr, nullptr), doing);
  if (status.ok()) return status;
  size_t log_size = 0;
  if (api.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &log_size) ==
          CL_SUCCESS &&
      log_size > 1) {
    std::string log(log_size, '\0');
    api.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, log_size, log.data(), nullptr);
    log.pop_back();
    if (log.size() > kMaxLogBytes) log.erase(0, log.size() - kMaxLogBytes);
    status.Context("the compiler says: " + log);
  }
  return status;
}

Result<std::unique_ptr<DriverKernel>> KernelDriver::KernelOf(Handle<cl_program> program) const {
  const Api& api = runtime_.api();
  auto compiled = std::make_unique<CompiledKernel>();
  compiled->program = std::move(program);
  cl_int result = CL_SUCCESS;
  compiled->kernel = {api.CreateKernel(compiled->program.get(), codegen::kEntryPoint, &result),
                      api.ReleaseKernel};
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "create a kernel"));
  return std::unique_ptr<DriverKernel>(std::move(compiled));
}

std::vector<std::byte> KernelDriver::BinaryOf(const DriverKernel& kernel) {
  const Api& api = runtime_.api();
  const cl_program program = static_cast<const CompiledKernel&>(kernel).program.get();
  size_t size = 0;
  if (api.GetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) !=
          CL_SUCCESS ||
      size == 0) {
    return {};
  }
  std::vector<std::byte> binary(size);
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (api.GetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr) !=
      CL_SUCCESS) {
    return {};
  }
  return binary;
}

Result<std::unique_ptr<DriverNumbers>> KernelDriver::Hold(std::span<const int64_t> numbers) {
  cl_int result = CL_SUCCESS;
  Handle<cl_mem> buffer(runtime_.api().CreateBuffer(
                            runtime_.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                            numbers.size_bytes(), const_cast<int64_t*>(numbers.data()), &result),
                        runtime_.api().ReleaseMemObject);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "allocate the numbers of a kernel"));
  return std::unique_ptr<DriverNumbers>(std::make_unique<Numbers>(std::move(buffer)));
}

Status KernelDriver::Start(device::Queue* queue, DriverKernel& kernel,
                           const codegen::KernelStart& start) {
  const Api& api = runtime_.api();
  auto& compiled = static_cast<CompiledKernel&>(kernel);
  const std::lock_guard lock(compiled.mutex);
  cl_uint position = 0;
  cl_int result = CL_SUCCESS;
  const auto set = [&](size_t size, const void* value) {
    const cl_int one = api.SetKernelArg(compiled.kernel.get(), position++, size, value);
    if (result == CL_SUCCESS) result = one;
  };
  for (size_t k = 0; k < start.operands.count(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(const Memory::Location place, memory_.Find(start.operands.address(k)));
    const auto offset = static_cast<cl_ulong>(place.offset_bytes / start.operands.unit_bytes(k));
    set(sizeof(cl_mem), &place.handle);
    set(sizeof(offset), &offset);
  }
  const cl_mem numbers =
      start.numbers == nullptr ? nullptr : static_cast<const Numbers*>(start.numbers)->buffer.get();
  const auto count = static_cast<cl_ulong>(start.item_count);
  set(sizeof(cl_mem), &numbers);
  set(sizeof(count), &count);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "set the arguments of a kernel"));
  const auto local = static_cast<size_t>(start.group_size);
  const size_t items = static_cast<size_t>(start.group_count) * local;
  // What a driver left undone when it built the kernel, it does at the first start.
  std::optional<SignalKeeper> keeper;
  if (!std::exchange(compiled.was_started, true)) keeper.emplace();
  if (queue == nullptr) return StartKernel(runtime_, compiled.kernel.get(), items, local);
  return static_cast<Queue*>(queue)->Start(compiled.kernel.get(), items, local);
}

}  // namespace onnxifi::opencl

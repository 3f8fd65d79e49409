// SPDX-License-Identifier: Apache-2.0
//
// ProgramCache: one program per kernel.

#include "backends/opencl/program_cache.h"

#include <optional>
#include <utility>

#include "backends/opencl/signal_keeper.h"

namespace onnxifi::opencl {
namespace {

using base::Code;
using base::Result;
using base::Status;

// The end of what a compiler says is where it gives up; more than this helps nobody.
constexpr size_t kMostLogBytes = 2000;

}  // namespace

ProgramCache::ProgramCache(Runtime& runtime, codegen::BinaryCache files)
    : runtime_(runtime),
      files_(std::move(files)),  // What compilers remark about kernels is nobody's to read.
      options_("-cl-std=CL1.2 -w") {
  const DeviceInfo& info = runtime.info();
  if (info.has_exact_division) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  key_prefix_ = info.platform_name + '\n' + info.platform_version + '\n' + info.name + '\n' +
                info.device_version + '\n' + info.driver_version + '\n' + options_ + '\n';
}

Result<std::shared_ptr<CompiledKernel>> ProgramCache::Get(const std::string& source,
                                                          const char* entry) {
  const std::string key = std::string(entry) + '\n' + source;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  }
  // Two threads may build the same at once; the first one's stays.
  ONNXIFI_ASSIGN_OR_RETURN(std::shared_ptr<CompiledKernel> compiled, Make(source, entry));
  const std::lock_guard lock(mutex_);
  return kernels_.emplace(key, std::move(compiled)).first->second;
}

int64_t ProgramCache::kernel_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(kernels_.size());
}

Result<std::shared_ptr<CompiledKernel>> ProgramCache::Make(const std::string& source,
                                                           const char* entry) {
  const SignalKeeper keeper;
  const Api& api = runtime_.api();
  auto kernel = std::make_shared<CompiledKernel>();
  cl_int result = CL_SUCCESS;
  const std::string key = key_prefix_ + source;
  if (const std::optional<std::vector<std::byte>> binary = files_.Find(key)) {
    Result<Handle<cl_program>> loaded = Load(*binary);
    if (loaded.ok()) {
      kernel->program = *std::move(loaded);
      kernel->kernel = {api.CreateKernel(kernel->program.get(), entry, &result), api.ReleaseKernel};
      if (result == CL_SUCCESS) return kernel;
    }
    // A driver may refuse what it once made; then it makes it anew.
    files_.Remove(key);
  }
  ONNXIFI_ASSIGN_OR_RETURN(kernel->program, Compile(source));
  kernel->kernel = {api.CreateKernel(kernel->program.get(), entry, &result), api.ReleaseKernel};
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "create a kernel"));
  ++compiled_count_;
  const std::vector<std::byte> binary = BinaryOf(kernel->program.get());
  if (!binary.empty()) files_.Store(key, binary);
  return kernel;
}

Result<Handle<cl_program>> ProgramCache::Load(const std::vector<std::byte>& binary) const {
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
  ONNXIFI_RETURN_IF_ERROR(
      ToStatus(api.BuildProgram(program.get(), 1, &device, options_.c_str(), nullptr, nullptr),
               "link a kernel"));
  return program;
}

// Empty if the driver does not tell.
std::vector<std::byte> ProgramCache::BinaryOf(cl_program program) const {
  const Api& api = runtime_.api();
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

Result<Handle<cl_program>> ProgramCache::Compile(const std::string& source) const {
  const Api& api = runtime_.api();
  const cl_device_id device = runtime_.info().id;
  cl_int result = CL_SUCCESS;
  const char* text = source.data();
  const size_t size = source.size();
  Handle<cl_program> program(
      api.CreateProgramWithSource(runtime_.context(), 1, &text, &size, &result),
      api.ReleaseProgram);
  ONNXIFI_RETURN_IF_ERROR(ToStatus(result, "take the source of a kernel"));
  result = api.BuildProgram(program.get(), 1, &device, options_.c_str(), nullptr, nullptr);
  if (result == CL_SUCCESS) return program;
  Status status = ToStatus(result, "compile a kernel");
  size_t log_size = 0;
  if (api.GetProgramBuildInfo(program.get(), device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &log_size) ==
          CL_SUCCESS &&
      log_size > 1) {
    std::string log(log_size, '\0');
    api.GetProgramBuildInfo(program.get(), device, CL_PROGRAM_BUILD_LOG, log_size, log.data(),
                            nullptr);
    log.pop_back();
    if (log.size() > kMostLogBytes) log.erase(0, log.size() - kMostLogBytes);
    status.Context("the compiler says: " + log);
  }
  return status;
}

}  // namespace onnxifi::opencl

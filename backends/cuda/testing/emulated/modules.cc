// SPDX-License-Identifier: Apache-2.0
//
// Functions of the emulated driver: modules and launches. A cubin of the emulated compiler is a
// shared library, which is opened. A launch is carried out once or, to find a missing
// barrier, twice from the same memory: in ascending and in descending order.

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "backends/cuda/testing/emulated/fibers.h"
#include "backends/cuda/testing/emulated/kernel_text.h"
#include "backends/cuda/testing/emulated/objects.h"
#include "backends/cuda/testing/emulated/tracking.h"

namespace emulated {
namespace {

constexpr size_t kMaxStaticShared = size_t{48} << 10;
constexpr int kMaxShared = 227 << 10;

// That a multiprocessor has registers for: they are given to warps, eight at a time for each item.
unsigned MostItems(const EmulatedKernel& kernel) {
  const unsigned of_a_warp = (kernel.registers + 7) / 8 * 8 * kWarp;
  return std::min(kernel.most_items, kDeviceRegisters / of_a_warp * kWarp);
}

// The length of an ELF file, from its tables: a caller names an image by its address alone.
size_t ImageBytes(const void* image) {
  if (std::strncmp(static_cast<const char*>(image), ELFMAG, SELFMAG) != 0) return 0;
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (header.e_type != ET_DYN) return 0;
  return header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
}

// Why the image is none of the emulated compiler's, for the most likely mistake.
std::string Foreign(const void* image) {
  constexpr int kCuda = 190;  // of e_machine
  const bool is_text = *static_cast<const char*>(image) != ELFMAG[0];
  Elf64_Ehdr header{};
  if (!is_text) std::memcpy(&header, image, sizeof(header));
  return std::string("A module ") +
         (is_text                     ? "is text, such as PTX"
          : header.e_machine == kCuda ? "is machine code of a GPU's"
                                      : "is nothing that a compiler of CUDA's makes") +
         "; the emulated device runs what the emulated libnvrtc.so.13 makes, so that has to lie "
         "beside the emulated libcuda.so.1.";
}

// Null if the image is none of the emulated compiler's.
void* OpenImage(const void* image, EmulatedModule* entries) {
  const size_t size_bytes = ImageBytes(image);
  if (size_bytes == 0) return nullptr;
  // A path of its own each: the loader gives the same library for the same path.
  static std::atomic<int> next{0};
  const char* const folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  const std::string path = std::string(folder) + "/emulated_kernel_" + std::to_string(getpid()) +
                           "_" + std::to_string(next++);
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(image), static_cast<std::streamsize>(size_bytes));
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) std::fprintf(stderr, "Emulated GPU: %s\n", dlerror());
  unlink(path.c_str());
  if (library == nullptr) return nullptr;
  const auto tell = reinterpret_cast<void (*)(EmulatedModule*)>(dlsym(library, "emulated_module"));
  if (tell == nullptr) {
    dlclose(library);
    return nullptr;
  }
  tell(entries);
  *entries->machine = &TheMachine();
  return library;
}

CUresult Load(CUmodule* made, const void* image) {
  if (made == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = CheckNoCapture(); result != CUDA_SUCCESS) return result;
  auto module = std::make_shared<Module>();
  module->context = Current();
  module->library = OpenImage(image, &module->entries);
  if (module->library == nullptr) return Misuse(CUDA_ERROR_INVALID_IMAGE, Foreign(image));
  // The device is an sm_90: its own code serves, and PTX.
  const int architecture = module->entries.architecture;
  if (architecture != 0 && architecture != 90) {
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (module->entries.shared_bytes > kMaxStaticShared) {
    return Misuse(CUDA_ERROR_INVALID_IMAGE,
                  "A kernel has more than 48 KiB of static shared memory.");
  }
  *made = reinterpret_cast<CUmodule>(module.get());
  D().modules[module.get()] = std::move(module);
  return CUDA_SUCCESS;
}

// What a launch keeps of its parameters: their bytes.
struct Parameters {
  std::vector<char> bytes;
  std::vector<void*> pointers;
};

std::shared_ptr<Parameters> CopyParameters(const EmulatedKernel& kernel, void* const* values) {
  auto copy = std::make_shared<Parameters>();
  size_t size_bytes = 0;
  constexpr size_t kUnit = 16;
  for (int n = 0; n < kernel.parameter_count; ++n) {
    size_bytes += (kernel.parameters[n].size_bytes + kUnit - 1) / kUnit * kUnit;
  }
  copy->bytes.resize(size_bytes);
  char* at = copy->bytes.data();
  for (int n = 0; n < kernel.parameter_count; ++n) {
    std::memcpy(at, values[n], kernel.parameters[n].size_bytes);
    copy->pointers.push_back(at);
    at += (kernel.parameters[n].size_bytes + kUnit - 1) / kUnit * kUnit;
  }
  return copy;
}

// The pages of the device memory that the kernel may write to. Of pinned memory, which the host may
// write to meanwhile, nothing is put back.
std::vector<Tracking::Range> FindWritten(const EmulatedKernel& kernel,
                                         const Parameters& parameters) {
  constexpr uintptr_t kPage = 4096;
  const std::lock_guard lock(D().mutex);
  std::vector<Tracking::Range> ranges;
  for (int n = 0; n < kernel.parameter_count; ++n) {
    if (kernel.parameters[n].kind != kEmulatedWrittenPointer) continue;
    uintptr_t address = 0;
    std::memcpy(&address, parameters.pointers[n], sizeof(address));
    const Memory* const memory = FindMemory(address);
    if (memory == nullptr || memory->is_host) continue;
    const Tracking::Range range{memory->base / kPage * kPage,
                                (memory->base + memory->size_bytes + kPage - 1) / kPage * kPage};
    const bool is_known =
        std::any_of(ranges.begin(), ranges.end(),
                    [&](const Tracking::Range& known) { return known.begin == range.begin; });
    if (!is_known) ranges.push_back(range);
  }
  return ranges;
}

std::string RunLaunch(const EmulatedModule& module, const EmulatedKernel& kernel,
                      EmulatedLaunch launch, const Parameters& parameters,
                      size_t dynamic_shared_bytes) {
  launch.parameters = const_cast<void**>(parameters.pointers.data());
  static auto* const dynamic_shared = new std::vector<char>;
  dynamic_shared->assign(dynamic_shared_bytes + 256, static_cast<char>(launch.rubbish));
  const auto address = reinterpret_cast<uintptr_t>(dynamic_shared->data());
  launch.dynamic_shared = reinterpret_cast<void*>((address + 255) / 256 * 256);
  *module.machine = &TheMachine();
  std::string fault = RunKernel(kernel, launch);
  if (fault.empty()) fault = TakeComplaint();
  if (!fault.empty()) fault = std::string("Kernel ") + kernel.name + ": " + fault;
  return fault;
}

std::string DescribeDifference(const EmulatedKernel& kernel, uintptr_t at) {
  const std::lock_guard lock(D().mutex);
  const Memory* const memory = FindMemory(at);
  return std::string("Kernel ") + kernel.name +
         " gives other bits where its items run in another order: byte " +
         std::to_string(memory != nullptr ? at - memory->base : 0) +
         " of an allocation. A barrier is missing, or its blocks lean on each other.";
}

std::string Run(const std::shared_ptr<Module>& module, const EmulatedKernel& kernel,
                EmulatedLaunch launch, const Parameters& parameters, size_t dynamic_shared_bytes) {
  bool runs_twice = false;
  {
    const std::lock_guard lock(D().mutex);
    ++D().launch_count;
    D().clock += D().kernel_time;
    runs_twice = D().runs_twice;
  }
  std::optional<Tracking> tracking;
  if (runs_twice) tracking.emplace(FindWritten(kernel, parameters));
  launch.is_descending = false;
  launch.rubbish = 0xff;
  std::string fault = RunLaunch(module->entries, kernel, launch, parameters, dynamic_shared_bytes);
  if (fault.empty() && runs_twice) {
    tracking->Restore();
    launch.is_descending = true;
    launch.rubbish = 0x3c;
    fault = RunLaunch(module->entries, kernel, launch, parameters, dynamic_shared_bytes);
    const uintptr_t at = tracking->FindDifference();
    if (fault.empty() && at != 0) {
      fault = DescribeDifference(kernel, at);
    }
  }
  tracking.reset();
  if (!fault.empty()) return fault;
  const std::lock_guard lock(D().mutex);
  fault = CheckRedZones();
  return fault.empty() ? fault : std::string("Kernel ") + kernel.name + ": " + fault;
}

}  // namespace

Module::~Module() {
  if (library != nullptr) dlclose(library);
}

CUresult MakeLaunch(const CUDA_KERNEL_NODE_PARAMS& wanted, Action* action) {
  Function* const function = Find(D().functions, wanted.func);
  if (function == nullptr)
    return Misuse(CUDA_ERROR_INVALID_HANDLE, "A function that is none is launched.");
  const EmulatedKernel& kernel = *function->kernel;
  const auto refuse = [&](CUresult result, const char* why) {
    return Misuse(result, std::string("Kernel ") + kernel.name + " is launched with " + why + ".");
  };
  if (function->module->context != Current()) {
    return refuse(CUDA_ERROR_INVALID_CONTEXT, "a context that is not its own");
  }
  const uint64_t items = uint64_t{wanted.blockDimX} * wanted.blockDimY * wanted.blockDimZ;
  if (items == 0 || wanted.gridDimX == 0 || wanted.gridDimY == 0 || wanted.gridDimZ == 0) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "an extent of 0");
  }
  if (items > kMaxItems || wanted.blockDimZ > 64)
    return refuse(CUDA_ERROR_INVALID_VALUE, "over 1,024 items in a block");
  if (items > kernel.most_items) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "more items in a block than its launch bounds allow");
  }
  if (items > MostItems(kernel)) {
    return Misuse(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                  std::string("Kernel ") + kernel.name + " takes " +
                      std::to_string(kernel.registers) + " registers of each of " +
                      std::to_string(items) + " items; a multiprocessor has " +
                      std::to_string(kDeviceRegisters) + ".");
  }
  if (wanted.gridDimX > INT_MAX || wanted.gridDimY > 65535 || wanted.gridDimZ > 65535) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "more blocks than a grid has");
  }
  if (wanted.sharedMemBytes > static_cast<unsigned>(function->most_dynamic_shared_bytes) ||
      wanted.sharedMemBytes + function->module->entries.shared_bytes >
          static_cast<unsigned>(kMaxShared)) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "more shared memory than the function may have");
  }
  if (wanted.extra != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (kernel.parameter_count > 0 && wanted.kernelParams == nullptr) {
    return refuse(CUDA_ERROR_INVALID_VALUE, "no parameters");
  }
  EmulatedLaunch launch{};
  launch.grid = {wanted.gridDimX, wanted.gridDimY, wanted.gridDimZ};
  launch.block = {wanted.blockDimX, wanted.blockDimY, wanted.blockDimZ};
  const std::shared_ptr<Parameters> parameters = CopyParameters(kernel, wanted.kernelParams);
  // The module's code stays until the launch is done.
  const std::shared_ptr<Module> module = D().modules.at(function->module);
  action->type = CU_GRAPH_NODE_TYPE_KERNEL;
  action->kernel = wanted;
  action->kernel.kernelParams = parameters->pointers.data();
  action->run = [module, &kernel, launch, parameters, shared = size_t{wanted.sharedMemBytes}] {
    return Run(module, kernel, launch, *parameters, shared);
  };
  return CUDA_SUCCESS;
}

}  // namespace emulated

using namespace emulated;

namespace {
#define EMULATED_FUNCTION(name, handle)               \
  Function* const name = Find(D().functions, handle); \
  if (name == nullptr) return Misuse(CUDA_ERROR_INVALID_HANDLE, "A function is none.")
}  // namespace

CUresult CUDAAPI cuModuleLoadData(CUmodule* made, const void* image) {
  EMULATED_CALL(cuModuleLoadData, kWithContext);
  return Load(made, image);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* made, const void* image, unsigned int, CUjit_option*,
                                    void**) {
  EMULATED_CALL(cuModuleLoadDataEx, kWithContext);
  return Load(made, image);
}

CUresult CUDAAPI cuModuleUnload(CUmodule handle) {
  EMULATED_CALL(cuModuleUnload, kWithContext);
  if (Find(D().modules, handle) == nullptr)
    return Misuse(CUDA_ERROR_INVALID_HANDLE, "A module is none.");
  // What runs still uses its code.
  WaitForAll(call.lock(), nullptr);
  const void* const module = handle;
  std::erase_if(D().functions, [=](const auto& entry) { return entry.second->module == module; });
  D().modules.erase(handle);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* made, CUmodule handle, const char* name) {
  EMULATED_CALL(cuModuleGetFunction, kWithContext);
  Module* const module = Find(D().modules, handle);
  if (module == nullptr) return Misuse(CUDA_ERROR_INVALID_HANDLE, "A module is none.");
  if (made == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (int n = 0; n < module->entries.kernel_count; ++n) {
    const EmulatedKernel& kernel = module->entries.kernels[n];
    if (std::strcmp(kernel.name, name) != 0) continue;
    for (const auto& [key, function] : D().functions) {
      if (function->kernel != &kernel) continue;
      *made = reinterpret_cast<CUfunction>(function.get());
      return CUDA_SUCCESS;
    }
    auto function = std::make_shared<Function>();
    function->module = module;
    function->kernel = &kernel;
    *made = reinterpret_cast<CUfunction>(function.get());
    D().functions[function.get()] = std::move(function);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr*, size_t*, CUmodule, const char*) {
  EMULATED_CALL(cuModuleGetGlobal_v2, kWithContext);
  return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  EMULATED_CALL(cuFuncGetAttribute, kWithContext);
  EMULATED_FUNCTION(function, handle);
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(MostItems(*function->kernel));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->module->entries.shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->most_dynamic_shared_bytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(function->kernel->registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = 90;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  EMULATED_CALL(cuFuncSetAttribute, kWithContext);
  EMULATED_FUNCTION(function, handle);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return CUDA_SUCCESS;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  const auto fixed = static_cast<int>(function->module->entries.shared_bytes);
  if (value < 0 || value + fixed > kMaxShared) return CUDA_ERROR_INVALID_VALUE;
  function->most_dynamic_shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  EMULATED_CALL(cuFuncSetCacheConfig, kWithContext);
  EMULATED_FUNCTION(function, handle);
  (void)function;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset,
                                    size_t* size_bytes) {
  EMULATED_CALL(cuFuncGetParamInfo, kWithContext);
  EMULATED_FUNCTION(function, handle);
  if (index >= static_cast<size_t>(function->kernel->parameter_count))
    return CUDA_ERROR_INVALID_VALUE;
  if (offset != nullptr) *offset = function->kernel->parameters[index].offset_bytes;
  if (size_bytes != nullptr) *size_bytes = function->kernel->parameters[index].size_bytes;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  EMULATED_CALL(cuFuncGetModule, kWithContext);
  EMULATED_FUNCTION(function, handle);
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction handle,
                                                             int items, size_t dynamic_bytes) {
  EMULATED_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, kWithContext);
  EMULATED_FUNCTION(function, handle);
  const size_t shared = function->module->entries.shared_bytes + dynamic_bytes + 1024;
  if (items <= 0 || static_cast<unsigned>(items) > kMaxItems) return CUDA_ERROR_INVALID_VALUE;
  const size_t of_an_item = (function->kernel->registers + 7) / 8 * 8;
  const size_t in_warps = (static_cast<size_t>(items) + kWarp - 1) / kWarp * kWarp;
  *count = static_cast<int>(
      std::min({size_t{32}, size_t{2048} / in_warps, kDeviceRegisters / (of_an_item * in_warps),
                (size_t{228} << 10) / shared}));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                unsigned int block_z, unsigned int shared_bytes, CUstream handle,
                                void** parameters, void** extra) {
  EMULATED_CALL(cuLaunchKernel, kWithContext);
  EMULATED_STREAM(stream, handle);
  CUDA_KERNEL_NODE_PARAMS wanted{};
  wanted.func = function;
  wanted.gridDimX = grid_x;
  wanted.gridDimY = grid_y;
  wanted.gridDimZ = grid_z;
  wanted.blockDimX = block_x;
  wanted.blockDimY = block_y;
  wanted.blockDimZ = block_z;
  wanted.sharedMemBytes = shared_bytes;
  wanted.kernelParams = parameters;
  wanted.extra = extra;
  Action action;
  const CUresult result = MakeLaunch(wanted, &action);
  return result != CUDA_SUCCESS ? result : Enqueue(stream, std::move(action));
}

// SPDX-License-Identifier: Apache-2.0
//
// Functions of the emulated driver: start, errors, devices, contexts.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/cuda/testing/emulated/kernel_text.h"
#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

constexpr int kDriverVersion = CUDA_VERSION;

uint64_t NumberOf(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

void Start() {
  Driver& d = D();
  d.device_count = static_cast<int>(NumberOf("ONNXIFI_EMULATED_DEVICES", 1));
  d.memory_bytes = NumberOf("ONNXIFI_EMULATED_MEMORY_MIB", 4096) << 20;
  if (NumberOf("ONNXIFI_EMULATED_TWICE", 0) != 0) d.runs_twice = true;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) {
    int count = 0;
    const std::string text(visible);
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      const std::string entry = text.substr(at, end - at);
      if (entry.empty() || entry.find_first_not_of("0123456789") != std::string::npos ||
          std::stoi(entry) >= d.device_count) {
        break;
      }
      ++count;
      at = end + 1;
    }
    d.device_count = std::min(d.device_count, count);
  }
  d.primary.assign(d.device_count, nullptr);
  d.is_initialized = true;
  d.process = getpid();
}

bool IsDevice(CUdevice device) { return device >= 0 && device < D().device_count; }

Context* MakeContext(CUdevice device, bool is_primary, unsigned flags) {
  auto context = std::make_shared<Context>();
  context->device = device;
  context->is_primary = is_primary;
  context->flags = flags;
  context->owners = 1;
  Context* const made = context.get();
  D().contexts[made] = std::move(context);
  return made;
}

struct Error {
  CUresult result;
  const char* name;
  const char* sentence;
};
#define EMULATED_ERROR(name, sentence) \
  { CUDA_##name, "CUDA_" #name, sentence }
constexpr Error kErrors[] = {
    EMULATED_ERROR(SUCCESS, "no error"),
    EMULATED_ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    EMULATED_ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    EMULATED_ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    EMULATED_ERROR(ERROR_DEINITIALIZED, "driver shutting down"),
    EMULATED_ERROR(ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    EMULATED_ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    EMULATED_ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    EMULATED_ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    EMULATED_ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    EMULATED_ERROR(ERROR_NO_BINARY_FOR_GPU,
                   "no kernel image is available for execution on the device"),
    EMULATED_ERROR(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    EMULATED_ERROR(ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    EMULATED_ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    EMULATED_ERROR(ERROR_SYSTEM_DRIVER_MISMATCH,
                   "system has unsupported display driver / cuda driver combination"),
    EMULATED_ERROR(ERROR_SYSTEM_NOT_READY, "system not yet initialized"),
    EMULATED_ERROR(ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    EMULATED_ERROR(ERROR_FILE_NOT_FOUND, "file not found"),
    EMULATED_ERROR(ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    EMULATED_ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    EMULATED_ERROR(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    EMULATED_ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    EMULATED_ERROR(ERROR_NOT_READY, "device not ready"),
    EMULATED_ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    EMULATED_ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    EMULATED_ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    EMULATED_ERROR(ERROR_PRIMARY_CONTEXT_ACTIVE,
                   "cannot set while device is active in this process"),
    EMULATED_ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    EMULATED_ERROR(ERROR_ASSERT, "device-side assert triggered"),
    EMULATED_ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                   "part or all of the requested memory range is already mapped"),
    EMULATED_ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED,
                   "pointer does not correspond to a registered memory region"),
    EMULATED_ERROR(ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    EMULATED_ERROR(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    EMULATED_ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    EMULATED_ERROR(ERROR_INVALID_ADDRESS_SPACE,
                   "operation not supported on global/shared address space"),
    EMULATED_ERROR(ERROR_INVALID_PC, "invalid program counter"),
    EMULATED_ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    EMULATED_ERROR(ERROR_NOT_PERMITTED, "operation not permitted"),
    EMULATED_ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED,
                   "operation not permitted when stream is capturing"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_INVALIDATED,
                   "operation failed due to a previous error during capture"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_MERGE,
                   "operation would result in a merge of separate capture sequences"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_UNMATCHED,
                   "capture was not ended in the same stream as it began"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_ISOLATION,
                   "dependency created on uncaptured work in another stream"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_IMPLICIT,
                   "operation would make the legacy stream depend on a capturing blocking stream"),
    EMULATED_ERROR(ERROR_CAPTURED_EVENT,
                   "operation not permitted on an event last recorded in a capturing stream"),
    EMULATED_ERROR(ERROR_STREAM_CAPTURE_WRONG_THREAD,
                   "attempt to terminate a thread-local capture sequence from another thread"),
    EMULATED_ERROR(ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                   "the graph update was not performed because it included changes which violated "
                   "constraints specific to instantiated graph update"),
    EMULATED_ERROR(ERROR_UNKNOWN, "unknown error"),
};

const Error* FindError(CUresult result) {
  for (const Error& error : kErrors) {
    if (error.result == result) return &error;
  }
  return nullptr;
}

// What is not listed is 0, as a feature that the device lacks.
int AttributeOf(CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return 9;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return 132;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1'000'000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1'000'000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 256;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return INT_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 227 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return 228 << 10;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1 << 10;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return kDeviceRegisters;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 32;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return 1 + device;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_ECC_ENABLED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

void ReleaseContext(Context* context) {
  Driver& d = D();
  std::erase_if(d.streams, [=](const auto& entry) { return entry.second->context == context; });
  std::erase_if(d.events, [=](const auto& entry) { return entry.second->context == context; });
  std::erase_if(d.functions,
                [=](const auto& entry) { return entry.second->module->context == context; });
  std::erase_if(d.modules, [=](const auto& entry) { return entry.second->context == context; });
  std::erase_if(d.memory, [=](const auto& entry) {
    if (entry.second.context != context) return false;
    ReleaseMemory(entry.second);
    return true;
  });
  d.legacy_streams.erase(context);
  d.contexts.erase(context);
}

}  // namespace emulated

using namespace emulated;

CUresult CUDAAPI cuInit(unsigned int flags) {
  EMULATED_CALL(cuInit, kAnytime);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (D().is_initialized)
    return D().process == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
  Start();
  if (D().device_count > 0) return CUDA_SUCCESS;
  D().is_initialized = false;
  return CUDA_ERROR_NO_DEVICE;
}

CUresult CUDAAPI cuDriverGetVersion(int* version) {
  EMULATED_CALL(cuDriverGetVersion, kAnytime);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult result, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Error* const error = FindError(result);
  *name = error != nullptr ? error->name : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult result, const char** sentence) {
  if (sentence == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Error* const error = FindError(result);
  *sentence = error != nullptr ? error->sentence : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  EMULATED_CALL(cuDeviceGetCount, kInitialized);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = D().device_count;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  EMULATED_CALL(cuDeviceGet, kInitialized);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  EMULATED_CALL(cuDeviceGetName, kInitialized);
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, length, "Emulated GPU");
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  EMULATED_CALL(cuDeviceGetUuid_v2, kInitialized);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memcpy(uuid->bytes, "Emulated GPU", 13);
  uuid->bytes[13] = uuid->bytes[14] = 0;
  uuid->bytes[15] = static_cast<char>(device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  EMULATED_CALL(cuDeviceGetPCIBusId, kInitialized);
  if (id == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(id, length, "0000:%02X:00.0", device + 1);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  EMULATED_CALL(cuDeviceTotalMem_v2, kInitialized);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = D().memory_bytes;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  EMULATED_CALL(cuDeviceGetAttribute, kInitialized);
  if (value == nullptr || attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = AttributeOf(attribute, device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  EMULATED_CALL(cuDevicePrimaryCtxRetain, kInitialized);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context*& primary = D().primary[device];
  if (primary == nullptr) {
    primary = MakeContext(device, /*is_primary=*/true, 0);
  } else {
    ++primary->owners;
  }
  *context = reinterpret_cast<CUcontext>(primary);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  EMULATED_CALL(cuDevicePrimaryCtxRelease_v2, kInitialized);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context*& primary = D().primary[device];
  if (primary == nullptr) {
    return Misuse(CUDA_ERROR_INVALID_CONTEXT, "A primary context is released once too often.");
  }
  if (--primary->owners > 0) return CUDA_SUCCESS;
  WaitForAll(call.lock(), primary);
  ReleaseContext(primary);
  primary = nullptr;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  EMULATED_CALL(cuDevicePrimaryCtxGetState, kInitialized);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Context* const primary = D().primary[device];
  if (flags != nullptr) *flags = primary != nullptr ? primary->flags : 0;
  if (active != nullptr) *active = primary != nullptr ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  EMULATED_CALL(cuDevicePrimaryCtxSetFlags_v2, kInitialized);
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (D().primary[device] != nullptr) D().primary[device]->flags = flags;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned int flags,
                                CUdevice device) {
  EMULATED_CALL(cuCtxCreate_v4, kInitialized);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  Context* const made = MakeContext(device, /*is_primary=*/false, flags);
  ContextStack().push_back(made);
  *context = reinterpret_cast<CUcontext>(made);
  return CUDA_SUCCESS;
}

#undef cuCtxCreate
extern "C" CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned int flags,
                                           CUdevice device) {
  return cuCtxCreate_v4(context, nullptr, flags, device);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext handle) {
  EMULATED_CALL(cuCtxDestroy_v2, kInitialized);
  Context* const context = Find(D().contexts, handle);
  if (context == nullptr || context->is_primary) {
    return Misuse(CUDA_ERROR_INVALID_CONTEXT, "A context that is none is destroyed.");
  }
  WaitForAll(call.lock(), context);
  std::vector<Context*>& stack = ContextStack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  ReleaseContext(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  EMULATED_CALL(cuCtxSetCurrent, kInitialized);
  Context* const context = Find(D().contexts, handle);
  if (handle != nullptr && context == nullptr) {
    return Misuse(CUDA_ERROR_INVALID_CONTEXT, "A context that is none is made current.");
  }
  SetCurrent(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  EMULATED_CALL(cuCtxGetCurrent, kInitialized);
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(Current());
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext handle) {
  EMULATED_CALL(cuCtxPushCurrent_v2, kInitialized);
  Context* const context = Find(D().contexts, handle);
  if (context == nullptr) {
    return Misuse(CUDA_ERROR_INVALID_CONTEXT, "A context that is none is pushed.");
  }
  ContextStack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context) {
  EMULATED_CALL(cuCtxPopCurrent_v2, kInitialized);
  std::vector<Context*>& stack = ContextStack();
  if (stack.empty())
    return Misuse(CUDA_ERROR_INVALID_CONTEXT, "A thread without contexts pops one.");
  if (context != nullptr) *context = reinterpret_cast<CUcontext>(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  EMULATED_CALL(cuCtxGetDevice, kWithContext);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = Current()->device;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext, unsigned int* version) {
  EMULATED_CALL(cuCtxGetApiVersion, kInitialized);
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  EMULATED_CALL(cuCtxGetStreamPriorityRange, kWithContext);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  EMULATED_CALL(cuCtxSynchronize, kWithContext);
  if (const CUresult result = CheckNoCapture(); result != CUDA_SUCCESS) return result;
  Context* const context = Current();
  WaitForAll(call.lock(), context);
  return context->lost;
}

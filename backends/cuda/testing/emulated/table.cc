// SPDX-License-Identifier: Apache-2.0
//
// cuGetProcAddress of the emulated driver: functions by their names without a version, each the
// newest that this library has.

#include <dlfcn.h>

#include <string>

#include "backends/cuda/testing/emulated/objects.h"

namespace emulated {
namespace {

// Null if there is none.
void* FindFunction(const std::string& name) {
  if (D().hidden.count(name) > 0) return nullptr;
  if (name == "cuGraphInstantiate") return FindFunction("cuGraphInstantiateWithFlags");
  static void* const self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&FindFunction), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  for (const char* const version : {"_v4", "_v3", "_v2", ""}) {
    void* const found = dlsym(self != nullptr ? self : RTLD_DEFAULT, (name + version).c_str());
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace
}  // namespace emulated

using namespace emulated;

CUresult CUDAAPI cuGetProcAddress_v2(const char* name, void** function, int version,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  EMULATED_CALL(cuGetProcAddress_v2, kAnytime);
  (void)flags;
  if (name == nullptr || function == nullptr || version <= 0) return CUDA_ERROR_INVALID_VALUE;
  *function = FindFunction(name);
  if (status != nullptr) {
    *status =
        *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

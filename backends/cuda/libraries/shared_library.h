// SPDX-License-Identifier: Apache-2.0
//
// SharedLibrary: a library that is opened at run time, and what is looked up in it. Once opened it
// stays.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_SHARED_LIBRARY_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_SHARED_LIBRARY_H_

#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::cuda {

class SharedLibrary {
 public:
  // The first of `names` that can be opened. UNSUPPORTED_OPERATOR with the linker's words; `title`
  // reads like "cuDNN, version 9,".
  static base::Result<SharedLibrary> Open(std::string_view title,
                                          std::initializer_list<const char*> names) {
    SharedLibrary opened;
    for (const char* const name : names) {
      if (opened.library_ == nullptr) opened.library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (opened.library_ != nullptr) return opened;
    return base::Status(base::Code::kUnsupportedOperator,
                        std::string(title) + " cannot be opened: " + dlerror() + ".");
  }

  template <typename Function>
  void Find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr) missing_ = name;
  }
  // UNSUPPORTED_OPERATOR with what was not found.
  base::Status CheckFound(std::string_view title) const {
    if (missing_ == nullptr) return base::Ok();
    return base::Status(base::Code::kUnsupportedOperator,
                        std::string(title) + " has no function " + missing_ + ".");
  }

 private:
  void* library_ = nullptr;
  const char* missing_ = nullptr;
};

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_SHARED_LIBRARY_H_

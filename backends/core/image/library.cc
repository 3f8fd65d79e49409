// SPDX-License-Identifier: Apache-2.0
//
// Library: dlopen.

#include "backends/core/image/library.h"

#include <dlfcn.h>

namespace onnxifi::image {

using base::Code;
using base::Status;

base::Result<Library> Library::Open(const char* name, std::string_view format) {
  void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return Status(Code::kNoSystemResources,
                  "The encoded image is " + std::string(format) + ", which " + name +
                      " decodes; it cannot be opened: " + (reason != nullptr ? reason : name) +
                      ".");
  }
  // It stays loaded all the same; each image would add one to its count otherwise.
  dlclose(handle);
  return Library(name, handle);
}

void* Library::Find(const char* function) const { return dlsym(handle_, function); }

Status Library::Lacks(const char* function) const {
  return {Code::kNoSystemResources, "The library " + name_ + " has no function " + function + "."};
}

}  // namespace onnxifi::image

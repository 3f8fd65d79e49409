// SPDX-License-Identifier: Apache-2.0
//
// Library: a decoder library of the system, opened when an image needs it, so that a plugin loads
// where it is absent.

#ifndef ONNXIFI_BACKENDS_CORE_IMAGE_LIBRARY_H_
#define ONNXIFI_BACKENDS_CORE_IMAGE_LIBRARY_H_

#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnxifi::image {

class Library {
 public:
  // Stays loaded until the process ends. NO_SYSTEM_RESOURCES where the system does not have it:
  // the sentence names it, `format` and the reason.
  static base::Result<Library> Open(const char* name, std::string_view format);

  // Null where there is none of that name.
  void* Find(const char* function) const;
  base::Status Lacks(const char* function) const;

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}

  std::string name_;
  void* handle_;
};

}  // namespace onnxifi::image

// For a table of functions `table` with a member of each function's own name.
#define ONNXIFI_IMAGE_MEMBER(function) decltype(&::function) function = nullptr;
#define ONNXIFI_IMAGE_LOOK_UP(function)                                                 \
  table.function = reinterpret_cast<decltype(table.function)>(library.Find(#function)); \
  if (table.function == nullptr) return library.Lacks(#function);

#endif  // ONNXIFI_BACKENDS_CORE_IMAGE_LIBRARY_H_

// SPDX-License-Identifier: Apache-2.0
//
// Image on POSIX: dlopen, dlsym, and dladdr to know in which image an address lies.

#include <dlfcn.h>
#include <link.h>

#include <utility>

#include "discovery/library/image.h"

namespace onnxifi::library {

Image::Image(Image&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), handle_is_kept_(other.handle_is_kept_) {}

Image& Image::operator=(Image&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(handle_is_kept_, other.handle_is_kept_);
  return *this;
}

Image::~Image() {
  if (handle_ != nullptr && !handle_is_kept_) dlclose(handle_);
}

Image Image::Open(const std::filesystem::path& path, std::string* out_reason) {
  Image image;
  image.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (image.handle_ == nullptr) {
    const char* reason = dlerror();
    *out_reason = reason != nullptr ? reason : "";
  }
  return image;
}

void* Image::Find(const char* symbol) const { return dlsym(handle_, symbol); }

bool Image::Contains(const void* address) const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return false;
  // The dynamic section lies in the image, so both addresses must share its base.
  Dl_info own = {};
  Dl_info other = {};
  return dladdr(map->l_ld, &own) != 0 && dladdr(address, &other) != 0 &&
         own.dli_fbase == other.dli_fbase;
}

std::filesystem::path Image::FileOf(const void* address) {
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path(info.dli_fname) : file;
}

}  // namespace onnxifi::library

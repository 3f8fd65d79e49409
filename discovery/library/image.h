// SPDX-License-Identifier: Apache-2.0
//
// Image: one shared object opened in this process. All that the loader asks of the operating system
// about libraries goes through here.

#ifndef ONNXIFI_DISCOVERY_LIBRARY_IMAGE_H_
#define ONNXIFI_DISCOVERY_LIBRARY_IMAGE_H_

#include <filesystem>
#include <string>

namespace onnxifi::library {

// Move-only; closes the image unless it is kept.
class Image {
 public:
  Image() = default;
  Image(Image&& other) noexcept;
  Image& operator=(Image&& other) noexcept;
  ~Image();

  // Opens with all symbols bound and none given to others. An image that is not open when the
  // system's linker refuses; `*out_reason` is then its text.
  static Image Open(const std::filesystem::path& path, std::string* out_reason);

  bool is_open() const { return handle_ != nullptr; }
  // The symbol in this image or in what it depends on; nullptr when there is none.
  void* Find(const char* symbol) const;
  // Whether the address lies in this very image.
  bool Contains(const void* address) const;
  // The file in which an address lies; empty when it is in none.
  static std::filesystem::path FileOf(const void* address);
  // Leaves the image open for the rest of the process.
  void Keep() { handle_is_kept_ = true; }

 private:
  void* handle_ = nullptr;
  bool handle_is_kept_ = false;
};

}  // namespace onnxifi::library

#endif  // ONNXIFI_DISCOVERY_LIBRARY_IMAGE_H_

// SPDX-License-Identifier: Apache-2.0
//
// MappedFile: open, ask for the size, map, close.

#include "client/onnx_file/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace onnxifi::onnx_file {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

base::Status Refuse(base::Code code, const std::filesystem::path& path, std::string_view why) {
  return {code, fmt::format("File '{}' cannot be read: {}.", path.string(), why)};
}

}  // namespace

void MappedFile::Unmap::operator()(const std::byte* data) const {
  ::munmap(const_cast<std::byte*>(data), size);
}

base::Result<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  // NONBLOCK: opening a pipe must not wait.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts = {};
  if (file.number() < 0 || ::fstat(file.number(), &facts) != 0) {
    return Refuse(base::Code::kInvalidName, path, std::generic_category().message(errno));
  }
  if (!S_ISREG(facts.st_mode)) {
    return Refuse(base::Code::kInvalidName, path, "it is not a plain file");
  }
  const auto size = static_cast<size_t>(facts.st_size);
  if (size == 0) return MappedFile(Data(nullptr, Unmap{}));
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (mapped == MAP_FAILED) {
    return Refuse(base::Code::kNoSystemMemory, path, std::generic_category().message(errno));
  }
  return MappedFile(Data(static_cast<const std::byte*>(mapped), Unmap{size}));
}

}  // namespace onnxifi::onnx_file

// SPDX-License-Identifier: Apache-2.0
//
// ExternalData: the path is checked as text, then as what the file system makes of it.

#include "backends/core/model/external_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;

Status Refuse(std::string sentence) { return {Code::kInvalidModel, std::move(sentence)}; }

std::string ErrorText() { return std::generic_category().message(errno); }

// The path with every link followed; empty if there is none.
std::string Resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr),
                                                             std::free);
  return resolved ? std::string(resolved.get()) : std::string();
}

// Whether a step of the path leads above where it begins, if no folder on the way is a link.
bool LeadsOutside(const std::string& location) {
  int depth = 0;
  size_t begin = 0;
  while (begin <= location.size()) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string step = location.substr(begin, end - begin);
    if (step == "..") {
      --depth;
    } else if (!step.empty() && step != ".") {
      ++depth;
    }
    if (depth < 0) return true;
    begin = end + 1;
  }
  return location.front() == '/';
}

struct FileDescriptor {
  int number = -1;
  explicit FileDescriptor(int opened) : number(opened) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Result<ExternalData::Region> ExternalData::MapFile(const std::string& location) const {
  const std::string quoted = "External data file '" + location + "'";
  if (!folder_) {
    return Refuse(quoted + " cannot be read, because no folder for external data is given.");
  }
  if (location.empty() || location.find('\0') != std::string::npos) {
    return Refuse("The location of external data is empty or holds a NUL character.");
  }
  if (LeadsOutside(location)) {
    return Refuse(quoted + " is not a path inside the model's folder.");
  }
  const std::string folder = Resolve(*folder_);
  if (folder.empty()) {
    return Refuse("The folder for external data '" + *folder_ +
                  "' cannot be opened: " + ErrorText() + ".");
  }
  const std::string path = Resolve(folder + "/" + location);
  if (path.empty()) return Refuse(quoted + " cannot be opened: " + ErrorText() + ".");
  const std::string inside = folder == "/" ? folder : folder + "/";
  if (path != folder && path.compare(0, inside.size(), inside) != 0) {
    return Refuse(quoted + " leads by a link to a place outside the model's folder.");
  }
  // NONBLOCK: opening a pipe must not wait. NOFOLLOW: the last step was no link when it was
  // resolved.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat facts = {};
  if (file.number < 0 || ::fstat(file.number, &facts) != 0) {
    return Refuse(quoted + " cannot be opened: " + ErrorText() + ".");
  }
  if (!S_ISREG(facts.st_mode)) return Refuse(quoted + " is not a plain file.");
  const auto size_bytes = static_cast<size_t>(facts.st_size);
  if (size_bytes == 0) return Region{};
  void* mapped = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (mapped == MAP_FAILED) {
    return Status(Code::kNoSystemMemory, quoted + " of " + std::to_string(size_bytes) +
                                             " bytes cannot be mapped: " + ErrorText() + ".");
  }
  Region region;
  region.bytes = {static_cast<const std::byte*>(mapped), size_bytes};
  region.owner = std::shared_ptr<const void>(
      mapped, [size_bytes](const void* start) { ::munmap(const_cast<void*>(start), size_bytes); });
  return region;
}

Result<ExternalData::Region> ExternalData::Map(const std::string& location, int64_t offset,
                                               int64_t size_bytes) {
  const File* found = nullptr;
  for (const File& file : files_) {
    if (file.location == location) found = &file;
  }
  if (found == nullptr) {
    ONNXIFI_ASSIGN_OR_RETURN(Region whole, MapFile(location));
    files_.push_back({location, std::move(whole)});
    found = &files_.back();
  }
  const auto file_bytes = static_cast<int64_t>(found->whole.bytes.size());
  if (offset < 0 || size_bytes < 0 || offset > file_bytes || size_bytes > file_bytes - offset) {
    return Refuse("External data of " + std::to_string(size_bytes) + " bytes at offset " +
                  std::to_string(offset) + " reach beyond the " + std::to_string(file_bytes) +
                  " bytes of file '" + location + "'.");
  }
  return Region{
      found->whole.bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size_bytes)),
      found->whole.owner};
}

}  // namespace onnxifi::model

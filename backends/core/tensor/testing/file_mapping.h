// SPDX-License-Identifier: Apache-2.0
//
// FileMapping: for tests of what becomes of the pages of a mapped file.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_TESTING_FILE_MAPPING_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_TESTING_FILE_MAPPING_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace onnxifi::tensor::testing {

inline std::string SeededBytes(size_t size_bytes, uint32_t seed) {
  std::string bytes(size_bytes, '\0');
  for (char& byte : bytes) {
    seed = seed * 1'664'525 + 1'013'904'223;
    byte = static_cast<char>(seed >> 24);
  }
  return bytes;
}

// A private mapping of a file that has no name any more.
class FileMapping {
 public:
  explicit FileMapping(const std::string& content) : size_(content.size()) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("onnxifi_file_mapping_" + std::to_string(getpid()));
    std::ofstream(path, std::ios::binary) << content;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    ::close(file);
    std::filesystem::remove(path);
  }
  ~FileMapping() { ::munmap(data_, size_); }
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

  // Bytes of the mapping that count as memory of this process: bit 63 of a page's entry.
  size_t InMemory() const {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    std::vector<uint64_t> entries((size_ + page - 1) / page);
    const auto size_bytes = static_cast<ssize_t>(entries.size() * sizeof(uint64_t));
    const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::pread(map, entries.data(), entries.size() * sizeof(uint64_t),
                      static_cast<off_t>(reinterpret_cast<uintptr_t>(data_) / page * 8)),
              size_bytes);
    ::close(map);
    size_t present = 0;
    for (const uint64_t entry : entries) present += entry >> 63;
    return present * page;
  }

 private:
  size_t size_;
  void* data_ = nullptr;
};

}  // namespace onnxifi::tensor::testing

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_TESTING_FILE_MAPPING_H_

// SPDX-License-Identifier: Apache-2.0
//
// BinaryCache: a file is a header, the key and the binary. It is written under a name of its own
// and then renamed, so that nobody ever reads half of one.

#include "backends/core/codegen/binary_cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "backends/core/base/fnv_hash.h"

namespace onnxifi::codegen {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'O', 'N', 'X', 'B', 'I', 'N', '0', '1'};
constexpr std::string_view kSuffix = ".bin";

struct Header {
  char magic[8];
  uint64_t key_bytes;
  uint64_t binary_bytes;
  uint64_t checksum;  // of key and binary
};

uint64_t Checksum(std::string_view key, std::span<const std::byte> binary) {
  return base::FnvHash(binary, base::FnvHash(key));
}

}  // namespace

fs::path BinaryCache::FileOf(std::string_view key) const {
  return folder_ / (base::HashName(base::FnvHash(key)) + std::string(kSuffix));
}

std::optional<std::vector<std::byte>> BinaryCache::Find(std::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = FileOf(key);
  std::ifstream file(path, std::ios::binary);
  Header header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return std::nullopt;
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  const bool is_whole = !error && std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
                        header.key_bytes == key.size() && size >= sizeof(header) + key.size() &&
                        header.binary_bytes == size - sizeof(header) - key.size() &&
                        header.binary_bytes <= static_cast<uint64_t>(most_bytes_);
  if (!is_whole) return std::nullopt;
  std::string stored_key(key.size(), '\0');
  std::vector<std::byte> binary(header.binary_bytes);
  if (!file.read(stored_key.data(), static_cast<std::streamsize>(stored_key.size())) ||
      !file.read(reinterpret_cast<char*>(binary.data()),
                 static_cast<std::streamsize>(binary.size()))) {
    return std::nullopt;
  }
  if (stored_key != key || Checksum(key, binary) != header.checksum) return std::nullopt;
  // What is used is young again.
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return binary;
}

void BinaryCache::Store(std::string_view key, std::span<const std::byte> binary) const {
  if (folder_.empty() || static_cast<int64_t>(binary.size() + key.size()) > most_bytes_) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return;
  static std::atomic<uint64_t> counter = 0;
  const fs::path path = FileOf(key);
  const fs::path draft =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".draft";
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.key_bytes = key.size();
  header.binary_bytes = binary.size();
  header.checksum = Checksum(key, binary);
  bool is_written = false;
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file.write(key.data(), static_cast<std::streamsize>(key.size()));
    file.write(reinterpret_cast<const char*>(binary.data()),
               static_cast<std::streamsize>(binary.size()));
    file.close();
    is_written = file.good();
  }
  if (is_written) fs::rename(draft, path, error);
  if (!is_written || error) {
    fs::remove(draft, error);
    return;
  }
  Trim();
}

void BinaryCache::Remove(std::string_view key) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::remove(FileOf(key), error);
}

void BinaryCache::Trim() const {
  struct Entry {
    fs::file_time_type time;
    int64_t size_bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t total_bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != kSuffix) continue;
    std::error_code gone;
    const auto size = static_cast<int64_t>(at->file_size(gone));
    const fs::file_time_type time = at->last_write_time(gone);
    if (gone) continue;
    total_bytes += size;
    entries.push_back({time, size, at->path()});
  }
  if (total_bytes <= most_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total_bytes <= most_bytes_) break;
    fs::remove(entry.path, error);
    total_bytes -= entry.size_bytes;
  }
}

}  // namespace onnxifi::codegen

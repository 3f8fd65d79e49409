// SPDX-License-Identifier: Apache-2.0
//
// BinaryCache: compiled kernels in files, from one process to the next. An entry is found by its
// whole key (source, device, driver, options), which is stored with it; one that is damaged, cut
// short or of another key is as good as absent. Whatever goes wrong with the folder, kernels are
// compiled instead: no function here fails.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_BINARY_CACHE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_BINARY_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace onnxifi::codegen {

// Any number of processes and threads may use a folder at the same time.
class BinaryCache {
 public:
  // No folder: nothing is found or stored. Files beyond `most_bytes` in all are removed, the least
  // recently used first.
  BinaryCache(std::filesystem::path folder, int64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  std::optional<std::vector<std::byte>> Find(std::string_view key) const;
  void Store(std::string_view key, std::span<const std::byte> binary) const;
  // Makes the entry absent: what it holds is not what its key promises.
  void Remove(std::string_view key) const;

 private:
  std::filesystem::path FileOf(std::string_view key) const;
  void Trim() const;

  const std::filesystem::path folder_;
  const int64_t most_bytes_;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_BINARY_CACHE_H_

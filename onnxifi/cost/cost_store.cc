// SPDX-License-Identifier: Apache-2.0
//
// CostStore: a file for each device, written under a name of its own and then renamed.

#include "onnxifi/cost/cost_store.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>

namespace onnxifi::cost {

namespace fs = std::filesystem;

fs::path CostStore::FileOf(std::string_view identity) const {
  return folder_ / ("costs-" + split::Digester().Add(identity).Get().Text() + ".txt");
}

DeviceTable CostStore::Read(std::string_view identity) const {
  if (folder_.empty()) return {};
  std::ifstream file(FileOf(identity), std::ios::binary);
  if (!file) return {};
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return FromText(text, identity).value_or(DeviceTable());
}

void CostStore::Add(std::string_view identity, const DeviceTable& newer) const {
  if (folder_.empty() || newer.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return;
  DeviceTable table = Read(identity);
  table.Merge(newer);
  static std::atomic<uint64_t> counter = 0;
  const fs::path path = FileOf(identity);
  const fs::path draft =
      path.string() + "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".draft";
  bool is_written = false;
  {
    std::ofstream file(draft, std::ios::binary | std::ios::trunc);
    file << ToText(table, identity);
    file.close();
    is_written = file.good();
  }
  if (is_written) fs::rename(draft, path, error);
  if (!is_written || error) fs::remove(draft, error);
}

}  // namespace onnxifi::cost

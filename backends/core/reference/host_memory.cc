// SPDX-License-Identifier: Apache-2.0
//
// HostMemory: Linux grants more memory than it has and kills a process that then uses it, so large
// requests are compared with what is available first.

#include "backends/core/reference/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "backends/core/tensor/host_block.h"

namespace onnxifi::reference {
namespace {

// Smaller requests are not worth reading files for.
constexpr int64_t kCheckedBytes = int64_t{16} << 20;

std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  if (!(file >> number)) return std::nullopt;  // missing, or "max"
  return number;
}

std::optional<int64_t> SystemAvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  int64_t kibibytes = 0;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

// The control group's limit less its use, less what the kernel would give back of its file cache.
// Version 2, then version 1.
std::optional<int64_t> GroupAvailableBytes() {
  struct Files {
    const char* limit;
    const char* usage;
    const char* statistics;
    const char* reclaimable;
  };
  constexpr Files kVersions[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
       "inactive_file"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
       "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"}};
  for (const Files& files : kVersions) {
    const std::optional<int64_t> limit = ReadNumber(files.limit);
    const std::optional<int64_t> usage = ReadNumber(files.usage);
    if (!limit || !usage) continue;
    int64_t reclaimable = 0;
    std::ifstream statistics(files.statistics);
    std::string name;
    int64_t value = 0;
    while (statistics >> name >> value) {
      if (name == files.reclaimable) reclaimable = value;
    }
    return *limit - *usage + reclaimable;
  }
  return std::nullopt;
}

std::optional<int64_t> AddressSpaceAvailableBytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  constexpr int64_t kPageBytes = 4096;
  return static_cast<int64_t>(
             std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int64_t>::max())) -
         pages * kPageBytes;
}

class HostAllocation final : public device::Allocation {
 public:
  HostAllocation(tensor::HostBlock block, int64_t size_bytes)
      : block_(std::move(block)), size_bytes_(size_bytes) {}

  std::byte* data() override { return block_.get(); }
  int64_t size_bytes() const override { return size_bytes_; }

 private:
  const tensor::HostBlock block_;
  const int64_t size_bytes_;
};

}  // namespace

int64_t AvailableBytes() {
  int64_t available = std::numeric_limits<int64_t>::max();
  for (const std::optional<int64_t>& limit :
       {SystemAvailableBytes(), GroupAvailableBytes(), AddressSpaceAvailableBytes()}) {
    if (limit) available = std::min(available, std::max<int64_t>(0, *limit));
  }
  return available;
}

base::Result<std::unique_ptr<device::Allocation>> HostMemory::Allocate(int64_t size_bytes) {
  const int64_t available =
      size_bytes < kCheckedBytes ? std::numeric_limits<int64_t>::max() : AvailableBytes();
  tensor::HostBlock block;
  if (size_bytes >= 0 && size_bytes <= available) {
    block = tensor::AllocateHostBlock(static_cast<size_t>(size_bytes), tensor::Fill::kNothing);
  }
  if (block == nullptr) {
    return base::Status(base::Code::kNoSystemMemory, "A block of " + std::to_string(size_bytes) +
                                                         " bytes cannot be allocated; " +
                                                         std::to_string(AvailableBytes()) +
                                                         " bytes are available.");
  }
  return std::unique_ptr<device::Allocation>(
      std::make_unique<HostAllocation>(std::move(block), size_bytes));
}

}  // namespace onnxifi::reference

// SPDX-License-Identifier: Apache-2.0
//
// Usable CPUs: sched_getaffinity and the files of control groups.

#include "backends/core/device/usable_cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

namespace onnxifi::device {
namespace {

namespace fs = std::filesystem;

int CountAffineCpus() {
  // The mask has to be as long as the kernel's, which is not told; it is refused until it is.
  constexpr int kMaxCpus = 1 << 16;
  for (int cpus = 1024; cpus <= kMaxCpus; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(cpus),
                                                                [](cpu_set_t* m) { CPU_FREE(m); });
    if (mask == nullptr) break;
    const size_t size_bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(size_bytes, mask.get());
    if (sched_getaffinity(0, size_bytes, mask.get()) == 0) {
      return std::max(1, CPU_COUNT_S(size_bytes, mask.get()));
    }
  }
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

// "quota period" in microseconds, or "max period".
std::optional<double> QuotaOfVersion2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// A quota of -1 is none.
std::optional<double> QuotaOfVersion1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

// The least quota of `group` and all above it. Inside a container the path is often the host's and
// does not exist; the mount's own folder then is the container's group.
template <typename Read>
std::optional<double> LeastQuota(const fs::path& mount, const fs::path& group, Read read) {
  std::optional<double> least;
  fs::path folder = mount;
  auto take = [&] {
    const std::optional<double> quota = read(folder);
    if (quota && (!least || *quota < *least)) least = quota;
  };
  take();
  for (const fs::path& part : group.relative_path()) {
    if (part == "..") break;  // outside this namespace's view
    folder /= part;
    take();
  }
  return least;
}

bool Lists(const std::string& controllers, std::string_view wanted) {
  std::istringstream list(controllers);
  for (std::string controller; std::getline(list, controller, ',');) {
    if (controller == wanted) return true;
  }
  return false;
}

}  // namespace

std::optional<double> CpuQuota(std::string_view membership, const fs::path& mount) {
  std::optional<double> least;
  auto take = [&](std::optional<double> quota) {
    if (quota && (!least || *quota < *least)) least = quota;
  };
  std::istringstream lines{std::string(membership)};
  // "0::/group" (version 2) or "4:cpu,cpuacct:/group" (version 1).
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      take(LeastQuota(mount, group, QuotaOfVersion2));
      take(LeastQuota(mount / "unified", group, QuotaOfVersion2));
    } else if (Lists(controllers, "cpu")) {
      take(LeastQuota(mount / controllers, group, QuotaOfVersion1));
      if (controllers != "cpu") take(LeastQuota(mount / "cpu", group, QuotaOfVersion1));
    }
  }
  return least;
}

int CountUsableCpus() {
  const int affine = CountAffineCpus();
  std::ifstream file("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(file), {}};
  const std::optional<double> quota = CpuQuota(membership, "/sys/fs/cgroup");
  if (!quota || *quota >= affine) return affine;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

}  // namespace onnxifi::device

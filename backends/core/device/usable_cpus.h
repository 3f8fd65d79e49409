// SPDX-License-Identifier: Apache-2.0
//
// Usable CPUs: what the process may use of the machine, not what the machine has. So many threads
// are worth starting.

#ifndef ONNXIFI_BACKENDS_CORE_DEVICE_USABLE_CPUS_H_
#define ONNXIFI_BACKENDS_CORE_DEVICE_USABLE_CPUS_H_

#include <filesystem>
#include <optional>
#include <string_view>

namespace onnxifi::device {

// The CPUs of this process's affinity mask, no more than its control group's quota rounded up; at
// least 1.
int CountUsableCpus();

// CPUs' worth of time that control groups grant per period: the least of the group named in
// `membership` (the text of /proc/self/cgroup) and the groups around it, version 1 or 2, whose
// hierarchy is mounted at `mount`. Nothing where no group has a quota.
std::optional<double> CpuQuota(std::string_view membership, const std::filesystem::path& mount);

}  // namespace onnxifi::device

#endif  // ONNXIFI_BACKENDS_CORE_DEVICE_USABLE_CPUS_H_

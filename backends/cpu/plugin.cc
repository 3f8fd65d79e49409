// SPDX-License-Identifier: Apache-2.0
//
// The CPU plugin: one device, the processor that this process runs on.

#include <oneapi/dnnl/dnnl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/device/usable_cpus.h"
#include "backends/core/plugin/hardware.h"
#include "backends/cpu/device.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/runtime/left_out.h"
#include "backends/cpu/threads/environment.h"

namespace onnxifi::cpu {
namespace {

// The kernel's name of the processor.
std::string ModelName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with("model name") || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(' ', colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "CPU";
}

std::string OneDnnVersion() {
  const dnnl_version_t& version = *dnnl_version();
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

// Warns of a variable that is ignored, unless the fault is empty.
void TellFault(const threads::Environment& environment, const std::string& fault) {
  if (fault.empty()) return;
  base::Log(environment.log_level).Write(base::LogLevel::kWarning, "cpu", fault);
}

// Kernels that the environment names, and a warning about others.
void LeaveOut(const threads::Environment& environment) {
  const std::vector<std::string_view> known = Selector::ListKernels();
  for (const std::string& name : environment.left_out) {
    if (std::ranges::find(known, name) != known.end()) continue;
    std::string sentence =
        "ONNXIFI_CPU_WITHOUT names '" + name + "', which is no kernel; there are";
    for (const std::string_view each : known) {
      sentence += (each == known.front() ? " " : ", ") + std::string(each);
    }
    base::Log(environment.log_level).Write(base::LogLevel::kWarning, "cpu", sentence + ".");
  }
  runtime::LeaveOut(environment.left_out);
}

class Hardware : public plugin::Hardware {
 public:
  Hardware() {
    const threads::Environment environment = threads::ReadEnvironment();
    TellFault(environment, environment.isa_fault);
    if (environment.isa) LimitIsa(*environment.isa);
    LeaveOut(environment);
  }

  std::string plugin_name() const override { return "cpu"; }

  std::vector<plugin::DeviceDescription> Enumerate() override {
    plugin::DeviceDescription description;
    description.name = "CPU";
    description.vendor = "ONNXIFI SDK";
    description.version = std::string(ONNXIFI_SDK_VERSION) + " with oneDNN " + OneDnnVersion() +
                          " (" + IsaInUse() + ")";
    description.device = ModelName();
    description.type = ONNXIFI_DEVICE_TYPE_CPU;
    description.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
    return {description};
  }

  const device::Selector& selector(int /*index*/) const override { return selector_; }

  base::Result<std::unique_ptr<device::Device>> Open(
      int /*index*/, const abi::BackendProperties& /*properties*/) override {
    const threads::Environment environment = threads::ReadEnvironment();
    std::shared_ptr<threads::ThreadPool> pool;
    {
      const std::lock_guard lock(mutex_);
      pool = pool_.lock();
      if (pool == nullptr) {
        TellFault(environment, environment.thread_count_fault);
        pool = std::make_shared<threads::ThreadPool>(
            environment.thread_count.value_or(device::CountUsableCpus()));
        pool_ = pool;
      }
    }
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<Device> device,
                             Device::Create(std::move(pool), base::Log(environment.log_level)));
    return std::unique_ptr<device::Device>(std::move(device));
  }

 private:
  const Selector selector_;
  std::mutex mutex_;
  // Ends with the last device, so that nothing runs when the library is unloaded.
  std::weak_ptr<threads::ThreadPool> pool_;
};

}  // namespace
}  // namespace onnxifi::cpu

namespace onnxifi::abi {

std::unique_ptr<Provider> MakeProvider() {
  return plugin::MakeProvider(std::make_unique<cpu::Hardware>());
}

}  // namespace onnxifi::abi

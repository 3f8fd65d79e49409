// SPDX-License-Identifier: Apache-2.0
//
// TestedDevice: the device that tests of generated kernels run on. The tests are written once;
// every backend that compiles kernels builds them with a definition of its own.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_TESTED_DEVICE_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_TESTED_DEVICE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"

namespace onnxifi::codegen {

// What a device promises of floats beyond what every language does.
struct FloatMeaning {
  bool has_exact_quotients = true;  // and roots
  bool keeps_subnormals = true;
  bool keeps_specials = true;  // signs of zeros, infinities and NaN
};

class TestedDevice {
 public:
  virtual ~TestedDevice() = default;

  virtual device::Device& device() = 0;
  virtual std::string name() const = 0;
  virtual bool HasFloat64() const = 0;
  virtual FloatMeaning Meaning() const { return {}; }
  // Its compiler takes seconds for a kernel that is cut as for a GPU.
  virtual bool CompilesSlowly() const { return false; }
  // Distinct kernels that were built, from source or from the cache.
  virtual int64_t kernel_count() const = 0;
};

// The backend's first device on this machine, with its kernels in `cache_folder`, or none kept if
// that is empty. BACKEND_UNAVAILABLE, with the reason, where there is no device.
base::Result<std::unique_ptr<TestedDevice>> OpenTestedDevice(
    const std::filesystem::path& cache_folder);

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_TESTING_TESTED_DEVICE_H_

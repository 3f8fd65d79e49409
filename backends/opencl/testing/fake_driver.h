// SPDX-License-Identifier: Apache-2.0
//
// FakeDriver: for tests: OpenCL's functions over the host's memory, so that the backend's own code
// meets sanitizers, which real drivers cannot be built for, and every fault that a driver may have.
// Commands are carried out at once; a kernel does nothing.

#ifndef ONNXIFI_BACKENDS_OPENCL_TESTING_FAKE_DRIVER_H_
#define ONNXIFI_BACKENDS_OPENCL_TESTING_FAKE_DRIVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/api.h"

namespace onnxifi::opencl {

// One per process; its functions take no other object than those it made. Any thread.
class FakeDriver {
 public:
  // All functions, of a platform with one device.
  static Api GetApi();
  // The names of the functions that can fail, without "cl".
  static std::vector<std::string> Functions();

  // The function's call number `call` from now on (0: the next), and all after it, answer `result`.
  static void Fail(const std::string& function, cl_int result, int call = 0);
  // Every function but those that release does.
  static void FailAll(cl_int result);
  static void Recover();
  // How often the function was called since the last Recover.
  static int CallCount(const std::string& function);

  // Objects that were made and not released to the last reference.
  static int64_t LiveObjects();
  // The text that the programs of `Build` were made from, since the last Recover.
  static std::vector<std::string> BuiltSources();
};

}  // namespace onnxifi::opencl

#endif  // ONNXIFI_BACKENDS_OPENCL_TESTING_FAKE_DRIVER_H_

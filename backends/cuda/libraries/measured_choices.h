// SPDX-License-Identifier: Apache-2.0
//
// MeasuredChoices: which of several kernels that compute the same step is the fastest on a device:
// measured once, and kept here and in the cache folder for other processes.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_MEASURED_CHOICES_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_MEASURED_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/codegen/binary_cache.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/library_host.h"

namespace onnxifi::cuda {

// Any thread.
class MeasuredChoices {
 public:
  struct Runner {
    std::string name;  // without a line break
    const device::BoundKernel* kernel = nullptr;
  };
  struct Choice {
    std::string name;   // of the fastest
    std::string times;  // as in "cuBLASLt 0.012 ms, tiled product 0.020 ms"
  };

  // `host` outlives it. So many answers stay in memory, those that were asked for last; the folder
  // has the others.
  static constexpr size_t kMaxAnswers = 4096;
  MeasuredChoices(const LibraryHost& host, codegen::BinaryCache files,
                  size_t most_answers = kMaxAnswers)
      : host_(host), files_(std::move(files)), most_answers_(most_answers) {}

  // As it was kept for the key; nothing if it was not, or is damaged. Waits for a measurement.
  std::optional<Choice> Find(std::string_view key) const;
  // Runs all of them in turns, on constants as they are and on memory of its own in place of
  // everything else, and keeps the answer; one of these runners that another thread has measured
  // for the key meanwhile is not measured again. UNSUPPORTED_OPERATOR: the device tells no times,
  // or a buffer's size is not known; NO_DEVICE_MEMORY: there is no room for the buffers; and what
  // keeps a kernel from running.
  base::Result<Choice> Measure(std::string_view key, const device::BoundStep& step,
                               device::Addresses constants, device::Memory& memory,
                               std::span<const Runner> runners) const;

 private:
  struct Answer {
    Choice choice;
    uint64_t asked = 0;  // when last, counted in questions
  };
  // Under measuring_.
  const Choice* FindMeasured(std::string_view key) const;
  void Keep(std::string_view key, const Choice& choice) const;

  const LibraryHost& host_;
  const codegen::BinaryCache files_;
  const size_t most_answers_;
  mutable std::mutex measuring_;  // kernels that are timed at the same time disturb each other
  mutable std::map<std::string, Answer, std::less<>> measured_;  // by key; under measuring_
  mutable uint64_t questions_ = 0;
};

// All that a kernel is chosen by: types, numbers and results of a bound Contract. Equal for equal
// steps, whatever else their programs have.
std::string DescribeStep(const device::BoundStep& step);

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_MEASURED_CHOICES_H_

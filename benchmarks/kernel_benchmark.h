// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a device against the limits of the same device, timed in turns: contractions
// against a kernel of nothing but multiply-adds, everything else against a kernel that copies. For
// each case the best time, the rate and its share of the limit. What opencl_benchmark and
// vulkan_benchmark share.

#ifndef ONNXIFI_BENCHMARKS_KERNEL_BENCHMARK_H_
#define ONNXIFI_BENCHMARKS_KERNEL_BENCHMARK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/device/device.h"
#include "benchmarks/kernel_cases.h"

namespace onnxifi::benchmarks {

// What a device can do at most.
class Limits {
 public:
  virtual ~Limits() = default;
  // Makes place for copies that read and write `bytes` in all.
  virtual base::Status Reserve(int64_t bytes) = 0;
  // One start, to its end.
  virtual base::Status MultiplyAdd() = 0;
  virtual base::Status Copy() = 0;
  // Of one start of MultiplyAdd.
  virtual double flops() const = 0;
};

// Another library's matrix product on the same device.
class ProductPeer {
 public:
  virtual ~ProductPeer() = default;
  virtual std::string_view name() const = 0;
  // Makes place for the operands.
  virtual base::Status Reserve(const GemmExtents& extents) = 0;
  // One product, to its end.
  virtual base::Status Multiply() = 0;
};

// A case ready to run on a device, which outlives it.
class Prepared {
 public:
  static base::Result<std::unique_ptr<Prepared>> Create(device::Device& device, const Case& one);
  // Once, to its end.
  base::Status Run();
  // What computes it.
  std::string Text() const;

 private:
  std::vector<std::unique_ptr<device::Allocation>> held_;
  std::vector<std::byte*> addresses_;
  std::string implementation_;
  std::unique_ptr<device::Queue> queue_;
  std::unique_ptr<device::Kernel> kernel_;
  std::unique_ptr<device::BoundKernel> bound_;
};

struct Subject {
  device::Device& device;
  Limits& limits;
  ProductPeer* peer = nullptr;  // or null
  std::string device_name;
  std::string driver;
};

struct BenchmarkOptions {
  std::string wanted;      // cases whose names contain it
  bool has_large = false;  // also those of seconds on a processor
  int rounds = 12;
  std::string json_path;  // or empty
};

// Prints the cases as a table, and writes them to a file. The first error of the device.
base::Status RunBenchmark(const Subject& subject, const BenchmarkOptions& options);

// What a command line says; ends the process where it is wrong or asks for help.
BenchmarkOptions ParseOptions(int argument_count, char** arguments, std::string_view description);

// The time of `run` in seconds; ends the process with its error.
double Seconds(const std::function<base::Status()>& run);

}  // namespace onnxifi::benchmarks

#endif  // ONNXIFI_BENCHMARKS_KERNEL_BENCHMARK_H_

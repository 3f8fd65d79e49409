// SPDX-License-Identifier: Apache-2.0
//
// The kernels of a device against the limits of the same device, timed in turns: contractions
// against a kernel of nothing but multiply-adds, everything else against a kernel that copies. For
// each case the best time and the median, the rate of the best and its share of the limit. What the
// benchmarks of the plugins share.

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
  // The seconds of one start.
  virtual base::Result<double> MultiplyAdd() = 0;
  virtual base::Result<double> Copy() = 0;
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
  // The seconds of one product.
  virtual base::Result<double> Multiply() = 0;
};

// Whose clock times a device's work: the host's, from putting it in to its end, or the device's
// own, from its start to its end, of a queue that tells it.
enum class Clock : uint8_t { kHost, kDevice };
// The seconds that `run` takes on the host.
base::Result<double> SecondsOf(const std::function<base::Status()>& run);
// The seconds of what `put` puts into a queue, to its end.
base::Result<double> SecondsOn(device::Queue& queue, Clock clock,
                               const std::function<base::Status()>& put);

// A case ready to run on a device, which outlives it.
class Prepared {
 public:
  static base::Result<std::unique_ptr<Prepared>> Create(device::Device& device, const Case& one);
  // The seconds of one run.
  base::Result<double> Run(Clock clock = Clock::kHost);
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

// The same device with other kernels, which are timed beside its own where a contraction gets some.
struct Variant {
  std::string name;
  device::Device& device;
};

struct Subject {
  device::Device& device;
  Limits& limits;
  ProductPeer* peer = nullptr;  // or null
  Clock clock = Clock::kHost;   // that times the cases
  std::string device_name;
  std::string driver;
  std::vector<Variant> variants = {};
};

struct BenchmarkOptions {
  std::string wanted;      // cases whose names contain it
  bool has_large = false;  // also those whose data no cache holds: seconds on a processor
  int rounds = 12;
  std::string json_path;  // or empty
};

// Prints the cases as a table, and writes them to a file. The first error of the device.
base::Status RunBenchmark(const Subject& subject, const BenchmarkOptions& options);

// What a command line says; ends the process where it is wrong or asks for help.
BenchmarkOptions ParseOptions(int argument_count, char** arguments, std::string_view description);

}  // namespace onnxifi::benchmarks

#endif  // ONNXIFI_BENCHMARKS_KERNEL_BENCHMARK_H_

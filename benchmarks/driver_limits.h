// SPDX-License-Identifier: Apache-2.0
//
// DriverLimits: the limits of a device that compiles kernels, by kernels of neutral text, which the
// device's dialect frames.

#ifndef ONNXIFI_BENCHMARKS_DRIVER_LIMITS_H_
#define ONNXIFI_BENCHMARKS_DRIVER_LIMITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/core/base/result.h"
#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/kernel_driver.h"
#include "backends/core/device/device.h"
#include "benchmarks/kernel_benchmark.h"

namespace onnxifi::benchmarks {

class DriverLimits final : public Limits {
 public:
  // `device` and its `driver` outlive it.
  static base::Result<std::unique_ptr<DriverLimits>> Create(device::Device& device,
                                                            codegen::KernelDriver& driver,
                                                            Clock clock);

  double flops() const override;
  base::Status Reserve(int64_t bytes) override;
  base::Result<double> MultiplyAdd() override;
  base::Result<double> Copy() override;

 private:
  DriverLimits(device::Device& device, codegen::KernelDriver& driver, Clock clock)
      : device_(device), driver_(driver), clock_(clock) {}

  base::Result<std::unique_ptr<codegen::DriverKernel>> Compile(
      std::vector<codegen::Parameter> parameters, std::string body);
  base::Result<double> Run(codegen::DriverKernel& kernel, size_t operands, int64_t items);

  device::Device& device_;
  codegen::KernelDriver& driver_;
  const Clock clock_;
  std::unique_ptr<device::Queue> queue_;
  std::unique_ptr<codegen::DriverKernel> peak_, copy_;
  std::array<std::unique_ptr<device::Allocation>, 2> places_;
  int64_t bytes_ = 0;
};

}  // namespace onnxifi::benchmarks

#endif  // ONNXIFI_BENCHMARKS_DRIVER_LIMITS_H_

// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/driver_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace onnxifi::benchmarks {
namespace {

using base::Result;
using base::Status;

constexpr int kGroupSize = 64;
// Ten sums per item, so that none waits for another.
constexpr int kPeakSums = 10;
constexpr int kPeakRounds = 1000;
constexpr int64_t kPeakItems = int64_t{1} << 17;
// An item of the copy takes four elements.
constexpr int64_t kCopiedElements = 4;
constexpr int64_t kFloatBytes = 4;

std::string PeakBody() {
  std::string body = "  f32 b = AS(f32, ITEM) * 0.001f;\n  f32 c = AS(f32, ITEM) * 0.5f;\n";
  for (int sum = 0; sum < kPeakSums; ++sum) body += fmt::format("  f32 s{0} = c + {0};\n", sum);
  body += fmt::format("  for (int k = 0; k < {}; ++k) {{\n", kPeakRounds);
  for (int sum = 0; sum < kPeakSums; ++sum)
    body += fmt::format("    s{0} = M_fma(s{0}, b, c);\n", sum);
  body += "  }\n  f32 sum = s0;\n";
  for (int sum = 1; sum < kPeakSums; ++sum) body += fmt::format("  sum += s{};\n", sum);
  return body + "  STORE(out0, ITEM, sum);\n";
}

std::string CopyBody() {
  std::string body = "  idx at = AS(idx, ITEM);\n";
  // Neighbouring items have neighbouring elements each time.
  for (int64_t k = 0; k < kCopiedElements; ++k) {
    body += fmt::format(
        "  STORE(out0, at + {0} * AS(idx, count), LOAD(in0, at + {0} * AS(idx, count)));\n", k);
  }
  return body;
}

}  // namespace

Result<std::unique_ptr<DriverLimits>> DriverLimits::Create(device::Device& device,
                                                           codegen::KernelDriver& driver,
                                                           Clock clock) {
  std::unique_ptr<DriverLimits> limits(new DriverLimits(device, driver, clock));
  ONNXIFI_ASSIGN_OR_RETURN(limits->queue_, device.NewQueue());
  const codegen::Parameter out{.name = "out0", .type = "f32", .is_written = true};
  const codegen::Parameter in{.name = "in0", .type = "f32"};
  ONNXIFI_ASSIGN_OR_RETURN(limits->peak_, limits->Compile({out}, PeakBody()));
  ONNXIFI_ASSIGN_OR_RETURN(limits->copy_, limits->Compile({out, in}, CopyBody()));
  return limits;
}

double DriverLimits::flops() const { return 2.0 * kPeakSums * kPeakRounds * kPeakItems; }

Status DriverLimits::Reserve(int64_t bytes) {
  constexpr int64_t kBlock = kGroupSize * kCopiedElements * kFloatBytes;
  bytes_ = std::max(bytes / 2 / kBlock * kBlock, kPeakItems * kFloatBytes);
  for (std::unique_ptr<device::Allocation>& place : places_) {
    place = nullptr;
    ONNXIFI_ASSIGN_OR_RETURN(place, device_.memory().Allocate(bytes_));
  }
  return base::Ok();
}

Result<double> DriverLimits::MultiplyAdd() { return Run(*peak_, 1, kPeakItems); }

Result<double> DriverLimits::Copy() {
  return Run(*copy_, 2, bytes_ / kFloatBytes / kCopiedElements);
}

Result<std::unique_ptr<codegen::DriverKernel>> DriverLimits::Compile(
    std::vector<codegen::Parameter> parameters, std::string body) {
  return driver_.Compile(driver_.dialect().Assemble({.is_narrow = true,
                                                     .parameters = std::move(parameters),
                                                     .group_size = kGroupSize,
                                                     .body = std::move(body)}));
}

Result<double> DriverLimits::Run(codegen::DriverKernel& kernel, size_t operands, int64_t items) {
  const std::array<codegen::Argument, 2> arguments = {
      {{.is_write = true, .is_scratch = true, .operand = 0}, {.is_scratch = true, .operand = 1}}};
  const std::array<program::BufferId, 2> buffers = {program::kNoBuffer, program::kNoBuffer};
  const std::array<int64_t, 2> bytes = {-1, -1};
  const std::array<std::byte*, 2> at = {places_[0]->data(), places_[1]->data()};
  const std::span<const codegen::Argument> used(arguments.data(), operands);
  return SecondsOn(*queue_, clock_, [&] {
    return driver_.Start(queue_.get(), kernel,
                         {.operands = codegen::KernelOperands(used, buffers, bytes, {}, at),
                          .item_count = items,
                          .group_count = items / kGroupSize,
                          .group_size = kGroupSize});
  });
}

}  // namespace onnxifi::benchmarks

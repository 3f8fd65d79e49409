// SPDX-License-Identifier: Apache-2.0
//
// CollectSources: a driver that compiles nothing and writes down what it is given. Steps are bound,
// since sources depend on the form of the loops, and never run.

#include "backends/core/codegen/testing/source_collector.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/core/codegen/kernel_driver.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/codegen/recipe.h"
#include "backends/core/codegen/selector.h"
#include "backends/core/reference/host_memory.h"

namespace onnxifi::codegen {
namespace {

using base::Result;

class Collector final : public KernelDriver {
 public:
  Collector(const Dialect& dialect, std::string_view product_library)
      : dialect_(dialect), product_library_(product_library) {}

  const Dialect& dialect() const override { return dialect_; }
  std::string_view product_library() const override { return product_library_; }
  std::string_view binary_key() const override { return {}; }
  Result<std::unique_ptr<DriverKernel>> Compile(const std::string& source) override {
    sources.push_back(source);
    return std::make_unique<DriverKernel>();
  }
  Result<std::unique_ptr<DriverKernel>> Load(std::span<const std::byte> /*binary*/) override {
    return base::Status(base::Code::kInternalError, "Nothing was compiled.");
  }
  std::vector<std::byte> BinaryOf(const DriverKernel& /*kernel*/) override { return {}; }
  Result<std::unique_ptr<DriverNumbers>> Hold(std::span<const int64_t> /*numbers*/) override {
    return std::make_unique<DriverNumbers>();
  }
  base::Status Start(device::Queue* /*queue*/, DriverKernel& /*kernel*/,
                     const KernelStart& /*start*/) override {
    return base::Ok();
  }

  std::vector<std::string> sources;  // the cache asks for each only once

 private:
  const Dialect& dialect_;
  const std::string_view product_library_;
};

// Makes the kernels of the step as far as starting them.
void BindStep(const reference::RandomStep& step, const Selector& selector, Services& services) {
  const program::Step& body = step.program.steps[0];
  const auto selection = selector.Select({step.program, body});
  if (!selection.ok()) return;
  const auto kernel = static_cast<const Recipe&>(*selection->recipe).Build(services);
  std::vector<std::unique_ptr<device::Allocation>> held;
  std::vector<std::byte*> constants;
  for (const tensor::Tensor& buffer : step.buffers) {
    auto memory = services.memory.Hold(buffer);
    constants.push_back(memory.ok() ? (*memory)->data() : nullptr);
    if (memory.ok()) held.push_back(*std::move(memory));
  }
  static_cast<void>(kernel->Bind(device::Bind(step.program, body, step.dims), constants));
}

}  // namespace

std::vector<std::string> CollectSources(const Dialect& dialect, std::string_view product_library,
                                        const DeviceLimits& limits, size_t count,
                                        const MatrixUnits& units,
                                        std::span<const reference::Family> families) {
  Collector collector(dialect, product_library);
  reference::HostMemory memory;
  Services services(collector, memory, BinaryCache({}, 0));
  Tuning tuning = DeriveTuning(limits);
  Capabilities capabilities{.has_float64 = true, .matrix_units = units};
  tuning.Describe(capabilities);
  const Selector selector(capabilities, std::move(tuning));
  for (uint64_t seed = 1; collector.sources.size() < count; ++seed) {
    const reference::Family family = families[seed % families.size()];
    BindStep(reference::MakeRandomStep(family, seed), selector, services);
  }
  return std::move(collector.sources);
}

}  // namespace onnxifi::codegen

// SPDX-License-Identifier: Apache-2.0
//
// Epilogue: the Map over the domain that follows the sums of Contract and the reductions of Window
// and writes their outputs.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_EPILOGUE_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_EPILOGUE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/core/base/status.h"
#include "backends/core/device/device.h"
#include "backends/core/device/parallel.h"
#include "backends/core/reference/expression.h"

namespace onnxifi::reference {

// Roots that read kAccumulator, with the numbers they were bound to. For the lifetime of `roots`
// and `parallel`.
class Epilogue {
 public:
  Epilogue(const Expression& roots, tensor::ElementType accumulator, const device::BoundStep& step,
           device::Parallel& parallel);
  // `accumulators` are dense over the domain; writes as many outputs as there are roots.
  base::Status Run(std::byte* accumulators, device::Addresses addresses) const;

  const tensor::Extents& domain() const { return domain_; }
  std::span<const device::BoundView> reads() const { return reads_; }
  std::span<const device::BoundView> writes() const { return writes_; }
  int64_t count() const { return count_; }

 private:
  const Expression& roots_;
  int64_t lane_bytes_;
  std::vector<int64_t> dims_;
  tensor::Extents domain_;
  std::vector<device::BoundView> reads_;
  std::vector<device::BoundView> writes_;
  int64_t count_;
  int64_t grain_;
  device::Parallel& parallel_;
};

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_EPILOGUE_H_

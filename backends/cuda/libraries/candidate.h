// SPDX-License-Identifier: Apache-2.0
//
// Candidate: one library's way to compute a step, before its extents are known.

#ifndef ONNXIFI_BACKENDS_CUDA_LIBRARIES_CANDIDATE_H_
#define ONNXIFI_BACKENDS_CUDA_LIBRARIES_CANDIDATE_H_

#include <memory>
#include <string>
#include <string_view>

#include "backends/core/base/result.h"
#include "backends/core/codegen/expression.h"
#include "backends/core/codegen/kernel_launch.h"
#include "backends/core/device/device.h"
#include "backends/cuda/libraries/rules.h"

namespace onnxifi::cuda {

// A step with numbers, and what outlives the kernel that is bound.
struct BindRequest {
  const device::BoundStep& step;
  device::Addresses constants;
  const codegen::Capabilities& capabilities;
  codegen::Services& services;
  // Null: any extents that the library takes.
  const LibraryRules* rules = nullptr;
};

class Candidate {
 public:
  virtual ~Candidate() = default;
  virtual std::string_view name() const = 0;
  // With the name: what a measured answer is good for.
  virtual std::string version() const = 0;
  // UNSUPPORTED_* with the reason: there is no rule for these extents, or the library does not take
  // them. Else only for lack of resources. Any thread.
  virtual base::Result<std::unique_ptr<device::BoundKernel>> Bind(
      const BindRequest& request) const = 0;
};

// UNSUPPORTED_OPERATOR where there is no rule for such products.
inline base::Status CheckRules(const BindRequest& request, Library library, std::string_view type,
                               const ProductExtents& extents) {
  if (request.rules == nullptr || request.rules->Takes(library, type, extents)) return base::Ok();
  return base::Status(base::Code::kUnsupportedOperator,
                      "There is no rule for " + std::string(type) + " of " +
                          std::to_string(extents.rows) + " rows, " +
                          std::to_string(extents.columns) + " columns and depth " +
                          std::to_string(extents.depth) + ".");
}

}  // namespace onnxifi::cuda

#endif  // ONNXIFI_BACKENDS_CUDA_LIBRARIES_CANDIDATE_H_

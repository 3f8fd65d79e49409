// SPDX-License-Identifier: Apache-2.0
//
// PlanRunner: outputs that nobody has a place for.

#include "backends/core/execution/plan_runner.h"

#include <string>

namespace onnxifi::execution {

using base::Code;
using base::Status;

Status OutputAllocator::Take(int output, tensor::ValueRef value) {
  return {Code::kInternalError, "Output " + std::to_string(output) + " is " +
                                    tensor::Describe(*value) + ", for which there is no place."};
}

}  // namespace onnxifi::execution

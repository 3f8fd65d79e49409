// SPDX-License-Identifier: Apache-2.0
//
// Inverse, which core/ops/reduce lowers: a function of other operators would go through the minors
// of a matrix, which are too many of a large one.

#include <onnx/defs/shape_inference.h>

#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

constexpr model::DomainOperator kOperators[] = {
    {R"(Inverse(X: T) -> (Y: T)
        T = float16 | float | double)",
     nullptr, /*since_version=*/1, onnx::propagateShapeAndTypeFromFirstInput},
};

}  // namespace

std::span<const model::DomainOperator> InverseOperators() { return kOperators; }

}  // namespace onnxifi::microsoft

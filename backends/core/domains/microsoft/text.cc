// SPDX-License-Identifier: Apache-2.0
//
// Operators on text, which core/ops/text lowers: no function of other operators says what they do.

#include <onnx/defs/shape_inference.h>

#include "backends/core/domains/microsoft/microsoft.h"

namespace onnxifi::microsoft {
namespace {

// Strings as those of input 0, along one more axis.
void InferTokens(onnx::InferenceContext& context) {
  onnx::updateOutputElemType(context, 0, onnx::TensorProto::STRING);
  if (!onnx::hasInputShape(context, 0)) return;
  onnx::TensorShapeProto shape = onnx::getInputShape(context, 0);
  shape.add_dim();  // as many as the longest string has
  onnx::updateOutputShape(context, 0, shape);
}

constexpr model::DomainOperator kOperators[] = {
    {R"(Tokenizer(X: T) -> (Y: T)
        mark: int required
        pad_value: string required
        tokenexp: string
        separators: strings
        mincharnum: int required
        T = string)",
     nullptr, /*since_version=*/1, InferTokens},
};

}  // namespace

std::span<const model::DomainOperator> TextOperators() { return kOperators; }

}  // namespace onnxifi::microsoft

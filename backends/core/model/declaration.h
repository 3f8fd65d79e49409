// SPDX-License-Identifier: Apache-2.0
//
// Declarations: what an operator of a domain takes and makes, in a text that is read into an
// OpSchema of the ONNX library:
//
//   Scale(X: T, factor?: float, others*: T) -> (Y: T, sum?: float)
//   axis: int = -1
//   alpha: float = 0.5
//   mode: string
//   pads: ints required
//   T = float16 | float
//
// The first line names the operator, its inputs and its outputs; `?` marks what may be omitted, `*`
// the last one where any number of tensors, each of a type of its own, may follow. The type is a
// variable, or a tensor of the element type. A line with a colon is an attribute: `int`, `float`,
// `string` or a list of them, with a default or `required`. A line with a bar or an equals sign
// alone gives the element types of a variable.

#ifndef ONNXIFI_BACKENDS_CORE_MODEL_DECLARATION_H_
#define ONNXIFI_BACKENDS_CORE_MODEL_DECLARATION_H_

#include <string>
#include <string_view>

#include "backends/core/base/result.h"

namespace onnx {
class OpSchema;
}

namespace onnxifi::model {

// The name in front of the parenthesis.
std::string_view DeclaredName(std::string_view declaration);

// Fills in `schema`, which has its version and is not finalized. INTERNAL_ERROR with the line that
// cannot be read: a declaration is a part of the program.
base::Status ReadDeclaration(std::string_view declaration, std::string_view domain,
                             onnx::OpSchema& schema);

}  // namespace onnxifi::model

#endif  // ONNXIFI_BACKENDS_CORE_MODEL_DECLARATION_H_

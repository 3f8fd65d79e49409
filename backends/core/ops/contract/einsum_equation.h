// SPDX-License-Identifier: Apache-2.0
//
// EinsumEquation: the letters that Einsum's equation gives the axes of operands and result.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_EINSUM_EQUATION_H_
#define ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_EINSUM_EQUATION_H_

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

// A letter, or the place of an axis covered by "..." counted from the last: -1, -2, ...
using Label = int;
using Labels = std::vector<Label>;

constexpr Label kEllipsis = 0;

struct EinsumEquation {
  std::vector<Labels> inputs;  // with kEllipsis where "..." stands
  std::optional<Labels> output;
};

bool Has(const Labels& labels, Label label);
Labels Joined(std::initializer_list<const Labels*> parts);

// INVALID_MODEL where a term is neither letters nor one "...".
base::Result<EinsumEquation> ParseEquation(Lowering& lowering, std::string_view text);

// The result's axes when no arrow names them: the broadcast ones, then the letters that occur once,
// in order.
Labels ImplicitOutput(const std::vector<Labels>& inputs);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_CONTRACT_EINSUM_EQUATION_H_

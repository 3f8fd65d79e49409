// SPDX-License-Identifier: Apache-2.0
//
// Activations of transformers:
//   Gelu(x) = x * (1 + erf(x / sqrt(2))) / 2, FastGelu by a tanh, QuickGelu(x) = x * sigmoid(alpha
//   * x)
// with a bias that is added first, and sums that the optimizer joins.

#include <utility>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

Value Tanh(Definition& d, Value x) {
  return d.Apply("Gelu", {std::move(x)}, {{"approximate", "tanh"}});
}

Status DefineGelu(Definition& d) {
  d.Return(0, d.Apply("Gelu", {d.In(0)}));
  return base::Ok();
}

Status DefineBiasGelu(Definition& d) {
  d.Return(0, d.Apply("Gelu", {d.Add(d.In(0), d.In(1))}));
  return base::Ok();
}

Status DefineFastGelu(Definition& d) {
  d.Return(0, Tanh(d, d.Has(1) ? d.Add(d.In(0), d.In(1)) : d.In(0)));
  return base::Ok();
}

Status DefineGemmFastGelu(Definition& d) {
  const Value product = d.MatMul(d.In(0), d.In(1));
  d.Return(0, Tanh(d, d.Has(2) ? d.Add(product, d.In(2)) : product));
  return base::Ok();
}

Status DefineQuickGelu(Definition& d) {
  const Value factor = d.Scalar(d.Float("alpha"), d.Type(0));
  d.Return(0, d.Mul(d.In(0), d.Apply("Sigmoid", {d.Mul(d.In(0), factor)})));
  return base::Ok();
}

// The first half of each row times the Gelu of the second.
Status DefineBiasSplitGelu(Definition& d) {
  const Value sum = d.Add(d.In(0), d.In(1));
  const std::vector<Value> halves =
      d.ApplyAll("Split", {sum}, 2, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}});
  d.Return(0, d.Mul(halves[0], d.Apply("Gelu", {halves[1]})));
  return base::Ok();
}

Status DefineBiasAdd(Definition& d) {
  d.Return(0, d.Add(d.Add(d.In(0), d.In(1)), d.In(2)));
  return base::Ok();
}

// The dropout of inference: nothing is dropped.
Status DefineBiasDropout(Definition& d) {
  if (d.Has(4)) {
    return d.Unsupported("Input 4 (training_mode) is given; only inference is supported.");
  }
  Value sum = d.Add(d.In(0), d.In(1));
  if (d.Has(2)) sum = d.Add(sum, d.In(2));
  d.Return(0, sum);
  d.Return(
      1, d.Apply("Expand", {d.Cast(d.Int0D(1), ElementType::kBool), d.Apply("Shape", {d.In(0)})}));
  return base::Ok();
}

// Over all axes from `axis` on. The bias has the axes of data, some of extent 1: those before the
// softmax, or those right before the ones that it shares with data.
Status DefineBiasSoftmax(Definition& d) {
  const std::optional<int> rank = d.Rank(0), bias_rank = d.Rank(1);
  if (!rank || !bias_rank) {
    return d.UnsupportedShape("Inputs 0 and 1 have not a number of axes that is known.");
  }
  const int64_t axis = d.Int("axis") < 0 ? d.Int("axis") + *rank : d.Int("axis");
  if (axis < 0 || axis >= *rank) {
    return d.Invalid("Attribute axis (" + std::to_string(d.Int("axis")) +
                     ") is outside the axes of input 0, which has " + std::to_string(*rank) + ".");
  }
  const Value sum = d.Add(d.In(0), d.In(1));
  const Value rows = d.Apply("Flatten", {sum}, {{"axis", axis}});
  const Value shares = d.Apply("Softmax", {rows}, {{"axis", int64_t{1}}});
  d.Return(0, d.ReshapeTo(shares, d.Apply("Shape", {d.In(0)})));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(BiasAdd(X: T, bias: T, skip: T) -> (Y: T)
        T = float16 | float)",
     DefineBiasAdd},
    {R"(BiasDropout(data: T, bias: T, residual?: T, ratio?: T1, training_mode?: bool)
            -> (output: T, mask?: bool)
        seed: int
        T = float16 | float | double | bfloat16
        T1 = float16 | float | double | bfloat16)",
     DefineBiasDropout},
    {R"(BiasGelu(A: T, B: T) -> (C: T)
        T = float16 | float | double | bfloat16)",
     DefineBiasGelu},
    {R"(BiasSoftmax(data: T, bias: T) -> (output: T)
        axis: int = 1
        is_inner_broadcast: int required
        T = float16 | float | double)",
     DefineBiasSoftmax},
    {R"(BiasSplitGelu(X: T, bias: T) -> (Y: T)
        T = float16 | float)",
     DefineBiasSplitGelu},
    {R"(FastGelu(X: T, bias?: T) -> (Y: T)
        T = float | double | float16 | bfloat16)",
     DefineFastGelu},
    {R"(Gelu(X: T) -> (Y: T)
        T = float16 | float | double | bfloat16)",
     DefineGelu},
    {R"(GemmFastGelu(X: T, W: T, bias?: T) -> (Y: T)
        T = float | float16 | bfloat16)",
     DefineGemmFastGelu},
    {R"(QuickGelu(X: T) -> (Y: T)
        alpha: float = 1.702
        T = float16 | float | double | bfloat16)",
     DefineQuickGelu},
};

}  // namespace

std::span<const model::DomainOperator> GeluOperators() { return kOperators; }

}  // namespace onnxifi::microsoft

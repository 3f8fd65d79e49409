// SPDX-License-Identifier: Apache-2.0
//
// Matrix products with what the optimizer moves into them: transposes, a factor, a bias, an
// activation.

#include <algorithm>
#include <numeric>
#include <utility>

#include "backends/core/domains/microsoft/activation.h"
#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/model/definition.h"

namespace onnxifi::microsoft {
namespace {

using base::Result;
using base::Status;
using model::Definition;
using tensor::ElementType;
using Value = Definition::Value;

// The matrices of input `input`: with `of_batches` they stand in its first and last axis instead of
// the last two, and `is_transposed` swaps their two axes. A vector stays as it is.
Result<Value> Matrices(Definition& d, int input, bool is_transposed, bool of_batches) {
  if (!is_transposed && !of_batches) return d.In(input);
  const std::optional<int> rank = d.Rank(input);
  if (!rank) {
    return d.UnsupportedShape("Input " + std::to_string(input) +
                              " has a number of axes that is not known.");
  }
  if (*rank < 2) return d.In(input);
  std::vector<int64_t> perm(static_cast<size_t>(*rank));
  std::iota(perm.begin(), perm.end(), 0);
  if (of_batches) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (is_transposed) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return d.Transpose(d.In(input), std::move(perm));
}

Result<Value> Product(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value a,
                           Matrices(d, 0, d.Int("transA") != 0, d.Int("transBatchA") != 0));
  ONNXIFI_ASSIGN_OR_RETURN(Value b,
                           Matrices(d, 1, d.Int("transB") != 0, d.Int("transBatchB") != 0));
  Value product = d.MatMul(std::move(a), std::move(b));
  if (d.Float("alpha") == 1.0F) return product;
  return d.Mul(std::move(product), d.Scalar(d.Float("alpha"), d.Type(0)));
}

Status DefineMatMul(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value product, Product(d));
  d.Return(0, std::move(product));
  return base::Ok();
}

// The attributes of the activation's operator stand in attributes with a prefix.
Result<Value> Activated(Definition& d, Value product) {
  const std::string name = d.String("activation");
  std::vector<std::optional<float>> parameters;
  for (const char* attribute : ActivationAttributes(name)) {
    const std::string own = std::string("activation_") + attribute;
    parameters.push_back(d.HasAttribute(own) ? std::optional(d.Float(own)) : std::nullopt);
  }
  return Activate(d, std::move(product), name, parameters, d.Type(0));
}

Status DefineMatMulActivation(Definition& d) {
  ONNXIFI_ASSIGN_OR_RETURN(Value product, Product(d));
  if (d.String("activation") == "Softmax") {
    const int64_t axis = d.HasAttribute("activation_axis") ? d.Int("activation_axis") : -1;
    d.Return(0, d.Apply("Softmax", {std::move(product)}, {{"axis", axis}}));
    return base::Ok();
  }
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Activated(d, std::move(product)));
  d.Return(0, std::move(y));
  return base::Ok();
}

Status DefineGemm(Definition& d) {
  std::vector<Value> inputs = {d.In(0), d.In(1)};
  if (d.Has(2)) inputs.push_back(d.In(2));
  Value product =
      d.Apply("Gemm", std::move(inputs), d.Given({"alpha", "beta", "transA", "transB"}));
  ONNXIFI_ASSIGN_OR_RETURN(Value y, Activated(d, std::move(product)));
  d.Return(0, std::move(y));
  return base::Ok();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(FusedGemm(A: T, B: T, C?: T) -> (Y: T)
        activation: string
        activation_alpha: float
        activation_beta: float
        activation_gamma: float
        alpha: float = 1
        beta: float = 1
        transA: int = 0
        transB: int = 0
        T = float16 | float | double | uint32 | uint64 | int32 | int64)",
     DefineGemm},
    {R"(FusedMatMul(A: T, B: T) -> (Y: T)
        alpha: float = 1
        transA: int = 0
        transB: int = 0
        transBatchA: int = 0
        transBatchB: int = 0
        T = float16 | float | double | bfloat16)",
     DefineMatMul},
    {R"(FusedMatMulActivation(A: T, B: T) -> (Y: T)
        activation: string required
        activation_alpha: float
        activation_axis: int
        activation_beta: float
        activation_gamma: float
        alpha: float = 1
        transA: int = 0
        transB: int = 0
        transBatchA: int = 0
        transBatchB: int = 0
        T = float16 | float | double | bfloat16)",
     DefineMatMulActivation},
    {R"(TransposeMatMul(A: T, B: T) -> (Y: T)
        alpha: float = 1
        transA: int = 0
        transB: int = 0
        T = float16 | float | double | bfloat16)",
     DefineMatMul},
};

}  // namespace

std::span<const model::DomainOperator> FusedProductOperators() { return kOperators; }

}  // namespace onnxifi::microsoft

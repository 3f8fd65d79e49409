// SPDX-License-Identifier: Apache-2.0
//
// What com.example declares: the schema of each operator, from which inputs, attributes and types
// are checked, with its definition. An operator without one has an entry, which lowers it.

#include "domain/domain.h"

namespace example {
namespace {

namespace model = onnxifi::model;
namespace ops = onnxifi::ops;

constexpr int kVersion = 1;

constexpr model::DomainOperator kDeclarations[] = {
    {R"(ScaleShift(X: T, shift?: T) -> (Y: T)
        factor: float = 1
        T = float | float16 | bfloat16)",
     DefineScaleShift},
    {R"(SquaredRelu(X: T) -> (Y: T)
        T = float | float16 | bfloat16)"},
};
constexpr model::Domain kDomain = {"com.example", kVersion, kDeclarations};
constexpr ops::Operator kEntries[] = {{"SquaredRelu", kVersion, LowerSquaredRelu, "com.example"}};
constexpr onnxifi::plugin::VendorDomain kDomains[] = {{&kDomain, kEntries}};

}  // namespace

std::span<const onnxifi::plugin::VendorDomain> Domains() { return kDomains; }

}  // namespace example

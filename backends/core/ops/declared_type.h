// SPDX-License-Identifier: Apache-2.0
//
// What a model declares of a value, against what lowering needs to know of it and finds it to be.

#ifndef ONNXIFI_BACKENDS_CORE_OPS_DECLARED_TYPE_H_
#define ONNXIFI_BACKENDS_CORE_OPS_DECLARED_TYPE_H_

#include <string>
#include <string_view>

#include "backends/core/ops/lowering.h"

namespace onnxifi::ops {

std::string Quoted(const std::string& name);

// Whether an address space could hold so many elements, as far as that is a number.
bool IsAddressable(ElementType type, const Dim& count);
// UNSUPPORTED_SHAPE: "`what` of shape ... has more bytes than ...".
Status RefuseSize(const std::string& what, const Shape& shape);

// Refuses a value of which too little is declared to make it an input of a program; `role` says
// what it is in the graph. UNSUPPORTED_SHAPE, UNSUPPORTED_DATATYPE.
Status CheckDeclaration(std::string_view role, const graph::Value& value);

// A type as the program has it; anything that is not known of a tensor may be anything.
program::ValueType ValueTypeOf(const graph::Type& type);
// The reverse, for the definitions of functions.
graph::Type TypeOf(const program::ValueType& value);

// Refuses what is not as declared. Extents count where both sides are numbers, and only with
// `has_extents`. Ranks inside of sequences are often declared as something else than they turn out
// to be, and do not count.
// MISMATCHING_DATATYPE, MISMATCHING_SHAPE.
Status CheckFits(const graph::Value& declared, const Operand& operand, bool has_extents);
Status CheckFits(const graph::Value& declared, const program::ValueType& type);

// What no descriptor of the interface can carry, in words; empty for a tensor of numbers.
std::string NameOfWhole(const program::ValueType& type);
// UNSUPPORTED_DATATYPE where NameOfWhole has a name.
Status CheckCarried(std::string_view role, const graph::Value& value,
                    const program::ValueType& type);

}  // namespace onnxifi::ops

#endif  // ONNXIFI_BACKENDS_CORE_OPS_DECLARED_TYPE_H_

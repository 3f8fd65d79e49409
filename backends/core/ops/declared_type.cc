// SPDX-License-Identifier: Apache-2.0
//
// Declared types: the refusals, and translation to and from the types of values of a program.

#include "backends/core/ops/declared_type.h"

#include <limits>
#include <memory>
#include <utility>

namespace onnxifi::ops {

using graph::Type;
using program::ValueType;

namespace {

constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max();

// In what element types and kinds tell.
bool FitsDeclaration(const ValueType& value, const Type& declared) {
  if (declared.kind == Type::Kind::kUnknown) return true;
  if (declared.kind == Type::Kind::kOptional) {
    return declared.inner == nullptr || FitsDeclaration(value, *declared.inner);
  }
  constexpr Type::Kind kKinds[] = {Type::Kind::kTensor, Type::Kind::kSequence, Type::Kind::kMap};
  if (declared.kind != kKinds[static_cast<size_t>(value.kind)]) return false;
  if (!value.is_sequence() && declared.element != ElementType::kUndefined &&
      value.element != ElementType::kUndefined && declared.element != value.element) {
    return false;
  }
  return value.inner.empty() || declared.inner == nullptr ||
         FitsDeclaration(value.inner[0], *declared.inner);
}

}  // namespace

std::string Quoted(const std::string& name) { return "'" + name + "'"; }

bool IsAddressable(ElementType type, const Dim& count) {
  return !count.is_constant() || tensor::SizeBytes(type, count.constant()) < kMaxBytes;
}

Status RefuseSize(const std::string& what, const Shape& shape) {
  return Status(Code::kUnsupportedShape, what + " of shape " + tensor::ToString(shape) +
                                             " has more bytes than the largest size (" +
                                             std::to_string(kMaxBytes) + ").");
}

Status CheckDeclaration(std::string_view role, const graph::Value& value) {
  const Type& type = value.type;
  const auto what = [&] { return std::string(role) + " " + Quoted(value.name); };
  if (type.kind == Type::Kind::kUnknown) {
    return Status(Code::kUnsupportedShape, what() + " has no declared type.");
  }
  if (type.kind != Type::Kind::kTensor) {
    return type.inner != nullptr && type.inner->kind != Type::Kind::kUnknown
               ? base::Ok()
               : Status(Code::kUnsupportedDatatype, what() + " has no declared element type.");
  }
  if (!type.extents) return Status(Code::kUnsupportedShape, what() + " has no declared rank.");
  Dim known = 1;
  for (const graph::Extent& extent : *type.extents) {
    if (extent.is_known()) known = known * Dim(extent.number);
  }
  if (IsAddressable(type.element, known)) return base::Ok();
  Shape shape;
  for (const graph::Extent& extent : *type.extents) {
    if (extent.is_known()) shape.push_back(extent.number);
  }
  return RefuseSize(what(), shape);
}

ValueType ValueTypeOf(const Type& type) {
  switch (type.kind) {
    case Type::Kind::kSequence:
      return ValueType::Sequence(ValueTypeOf(*type.inner));
    case Type::Kind::kOptional:
      return ValueTypeOf(*type.inner).Optional();
    case Type::Kind::kMap:
      return ValueType::Map(type.element, ValueTypeOf(*type.inner));
    default:
      return ValueType::Tensor(type.element, type.extents ? static_cast<int>(type.extents->size())
                                                          : ValueType::kAnyRank);
  }
}

Type TypeOf(const ValueType& value) {
  Type type;
  type.element = value.element;
  if (value.is_tensor()) {
    type.kind = Type::Kind::kTensor;
    if (value.rank >= 0) type.extents.emplace(static_cast<size_t>(value.rank));
  } else {
    type.kind = value.is_sequence() ? Type::Kind::kSequence : Type::Kind::kMap;
    type.inner = std::make_shared<const Type>(TypeOf(value.inner[0]));
  }
  if (!value.may_be_missing) return type;
  Type optional;
  optional.kind = Type::Kind::kOptional;
  optional.inner = std::make_shared<const Type>(std::move(type));
  return optional;
}

Status CheckFits(const graph::Value& value, const Operand& operand, bool has_extents) {
  const Type& type = value.type;
  if (type.kind == Type::Kind::kUnknown) return base::Ok();
  if (type.kind != Type::Kind::kTensor ||
      (type.element != ElementType::kUndefined && type.element != operand.type())) {
    return Status(Code::kMismatchingDatatype,
                  "Value " + Quoted(value.name) + " is declared " +
                      (type.kind == Type::Kind::kTensor ? std::string(Name(type.element))
                                                        : std::string("as no tensor")) +
                      " but is " + std::string(Name(operand.type())) + ".");
  }
  if (!type.extents) return base::Ok();
  bool fits = static_cast<int>(type.extents->size()) == operand.rank();
  for (int axis = 0; fits && has_extents && axis < operand.rank(); ++axis) {
    const graph::Extent& extent = (*type.extents)[axis];
    fits = !extent.is_known() || !operand.shape[axis].is_constant() ||
           extent.number == operand.shape[axis].constant();
  }
  if (fits) return base::Ok();
  std::string declared = "[";
  for (const graph::Extent& extent : *type.extents) {
    if (declared.size() > 1) declared += ", ";
    declared += extent.is_known() ? std::to_string(extent.number)
                                  : (extent.symbol.empty() ? "?" : extent.symbol);
  }
  return Status(Code::kMismatchingShape, "Value " + Quoted(value.name) + " is declared " +
                                             declared + "] but is " +
                                             tensor::ToString(operand.shape) + ".");
}

Status CheckFits(const graph::Value& value, const ValueType& type) {
  if (FitsDeclaration(type, value.type)) return base::Ok();
  return Status(Code::kMismatchingDatatype, "Value " + Quoted(value.name) + " is declared " +
                                                ToString(ValueTypeOf(value.type)) + " but is " +
                                                ToString(type) + ".");
}

std::string NameOfWhole(const ValueType& type) {
  if (type.may_be_missing) return "an optional";
  switch (type.kind) {
    case ValueType::Kind::kTensor:
      return type.element == ElementType::kString ? "a tensor of strings" : "";
    case ValueType::Kind::kSequence:
      return "a sequence";
    case ValueType::Kind::kMap:
      return "a map";
  }
  return "";
}

Status CheckCarried(std::string_view role, const graph::Value& value, const ValueType& type) {
  const std::string name = NameOfWhole(type);
  if (name.empty()) return base::Ok();
  return Status(Code::kUnsupportedDatatype, std::string(role) + " " + Quoted(value.name) + " is " +
                                                name +
                                                "; descriptors carry tensors of numbers only.");
}

}  // namespace onnxifi::ops

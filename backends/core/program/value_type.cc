// SPDX-License-Identifier: Apache-2.0
//
// ValueType: joins and checks, one level at a time.

#include "backends/core/program/value_type.h"

#include <algorithm>
#include <utility>

#include "backends/core/base/result.h"

namespace onnxifi::program {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Value;

ValueType ValueType::Tensor(ElementType element, int rank) {
  ValueType type;
  type.element = element;
  type.rank = rank;
  return type;
}

ValueType ValueType::Sequence(ValueType of) {
  ValueType type;
  type.kind = Kind::kSequence;
  type.inner.push_back(std::move(of));
  return type;
}

ValueType ValueType::Map(ElementType key, ValueType of) {
  ValueType type;
  type.kind = Kind::kMap;
  type.element = key;
  type.inner.push_back(std::move(of));
  return type;
}

ValueType ValueType::Present() const {
  ValueType type = *this;
  type.may_be_missing = false;
  return type;
}

ValueType ValueType::Optional() const {
  ValueType type = *this;
  type.may_be_missing = true;
  return type;
}

namespace {

// " of shape [3, ?]", " with 2 axes", "".
std::string AxesOf(const ValueType& type) {
  if (type.rank < 0) return "";
  if (type.extents.empty()) return " with " + std::to_string(type.rank) + " axes";
  std::string text;
  for (const int64_t extent : type.extents) {
    text += (text.empty() ? "" : ", ") +
            (extent == ValueType::kAnyExtent ? std::string("?") : std::to_string(extent));
  }
  return " of shape [" + text + "]";
}

}  // namespace

std::string ToString(const ValueType& type) {
  const std::string prefix = type.may_be_missing ? "optional " : "";
  const std::string element(tensor::Name(type.element));
  switch (type.kind) {
    case ValueType::Kind::kTensor:
      return prefix + "tensor of " + element + AxesOf(type);
    case ValueType::Kind::kSequence:
      return prefix + "sequence (of: " + ToString(type.inner[0]) + ")";
    case ValueType::Kind::kMap:
      return prefix + "map (from " + element + " to: " + ToString(type.inner[0]) + ")";
  }
  return "value";
}

namespace {

// By axis, the extent where both types have the same.
std::vector<int64_t> CommonExtents(const ValueType& a, const ValueType& b) {
  if (a.rank != b.rank || a.extents.empty() || b.extents.empty()) return {};
  std::vector<int64_t> common = a.extents;
  for (size_t axis = 0; axis < common.size(); ++axis) {
    if (common[axis] != b.extents[axis]) common[axis] = ValueType::kAnyExtent;
  }
  return common;
}

bool HasExtents(const tensor::Extents& extents, const std::vector<int64_t>& required) {
  for (size_t axis = 0; axis < required.size(); ++axis) {
    if (required[axis] != ValueType::kAnyExtent && required[axis] != extents[axis]) return false;
  }
  return true;
}

}  // namespace

Result<ValueType> Join(const ValueType& a, const ValueType& b, const std::string& what) {
  const auto differ = [&] {
    return Status(Code::kMismatchingDatatype,
                  what + " is once of type " + ToString(a) + " and once of " + ToString(b) + ".");
  };
  if (a.kind != b.kind || a.inner.size() != b.inner.size()) return differ();
  if (a.element != b.element && a.element != ElementType::kUndefined &&
      b.element != ElementType::kUndefined) {
    return differ();
  }
  ValueType joined = a;
  joined.may_be_missing = a.may_be_missing || b.may_be_missing;
  if (a.element == ElementType::kUndefined) joined.element = b.element;
  if (a.rank == ValueType::kNoRank) {
    joined.rank = b.rank;
    joined.extents = b.extents;
  } else if (b.rank != ValueType::kNoRank) {
    if (a.rank != b.rank) joined.rank = ValueType::kAnyRank;
    joined.extents = CommonExtents(a, b);
  }
  for (size_t k = 0; k < a.inner.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(joined.inner[k], Join(a.inner[k], b.inner[k], what));
  }
  return joined;
}

namespace {

// Where a value stands: the one that a caller named, or an element of another. Said in words only
// where something is wrong, for a sequence may have a million elements.
struct Location {
  const std::string* what = nullptr;
  const Location* whole = nullptr;
  size_t element = 0;

  std::string Text() const {
    if (whole == nullptr) return *what;
    return "Element " + std::to_string(element) + " of " + whole->Text();
  }
};

Status Check(const Value& value, const ValueType& type, const Location& location) {
  const auto mismatch = [&](Code code) {
    return Status(code, location.Text() + " is " + tensor::Describe(value) +
                            "; required is: " + ToString(type) + ".");
  };
  if (value.kind == Value::Kind::kNothing) {
    return type.may_be_missing ? base::Ok() : mismatch(Code::kMismatchingDatatype);
  }
  constexpr Value::Kind kKinds[] = {Value::Kind::kTensor, Value::Kind::kSequence,
                                    Value::Kind::kMap};
  if (value.kind != kKinds[static_cast<size_t>(type.kind)]) {
    return mismatch(Code::kMismatchingDatatype);
  }
  if (!type.is_sequence() && type.element != ElementType::kUndefined &&
      value.tensor.type() != type.element) {
    return mismatch(Code::kMismatchingDatatype);
  }
  if (type.is_tensor() && type.rank >= 0 &&
      (value.tensor.rank() != type.rank || !HasExtents(value.tensor.extents(), type.extents))) {
    return mismatch(Code::kMismatchingShape);
  }
  if (const tensor::MapRows* rows = value.map_rows()) {
    // All maps are of one type.
    if (rows->row_count() == 0) return base::Ok();
    std::vector<tensor::ValueRef> numbers(
        rows->columns.size(),
        std::make_shared<const Value>(tensor::Tensor::Borrow(
            rows->numbers.type(), {}, rows->numbers.data(), rows->numbers.owner())));
    return Check(Value::Map(rows->keys, std::move(numbers)), type.inner[0], {.whole = &location});
  }
  for (size_t k = 0; k < value.elements().size(); ++k) {
    ONNXIFI_RETURN_IF_ERROR(
        Check(*value.elements()[k], type.inner[0], {.whole = &location, .element = k}));
  }
  return base::Ok();
}

}  // namespace

Status CheckValue(const Value& value, const ValueType& type, const std::string& what) {
  return Check(value, type, {.what = &what});
}

}  // namespace onnxifi::program

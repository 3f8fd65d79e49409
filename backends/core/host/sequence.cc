// SPDX-License-Identifier: Apache-2.0
//
// Sequences and optionals.

#include "backends/core/host/sequence.h"

#include <algorithm>
#include <cstring>

#include "backends/core/tensor/convert.h"

namespace onnxifi::host {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Extents;
using tensor::Tensor;
using tensor::Value;
using tensor::ValueRef;

Result<int64_t> Scalar(Inputs inputs, size_t k) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* tensor, TensorInput(inputs, k));
  if (!tensor::IsInteger(tensor->type()) || tensor->element_count() != 1) {
    return WrongInput(inputs, k, "one integer");
  }
  return tensor->AsInt(0);
}

// Input `k` as a position in [-count, end), made non-negative.
Result<int64_t> Position(Inputs inputs, size_t k, int64_t count, int64_t end) {
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t position, Scalar(inputs, k));
  if (position < -count || position >= end) {
    return Status(Code::kMismatchingShape, "Position " + std::to_string(position) +
                                               " is outside [" + std::to_string(-count) + ", " +
                                               std::to_string(end - 1) + "] of a sequence of " +
                                               std::to_string(count) + ".");
  }
  return position < 0 ? position + count : position;
}

Status CheckSameType(const Tensor& first, const Tensor& other, size_t position) {
  if (first.type() == other.type()) return base::Ok();
  return {Code::kMismatchingDatatype, "Element 0 is of " + std::string(Name(first.type())) +
                                          " and element " + std::to_string(position) + " of " +
                                          std::string(Name(other.type())) + "."};
}

// `count` elements from one tensor to the other; both of one type.
class Mover {
 public:
  explicit Mover(const Tensor& to) : type_(to.type()) {
    if (type_ == ElementType::kString) strings_.resize(static_cast<size_t>(to.element_count()));
  }

  void Move(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index, int64_t count) {
    if (type_ == ElementType::kString) {
      std::copy_n(from.strings().begin() + from_index, count, strings_.begin() + to_index);
    } else if (tensor::IsPacked(type_)) {
      for (int64_t k = 0; k < count; ++k) {
        StoreScalar(type_, to.mutable_data(), to_index + k,
                    LoadScalar(type_, from.data(), from_index + k));
      }
    } else if (count > 0) {
      const int64_t width = tensor::BitWidth(type_) / 8;
      std::memcpy(to.mutable_data() + to_index * width, from.data() + from_index * width,
                  static_cast<size_t>(count * width));
    }
  }
  // `to` with what was moved into it.
  Tensor Take(Tensor to) {
    if (type_ != ElementType::kString) return to;
    return Tensor::FromStrings(to.extents(), std::move(strings_));
  }

 private:
  const ElementType type_;
  std::vector<std::string> strings_;
};

int64_t Product(const Extents& extents, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t axis = begin; axis < end; ++axis) product *= extents[axis];
  return product;
}

// The lengths of the parts of an axis.
Result<std::vector<int64_t>> PartLengths(Inputs inputs, int64_t extent) {
  int64_t length = 1;
  if (Has(inputs, 1)) {
    ONNXIFI_ASSIGN_OR_RETURN(const Tensor* split, TensorInput(inputs, 1));
    if (!tensor::IsInteger(split->type()) || split->rank() > 1) {
      return WrongInput(inputs, 1, "an integer or a list of them");
    }
    if (split->rank() == 1) {
      std::vector<int64_t> lengths;
      int64_t sum = 0;
      bool fits = true;
      for (int64_t k = 0; k < split->element_count(); ++k) {
        lengths.push_back(split->AsInt(k));
        fits = fits && lengths.back() >= 0 && !__builtin_add_overflow(sum, lengths.back(), &sum);
      }
      if (fits && sum == extent) return lengths;
      return Status(Code::kMismatchingShape, "Split " + tensor::ToString(lengths) +
                                                 " does not add up to the " +
                                                 std::to_string(extent) + " of its axis.");
    }
    length = split->AsInt(0);
    if (length < 1) {
      return Status(Code::kMismatchingShape,
                    "Split (" + std::to_string(length) + ") is less than 1.");
    }
  }
  std::vector<int64_t> lengths;
  for (int64_t start = 0; start < extent; start += lengths.back()) {
    lengths.push_back(std::min(length, extent - start));
  }
  return lengths;
}

}  // namespace

Outputs Run(const program::MakeSequence&, Inputs inputs) {
  std::vector<ValueRef> elements;
  for (size_t k = 0; k < inputs.size(); ++k) {
    ONNXIFI_ASSIGN_OR_RETURN(ValueRef element, Kept(inputs[k]));
    elements.push_back(std::move(element));
  }
  return One(Value::Sequence(std::move(elements)));
}

Outputs Run(const program::InsertElement& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const auto* given, SequenceInput(inputs, 0));
  if (!Has(inputs, 1)) return WrongInput(inputs, 1, "a value");
  ONNXIFI_RETURN_IF_ERROR(
      program::CheckValue(*inputs[1], attributes.type.inner[0], "The element to insert"));
  const auto count = static_cast<int64_t>(given->size());
  int64_t position = count;
  if (Has(inputs, 2)) {
    ONNXIFI_ASSIGN_OR_RETURN(position, Position(inputs, 2, count, count + 1));
  }
  ONNXIFI_ASSIGN_OR_RETURN(ValueRef element, Kept(inputs[1]));
  std::vector<ValueRef> elements;
  elements.reserve(given->size() + 1);
  elements = *given;
  elements.insert(elements.begin() + position, std::move(element));
  return One(Value::Sequence(std::move(elements)));
}

Outputs Run(const program::EraseElement&, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const auto* given, SequenceInput(inputs, 0));
  const auto count = static_cast<int64_t>(given->size());
  if (count == 0) {
    return Status(Code::kMismatchingShape, "The sequence has 0 elements; at least 1 is required.");
  }
  int64_t position = count - 1;
  if (Has(inputs, 1)) {
    ONNXIFI_ASSIGN_OR_RETURN(position, Position(inputs, 1, count, count));
  }
  std::vector<ValueRef> elements = *given;
  elements.erase(elements.begin() + position);
  return One(Value::Sequence(std::move(elements)));
}

Outputs Run(const program::TakeElement&, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const auto* given, SequenceInput(inputs, 0));
  const auto count = static_cast<int64_t>(given->size());
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t position, Position(inputs, 1, count, count));
  return std::vector<ValueRef>{(*given)[static_cast<size_t>(position)]};
}

Outputs Run(const program::CountElements&, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const auto* given, SequenceInput(inputs, 0));
  const auto count = static_cast<int64_t>(given->size());
  return One(Tensor::FromValues<int64_t>(ElementType::kInt64, {}, std::span(&count, 1)));
}

Outputs Run(const program::SplitTensor& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor* whole, TensorInput(inputs, 0));
  const auto axis = static_cast<size_t>(attributes.axis);
  const Extents& extents = whole->extents();
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PartLengths(inputs, extents[axis]));
  const int64_t outer = Product(extents, 0, axis);
  const int64_t inner = Product(extents, axis + 1, extents.size());
  std::vector<ValueRef> parts;
  int64_t start = 0;
  for (const int64_t length : lengths) {
    Extents shape = extents;
    shape[axis] = length;
    ONNXIFI_ASSIGN_OR_RETURN(Tensor part, Tensor::Allocate(whole->type(), shape));
    Mover mover(part);
    for (int64_t o = 0; o < outer; ++o) {
      mover.Move(*whole, (o * extents[axis] + start) * inner, part, o * length * inner,
                 length * inner);
    }
    part = mover.Take(std::move(part));
    if (attributes.removes_axis) {
      shape.erase(shape.begin() + attributes.axis);
      part = part.Reshaped(std::move(shape));
    }
    parts.push_back(std::make_shared<const Value>(std::move(part)));
    start += length;
  }
  return One(Value::Sequence(std::move(parts)));
}

Outputs Run(const program::JoinElements& attributes, Inputs inputs) {
  ONNXIFI_ASSIGN_OR_RETURN(const auto* elements, SequenceInput(inputs, 0));
  if (elements->empty()) {
    return Status(Code::kMismatchingShape, "The sequence has 0 elements; at least 1 is required.");
  }
  const Tensor& first = (*elements)[0]->tensor;
  const int64_t rank = first.rank() + (attributes.is_new_axis ? 1 : 0);
  if (attributes.axis < -rank || attributes.axis >= rank) {
    return Status(Code::kMismatchingShape, "Axis " + std::to_string(attributes.axis) +
                                               " is outside [" + std::to_string(-rank) + ", " +
                                               std::to_string(rank - 1) + "].");
  }
  const auto axis =
      static_cast<size_t>(attributes.axis < 0 ? attributes.axis + rank : attributes.axis);
  Extents extents = first.extents();
  if (attributes.is_new_axis) {
    extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  }
  std::vector<int64_t> lengths;
  int64_t sum = 0;
  for (size_t k = 0; k < elements->size(); ++k) {
    const Tensor& element = (*elements)[k]->tensor;
    ONNXIFI_RETURN_IF_ERROR(CheckSameType(first, element, k));
    Extents others = element.extents();
    const bool may_differ = !attributes.is_new_axis && others.size() == extents.size();
    lengths.push_back(may_differ ? others[axis] : 1);
    if (may_differ) others[axis] = first.extents()[axis];
    if (others != first.extents() || __builtin_add_overflow(sum, lengths.back(), &sum)) {
      return Status(Code::kMismatchingShape,
                    "Element " + std::to_string(k) + " has shape " +
                        tensor::ToString(element.extents()) + ", element 0 " +
                        tensor::ToString(first.extents()) + "; they cannot be joined along axis " +
                        std::to_string(axis) + ".");
    }
  }
  extents[axis] = sum;
  ONNXIFI_ASSIGN_OR_RETURN(Tensor joined, Tensor::Allocate(first.type(), extents));
  Mover mover(joined);
  const int64_t outer = Product(extents, 0, axis);
  const int64_t inner = Product(extents, axis + 1, extents.size());
  int64_t start = 0;
  for (size_t k = 0; k < elements->size(); ++k) {
    for (int64_t o = 0; o < outer; ++o) {
      mover.Move((*elements)[k]->tensor, o * lengths[k] * inner, joined,
                 (o * extents[axis] + start) * inner, lengths[k] * inner);
    }
    start += lengths[k];
  }
  return One(mover.Take(std::move(joined)));
}

Outputs Run(const program::TestPresence&, Inputs inputs) {
  const uint8_t is_there = Has(inputs, 0) && inputs[0]->kind != Value::Kind::kNothing ? 1 : 0;
  return One(Tensor::FromValues<uint8_t>(ElementType::kBool, {}, std::span(&is_there, 1)));
}

Outputs Run(const program::PassValue&, Inputs inputs) {
  if (!Has(inputs, 0)) return One(Value());
  ONNXIFI_ASSIGN_OR_RETURN(ValueRef value, Kept(inputs[0]));
  return std::vector<ValueRef>{std::move(value)};
}

}  // namespace onnxifi::host

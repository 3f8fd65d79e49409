// SPDX-License-Identifier: Apache-2.0
//
// TensorProto: raw data are copied as they are; typed fields are decoded as ONNX lays down for each
// element type.

#include "backends/core/model/tensor_proto.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "backends/core/model/refusal.h"
#include "backends/core/model/type_proto.h"
#include "backends/core/tensor/file_pages.h"
#include "backends/core/tensor/packed.h"

namespace onnxifi::model {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::ElementType;
using tensor::Tensor;

static_assert(std::endian::native == std::endian::little, "ONNX's raw_data are little-endian.");

std::string Describe(const onnx::TensorProto& proto) { return "Tensor '" + proto.name() + "'"; }

// Which typed field holds elements of a type, and how many of the field's numbers make
// `element_count` elements.
struct TypedLayout {
  TensorField field;
  int64_t number_count;
};

// Whether an element may begin in one byte and end in the next.
bool SpansBytes(ElementType type) {
  const int bits = tensor::BitWidth(type);
  return bits > 0 && bits < 8 && 8 % bits != 0;
}

TypedLayout LayoutOf(ElementType type, int64_t element_count) {
  switch (type) {
    case ElementType::kFloat32:
      return {TensorField::kFloat, element_count};
    case ElementType::kComplex64:
      return {TensorField::kFloat, 2 * element_count};
    case ElementType::kFloat64:
      return {TensorField::kDouble, element_count};
    case ElementType::kComplex128:
      return {TensorField::kDouble, 2 * element_count};
    case ElementType::kInt64:
      return {TensorField::kInt64, element_count};
    case ElementType::kUint32:
    case ElementType::kUint64:
      return {TensorField::kUint64, element_count};
    case ElementType::kString:
      return {TensorField::kString, element_count};
    default:
      // One number per element; one per byte where whole elements share it.
      return {TensorField::kInt32, tensor::IsPacked(type) && !SpansBytes(type)
                                       ? tensor::SizeBytes(type, element_count)
                                       : element_count};
  }
}

int64_t CountOf(const LiftedTensor& lifted, TensorField field) {
  switch (field) {
    case TensorField::kFloat:
      return lifted.float_count;
    case TensorField::kInt32:
      return lifted.int32_count;
    case TensorField::kString:
      return lifted.string_count;
    case TensorField::kInt64:
      return lifted.int64_count;
    case TensorField::kDouble:
      return lifted.double_count;
    case TensorField::kUint64:
      return lifted.uint64_count;
    case TensorField::kRaw:
      break;
  }
  return 0;
}

std::string_view NameOf(TensorField field) {
  switch (field) {
    case TensorField::kFloat:
      return "float_data";
    case TensorField::kInt32:
      return "int32_data";
    case TensorField::kString:
      return "string_data";
    case TensorField::kInt64:
      return "int64_data";
    case TensorField::kDouble:
      return "double_data";
    case TensorField::kUint64:
      return "uint64_data";
    case TensorField::kRaw:
      break;
  }
  return "raw_data";
}

// Appends runs of fixed-width numbers, which are stored as they lie in memory.
void CopyRuns(const LiftedTensor& lifted, TensorField field, std::span<std::byte> target) {
  size_t position = 0;
  ForEachRun(lifted.body, field, [&](std::span<const std::byte> run) {
    const size_t size_bytes = std::min(run.size(), target.size() - position);
    if (size_bytes > 0) std::memcpy(target.data() + position, run.data(), size_bytes);
    position += size_bytes;
  });
}

// Decodes varints, each stored in its low `width` bytes.
void DecodeRuns(const LiftedTensor& lifted, TensorField field, size_t width,
                std::span<std::byte> target) {
  size_t position = 0;
  ForEachRun(lifted.body, field, [&](std::span<const std::byte> run) {
    size_t at = 0;
    while (at < run.size() && target.size() - position >= width) {
      const uint64_t number = ReadCheckedVarint(run, at);
      std::memcpy(target.data() + position, &number, width);
      position += width;
    }
  });
}

// Packs varints, each an element of 6 bits.
Status PackRuns(const LiftedTensor& lifted, TensorField field, const std::string& owner,
                int64_t count, std::byte* target) {
  constexpr uint64_t kMaxCode = 63;
  int64_t index = 0;
  std::optional<uint64_t> wrong;
  ForEachRun(lifted.body, field, [&](std::span<const std::byte> run) {
    size_t at = 0;
    while (at < run.size() && index < count) {
      const uint64_t code = ReadCheckedVarint(run, at);
      if (code > kMaxCode && !wrong) wrong = code;
      tensor::StorePacked<6>(target, index++, static_cast<uint32_t>(code));
    }
  });
  if (!wrong) return base::Ok();
  return Invalid(owner + " has " + std::to_string(static_cast<int64_t>(*wrong)) +
                 " in int32_data, which is outside [0, " + std::to_string(kMaxCode) +
                 "] of 6 bits.");
}

std::vector<std::string> ReadStrings(const LiftedTensor& lifted) {
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(lifted.string_count));
  ForEachRun(lifted.body, TensorField::kString, [&](std::span<const std::byte> run) {
    strings.emplace_back(reinterpret_cast<const char*>(run.data()), run.size());
  });
  return strings;
}

Result<int64_t> ParseNumber(const std::string& text, const std::string& what) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 0) {
    return Invalid(what + " ('" + text + "') is not a number of bytes.");
  }
  return number;
}

// Any byte but 0 is true in a model; in a Tensor true is 1.
void NormalizeBools(std::span<std::byte> bytes) {
  for (std::byte& byte : bytes) byte = byte != std::byte{0} ? std::byte{1} : std::byte{0};
}

template <typename Dims>
Status ReadExtents(const Dims& dims, const std::string& owner, TensorReader::Header& header) {
  if (dims.size() > kMaxRank) {
    return {Code::kUnsupportedShape, owner + " has rank " + std::to_string(dims.size()) +
                                         ", beyond the highest supported (" +
                                         std::to_string(kMaxRank) + ")."};
  }
  header.extents.assign(dims.begin(), dims.end());
  for (const int64_t extent : header.extents) {
    if (extent < 0) {
      return Invalid(owner + " has extent " + std::to_string(extent) +
                     ", below the smallest allowed (0).");
    }
  }
  header.element_count = tensor::ElementCount(header.extents);
  if (header.element_count == INT64_MAX ||
      tensor::SizeBytes(header.type, header.element_count) == INT64_MAX) {
    return Invalid(owner + " of extents " + tensor::ToString(header.extents) +
                   " has more than 2^63 bytes.");
  }
  return base::Ok();
}

}  // namespace

const LiftedTensor& TensorReader::Find(const onnx::TensorProto& proto) const {
  static const LiftedTensor nothing;  // of a message field that is absent
  uint32_t index = 0;
  if (proto.raw_data().size() != sizeof(index)) return nothing;
  std::memcpy(&index, proto.raw_data().data(), sizeof(index));
  return index < tensors_.size() ? tensors_[index] : nothing;
}

Result<TensorReader::Header> TensorReader::ReadHeader(const onnx::TensorProto& proto) const {
  Header header;
  ONNXIFI_ASSIGN_OR_RETURN(header.type, ElementTypeFromProto(proto.data_type(), Describe(proto)));
  ONNXIFI_RETURN_IF_ERROR(ReadExtents(proto.dims(), Describe(proto), header));
  if (proto.has_segment()) {
    return Status(Code::kUnsupportedDatatype,
                  Describe(proto) + " is stored in segments, which are not supported.");
  }
  return header;
}

bool TensorReader::HasData(const onnx::TensorProto& proto) const {
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) return false;
  const LiftedTensor& lifted = Find(proto);
  return lifted.has_raw || lifted.float_count > 0 || lifted.int32_count > 0 ||
         lifted.int64_count > 0 || lifted.double_count > 0 || lifted.uint64_count > 0 ||
         lifted.string_count > 0;
}

Result<Tensor> TensorReader::ReadExternal(const onnx::TensorProto& proto,
                                          const Header& header) const {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset") {
      ONNXIFI_ASSIGN_OR_RETURN(offset, ParseNumber(entry.value(), "The offset of external data"));
    } else if (entry.key() == "length") {
      ONNXIFI_ASSIGN_OR_RETURN(length, ParseNumber(entry.value(), "The length of external data"));
    }
  }
  if (header.type == ElementType::kString) {
    return Invalid(Describe(proto) + " holds strings, which cannot be external data.");
  }
  const int64_t size_bytes = tensor::SizeBytes(header.type, header.element_count);
  if (length && *length != size_bytes) {
    return Invalid(Describe(proto) + " has " + std::to_string(*length) +
                   " bytes of external data, where " + std::string(tensor::Name(header.type)) +
                   tensor::ToString(header.extents) + " needs " + std::to_string(size_bytes) + ".");
  }
  ONNXIFI_ASSIGN_OR_RETURN(ExternalData::Region region,
                           external_data_.Map(location, offset, size_bytes));
  const auto width = static_cast<uintptr_t>(std::max(1, tensor::BitWidth(header.type) / 8));
  const bool is_aligned = reinterpret_cast<uintptr_t>(region.bytes.data()) % width == 0;
  if (is_aligned && !tensor::IsBool(header.type)) {
    return Tensor::Borrow(header.type, header.extents, region.bytes.data(),
                          std::move(region.owner));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(header.type, header.extents));
  if (!region.bytes.empty()) {
    std::memcpy(copy.mutable_data(), region.bytes.data(), region.bytes.size());
  }
  if (tensor::IsBool(header.type)) NormalizeBools({copy.mutable_data(), region.bytes.size()});
  return copy;
}

Result<Tensor> TensorReader::Read(const onnx::TensorProto& proto) const {
  ONNXIFI_ASSIGN_OR_RETURN(const Header header, ReadHeader(proto));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    return ReadExternal(proto, header);
  }
  const LiftedTensor& lifted = Find(proto);
  const std::string shape =
      std::string(tensor::Name(header.type)) + tensor::ToString(header.extents);
  if (lifted.has_raw) {
    if (header.type == ElementType::kString) {
      return Invalid(Describe(proto) + " holds strings, which cannot be in raw_data.");
    }
    const int64_t size_bytes = tensor::SizeBytes(header.type, header.element_count);
    if (static_cast<uint64_t>(size_bytes) != lifted.raw.size()) {
      return Invalid(Describe(proto) + " has " + std::to_string(lifted.raw.size()) +
                     " bytes of raw_data, where " + shape + " needs " + std::to_string(size_bytes) +
                     ".");
    }
    if (bytes_.is_lasting && size_bytes >= kMinBorrowedBytes && !tensor::IsBool(header.type)) {
      return Borrow(header, lifted.raw);
    }
    ONNXIFI_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(header.type, header.extents));
    if (bytes_.is_mapped) {
      tensor::CopyAndGiveBack(copy.mutable_data(), lifted.raw);
    } else if (size_bytes > 0) {
      std::memcpy(copy.mutable_data(), lifted.raw.data(), lifted.raw.size());
    }
    if (tensor::IsBool(header.type)) NormalizeBools({copy.mutable_data(), lifted.raw.size()});
    return copy;
  }

  // The bytes of the fields bound the count, so that no product below can overflow once it matches.
  const bool is_too_many = header.element_count > INT64_MAX / 2;
  const TypedLayout layout = LayoutOf(header.type, is_too_many ? 0 : header.element_count);
  const int64_t given = CountOf(lifted, layout.field);
  if (is_too_many || given != layout.number_count) {
    return Invalid(Describe(proto) + " has " + std::to_string(given) + " numbers in " +
                   std::string(NameOf(layout.field)) + ", which do not make " + shape + ".");
  }
  if (header.type == ElementType::kString) {
    return Tensor::FromStrings(header.extents, ReadStrings(lifted));
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor decoded, Tensor::Allocate(header.type, header.extents));
  const std::span<std::byte> target{decoded.mutable_data(),
                                    static_cast<size_t>(decoded.size_bytes())};
  switch (layout.field) {
    case TensorField::kFloat:
    case TensorField::kDouble:
      CopyRuns(lifted, layout.field, target);
      break;
    default: {
      if (SpansBytes(header.type)) {
        ONNXIFI_RETURN_IF_ERROR(
            PackRuns(lifted, layout.field, Describe(proto), header.element_count, target.data()));
        break;
      }
      const int bits = tensor::BitWidth(header.type);
      DecodeRuns(lifted, layout.field, static_cast<size_t>(std::max(1, bits / 8)), target);
      break;
    }
  }
  if (bytes_.is_mapped) tensor::GiveBackPages(lifted.body);
  if (tensor::IsBool(header.type)) NormalizeBools(target);
  return decoded;
}

Tensor TensorReader::Borrow(const Header& header, std::span<const std::byte> raw) const {
  // The last who reads the tensor gives its pages back.
  const std::shared_ptr<const void> owner(raw.data(), [raw, bytes = bytes_](const void*) {
    if (bytes.is_mapped) tensor::GiveBackPages(raw);
  });
  return Tensor::Borrow(header.type, header.extents, raw.data(), owner,
                        bytes_.is_mapped ? tensor::Backing::kFile : tensor::Backing::kMemory);
}

Result<TensorReader::Header> TensorReader::ReadHeader(const onnx::SparseTensorProto& proto) const {
  ONNXIFI_ASSIGN_OR_RETURN(Header header, ReadHeader(proto.values()));
  if (header.extents.size() != 1) {
    return Invalid("The values of sparse tensor '" + proto.values().name() + "' have rank " +
                   std::to_string(header.extents.size()) + " instead of 1.");
  }
  ONNXIFI_RETURN_IF_ERROR(
      ReadExtents(proto.dims(), "Sparse tensor '" + proto.values().name() + "'", header));
  return header;
}

Result<Tensor> TensorReader::Read(const onnx::SparseTensorProto& proto) {
  const std::string quoted = "Sparse tensor '" + proto.values().name() + "'";
  ONNXIFI_ASSIGN_OR_RETURN(const Header header, ReadHeader(proto));
  const int64_t size_bytes = tensor::SizeBytes(header.type, header.element_count);
  if (size_bytes > kMaxSparseBytes - sparse_bytes_ || header.type == ElementType::kString ||
      tensor::IsPacked(header.type)) {
    return Status(Code::kUnsupportedShape,
                  quoted + " of " + std::string(tensor::Name(header.type)) +
                      tensor::ToString(header.extents) + " has " + std::to_string(size_bytes) +
                      " bytes as a dense tensor; at most " + std::to_string(kMaxSparseBytes) +
                      " in all, of whole-byte elements, are supported.");
  }
  sparse_bytes_ += size_bytes;
  if (!proto.has_values() || !proto.has_indices()) {
    return Invalid(quoted + " lacks its values or its indices.");
  }
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor values, Read(proto.values()));
  ONNXIFI_ASSIGN_OR_RETURN(const Tensor indices, Read(proto.indices()));
  const int64_t given = values.element_count();
  const auto rank = static_cast<int64_t>(header.extents.size());
  const bool is_linear = indices.extents() == tensor::Extents{given};
  if (indices.type() != ElementType::kInt64 ||
      (!is_linear && indices.extents() != tensor::Extents{given, rank})) {
    return Invalid(quoted + " has indices " + std::string(tensor::Name(indices.type())) +
                   tensor::ToString(indices.extents()) + " for " + std::to_string(given) +
                   " values of rank " + std::to_string(rank) + ".");
  }
  ONNXIFI_ASSIGN_OR_RETURN(Tensor dense, Tensor::Allocate(header.type, header.extents));
  const auto width = static_cast<size_t>(tensor::BitWidth(header.type) / 8);
  const std::span<const int64_t> positions = indices.values<int64_t>();
  for (int64_t item = 0; item < given; ++item) {
    int64_t linear = 0;
    if (is_linear) {
      linear = positions[static_cast<size_t>(item)];
      if (linear < 0 || linear >= header.element_count) {
        return Invalid(quoted + " has index " + std::to_string(linear) + " outside its " +
                       std::to_string(header.element_count) + " elements.");
      }
    } else {
      for (int64_t axis = 0; axis < rank; ++axis) {
        const int64_t extent = header.extents[static_cast<size_t>(axis)];
        const int64_t index = positions[static_cast<size_t>(item * rank + axis)];
        if (index < 0 || index >= extent) {
          return Invalid(quoted + " has index " + std::to_string(index) + " outside extent " +
                         std::to_string(extent) + " of axis " + std::to_string(axis) + ".");
        }
        linear = linear * extent + index;
      }
    }
    std::memcpy(dense.mutable_data() + static_cast<size_t>(linear) * width,
                values.data() + static_cast<size_t>(item) * width, width);
  }
  return dense;
}

}  // namespace onnxifi::model

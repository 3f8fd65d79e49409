// SPDX-License-Identifier: Apache-2.0
//
// Access: index arithmetic is in the type of the loops' counters, except at coordinates that come
// from data, which may be anything and wrap.

#include "backends/core/codegen/access.h"

#include <numeric>
#include <string_view>

#include "backends/core/codegen/conversion.h"

namespace onnxifi::codegen {
namespace {

using tensor::ElementType;

// Packed elements are written by whole words, with atomic operations.
constexpr int kWordBits = 32;

// "a * b" as numbers that may be anything, without overflow.
std::string WrapMul(const std::string& a, const std::string& b) {
  return Text("AS(u64, ", a, ") * AS(u64, ", b, ")");
}

// offset + sum of factor * coordinate.
template <typename FactorOf>
std::string WriteSum(const std::string& offset, size_t axes,
                     std::span<const std::string> coordinates, bool is_wide,
                     const FactorOf& factor_of) {
  std::string sum = is_wide ? Text("AS(u64, ", offset, ")") : offset;
  for (size_t axis = 0; axis < axes; ++axis) {
    const std::string factor = factor_of(static_cast<int>(axis));
    if (factor == "0") continue;
    if (factor == "1") {
      sum += is_wide ? Text(" + AS(u64, ", coordinates[axis], ")") : " + " + coordinates[axis];
      continue;
    }
    sum += is_wide ? Text(" + ", WrapMul(factor, coordinates[axis]))
                   : Text(" + ", factor, " * ", coordinates[axis]);
  }
  return is_wide ? Text("AS(i64, ", sum, ")") : sum;
}

// Where packed element `index`, a variable, begins among units of `unit_bits`. Groups of elements
// that fill units are counted first: `index` times the bits of an element may leave its type.
struct PackedPlace {
  std::string unit;
  std::string last_unit;  // where it ends: `unit` itself, but for some elements of 6 bits
  std::string shift;      // of its lowest bit in `unit`
};

PackedPlace FindPlace(ElementType type, const std::string& index, int unit_bits) {
  const int bits = tensor::BitWidth(type);
  const int common = std::gcd(bits, unit_bits);
  const int per_group = unit_bits / common;
  if (bits == common) {
    const std::string unit = Text(index, " / ", per_group);
    return {unit, unit, Text(index, " % ", per_group, " * ", bits)};
  }
  const std::string group = Text(index, " / ", per_group, " * ", bits / common);
  const std::string bit = Text(index, " % ", per_group, " * ", bits);
  return {Text(group, " + ", bit, " / ", unit_bits),
          Text(group, " + (", bit, " + ", bits - 1, ") / ", unit_bits),
          Text(bit, " % ", unit_bits)};
}

std::string PackedMask(ElementType type) { return Text((1 << tensor::BitWidth(type)) - 1, "u"); }

// Element `index`, a variable, of a buffer as it lies there.
std::string WriteElement(ElementType type, const std::string& buffer, const std::string& index) {
  if (tensor::IsPacked(type)) {
    const PackedPlace place = FindPlace(type, index, 8);
    std::string bits = Text("AS(u32, LOAD(", buffer, ", ", place.unit, "))");
    if (place.last_unit != place.unit) {
      // Not the next byte as such: behind the last element there may be none.
      bits = Text("(", bits, " | AS(u32, LOAD(", buffer, ", ", place.last_unit, ")) << 8)");
    }
    return Text("AS(u8, ", bits, " >> AS(u32, ", place.shift, ") & ", PackedMask(type), ")");
  }
  const std::string loaded = Text("LOAD(", buffer, ", ", index, ")");
  // Any byte but 0 is true; arithmetic on bool relies on 0 and 1.
  return tensor::IsBool(type) ? Text("AS(u8, ", loaded, " != 0)") : loaded;
}

}  // namespace

std::string WriteLoad(Writer& writer, const program::Step& step, int read,
                      std::span<const std::string> coordinates, bool is_wide) {
  const program::View& view = step.reads[static_cast<size_t>(read)];
  const std::string buffer = writer.UseBuffer(/*is_write=*/false, read, view.type);
  // A scalar has no axes, whatever the loops have.
  const size_t axes = view.strides.empty() ? 0 : coordinates.size();
  const auto number = [&](Number::Kind kind, int axis, int guard) {
    return writer.Use({kind, read, axis, guard, {}}, is_wide);
  };
  const std::string_view index_type = is_wide ? "i64" : "idx";
  std::string condition;
  for (size_t k = 0; k < view.guards.size(); ++k) {
    const int guard = static_cast<int>(k);
    const std::string position = writer.Declare(
        index_type, WriteSum(number(Number::Kind::kReadGuardOffset, 0, guard), axes, coordinates,
                             is_wide, [&](int axis) {
                               return number(Number::Kind::kReadGuardCoefficient, axis, guard);
                             }));
    condition += Text(condition.empty() ? "" : " && ", position, " >= 0 && ", position, " < ",
                      number(Number::Kind::kReadGuardExtent, 0, guard));
  }
  const std::string index = writer.Declare(
      index_type,
      WriteSum(number(Number::Kind::kReadOffset, 0, 0), axes, coordinates, is_wide, [&](int axis) {
        return writer.UseStride(/*is_write=*/false, read, axis, view.strides.size(), is_wide);
      }));
  std::string element = WriteElement(view.type, buffer, index);
  if (condition.empty()) return element;
  return Text("(", condition, ") ? ", element, " : ", Literal(writer, view.type, view.fill));
}

std::string WriteIndex(Writer& writer, const program::Step& step, bool is_write, int operand,
                       std::span<const std::string> coordinates) {
  const auto at = static_cast<size_t>(operand);
  const program::View& view = is_write ? step.writes[at] : step.reads[at];
  const size_t axes = view.strides.empty() ? 0 : coordinates.size();
  const auto kind = is_write ? Number::Kind::kWriteOffset : Number::Kind::kReadOffset;
  const std::string sum = WriteSum(
      writer.Use({kind, operand, 0, 0, {}}), axes, coordinates, /*is_wide=*/false,
      [&](int axis) { return writer.UseStride(is_write, operand, axis, view.strides.size()); });
  // Coordinates that come from data have 64 bits.
  return writer.Declare("idx", Text("AS(idx, ", sum, ")"));
}

std::string WriteReadBack(Writer& writer, const program::Step& step, int write,
                          std::span<const std::string> coordinates) {
  const program::View& view = step.writes[static_cast<size_t>(write)];
  const std::string buffer = writer.UseBuffer(/*is_write=*/true, write, view.type);
  const std::string index = WriteIndex(writer, step, /*is_write=*/true, write, coordinates);
  const std::string_view lane = LaneType(view.type);
  if (tensor::IsPacked(view.type)) {
    const PackedPlace place = FindPlace(view.type, index, kWordBits);
    const std::string shift = writer.Declare("u32", Text("AS(u32, ", place.shift, ")"));
    std::string bits = Text("LOAD(", buffer, ", ", place.unit, ") >> ", shift);
    if (place.last_unit != place.unit) {
      bits = Text("(", bits, " | (", place.last_unit, " != ", place.unit, " ? LOAD(", buffer, ", ",
                  place.last_unit, ") << (", kWordBits, "u - ", shift, ") : 0u))");
    }
    return writer.Declare(lane, Text("AS(u8, ", bits, " & ", PackedMask(view.type), ")"));
  }
  return writer.Declare(lane, WriteElement(view.type, buffer, index));
}

void WriteStore(Writer& writer, const program::Step& step, int write,
                std::span<const std::string> coordinates, const std::string& value) {
  const program::View& view = step.writes[static_cast<size_t>(write)];
  const std::string buffer = writer.UseBuffer(/*is_write=*/true, write, view.type);
  const std::string index = WriteIndex(writer, step, /*is_write=*/true, write, coordinates);
  if (!tensor::IsPacked(view.type)) {
    writer.Line("STORE(", buffer, ", ", index, ", ", value, ");");
    return;
  }
  const PackedPlace place = FindPlace(view.type, index, kWordBits);
  const std::string mask = PackedMask(view.type);
  const std::string shift = writer.Declare("u32", Text("AS(u32, ", place.shift, ")"));
  const std::string code = writer.Declare("u32", Text("AS(u32, ", value, ")"));
  writer.Line("STORE_BITS(", buffer, ", ", place.unit, ", ~(", mask, " << ", shift, "), ", code,
              " << ", shift, ");");
  if (place.last_unit == place.unit) return;
  writer.Open("if (", place.last_unit, " != ", place.unit, ")");
  const std::string unshift = writer.Declare("u32", Text(kWordBits, "u - ", shift));
  writer.Line("STORE_BITS(", buffer, ", ", place.last_unit, ", ~(", mask, " >> ", unshift, "), ",
              code, " >> ", unshift, ");");
  writer.Close();
}

}  // namespace onnxifi::codegen

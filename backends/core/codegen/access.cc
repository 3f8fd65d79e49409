// SPDX-License-Identifier: Apache-2.0
//
// Access: index arithmetic is in the type of the loops' counters, except at coordinates that come
// from data, which may be anything and wrap.

#include "backends/core/codegen/access.h"

#include <string_view>

#include "backends/core/codegen/conversion.h"

namespace onnxifi::codegen {
namespace {

using tensor::ElementType;

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

// Element `index` of a buffer as it lies there.
std::string WriteElement(ElementType type, const std::string& buffer, const std::string& index) {
  const int bits = tensor::BitWidth(type);
  if (tensor::IsPacked(type)) {
    const int per_byte = 8 / bits;
    return Text("AS(u8, LOAD(", buffer, ", (", index, ") / ", per_byte, ") >> (", index, ") % ",
                per_byte, " * ", bits, " & ", (1 << bits) - 1, ")");
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
    const int bits = tensor::BitWidth(view.type);
    const int per_word = 32 / bits;
    return writer.Declare(
        lane, Text("AS(u8, LOAD(", buffer, ", ", index, " / ", per_word, ") >> (", index, " % ",
                   per_word, " * ", bits, ") & ", (1 << bits) - 1, ")"));
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
  const int bits = tensor::BitWidth(view.type);
  const int per_word = 32 / bits;
  const std::string shift =
      writer.Declare("u32", Text("AS(u32, ", index, " % ", per_word, " * ", bits, ")"));
  writer.Line("STORE_BITS(", buffer, ", ", index, " / ", per_word, ", ~(", (1 << bits) - 1, "u << ",
              shift, "), AS(u32, ", value, ") << ", shift, ");");
}

}  // namespace onnxifi::codegen

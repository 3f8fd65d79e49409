// SPDX-License-Identifier: Apache-2.0
//
// Expression: one constant variable per node, in ascending order of ids, which is an evaluation
// order. What an operation means is the reference's (reference/operation.cc); what it looks like is
// here.

#include "backends/core/codegen/expression.h"

#include <bit>
#include <unordered_map>
#include <utility>

#include "backends/core/program/expr.h"
#include "backends/core/tensor/convert.h"

namespace onnxifi::codegen {
namespace {

using base::Code;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;
using tensor::Scalar;

bool IsNativeFloat(ElementType type) { return !FloatName(type).empty(); }

// Integers of 8 bits and more.
bool IsNativeInteger(ElementType type) {
  return tensor::IsInteger(type) && !tensor::IsPacked(type);
}

// The bits of a small float's format: exponent, mantissa, bias, tensor::FloatSpecials. Empty for
// bfloat16 and float8e8m0, which have functions of their own.
std::string_view FormatOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat16:
      return "5, 10, 15, 0";
    case ElementType::kFloat8E4M3Fn:
      return "4, 3, 7, 1";
    case ElementType::kFloat8E4M3Fnuz:
      return "4, 3, 8, 2";
    case ElementType::kFloat8E5M2:
      return "5, 2, 15, 0";
    case ElementType::kFloat8E5M2Fnuz:
      return "5, 2, 16, 2";
    case ElementType::kFloat4E2M1:
      return "2, 1, 1, 3";
    default:
      return {};
  }
}

// The function of one or two float arguments that an operation is; empty if it is none.
std::string_view FloatFunction(ExprOp op) {
  switch (op) {
    case ExprOp::kAbs:
      return "M_abs";
    case ExprOp::kFloor:
      return "M_floor";
    case ExprOp::kCeil:
      return "M_ceil";
    case ExprOp::kRoundEven:
      return "M_rint";
    case ExprOp::kTrunc:
      return "M_trunc";
    case ExprOp::kSqrt:
      return "M_sqrt";
    case ExprOp::kExp:
      return "M_exp";
    case ExprOp::kExpm1:
      return "M_expm1";
    case ExprOp::kLog:
      return "M_log";
    case ExprOp::kLog1p:
      return "M_log1p";
    case ExprOp::kSin:
      return "M_sin";
    case ExprOp::kCos:
      return "M_cos";
    case ExprOp::kTan:
      return "M_tan";
    case ExprOp::kAsin:
      return "M_asin";
    case ExprOp::kAcos:
      return "M_acos";
    case ExprOp::kAtan:
      return "M_atan";
    case ExprOp::kSinh:
      return "M_sinh";
    case ExprOp::kCosh:
      return "M_cosh";
    case ExprOp::kTanh:
      return "M_tanh";
    case ExprOp::kAsinh:
      return "M_asinh";
    case ExprOp::kAcosh:
      return "M_acosh";
    case ExprOp::kAtanh:
      return "M_atanh";
    case ExprOp::kErf:
      return "M_erf";
    case ExprOp::kFmod:
      return "M_fmod";
    case ExprOp::kPow:
      return "M_pow";
    default:
      return {};
  }
}

// The operator between two operands; empty if there is none.
std::string_view InfixOf(ExprOp op) {
  switch (op) {
    case ExprOp::kAdd:
      return " + ";
    case ExprOp::kSub:
      return " - ";
    case ExprOp::kMul:
      return " * ";
    case ExprOp::kDiv:
      return " / ";
    case ExprOp::kAnd:
      return " & ";
    case ExprOp::kOr:
      return " | ";
    case ExprOp::kXor:
      return " ^ ";
    case ExprOp::kEqual:
      return " == ";
    case ExprOp::kLess:
      return " < ";
    case ExprOp::kLessEqual:
      return " <= ";
    default:
      return {};
  }
}

bool IsComparison(ExprOp op) {
  return op == ExprOp::kEqual || op == ExprOp::kLess || op == ExprOp::kLessEqual;
}

// Whether an operation that is no leaf has a statement for operands of this type.
bool IsDefined(ExprOp op, ElementType type, ElementType from) {
  switch (op) {
    case ExprOp::kSelect:
      return true;
    case ExprOp::kCast:
      return !tensor::IsComplex(from) && !tensor::IsComplex(type);
    case ExprOp::kBitcast:
      return !tensor::IsBool(type) && !tensor::IsComplex(type) && !tensor::IsComplex(from);
    case ExprOp::kRandom:
      return true;
    default:
      break;
  }
  if (IsComparison(op)) return IsNativeFloat(from) || IsNativeInteger(from) || tensor::IsBool(from);
  switch (op) {
    case ExprOp::kNot:
      return tensor::IsBool(from);
    case ExprOp::kAnd:
    case ExprOp::kOr:
    case ExprOp::kXor:
      return tensor::IsBool(from) || IsNativeInteger(from);
    case ExprOp::kMin:
    case ExprOp::kMax:
      return tensor::IsBool(from) || IsNativeInteger(from) || IsNativeFloat(from);
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kSign:
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kDiv:
    case ExprOp::kMod:
    case ExprOp::kFmod:
    case ExprOp::kPow:
      return IsNativeFloat(from) || IsNativeInteger(from);
    case ExprOp::kBitNot:
    case ExprOp::kShl:
    case ExprOp::kShr:
      return IsNativeInteger(from);
    case ExprOp::kIsNan:
      return IsNativeFloat(from);
    default:
      return IsNativeFloat(from) && !FloatFunction(op).empty();
  }
}

bool IsLeaf(ExprOp op) { return op < ExprOp::kNeg; }

std::string Hex(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

// The unsigned type in which arithmetic on an integer type wraps.
std::string_view WrappingType(ElementType type) {
  return tensor::BitWidth(type) == 64 ? "u64" : "u32";
}

// A narrow float's bits as f32, and back.
std::string Decode(Writer& writer, ElementType type, const std::string& bits) {
  if (type == ElementType::kBfloat16) return Text(writer.UseHelper("decode_bf16"), "(", bits, ")");
  if (type == ElementType::kFloat8E8M0) {
    return Text(writer.UseHelper("decode_e8m0"), "(", bits, ")");
  }
  return Text(writer.UseHelper("decode"), "(", bits, ", ", FormatOf(type), ")");
}

std::string Encode(Writer& writer, ElementType type, const std::string& value, bool saturate,
                   tensor::Rounding rounding) {
  std::string code;
  if (type == ElementType::kBfloat16) {
    code = Text(writer.UseHelper("encode_bf16"), "(", value, ")");
  } else if (type == ElementType::kFloat8E8M0) {
    code = Text(writer.UseHelper("encode_e8m0"), "(", value, ", ", saturate ? 1 : 0, ", ",
                static_cast<int>(rounding), ")");
  } else {
    const bool saturates =
        type == ElementType::kFloat4E2M1 || (type != ElementType::kFloat16 && saturate);
    code = Text(writer.UseHelper("encode"), "(", value, ", ", FormatOf(type), ", ",
                saturates ? 1 : 0, ")");
  }
  return Text("AS(", LaneType(type), ", ", code, ")");
}

// A packed integer's bits as i32 or u32.
std::string Widen(ElementType type, const std::string& bits) {
  if (tensor::IsUnsigned(type)) return Text("AS(u32, ", bits, ")");
  const int unused = 32 - tensor::BitWidth(type);
  return Text("(AS(i32, AS(u32, ", bits, ") << ", unused, ") >> ", unused, ")");
}

class ExpressionWriter {
 public:
  ExpressionWriter(Writer& writer, const program::Program& program, const program::Step& step,
                   const Scope& scope)
      : writer_(writer), program_(program), step_(step), scope_(scope) {}

  std::vector<std::string> Write(std::span<const ExprId> roots) {
    std::vector<ExprId> present;
    for (const ExprId root : roots) {
      if (root != program::kNoExpr) present.push_back(root);
    }
    for (const ExprId id : program::Reachable(program_.exprs, present)) {
      names_.emplace(id, WriteNode(program_.exprs[id]));
    }
    std::vector<std::string> names;
    for (const ExprId root : roots) {
      names.push_back(root == program::kNoExpr ? std::string() : names_.at(root));
    }
    return names;
  }

 private:
  const std::string& Name(const ExprNode& node, size_t operand) const {
    return names_.at(node.operands[operand]);
  }
  ElementType FromType(const ExprNode& node) const { return program_.exprs[node.operands[0]].type; }
  std::string Declare(const ExprNode& node, const std::string& value) {
    return writer_.Declare(LaneType(node.type), value);
  }

  std::string WriteNode(const ExprNode& node) {
    if (node.type == ElementType::kFloat64) writer_.UseFloat64();
    return IsLeaf(node.op) ? WriteLeaf(node) : Declare(node, Operation(node));
  }

  std::string WriteLeaf(const ExprNode& node) {
    const auto payload = static_cast<size_t>(node.payload);
    switch (node.op) {
      case ExprOp::kConstant:
        return Declare(node, Literal(writer_, node.type, Scalar{.u = node.payload}));
      case ExprOp::kDim:
        return writer_.UseDim(node.dim, /*is_wide=*/true);
      case ExprOp::kIndex:
        return Declare(node, Text("AS(i64, ", scope_.indices[payload], ")"));
      case ExprOp::kState:
        return scope_.state[payload];
      case ExprOp::kOther:
        return scope_.other[payload];
      case ExprOp::kRow:
        return scope_.rows[payload / 256][payload % 256];
      case ExprOp::kAccumulator:
        return scope_.accumulator;
      default:
        break;
    }
    const int read = static_cast<int>(node.payload);
    if (node.operands.empty()) {
      return Declare(node, WriteLoad(writer_, step_, read, scope_.coordinates));
    }
    std::vector<std::string> coordinates;
    for (size_t k = 0; k < node.operands.size(); ++k) coordinates.push_back(Name(node, k));
    return Declare(node, WriteLoad(writer_, step_, read, coordinates, /*is_wide=*/true));
  }

  std::string Operation(const ExprNode& node) {
    const ElementType from = FromType(node);
    switch (node.op) {
      case ExprOp::kSelect:
        return Text(Name(node, 0), " != 0 ? ", Name(node, 1), " : ", Name(node, 2));
      case ExprOp::kCast:
        return WriteCast(writer_, from, node.type, Name(node, 0), (node.payload & 1) != 0,
                         static_cast<tensor::Rounding>(node.payload >> 1));
      case ExprOp::kBitcast:
        return Bitcast(node.type, from, Name(node, 0));
      case ExprOp::kRandom:
        writer_.UseFloat64();
        return Text(writer_.UseHelper("random"), "(U64(", Hex(node.payload), "), ", Name(node, 0),
                    ")");
      default:
        break;
    }
    if (IsComparison(node.op)) {
      return Text("AS(u8, ", Name(node, 0), InfixOf(node.op), Name(node, 1), ")");
    }
    if (tensor::IsBool(from)) return BoolOperation(node);
    return IsNativeFloat(from) ? FloatOperation(node) : IntegerOperation(node);
  }

  std::string Bitcast(ElementType to, ElementType from, const std::string& value) {
    const std::string_view from_float = FloatName(from);
    const std::string bits =
        from_float.empty() ? Text("AS(u", tensor::BitWidth(from) < 8 ? 8 : tensor::BitWidth(from),
                                  ", ", value, ")")
                           : Text("BITS_", from_float, "(", value, ")");
    const std::string_view to_float = FloatName(to);
    if (!to_float.empty()) return Text("FROM_BITS_", to_float, "(", bits, ")");
    return Text("AS(", LaneType(to), ", ", bits, ")");
  }

  std::string BoolOperation(const ExprNode& node) const {
    const std::string& a = Name(node, 0);
    switch (node.op) {
      case ExprOp::kNot:
        return Text("AS(u8, ", a, " ^ 1)");
      case ExprOp::kMin:
      case ExprOp::kAnd:
        return Text("AS(u8, ", a, " & ", Name(node, 1), ")");
      case ExprOp::kMax:
      case ExprOp::kOr:
        return Text("AS(u8, ", a, " | ", Name(node, 1), ")");
      default:
        return Text("AS(u8, ", a, " ^ ", Name(node, 1), ")");
    }
  }

  std::string FloatOperation(const ExprNode& node) {
    const std::string& a = Name(node, 0);
    const std::string_view type = FloatName(FromType(node));
    switch (node.op) {
      case ExprOp::kNeg:
        return Text("-", a);
      case ExprOp::kIsNan:
        return Text("AS(u8, ", a, " != ", a, ")");
      case ExprOp::kSign:
        return Text(writer_.UseHelper("sign", type), "(", a, ")");
      case ExprOp::kMod:
        return Text(writer_.UseHelper("mod", type), "(", a, ", ", Name(node, 1), ")");
      case ExprOp::kMin:
        return Text(a, " < ", Name(node, 1), " || ", a, " != ", a, " ? ", a, " : ", Name(node, 1));
      case ExprOp::kMax:
        return Text(Name(node, 1), " < ", a, " || ", a, " != ", a, " ? ", a, " : ", Name(node, 1));
      default:
        break;
    }
    const std::string_view infix = InfixOf(node.op);
    if (!infix.empty()) return Text(a, infix, Name(node, 1));
    const std::string second = node.operands.size() > 1 ? Text(", ", Name(node, 1)) : "";
    return Text(FloatFunction(node.op), "(", a, second, ")");
  }

  std::string IntegerOperation(const ExprNode& node) {
    const ElementType type = FromType(node);
    const std::string_view name = LaneType(type);
    const std::string_view wrapping = WrappingType(type);
    const std::string& a = Name(node, 0);
    std::string negated =
        Text("AS(", name, ", AS(", wrapping, ", 0) - AS(", wrapping, ", ", a, "))");
    const auto call = [&](std::string_view function) {
      return Text(writer_.UseHelper(function, name), "(", a, ", ", Name(node, 1), ")");
    };
    switch (node.op) {
      case ExprOp::kNeg:
        return negated;
      case ExprOp::kAbs:
        return tensor::IsUnsigned(type) ? a : Text(a, " < 0 ? ", negated, " : ", a);
      case ExprOp::kSign:
        return tensor::IsUnsigned(type)
                   ? Text("AS(", name, ", ", a, " != 0 ? 1 : 0)")
                   : Text("AS(", name, ", ", a, " > 0 ? 1 : ", a, " < 0 ? -1 : 0)");
      case ExprOp::kBitNot:
        return Text("AS(", name, ", ~", a, ")");
      case ExprOp::kMin:
        return Text(a, " < ", Name(node, 1), " ? ", a, " : ", Name(node, 1));
      case ExprOp::kMax:
        return Text(Name(node, 1), " < ", a, " ? ", a, " : ", Name(node, 1));
      case ExprOp::kDiv:
        return call("div");
      case ExprOp::kMod:
        return call("mod");
      case ExprOp::kFmod:
        return call("fmod");
      case ExprOp::kPow:
        return call("pow");
      case ExprOp::kShl:
        return call("shl");
      case ExprOp::kShr:
        return call("shr");
      default:
        return Text("AS(", name, ", AS(", wrapping, ", ", a, ")", InfixOf(node.op), "AS(", wrapping,
                    ", ", Name(node, 1), "))");
    }
  }

  Writer& writer_;
  const program::Program& program_;
  const program::Step& step_;
  const Scope& scope_;
  std::unordered_map<ExprId, std::string> names_;
};

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

Status CheckType(ElementType type, const Capabilities& capabilities) {
  if (type == ElementType::kString || type == ElementType::kUndefined) {
    return Status(Code::kUnsupportedDatatype,
                  Text("Elements of type ", tensor::Name(type), " cannot be computed with."));
  }
  if (type == ElementType::kFloat64 && !capabilities.has_float64) {
    return Status(Code::kUnsupportedDatatype, "The device does not compute in float64.");
  }
  return base::Ok();
}

Status CheckExpressions(const program::ExprPool& pool, std::span<const ExprId> roots,
                        const Capabilities& capabilities) {
  std::vector<ExprId> present;
  for (const ExprId root : roots) {
    if (root != program::kNoExpr) present.push_back(root);
  }
  for (const ExprId id : program::Reachable(pool, present)) {
    const ExprNode& node = pool[id];
    ONNXIFI_RETURN_IF_ERROR(CheckType(node.type, capabilities));
    if (IsLeaf(node.op)) continue;
    const ElementType from = pool[node.operands[0]].type;
    if (!IsDefined(node.op, node.type, from)) {
      return Status(Code::kUnsupportedDatatype,
                    Text("The operation ", program::Name(node.op), " is not defined on ",
                         tensor::Name(from), "."));
    }
  }
  return base::Ok();
}

std::vector<std::string> WriteExpressions(Writer& writer, const program::Program& program,
                                          const program::Step& step, const Scope& scope,
                                          std::span<const ExprId> roots) {
  return ExpressionWriter(writer, program, step, scope).Write(roots);
}

std::string Literal(Writer& writer, ElementType type, Scalar value) {
  if (type == ElementType::kFloat32) {
    return Text("FROM_BITS_f32(", Hex(std::bit_cast<uint32_t>(static_cast<float>(value.f))), "u)");
  }
  if (type == ElementType::kFloat64) {
    writer.UseFloat64();
    return Text("FROM_BITS_f64(U64(", Hex(std::bit_cast<uint64_t>(value.f)), "))");
  }
  // A complex constant is its real part.
  if (type == ElementType::kComplex64) {
    return Text("U64(", Hex(std::bit_cast<uint32_t>(static_cast<float>(value.f))), ")");
  }
  if (type == ElementType::kComplex128) {
    return Text("MAKE_u128(U64(", Hex(std::bit_cast<uint64_t>(value.f)), "), U64(0x0))");
  }
  std::byte stored[8] = {};
  tensor::StoreScalar(type, stored, 0, value);
  uint64_t bits = 0;
  for (size_t k = 8; k-- > 0;) bits = bits << 8 | std::to_integer<uint64_t>(stored[k]);
  return Text("AS(", LaneType(type), ", U64(", Hex(bits), "))");
}

std::string WriteCast(Writer& writer, ElementType from, ElementType to, const std::string& value,
                      bool saturate, tensor::Rounding rounding) {
  if (from == to) return value;
  // What is only stored is widened first.
  if (tensor::IsFloat(from) && !IsNativeFloat(from)) {
    const std::string wide = writer.Declare("f32", Decode(writer, from, value));
    return WriteCast(writer, ElementType::kFloat32, to, wide, saturate, rounding);
  }
  if (tensor::IsPacked(from)) {
    const bool is_signed = tensor::IsSigned(from);
    const std::string wide = writer.Declare(is_signed ? "i32" : "u32", Widen(from, value));
    return WriteCast(writer, is_signed ? ElementType::kInt32 : ElementType::kUint32, to, wide,
                     saturate, rounding);
  }
  const std::string_view lane = LaneType(to);
  if (tensor::IsBool(to)) return Text("AS(u8, ", value, " != 0)");
  if (IsNativeFloat(to)) return Text("AS(", lane, ", ", value, ")");
  if (tensor::IsFloat(to)) {
    std::string narrow = value;
    if (from == ElementType::kFloat64) {
      narrow = Text(writer.UseHelper("odd_f64"), "(", value, ")");
    } else if (from != ElementType::kFloat32) {
      // Of 16 bits or fewer every integer is a float32.
      const bool is_exact = tensor::IsBool(from) || tensor::BitWidth(from) <= 16;
      if (is_exact) {
        narrow = Text("AS(f32, ", value, ")");
      } else if (tensor::IsUnsigned(from)) {
        narrow = Text(writer.UseHelper("odd_u64"), "(AS(u64, ", value, "))");
      } else {
        const std::string odd(writer.UseHelper("odd_u64"));
        const std::string wide = writer.Declare("i64", Text("AS(i64, ", value, ")"));
        narrow = Text("(", wide, " < 0 ? -", odd, "(AS(u64, 0) - AS(u64, ", wide, ")) : ", odd,
                      "(AS(u64, ", wide, ")))");
      }
    }
    return Encode(writer, to, narrow, saturate, rounding);
  }
  std::string integer = value;
  if (IsNativeFloat(from)) {
    const std::string_view function = to == ElementType::kUint64 ? "to_u64" : "to_i64";
    integer = Text(writer.UseHelper(function, FloatName(from)), "(", value, ")");
  }
  if (tensor::IsPacked(to)) {
    return Text("AS(u8, ", integer, " & ", (1 << tensor::BitWidth(to)) - 1, ")");
  }
  return Text("AS(", lane, ", ", integer, ")");
}

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

void WriteStore(Writer& writer, const program::Step& step, int write,
                std::span<const std::string> coordinates, const std::string& value) {
  const program::View& view = step.writes[static_cast<size_t>(write)];
  const std::string buffer = writer.UseBuffer(/*is_write=*/true, write, view.type);
  const size_t axes = view.strides.empty() ? 0 : coordinates.size();
  const std::string index =
      writer.Declare("idx", WriteSum(writer.Use({Number::Kind::kWriteOffset, write, 0, 0, {}}),
                                     axes, coordinates, /*is_wide=*/false, [&](int axis) {
                                       return writer.UseStride(/*is_write=*/true, write, axis,
                                                               view.strides.size());
                                     }));
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

// SPDX-License-Identifier: Apache-2.0
//
// Expression: one constant variable per node, in ascending order of ids, which is an evaluation
// order. What an operation means is the reference's (reference/operation.cc); what it looks like is
// here.

#include "backends/core/codegen/expression.h"

#include <unordered_map>
#include <utility>

#include "backends/core/program/expr.h"

namespace onnxifi::codegen {
namespace {

using base::Code;
using base::Status;
using program::ExprId;
using program::ExprNode;
using program::ExprOp;
using tensor::ElementType;
using tensor::Scalar;

// The function of one or two float arguments that an operation is; empty if it is none.
std::string_view FloatFunction(ExprOp op) {
  switch (op) {
#define ONNXIFI_FUNCTION(id, name, function, text, engine, units) \
  case ExprOp::id:                                                \
    return "M_" text;
#define ONNXIFI_BINARY_FUNCTION(id, name, function, text, units) \
  case ExprOp::id:                                               \
    return "M_" text;
#include "backends/core/program/scalar_operations.def"
    default:
      return {};
  }
}

// The operator between two operands; empty if there is none.
std::string_view InfixOf(ExprOp op) {
  switch (op) {
#define ONNXIFI_INFIX(id, name, token, engine, units) \
  case ExprOp::id:                                    \
    return " " #token " ";
#define ONNXIFI_BITWISE(id, name, token, engine) \
  case ExprOp::id:                               \
    return " " #token " ";
#define ONNXIFI_COMPARISON(id, name, token) \
  case ExprOp::id:                          \
    return " " #token " ";
#include "backends/core/program/scalar_operations.def"
    default:
      return {};
  }
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
  if (program::IsComparison(op))
    return IsNativeFloat(from) || IsNativeInteger(from) || tensor::IsBool(from);
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

// The unsigned type in which arithmetic on an integer type wraps.
std::string_view WrappingType(ElementType type) {
  return tensor::BitWidth(type) == 64 ? "u64" : "u32";
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
    return program::IsLeaf(node.op) ? WriteLeaf(node) : Declare(node, Operation(node));
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
      const auto loaded = scope_.loaded.find(read);
      return Declare(node, loaded != scope_.loaded.end()
                               ? loaded->second
                               : WriteLoad(writer_, step_, read, scope_.coordinates));
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
        return Text(writer_.UseHelper("random"), "(", Bits64(node.payload), ", ", Name(node, 0),
                    ")");
      default:
        break;
    }
    if (program::IsComparison(node.op)) {
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
    if (program::IsLeaf(node.op)) continue;
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

}  // namespace onnxifi::codegen

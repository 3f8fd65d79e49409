// SPDX-License-Identifier: Apache-2.0
//
// Cast, CastLike, BitCast. Cast-1 names the target type in words. The rules of saturation and
// rounding are tensor::CastScalar's; strings are read and written by the host.

#include <algorithm>
#include <cctype>

#include "backends/core/ops/host_step.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

Status UnsupportedTarget(const Lowering& lowering, std::string_view name) {
  return Status(Code::kUnsupportedDatatype, lowering.node().op_type + ": Target element type " +
                                                std::string(name) + " is not supported.");
}

// Attribute `to`. Before opset 6 it is the name of the type in TensorProto.DataType.
Result<ElementType> TargetType(const Lowering& lowering) {
  if (lowering.version() >= 6) {
    const int64_t number = lowering.Int("to", 0);
    if (std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number)) return *type;
    return lowering.InvalidModel("Attribute to (" + std::to_string(number) +
                                 ") is not the number of an element type.");
  }
  const std::string spelled = lowering.String("to", "");
  std::string name = spelled;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (int number = 1; number < tensor::kElementTypeCount; ++number) {
    const std::optional<ElementType> type = tensor::ElementTypeFromOnnx(number);
    if (type && (tensor::Name(*type) == name || (name == "float" && number == 1) ||
                 (name == "double" && *type == ElementType::kFloat64))) {
      return *type;
    }
  }
  return lowering.InvalidModel("Attribute to ('" + spelled + "') does not name an element type.");
}

Result<tensor::Rounding> RoundMode(const Lowering& lowering) {
  const std::string mode = lowering.String("round_mode", "up");
  if (mode == "up") return tensor::Rounding::kUp;
  if (mode == "down") return tensor::Rounding::kDown;
  if (mode == "nearest") return tensor::Rounding::kNearest;
  return lowering.InvalidModel("Rounding mode '" + mode +
                               "' is not one of 'up', 'down' and 'nearest'.");
}

bool IsConvertible(ElementType type) {
  return type != ElementType::kString && !tensor::IsComplex(type);
}

Status LowerTextConversion(Lowering& lowering, ElementType to) {
  const Operand& x = lowering.In(0);
  if (to == x.type()) {
    lowering.Set(0, x);
    return base::Ok();
  }
  const bool is_to_text = to == ElementType::kString;
  const ElementType number = is_to_text ? x.type() : to;
  if (!IsConvertible(number)) {
    return is_to_text ? lowering.UnsupportedType(0) : UnsupportedTarget(lowering, Name(to));
  }
  HostStep step(lowering, is_to_text ? program::HostFunction(program::FormatNumbers())
                                     : program::HostFunction(program::ParseNumbers{to}));
  step.Read(x);
  lowering.Set(0, step.WriteTensor(to, {x.shape.begin(), x.shape.end()}));
  step.Emit();
  return base::Ok();
}

Status LowerConversion(Lowering& lowering, ElementType to) {
  const Operand& x = lowering.In(0);
  if (to == ElementType::kString || x.type() == ElementType::kString) {
    return LowerTextConversion(lowering, to);
  }
  if (!IsConvertible(x.type())) return lowering.UnsupportedType(0);
  if (!IsConvertible(to)) return UnsupportedTarget(lowering, Name(to));
  ONNXIFI_ASSIGN_OR_RETURN(tensor::Rounding mode, RoundMode(lowering));
  if (to != ElementType::kFloat8E8M0) mode = tensor::Rounding::kNearestEven;
  const bool saturate = lowering.Int("saturate", 1) != 0;

  if (to == x.type()) {
    lowering.Set(0, x);
    return base::Ok();
  }
  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(Cast(map.Read(x), to, saturate, mode), to));
  return base::Ok();
}

Status LowerCast(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_ASSIGN_OR_RETURN(ElementType to, TargetType(lowering));
  return LowerConversion(lowering, to);
}

Status LowerCastLike(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(2));
  lowering.TakeAnyRank(1);
  return LowerConversion(lowering, lowering.In(1).type());
}

Status LowerBitCast(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(1));
  ONNXIFI_ASSIGN_OR_RETURN(ElementType to, TargetType(lowering));
  const Operand& x = lowering.In(0);
  if (!IsConvertible(x.type())) return lowering.UnsupportedType(0);
  if (!IsConvertible(to)) return UnsupportedTarget(lowering, Name(to));
  if (tensor::BitWidth(x.type()) != tensor::BitWidth(to)) {
    return lowering.InvalidModel("Width of the input's type " + std::string(Name(x.type())) + " (" +
                                 std::to_string(tensor::BitWidth(x.type())) +
                                 " bits) differs from that of " + std::string(Name(to)) + " (" +
                                 std::to_string(tensor::BitWidth(to)) + " bits).");
  }

  StepBuilder map(lowering, x.shape);
  lowering.Set(0, map.WriteMap(Bitcast(map.Read(x), to), to));
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"BitCast", 26, LowerBitCast},
    {"Cast", 28, LowerCast, "", InputKinds::kStrings},
    {"CastLike", 25, LowerCastLike, "", InputKinds::kStrings},
};

}  // namespace

std::span<const Operator> CastOperators() { return kOperators; }

}  // namespace onnxifi::ops

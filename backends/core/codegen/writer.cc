// SPDX-License-Identifier: Apache-2.0
//
// Writer: numbers become variables at the top of the kernel, each once.

#include "backends/core/codegen/writer.h"

#include <algorithm>
#include <charconv>

#include "backends/core/codegen/helpers.h"

namespace onnxifi::codegen {

using tensor::ElementType;

std::string_view LaneType(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "f32";
    case ElementType::kFloat64:
      return "f64";
    case ElementType::kInt8:
      return "i8";
    case ElementType::kInt16:
      return "i16";
    case ElementType::kInt32:
      return "i32";
    case ElementType::kInt64:
      return "i64";
    case ElementType::kUint32:
      return "u32";
    case ElementType::kUint64:
    case ElementType::kComplex64:
      return "u64";
    case ElementType::kComplex128:
      return "u128";
    case ElementType::kUint16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return "u16";
    default:
      return "u8";
  }
}

std::string_view FloatName(ElementType type) {
  if (type == ElementType::kFloat32) return "f32";
  if (type == ElementType::kFloat64) return "f64";
  return {};
}

std::string Writer::Declare(std::string_view type, const std::string& value) {
  std::string name = NewName("v");
  Line("const ", type, " ", name, " = ", value, ";");
  return name;
}

std::string Writer::Use(Number number, bool is_wide) {
  const auto found = std::find(numbers_.begin(), numbers_.end(), number);
  const auto position = found - numbers_.begin();
  if (found == numbers_.end()) numbers_.push_back(number);
  return Text(is_wide ? "w" : "n", position);
}

std::string Writer::DeclareQuotient(const std::string& position, const std::string& divisor) {
  size_t number = 0;
  const char* const end = divisor.data() + divisor.size();
  const bool is_number =
      divisor.starts_with('n') && std::from_chars(divisor.data() + 1, end, number).ptr == end;
  if (!form_.is_narrow || !is_number) {
    return Declare("idx", Text("(", position, ") / ", divisor));
  }
  const auto [found, is_new] = divisors_.try_emplace(number, numbers_.size());
  if (is_new) {
    for (const Number::Form form : {Number::Form::kMultiplier, Number::Form::kShift}) {
      numbers_.push_back(numbers_[number]);
      numbers_.back().form = form;
    }
  }
  return Declare("idx", Text("AS(idx, MUL_HIGH(AS(u32, ", position, ") * 2u, AS(u32, n",
                             found->second, ")) >> n", found->second + 1, ")"));
}

Writer::Division Writer::DeclareDivision(const std::string& position, const std::string& divisor) {
  Division division;
  division.quotient = DeclareQuotient(position, divisor);
  division.rest = Declare("idx", Text(position, " - ", division.quotient, " * ", divisor));
  return division;
}

std::string Writer::UseStride(bool is_write, int operand, int axis, size_t rank, bool is_wide) {
  const std::vector<LastStep>& steps = is_write ? form_.write_steps : form_.read_steps;
  const int last = form_.is_over_domain && !is_wide ? form_.rank : static_cast<int>(rank);
  if (axis == last - 1) {
    const LastStep step = steps[static_cast<size_t>(operand)];
    if (step == LastStep::kNone) return "0";
    if (step == LastStep::kOne) return "1";
  }
  const Number::Kind kind = is_write ? Number::Kind::kWriteStride : Number::Kind::kReadStride;
  return Use({kind, operand, axis, 0, {}}, is_wide);
}

std::string Writer::UseDim(const tensor::Dim& dim, bool is_wide) {
  // Always a number of its own: whether two of them are equal must not show in the source.
  numbers_.push_back({.kind = Number::Kind::kDim, .dim = dim});
  return Text(is_wide ? "w" : "n", numbers_.size() - 1);
}

std::string Writer::UseBuffer(bool is_write, int operand, ElementType type) {
  std::string name = Text(is_write ? "out" : "in", operand);
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) return name;
  }
  Argument argument{.is_write = is_write,
                    .operand = operand,
                    .unit_bytes = std::max(1, tensor::BitWidth(type) / 8)};
  std::string element(LaneType(type));
  if (is_write && tensor::IsPacked(type)) {
    // Neighbours in a word are written by different items, each with atomic operations.
    argument.unit_bytes = 4;
    element = "u32";
  }
  if (type == ElementType::kFloat64) UseFloat64();
  arguments_.push_back(argument);
  parameters_.push_back({name, std::move(element), is_write});
  return name;
}

std::string Writer::UseScratch(bool is_write, int number, std::string_view type) {
  std::string name = Text("scratch", number);
  for (const Parameter& parameter : parameters_) {
    if (parameter.name == name) return name;
  }
  if (type == "f64") UseFloat64();
  arguments_.push_back({.is_write = is_write,
                        .is_scratch = true,
                        .operand = number,
                        .unit_bytes = type.ends_with("64")   ? 8
                                      : type.ends_with("16") ? 2
                                      : type.ends_with("8")  ? 1
                                                             : 4});
  parameters_.push_back({name, std::string(type), is_write, /*is_alone=*/true});
  return name;
}

std::string Writer::UseHelper(std::string_view name, std::string_view type) {
  std::string function = type.empty() ? std::string(name) : Text(name, "_", type);
  if (helpers_done_.insert(function).second) {
    const Helper helper = FindHelper(name, type);
    for (const auto& [needed, its_type] : helper.needs) UseHelper(needed, its_type);
    helpers_ += helper.text;
    if (type == "f64") UseFloat64();
  }
  return function;
}

KernelText Writer::Finish(const Dialect& dialect, Launch launch, bool is_narrow,
                          std::string_view library) {
  KernelText kernel;
  KernelParts parts;
  parts.family = family_;
  parts.uses_float64 = uses_float64_;
  parts.is_narrow = is_narrow;
  parts.library = library;
  parts.helpers = std::move(helpers_);
  parts.parameters = std::move(parameters_);
  parts.shared = std::move(shared_);
  parts.group_size = launch.group_size;
  parts.number_count = static_cast<int>(numbers_.size());
  for (size_t k = 0; k < numbers_.size(); ++k) {
    parts.body += Text("  const i64 w", k, " = NUMBER(", k, ");\n");
    parts.body += Text("  const idx n", k, " = AS(idx, w", k, ");\n");
  }
  parts.body += body_;
  kernel.source = dialect.Assemble(parts);
  kernel.arguments = std::move(arguments_);
  kernel.numbers = std::move(numbers_);
  kernel.launch = launch;
  return kernel;
}

}  // namespace onnxifi::codegen

// SPDX-License-Identifier: Apache-2.0
//
// Writer: the text of one kernel as it grows: statements, the numbers and buffers that they turn
// out to need, the helper functions that they call.

#ifndef ONNXIFI_BACKENDS_CORE_CODEGEN_WRITER_H_
#define ONNXIFI_BACKENDS_CORE_CODEGEN_WRITER_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/core/codegen/dialect.h"
#include "backends/core/codegen/kernel_text.h"
#include "backends/core/tensor/element_type.h"

namespace onnxifi::codegen {

// Joins strings and numbers.
template <typename... Pieces>
std::string Text(const Pieces&... pieces) {
  std::string text;
  const auto add = [&text](const auto& part) {
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(pieces), ...);
  return text;
}

// The neutral name of the type in which an element is held while it is computed with: floats and
// integers of 8 bits and more by themselves, bool as u8 (0 or 1), every narrower float and packed
// integer as its bits in an unsigned integer, complex numbers as their bits.
std::string_view LaneType(tensor::ElementType type);
// "f32" or "f64" for the two, else empty.
std::string_view FloatName(tensor::ElementType type);

class Writer {
 public:
  // `form` outlives it. `family`: of the step (program::FamilyName).
  explicit Writer(const LoopForm& form, std::string_view family = {})
      : form_(form), family_(family) {}

  // One statement or line, at the depth of the blocks around it.
  template <typename... Pieces>
  void Line(const Pieces&... pieces) {
    body_.append(2 * depth_, ' ');
    body_ += Text(pieces...);
    body_ += '\n';
  }
  // "for (...) {" or "if (...) {" and its end.
  template <typename... Pieces>
  void Open(const Pieces&... pieces) {
    Line(pieces..., " {");
    ++depth_;
  }
  void Close() {
    --depth_;
    Line("}");
  }
  // A name that no other variable of the kernel has.
  std::string NewName(std::string_view prefix) { return Text(prefix, next_name_++); }
  // Declares a variable and gives its name.
  std::string Declare(std::string_view type, const std::string& value);

  // The name of a number, of type idx; of type i64 with `is_wide`.
  std::string Use(Number number, bool is_wide = false);
  std::string UseGiven(int number) {
    return Use({.kind = Number::Kind::kGiven, .operand = number});
  }
  std::string UseDim(const tensor::Dim& dim, bool is_wide = false);
  // Declares `position` / `divisor`, of type idx. Without a division where the divisor is a number
  // and the type has 32 bits; positions are not negative and below 2^31 then.
  std::string DeclareQuotient(const std::string& position, const std::string& divisor);
  // The same and what is left.
  struct Division {
    std::string quotient, rest;
  };
  Division DeclareDivision(const std::string& position, const std::string& divisor);
  // The stride of a view, which has `rank` axes in the program, along `axis`: "0" or "1" where the
  // form of the loops says so.
  std::string UseStride(bool is_write, int operand, int axis, size_t rank, bool is_wide = false);
  // The name of the parameter for a read's or write's buffer of elements of `type`.
  std::string UseBuffer(bool is_write, int operand, tensor::ElementType type);
  // The name of the parameter for working memory `number`, of elements of a neutral type.
  std::string UseScratch(bool is_write, int number, std::string_view type);
  // The name of a function, defined from its text once; see helpers.h.
  std::string UseHelper(std::string_view name, std::string_view type = {});
  void UseFloat64() { uses_float64_ = true; }
  void Share(std::string array) { shared_.push_back(std::move(array)); }

  // Functions that the device brings are in `library`.
  KernelText Finish(const Dialect& dialect, Launch launch, bool is_narrow,
                    std::string_view library = {});

 private:
  const LoopForm& form_;
  const std::string_view family_;
  size_t depth_ = 1;
  int next_name_ = 0;
  std::string body_;
  std::vector<Number> numbers_;
  std::map<size_t, size_t> divisors_;  // by place in numbers_: where its other forms are
  std::vector<Argument> arguments_;
  std::vector<Parameter> parameters_;
  std::set<std::string> helpers_done_;
  std::string helpers_;
  std::vector<std::string> shared_;
  bool uses_float64_ = false;
};

}  // namespace onnxifi::codegen

#endif  // ONNXIFI_BACKENDS_CORE_CODEGEN_WRITER_H_

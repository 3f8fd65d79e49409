// SPDX-License-Identifier: Apache-2.0
//
// Step: the names of the families.

#include "backends/core/program/step.h"

#include "backends/core/program/program.h"

namespace onnxifi::program {

std::string_view FamilyName(const Step& step) {
  struct Visitor {
    std::string_view operator()(const Map&) const { return "Map"; }
    std::string_view operator()(const Reduce&) const { return "Reduce"; }
    std::string_view operator()(const Row&) const { return "Row"; }
    std::string_view operator()(const Scan&) const { return "Scan"; }
    std::string_view operator()(const Contract&) const { return "Contract"; }
    std::string_view operator()(const Window&) const { return "Window"; }
    std::string_view operator()(const Index&) const { return "Index"; }
    std::string_view operator()(const Cut&) const { return "Cut"; }
    std::string_view operator()(const Control&) const { return "Control"; }
  };
  return std::visit(Visitor(), step.body);
}

}  // namespace onnxifi::program

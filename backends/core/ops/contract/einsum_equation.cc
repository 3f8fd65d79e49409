// SPDX-License-Identifier: Apache-2.0
//
// EinsumEquation: terms between commas, and one behind the arrow.

#include "backends/core/ops/contract/einsum_equation.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace onnxifi::ops {

using base::Result;

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels Joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

namespace {

// One term such as "b...ij".
Result<Labels> ParseTerm(Lowering& lowering, std::string_view term) {
  Labels labels;
  for (size_t k = 0; k < term.size(); ++k) {
    const char c = term[k];
    if (c == ' ') continue;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(k, 3) == "..." &&
               std::find(labels.begin(), labels.end(), kEllipsis) == labels.end()) {
      labels.push_back(kEllipsis);
      k += 2;
    } else {
      return lowering.InvalidModel("The equation's term '" + std::string(term) +
                                   "' is neither letters nor one '...'.");
    }
  }
  return labels;
}

}  // namespace

Result<EinsumEquation> ParseEquation(Lowering& lowering, std::string_view text) {
  EinsumEquation equation;
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const size_t comma = left.find(',');
    ONNXIFI_ASSIGN_OR_RETURN(Labels labels, ParseTerm(lowering, left.substr(0, comma)));
    equation.inputs.push_back(std::move(labels));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (arrow != std::string_view::npos) {
    ONNXIFI_ASSIGN_OR_RETURN(equation.output, ParseTerm(lowering, text.substr(arrow + 2)));
  }
  return equation;
}

Labels ImplicitOutput(const std::vector<Labels>& inputs) {
  std::map<Label, int> uses;
  for (const Labels& labels : inputs) {
    for (Label label : labels) ++uses[label];
  }
  Labels output;
  for (const auto& [label, count] : uses) {
    if (label < 0 || count == 1) output.push_back(label);
  }
  return output;
}

}  // namespace onnxifi::ops

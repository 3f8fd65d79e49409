// SPDX-License-Identifier: Apache-2.0
//
// Einsum: the equation gives every operand's axes letters. Operands are joined in pairs, each time
// by one Contract over the letters that no other operand and not the result needs; diagonals and
// broadcasting are views.

#include <algorithm>
#include <limits>
#include <set>

#include "backends/core/ops/contract/einsum_equation.h"
#include "backends/core/ops/contract/term_product.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// Names the axes that "..." covers, and takes diagonals where a letter is repeated.
Result<Term> MakeTerm(Lowering& lowering, const Operand& operand, const Labels& given) {
  const int named = static_cast<int>(
      std::count_if(given.begin(), given.end(), [](Label label) { return label != kEllipsis; }));
  const int covered = operand.rank() - named;
  const bool has_ellipsis = named != static_cast<int>(given.size());
  if (covered < 0 || (covered > 0 && !has_ellipsis)) {
    return lowering.InvalidModel("A term of the equation names " + std::to_string(named) +
                                 " axes and its operand has " + std::to_string(operand.rank()) +
                                 ".");
  }
  Labels labels;
  for (Label label : given) {
    if (label != kEllipsis) labels.push_back(label);
    for (int k = 0; label == kEllipsis && k < covered; ++k) labels.push_back(k - covered);
  }
  Term term{operand, labels};
  for (int axis = operand.rank() - 1; axis >= 0; --axis) {
    const auto first = std::find(term.labels.begin(), term.labels.end(), term.labels[axis]);
    const int earlier = static_cast<int>(first - term.labels.begin());
    if (earlier == axis) continue;
    ONNXIFI_RETURN_IF_ERROR(lowering.RequireEqual(
        term.operand.shape[earlier], term.operand.shape[axis], "Extents of a repeated letter"));
    // Walking along the diagonal moves along both axes.
    View& view = term.operand.view;
    view.strides[earlier] = view.strides[earlier] + view.strides[axis];
    for (program::Guard& guard : view.guards) {
      guard.coefficients[earlier] = guard.coefficients[earlier] + guard.coefficients[axis];
    }
    term.operand = program::RemoveAxis(term.operand, axis);
    term.labels.erase(term.labels.begin() + axis);
  }
  return term;
}

// The extent of each label; operands of extent 1 are stretched.
Result<LabelExtents> UnifyExtents(Lowering& lowering, const std::vector<Term>& terms) {
  LabelExtents extents;
  for (const Term& term : terms) {
    for (int axis = 0; axis < term.operand.rank(); ++axis) {
      const auto [found, is_new] = extents.emplace(term.labels[axis], term.operand.shape[axis]);
      if (is_new) continue;
      ONNXIFI_ASSIGN_OR_RETURN(Shape one,
                               lowering.Broadcast({found->second}, {term.operand.shape[axis]}));
      found->second = one.front();
    }
  }
  return extents;
}

// The labels of a pair of terms that the result or other terms need; where there are no others, the
// result's, in its order.
Labels KeptOf(const std::vector<Term>& terms, size_t first, size_t second, const Labels& output) {
  if (terms.size() == 2) return output;
  Labels kept;
  for (Label label : Joined({&terms[first].labels, &terms[second].labels})) {
    bool is_needed = Has(output, label);
    for (size_t other = 0; other < terms.size(); ++other) {
      is_needed =
          is_needed || (other != first && other != second && Has(terms[other].labels, label));
    }
    if (is_needed && !Has(kept, label)) kept.push_back(label);
  }
  return kept;
}

// The pair of terms whose product has the fewest axes more than they; of these, the fewest axes.
std::pair<size_t, size_t> ChoosePair(const std::vector<Term>& terms, const Labels& output) {
  std::pair<size_t, size_t> best = {0, 1};
  std::pair<int, int> least = {std::numeric_limits<int>::max(), 0};
  for (size_t first = 0; first < terms.size(); ++first) {
    for (size_t second = first + 1; second < terms.size(); ++second) {
      const auto axes = static_cast<int>(KeptOf(terms, first, second, output).size());
      const auto given =
          static_cast<int>(std::max(terms[first].labels.size(), terms[second].labels.size()));
      const std::pair<int, int> cost = {axes - given, axes};
      if (cost >= least) continue;
      least = cost;
      best = {first, second};
    }
  }
  return best;
}

Status LowerEinsum(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(std::max(1, lowering.input_count())));
  const ElementType type = lowering.In(0).type();
  if (!tensor::IsFloat(type) && !tensor::IsInteger(type)) return lowering.UnsupportedType(0);
  const std::string text = lowering.String("equation", "");
  ONNXIFI_ASSIGN_OR_RETURN(const EinsumEquation equation, ParseEquation(lowering, text));
  if (static_cast<int>(equation.inputs.size()) != lowering.input_count()) {
    return lowering.InvalidModel("The equation '" + text + "' has " +
                                 std::to_string(equation.inputs.size()) + " terms for " +
                                 std::to_string(lowering.input_count()) + " operands.");
  }
  std::vector<Term> terms;
  std::vector<Labels> named;
  for (int input = 0; input < lowering.input_count(); ++input) {
    if (lowering.In(input).type() != type) return lowering.UnsupportedType(input);
    ONNXIFI_ASSIGN_OR_RETURN(Term term,
                             MakeTerm(lowering, lowering.In(input), equation.inputs[input]));
    Labels every = term.labels;
    // A repeated letter does not occur once, although its diagonal has one axis.
    for (Label label : term.labels) {
      const Labels& given = equation.inputs[input];
      if (std::count(given.begin(), given.end(), label) > 1) every.push_back(label);
    }
    named.push_back(std::move(every));
    terms.push_back(std::move(term));
  }
  ONNXIFI_ASSIGN_OR_RETURN(const LabelExtents extents, UnifyExtents(lowering, terms));

  Labels output;
  if (!equation.output) {
    output = ImplicitOutput(named);
  } else {
    for (Label label : *equation.output) {
      if (label != kEllipsis) {
        output.push_back(label);
        continue;
      }
      for (const auto& [broadcast, extent] : extents) {
        if (broadcast < 0) output.push_back(broadcast);
      }
    }
  }
  for (size_t k = 0; k < output.size(); ++k) {
    if (!extents.contains(output[k]) ||
        std::find(output.begin(), output.begin() + k, output[k]) != output.begin() + k) {
      return lowering.InvalidModel("The result of the equation '" + text +
                                   "' has a letter twice, or one that no operand has.");
    }
  }

  const bool is_product = terms.size() > 1;
  while (terms.size() > 1) {
    const auto [first, second] = ChoosePair(terms, output);
    const Labels kept = KeptOf(terms, first, second, output);
    terms[first] = Multiply(lowering, terms[first], terms[second], kept, extents, type);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
  }
  Term product = terms.front();
  if (!is_product) {
    const bool sums = output.size() != product.labels.size();
    if (sums) {
      product = SumOut(lowering, product, output, extents, type);
    } else {
      product = {{ViewOver(product, output, extents), ShapeOf(output, extents)}, output};
    }
  }
  lowering.Set(0, product.operand);
  return base::Ok();
}

constexpr Operator kOperators[] = {
    {"Einsum", 28, LowerEinsum},
};

}  // namespace

std::span<const Operator> EinsumOperators() { return kOperators; }

}  // namespace onnxifi::ops

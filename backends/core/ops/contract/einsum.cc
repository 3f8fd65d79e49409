// SPDX-License-Identifier: Apache-2.0
//
// Einsum: the equation gives every operand's axes letters. Operands are joined from left to right,
// each time by one Contract over the letters that no later operand and not the result needs;
// diagonals and broadcasting are views.

#include <algorithm>
#include <map>
#include <set>

#include "backends/core/ops/contract/product.h"
#include "backends/core/ops/registry.h"

namespace onnxifi::ops {
namespace {

// A letter, or the place of an axis covered by "..." counted from the last: -1, -2, ...
using Label = int;
using Labels = std::vector<Label>;

constexpr Label kEllipsis = 0;

struct Equation {
  std::vector<Labels> inputs;  // with kEllipsis where "..." stands
  std::optional<Labels> output;
};

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

Result<Equation> ParseEquation(Lowering& lowering, std::string_view text) {
  Equation equation;
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

// The result's axes when no arrow names them: the broadcast ones, then the letters that occur once,
// in order.
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

// An operand with distinct labels.
struct Term {
  Operand operand;
  Labels labels;
};

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

using Extents = std::map<Label, Dim>;

// The extent of each label; operands of extent 1 are stretched.
Result<Extents> UnifyExtents(Lowering& lowering, const std::vector<Term>& terms) {
  Extents extents;
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

Shape ShapeOf(const Labels& labels, const Extents& extents) {
  Shape shape;
  for (Label label : labels) shape.push_back(extents.at(label));
  return shape;
}

// The term's view over `labels`, with stride 0 where it lacks one.
View ViewOver(const Term& term, const Labels& labels, const Extents& extents) {
  std::vector<int> present;
  for (Label label : labels) {
    const auto found = std::find(term.labels.begin(), term.labels.end(), label);
    if (found != term.labels.end()) {
      present.push_back(static_cast<int>(found - term.labels.begin()));
    }
  }
  Operand operand = program::Permute(term.operand, present);
  for (size_t k = 0; k < labels.size(); ++k) {
    if (std::find(term.labels.begin(), term.labels.end(), labels[k]) == term.labels.end()) {
      operand = program::InsertAxis(operand, static_cast<int>(k));
    }
  }
  return program::BroadcastTo(operand, ShapeOf(labels, extents));
}

// The type in which products are summed up. Narrow integers wrap around alike in 32 bits.
ElementType AccumulatorOf(ElementType type) {
  if (!tensor::IsInteger(type) || tensor::BitWidth(type) >= 32) return tensor::ArithmeticType(type);
  return ElementType::kInt32;
}

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels Joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// The sum over the labels of one term that are not kept.
Term SumOut(Lowering& lowering, const Term& term, const Labels& kept, const Extents& extents,
            ElementType type) {
  Labels summed;
  for (Label label : term.labels) {
    if (!Has(kept, label)) summed.push_back(label);
  }
  const Labels all = Joined({&kept, &summed});
  StepBuilder step(lowering, ShapeOf(all, extents));
  const ElementType accumulator = AccumulatorOf(type);
  const Expr element = Cast(step.ReadView(ViewOver(term, all, extents)), accumulator);
  const Expr sum = State(step.exprs(), accumulator, 0);
  program::Reduce reduce;
  reduce.axes = static_cast<int>(summed.size());
  reduce.reduction.states = {{accumulator, Like(element, 0).id(), (sum + element).id(),
                              (sum + Other(step.exprs(), accumulator, 0)).id()}};
  reduce.roots = {Cast(sum, type).id()};
  const Operand out = lowering.Temporary(type, ShapeOf(kept, extents));
  step.Finish(std::move(reduce), {out.view});
  return {out, kept};
}

// The product of two terms over the labels of either that are kept, summed over the others. An
// element-wise product where none is summed.
Term Multiply(Lowering& lowering, const Term& a, const Term& b, const Labels& kept,
              const Extents& extents, ElementType type) {
  Labels batch, m, n, k;
  for (Label label : a.labels) {
    if (!Has(kept, label)) {
      k.push_back(label);
    } else {
      (Has(b.labels, label) ? batch : m).push_back(label);
    }
  }
  for (Label label : b.labels) {
    if (Has(a.labels, label)) continue;
    (Has(kept, label) ? n : k).push_back(label);
  }
  const Labels out_labels = Joined({&batch, &m, &n});
  const ElementType accumulator = AccumulatorOf(type);
  const Operand out = lowering.Temporary(type, ShapeOf(kept, extents));
  Term result{out, kept};
  const View write = ViewOver(result, out_labels, extents);
  StepBuilder step(lowering, ShapeOf(out_labels, extents));
  if (k.empty()) {
    const Expr x = Cast(step.ReadView(ViewOver(a, out_labels, extents)), accumulator);
    const Expr y = Cast(step.ReadView(ViewOver(b, out_labels, extents)), accumulator);
    step.WriteMapTo({{write, step.domain()}}, {Cast(x * y, type)});
    return result;
  }
  const auto factor = [&](const Term& term, const Labels& labels) {
    return Factor{Operand{ViewOver(term, labels, extents), ShapeOf(labels, extents)}};
  };
  program::Contract contract;
  contract.batch_axes = static_cast<int>(batch.size());
  contract.m_axes = static_cast<int>(m.size());
  contract.n_axes = static_cast<int>(n.size());
  contract.inner = ShapeOf(k, extents);
  const Expr sum = SumOfProducts(step, factor(a, Joined({&batch, &m, &k})),
                                 factor(b, Joined({&batch, &k, &n})), accumulator, contract);
  contract.roots = {Cast(sum, type).id()};
  step.Finish(std::move(contract), {write});
  return result;
}

Status LowerEinsum(Lowering& lowering) {
  ONNXIFI_RETURN_IF_ERROR(lowering.NeedInputs(std::max(1, lowering.input_count())));
  const ElementType type = lowering.In(0).type();
  if (!tensor::IsFloat(type) && !tensor::IsInteger(type)) return lowering.UnsupportedType(0);
  const std::string text = lowering.String("equation", "");
  ONNXIFI_ASSIGN_OR_RETURN(const Equation equation, ParseEquation(lowering, text));
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
  ONNXIFI_ASSIGN_OR_RETURN(const Extents extents, UnifyExtents(lowering, terms));

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

  Term product = terms.front();
  for (size_t next = 1; next < terms.size(); ++next) {
    const bool is_last = next + 1 == terms.size();
    Labels kept = is_last ? output : Labels();
    for (Label label : Joined({&product.labels, &terms[next].labels})) {
      bool is_needed = Has(output, label);
      for (size_t later = next + 1; later < terms.size(); ++later) {
        is_needed = is_needed || Has(terms[later].labels, label);
      }
      if (is_needed && !Has(kept, label)) kept.push_back(label);
    }
    product = Multiply(lowering, product, terms[next], kept, extents, type);
  }
  if (terms.size() == 1) {
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

// SPDX-License-Identifier: Apache-2.0
//
// Einsum: the equation gives every operand's axes letters. Operands are joined in pairs, each time
// by one Contract over the letters that no other operand and not the result needs; diagonals and
// broadcasting are views. Kernels of products take one summed axis: where several do not step
// through an operand as one, the operand is brought into order.

#include <algorithm>
#include <limits>
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

Operand Over(const Term& term, const Labels& labels, const Extents& extents) {
  return {ViewOver(term, labels, extents), ShapeOf(labels, extents)};
}

// Whether the `count` axes from `first` on step through the operand as one axis.
bool StepAsOne(const Operand& operand, size_t first, size_t count) {
  if (!operand.view.guards.empty()) return false;
  std::optional<Dim> expected;
  for (size_t axis = first + count; axis-- > first;) {
    if (operand.shape[axis] == Dim(1)) continue;
    const Dim& stride = operand.view.strides[axis];
    if (expected && !(stride == *expected)) return false;
    expected = stride * operand.shape[axis];
  }
  return true;
}

// The factors of a product that is summed over `inner`, in an order of these labels for which the
// least has to be copied.
struct Factors {
  Operand a, b;
  Labels inner;
};
Factors MakeFactors(Lowering& lowering, const Term& a, const Term& b, const Labels& batch,
                    const Labels& m, const Labels& n, const Labels& inner, const Extents& extents) {
  // Elements to copy in a run: constants are copied once, while the graph is loaded.
  const auto count_copied = [&](const Operand& operand) {
    const program::Buffer& buffer = lowering.program().buffers[operand.view.buffer];
    if (buffer.kind == program::Buffer::Kind::kConstant) return int64_t{0};
    const Dim count = tensor::Product(operand.shape);
    return count.is_constant() ? count.constant() : int64_t{1} << 40;
  };
  Labels as_in_b;
  for (Label label : b.labels) {
    if (Has(inner, label)) as_in_b.push_back(label);
  }
  Factors best;
  bool copies_a = false, copies_b = false;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Labels& order : {inner, as_in_b}) {
    Factors factors{Over(a, Joined({&batch, &m, &order}), extents),
                    Over(b, Joined({&batch, &order, &n}), extents), order};
    const bool orders_a = !StepAsOne(factors.a, batch.size() + m.size(), order.size());
    const bool orders_b = !StepAsOne(factors.b, batch.size(), order.size());
    const int64_t copied =
        (orders_a ? count_copied(factors.a) : 0) + (orders_b ? count_copied(factors.b) : 0);
    if (copied >= least) continue;
    least = copied;
    best = std::move(factors);
    copies_a = orders_a;
    copies_b = orders_b;
  }
  if (copies_a) best.a = lowering.Dense(best.a);
  if (copies_b) best.b = lowering.Dense(best.b);
  return best;
}

// `term` without the labels that neither `other` nor the result has. Sums of narrow numbers stay in
// the product, which rounds them once.
Term SumOutAlone(Lowering& lowering, const Term& term, const Term& other, const Labels& kept,
                 const Extents& extents, ElementType type) {
  Labels left;
  for (Label label : term.labels) {
    if (Has(kept, label) || Has(other.labels, label)) left.push_back(label);
  }
  const bool is_narrow = AccumulatorOf(type) != type;
  if (left.size() == term.labels.size() || is_narrow) return term;
  return SumOut(lowering, term, left, extents, type);
}

// The labels along which both terms stand still, as where groups share what they multiply: their
// product stands still, too.
Labels StillIn(const Term& a, const Term& b) {
  const auto stands_still = [](const Term& term, Label label) {
    const auto found = std::find(term.labels.begin(), term.labels.end(), label);
    if (found == term.labels.end() || !term.operand.view.guards.empty()) return false;
    const auto axis = static_cast<size_t>(found - term.labels.begin());
    return term.operand.shape[axis] == Dim(1) || term.operand.view.strides[axis] == Dim(0);
  };
  Labels still;
  for (Label label : a.labels) {
    if (stands_still(a, label) && stands_still(b, label)) still.push_back(label);
  }
  return still;
}

// One of the elements along each of `labels`, which the term has.
Term At(Term term, const Labels& labels) {
  for (Label label : labels) {
    const auto axis = std::find(term.labels.begin(), term.labels.end(), label);
    term.operand = program::RemoveAxis(term.operand, static_cast<int>(axis - term.labels.begin()));
    term.labels.erase(axis);
  }
  return term;
}

Labels Without(Labels labels, const Labels& others) {
  std::erase_if(labels, [&](Label label) { return Has(others, label); });
  return labels;
}

// The product of two terms over the labels of either that are kept, summed over the others. An
// element-wise product where none is summed.
Term Multiply(Lowering& lowering, const Term& left, const Term& right, const Labels& all_kept,
              const Extents& extents, ElementType type) {
  Term a = SumOutAlone(lowering, left, right, all_kept, extents, type);
  Term b = SumOutAlone(lowering, right, left, all_kept, extents, type);
  Labels still = StillIn(a, b);
  std::erase_if(still, [&](Label label) { return !Has(all_kept, label); });
  const Labels kept = Without(all_kept, still);
  a = At(std::move(a), still);
  b = At(std::move(b), still);
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
    return {Over(result, all_kept, extents), all_kept};
  }
  Factors factors = MakeFactors(lowering, a, b, batch, m, n, k, extents);
  program::Contract contract;
  contract.batch_axes = static_cast<int>(batch.size());
  contract.m_axes = static_cast<int>(m.size());
  contract.n_axes = static_cast<int>(n.size());
  contract.inner = ShapeOf(factors.inner, extents);
  const Expr sum = SumOfProducts(step, Factor{std::move(factors.a)}, Factor{std::move(factors.b)},
                                 accumulator, contract);
  contract.roots = {Cast(sum, type).id()};
  step.Finish(std::move(contract), {write});
  return {Over(result, all_kept, extents), all_kept};
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

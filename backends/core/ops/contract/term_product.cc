// SPDX-License-Identifier: Apache-2.0
//
// TermProduct: a Contract over the letters that are summed, with both factors in an order for which
// the least is copied.

#include "backends/core/ops/contract/term_product.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "backends/core/ops/contract/product.h"

namespace onnxifi::ops {

Shape ShapeOf(const Labels& labels, const LabelExtents& extents) {
  Shape shape;
  for (Label label : labels) shape.push_back(extents.at(label));
  return shape;
}

View ViewOver(const Term& term, const Labels& labels, const LabelExtents& extents) {
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

namespace {

// The type in which products are summed up. Narrow integers wrap around alike in 32 bits.
ElementType AccumulatorOf(ElementType type) {
  if (!tensor::IsInteger(type) || tensor::BitWidth(type) >= 32) return tensor::ArithmeticType(type);
  return ElementType::kInt32;
}

}  // namespace

Term SumOut(Lowering& lowering, const Term& term, const Labels& kept, const LabelExtents& extents,
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

namespace {

Operand Over(const Term& term, const Labels& labels, const LabelExtents& extents) {
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
                    const Labels& m, const Labels& n, const Labels& inner,
                    const LabelExtents& extents) {
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
                 const LabelExtents& extents, ElementType type) {
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

}  // namespace

Term Multiply(Lowering& lowering, const Term& left, const Term& right, const Labels& all_kept,
              const LabelExtents& extents, ElementType type) {
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

}  // namespace onnxifi::ops

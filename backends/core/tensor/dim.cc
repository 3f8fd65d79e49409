// SPDX-License-Identifier: Apache-2.0
//
// Dim: the normal form. A sum of monomials over atoms (symbols and opaque operations), sorted, so
// that algebraically equal sums and products meet in one node; divisions are carried out as far as
// the terms divide.

#include "backends/core/tensor/dim.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace onnxifi::tensor {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? kMax : kMin;
}

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t product;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? kMax : kMin;
}

int64_t FloorDivInt(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return a == kMin ? kMax : -a;
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

// A bound that saturated says nothing more than "unbounded"; both ends are treated so.
bool IsUnbounded(int64_t bound) { return bound == kMax || bound == kMin; }

bool AtomsLess(const std::vector<const DimNode*>& a, const std::vector<const DimNode*>& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const DimNode* x, const DimNode* y) { return x->id < y->id; });
}

size_t Mix(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

size_t Hash(const DimNode& node) {
  size_t seed = static_cast<size_t>(node.kind);
  seed = Mix(seed, static_cast<size_t>(node.symbol));
  seed = Mix(seed, static_cast<size_t>(node.constant));
  for (const DimNode::Term& term : node.terms) {
    seed = Mix(seed, static_cast<size_t>(term.coefficient));
    for (const DimNode* atom : term.atoms) seed = Mix(seed, static_cast<size_t>(atom->id));
  }
  for (const Dim& dim : node.operands) {
    seed = Mix(seed, dim.is_constant() ? static_cast<size_t>(dim.constant())
                                       : static_cast<size_t>(dim.node()->id) + 0x1000);
  }
  return seed;
}

bool SameContent(const DimNode& a, const DimNode& b) {
  if (a.kind != b.kind || a.symbol != b.symbol || a.constant != b.constant) return false;
  if (a.terms.size() != b.terms.size() || a.operands != b.operands) return false;
  for (size_t t = 0; t < a.terms.size(); ++t) {
    if (a.terms[t].coefficient != b.terms[t].coefficient || a.terms[t].atoms != b.terms[t].atoms) {
      return false;
    }
  }
  return true;
}

DimTable* TableOf(std::initializer_list<Dim> dims) {
  for (const Dim& dim : dims) {
    if (!dim.is_constant()) return dim.node()->table;
  }
  return nullptr;
}

struct Bounds {
  int64_t lower;
  int64_t upper;
};

// A node's bounds are computed once, when it is made, from those of its operands.
Bounds BoundsOf(const Dim& dim) {
  return dim.is_constant() ? Bounds{dim.constant(), dim.constant()}
                           : Bounds{dim.node()->lower, dim.node()->upper};
}

Bounds Multiply(Bounds a, Bounds b) {
  int64_t products[] = {SaturatingMul(a.lower, b.lower), SaturatingMul(a.lower, b.upper),
                        SaturatingMul(a.upper, b.lower), SaturatingMul(a.upper, b.upper)};
  return {*std::min_element(products, products + 4), *std::max_element(products, products + 4)};
}

Bounds BoundsOfNode(const DimNode& node) {
  switch (node.kind) {
    case DimNode::Kind::kSymbol:
      return {node.lower, kMax};
    case DimNode::Kind::kPolynomial: {
      Bounds sum{node.constant, node.constant};
      for (const DimNode::Term& term : node.terms) {
        Bounds product{term.coefficient, term.coefficient};
        for (const DimNode* atom : term.atoms)
          product = Multiply(product, {atom->lower, atom->upper});
        sum.lower = IsUnbounded(sum.lower) || IsUnbounded(product.lower)
                        ? kMin
                        : SaturatingAdd(sum.lower, product.lower);
        sum.upper = IsUnbounded(sum.upper) || IsUnbounded(product.upper)
                        ? kMax
                        : SaturatingAdd(sum.upper, product.upper);
      }
      return sum;
    }
    case DimNode::Kind::kFloorDiv: {
      Bounds a = BoundsOf(node.operands[0]);
      Bounds b = BoundsOf(node.operands[1]);
      if (b.lower == b.upper && b.lower > 0) {
        return {a.lower == kMin ? kMin : FloorDivInt(a.lower, b.lower),
                a.upper == kMax ? kMax : FloorDivInt(a.upper, b.lower)};
      }
      // Zero divisors give 0, hence the lower end 0 even for positive dividends.
      if (a.lower >= 0 && b.lower >= 0) return {0, a.upper};
      return {kMin, kMax};
    }
    case DimNode::Kind::kMin: {
      Bounds a = BoundsOf(node.operands[0]);
      Bounds b = BoundsOf(node.operands[1]);
      return {std::min(a.lower, b.lower), std::min(a.upper, b.upper)};
    }
    case DimNode::Kind::kMax: {
      Bounds a = BoundsOf(node.operands[0]);
      Bounds b = BoundsOf(node.operands[1]);
      return {std::max(a.lower, b.lower), std::max(a.upper, b.upper)};
    }
    case DimNode::Kind::kProduct:
      return Multiply(BoundsOf(node.operands[0]), BoundsOf(node.operands[1]));
    case DimNode::Kind::kEqual:
    case DimNode::Kind::kLess:
      return {0, 1};
    case DimNode::Kind::kSelect: {
      Bounds a = BoundsOf(node.operands[1]);
      Bounds b = BoundsOf(node.operands[2]);
      return {std::min(a.lower, b.lower), std::max(a.upper, b.upper)};
    }
  }
  return {kMin, kMax};
}

// Above these an operation stays unexpanded: hostile models could otherwise grow a polynomial
// without limit.
constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxDegree = 16;

size_t Degree(const std::vector<DimNode::Term>& terms) {
  size_t degree = 0;
  for (const DimNode::Term& term : terms) degree = std::max(degree, term.atoms.size());
  return degree;
}

// Makes a + b and b + a, min(a, b) and min(b, a), ... the same node.
Dims Sorted(Dim a, Dim b) {
  auto key = [](const Dim& dim) { return dim.is_constant() ? -1 : dim.node()->id; };
  if (key(b) < key(a)) std::swap(a, b);
  return {a, b};
}

}  // namespace

struct DimTable::Polynomial {
  int64_t constant = 0;
  std::vector<DimNode::Term> terms;

  void Normalise() {
    if (terms.size() == 1 && terms[0].coefficient != 0) return;
    std::sort(terms.begin(), terms.end(), [](const DimNode::Term& a, const DimNode::Term& b) {
      return AtomsLess(a.atoms, b.atoms);
    });
    std::vector<DimNode::Term> merged;
    for (DimNode::Term& term : terms) {
      if (!merged.empty() && merged.back().atoms == term.atoms) {
        merged.back().coefficient = SaturatingAdd(merged.back().coefficient, term.coefficient);
      } else {
        merged.push_back(std::move(term));
      }
    }
    std::erase_if(merged, [](const DimNode::Term& term) { return term.coefficient == 0; });
    terms = std::move(merged);
  }
};

Dim DimTable::NewSymbol(std::string name, bool is_data, int64_t lower) {
  DimNode node{};
  node.lower = lower;
  node.kind = DimNode::Kind::kSymbol;
  node.symbol = symbol_count();
  symbols_.push_back({std::move(name), is_data});
  return Intern(std::move(node));
}

Dim DimTable::Intern(DimNode node) {
  size_t hash = Hash(node);
  const int32_t known = by_hash_.Find(
      hash, [&](int32_t id) { return SameContent(*nodes_[static_cast<size_t>(id)], node); });
  if (known != base::HashIndex::kNone) return Dim(*nodes_[static_cast<size_t>(known)]);
  node.id = node_count();
  node.table = this;
  node.last_symbol = node.symbol;
  for (const DimNode::Term& term : node.terms) {
    for (const DimNode* atom : term.atoms) {
      node.last_symbol = std::max(node.last_symbol, atom->last_symbol);
    }
  }
  for (const Dim& operand : node.operands) {
    if (!operand.is_constant()) {
      node.last_symbol = std::max(node.last_symbol, operand.node()->last_symbol);
    }
  }
  Bounds bounds = BoundsOfNode(node);
  node.lower = bounds.lower;
  node.upper = bounds.upper;
  by_hash_.Add(hash, node.id);
  nodes_.push_back(std::make_unique<DimNode>(std::move(node)));
  return Dim(*nodes_.back());
}

Dim DimTable::Opaque(DimNode::Kind kind, Dims operands) {
  DimNode node{};
  node.kind = kind;
  node.operands = std::move(operands);
  return Intern(std::move(node));
}

DimTable::Polynomial DimTable::ToPolynomial(Dim dim) {
  Polynomial polynomial;
  if (dim.is_constant()) {
    polynomial.constant = dim.constant();
  } else if (dim.node()->kind == DimNode::Kind::kPolynomial) {
    polynomial.constant = dim.node()->constant;
    polynomial.terms = dim.node()->terms;
  } else {
    polynomial.terms.push_back({1, {dim.node()}});
  }
  return polynomial;
}

Dim DimTable::FromPolynomial(DimTable* table, Polynomial polynomial) {
  polynomial.Normalise();
  if (polynomial.terms.empty()) return Dim(polynomial.constant);
  if (polynomial.constant == 0 && polynomial.terms.size() == 1 &&
      polynomial.terms[0].coefficient == 1 && polynomial.terms[0].atoms.size() == 1) {
    return Dim(*polynomial.terms[0].atoms[0]);
  }
  DimNode node{};
  node.kind = DimNode::Kind::kPolynomial;
  node.constant = polynomial.constant;
  node.terms = std::move(polynomial.terms);
  return table->Intern(std::move(node));
}

Dim DimTable::AddScaled(Dim a, Dim b, int64_t factor) {
  DimTable::Polynomial sum = DimTable::ToPolynomial(a);
  DimTable::Polynomial other = DimTable::ToPolynomial(b);
  if (sum.terms.size() + other.terms.size() > kMaxTerms) {
    // Each long operand becomes one atom: the product with 1 that is not carried out.
    DimTable* table = TableOf({a, b});
    if (sum.terms.size() > 1) {
      sum = DimTable::ToPolynomial(table->Opaque(DimNode::Kind::kProduct, {1, a}));
    }
    if (other.terms.size() > 1) {
      other = DimTable::ToPolynomial(table->Opaque(DimNode::Kind::kProduct, {1, b}));
    }
  }
  sum.constant = SaturatingAdd(sum.constant, SaturatingMul(factor, other.constant));
  for (DimNode::Term& term : other.terms) {
    term.coefficient = SaturatingMul(factor, term.coefficient);
    sum.terms.push_back(std::move(term));
  }
  return DimTable::FromPolynomial(TableOf({a, b}), std::move(sum));
}

Dim operator+(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return SaturatingAdd(a.constant(), b.constant());
  if (a == Dim(0)) return b;
  if (b == Dim(0)) return a;
  return DimTable::AddScaled(a, b, 1);
}

Dim operator-(Dim a, Dim b) {
  if (a == b) return 0;
  if (b == Dim(0)) return a;
  if (a.is_constant() && b.is_constant()) {
    return SaturatingAdd(a.constant(), SaturatingMul(-1, b.constant()));
  }
  return DimTable::AddScaled(a, b, -1);
}

Dim operator*(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return SaturatingMul(a.constant(), b.constant());
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  if (a == Dim(0) || b == Dim(0)) return 0;
  DimTable::Polynomial left = DimTable::ToPolynomial(a);
  DimTable::Polynomial right = DimTable::ToPolynomial(b);
  if (left.constant != 0) left.terms.push_back({left.constant, {}});
  if (right.constant != 0) right.terms.push_back({right.constant, {}});
  if (left.terms.size() * right.terms.size() > kMaxTerms ||
      Degree(left.terms) + Degree(right.terms) > kMaxDegree) {
    return TableOf({a, b})->Opaque(DimNode::Kind::kProduct, Sorted(a, b));
  }
  DimTable::Polynomial product;
  for (const DimNode::Term& x : left.terms) {
    for (const DimNode::Term& y : right.terms) {
      int64_t coefficient = SaturatingMul(x.coefficient, y.coefficient);
      if (coefficient == 0) continue;
      std::vector<const DimNode*> atoms = x.atoms;
      atoms.insert(atoms.end(), y.atoms.begin(), y.atoms.end());
      std::sort(atoms.begin(), atoms.end(),
                [](const DimNode* p, const DimNode* q) { return p->id < q->id; });
      if (atoms.empty()) {
        product.constant = SaturatingAdd(product.constant, coefficient);
      } else {
        product.terms.push_back({coefficient, std::move(atoms)});
      }
    }
  }
  return DimTable::FromPolynomial(TableOf({a, b}), std::move(product));
}

namespace {

// term / divisor when the divisor's coefficient and atoms all divide it.
std::optional<DimNode::Term> DivideTerm(const DimNode::Term& term, const DimNode::Term& divisor) {
  // The smallest number over -1 has no quotient.
  if (divisor.coefficient == 0 || (divisor.coefficient == -1 && term.coefficient == kMin) ||
      term.coefficient % divisor.coefficient != 0) {
    return std::nullopt;
  }
  DimNode::Term quotient{term.coefficient / divisor.coefficient, term.atoms};
  for (const DimNode* atom : divisor.atoms) {
    auto found = std::find(quotient.atoms.begin(), quotient.atoms.end(), atom);
    if (found == quotient.atoms.end()) return std::nullopt;
    quotient.atoms.erase(found);
  }
  return quotient;
}

}  // namespace

Dim FloorDiv(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return FloorDivInt(a.constant(), b.constant());
  if (b == Dim(1) || a == Dim(0)) return a;
  if (a == b) return 1;
  DimTable* table = TableOf({a, b});
  DimTable::Polynomial divisor = DimTable::ToPolynomial(b);
  // By a single monomial: floor((d*q + r) / d) = q + floor(r / d), so divide the terms that divide
  // and keep the rest. A symbolic divisor is taken to be at least 1: an extent it divides would
  // otherwise be empty.
  bool is_monomial = divisor.terms.size() + (divisor.constant != 0 ? 1 : 0) == 1;
  if (is_monomial) {
    DimNode::Term by =
        divisor.terms.empty() ? DimNode::Term{divisor.constant, {}} : divisor.terms[0];
    DimTable::Polynomial quotient;
    DimTable::Polynomial rest;
    DimTable::Polynomial dividend = DimTable::ToPolynomial(a);
    if (dividend.constant != 0) dividend.terms.push_back({dividend.constant, {}});
    for (const DimNode::Term& term : dividend.terms) {
      std::optional<DimNode::Term> divided = DivideTerm(term, by);
      DimTable::Polynomial& target = divided ? quotient : rest;
      const DimNode::Term& part = divided ? *divided : term;
      if (part.atoms.empty()) {
        target.constant = SaturatingAdd(target.constant, part.coefficient);
      } else {
        target.terms.push_back(part);
      }
    }
    if (!quotient.terms.empty() || quotient.constant != 0) {
      Dim remaining = DimTable::FromPolynomial(table, std::move(rest));
      return DimTable::FromPolynomial(table, std::move(quotient)) + FloorDiv(remaining, b);
    }
  }
  return table->Opaque(DimNode::Kind::kFloorDiv, {a, b});
}

Dim Mod(Dim a, Dim b) { return a - b * FloorDiv(a, b); }

Dim CeilDiv(Dim a, Dim b) { return FloorDiv(a + b - 1, b); }

Dim Min(Dim a, Dim b) {
  if (a == b) return a;
  Dim difference = b - a;
  if (difference.LowerBound() >= 0) return a;
  if (difference.UpperBound() <= 0) return b;
  return TableOf({a, b})->Opaque(DimNode::Kind::kMin, Sorted(a, b));
}

Dim Max(Dim a, Dim b) {
  if (a == b) return a;
  Dim difference = b - a;
  if (difference.LowerBound() >= 0) return b;
  if (difference.UpperBound() <= 0) return a;
  return TableOf({a, b})->Opaque(DimNode::Kind::kMax, Sorted(a, b));
}

Dim Equal(Dim a, Dim b) {
  Dim difference = a - b;
  if (difference.is_constant()) return difference.constant() == 0 ? 1 : 0;
  if (difference.LowerBound() > 0 || difference.UpperBound() < 0) return 0;
  return TableOf({a, b})->Opaque(DimNode::Kind::kEqual, Sorted(a, b));
}

Dim Less(Dim a, Dim b) {
  Dim difference = b - a;
  if (difference.LowerBound() > 0) return 1;
  if (difference.UpperBound() <= 0) return 0;
  return TableOf({a, b})->Opaque(DimNode::Kind::kLess, {a, b});
}

Dim Select(Dim condition, Dim a, Dim b) {
  if (condition.is_constant()) return condition.constant() != 0 ? a : b;
  if (a == b) return a;
  return TableOf({condition})->Opaque(DimNode::Kind::kSelect, {condition, a, b});
}

Dim Product(std::span<const Dim> dims) {
  Dim product = 1;
  for (const Dim& dim : dims) product = product * dim;
  return product;
}

int64_t Dim::LowerBound() const { return BoundsOf(*this).lower; }
int64_t Dim::UpperBound() const { return BoundsOf(*this).upper; }

namespace {

// Shared subexpressions make the full text exponential in the number of nodes, and their depth is
// the model's choice.
constexpr size_t kMaxTextLength = 240;
constexpr int kMaxTextDepth = 16;

void AppendText(const Dim& dim, int depth, std::string& text);

void AppendCall(std::string_view name, const DimNode& node, int depth, std::string& text) {
  text += name;
  text += "(";
  for (size_t k = 0; k < node.operands.size(); ++k) {
    if (k != 0) text += ", ";
    AppendText(node.operands[k], depth + 1, text);
  }
  text += ")";
}

void AppendSum(const DimNode& node, int depth, std::string& text) {
  bool is_first = true;
  for (const DimNode::Term& term : node.terms) {
    if (!is_first) text += " + ";
    is_first = false;
    if (text.size() > kMaxTextLength) break;
    if (term.coefficient != 1) text += std::to_string(term.coefficient) + "*";
    for (size_t k = 0; k < term.atoms.size(); ++k) {
      if (k != 0) text += "*";
      AppendText(Dim(*term.atoms[k]), depth + 1, text);
    }
  }
  if (node.constant != 0) text += " + " + std::to_string(node.constant);
}

void AppendText(const Dim& dim, int depth, std::string& text) {
  if (dim.is_constant()) {
    text += std::to_string(dim.constant());
    return;
  }
  if (depth > kMaxTextDepth || text.size() > kMaxTextLength) {
    text += "...";
    return;
  }
  const DimNode& node = *dim.node();
  switch (node.kind) {
    case DimNode::Kind::kSymbol:
      text += node.table->symbol(node.symbol).name;
      return;
    case DimNode::Kind::kPolynomial:
      AppendSum(node, depth, text);
      return;
    case DimNode::Kind::kFloorDiv:
      AppendCall("floordiv", node, depth, text);
      return;
    case DimNode::Kind::kProduct:
      AppendCall("mul", node, depth, text);
      return;
    case DimNode::Kind::kMin:
      AppendCall("min", node, depth, text);
      return;
    case DimNode::Kind::kMax:
      AppendCall("max", node, depth, text);
      return;
    case DimNode::Kind::kEqual:
      AppendCall("equal", node, depth, text);
      return;
    case DimNode::Kind::kLess:
      AppendCall("less", node, depth, text);
      return;
    case DimNode::Kind::kSelect:
      AppendCall("select", node, depth, text);
      return;
  }
}

}  // namespace

std::string Dim::ToString() const {
  std::string text;
  AppendText(*this, 0, text);
  return text;
}

std::string ToString(std::span<const Dim> dims) {
  std::string text = "[";
  for (size_t k = 0; k < dims.size(); ++k) text += (k ? ", " : "") + dims[k].ToString();
  return text + "]";
}

void DimTable::Evaluate(std::span<const int64_t> symbols, int from_symbol, int to_symbol,
                        std::span<int64_t> values) const {
  for (const std::unique_ptr<DimNode>& node : nodes_) {
    if (node->last_symbol < from_symbol || node->last_symbol >= to_symbol) continue;
    EvaluateNode(node->id, symbols, values);
  }
}

void DimTable::EvaluateNode(int id, std::span<const int64_t> symbols,
                            std::span<int64_t> values) const {
  const DimNode& node = *nodes_[id];
  auto operand = [&](int k) { return ValueOf(node.operands[k], values); };
  int64_t value = 0;
  switch (node.kind) {
    case DimNode::Kind::kSymbol:
      value = symbols[node.symbol];
      break;
    case DimNode::Kind::kPolynomial:
      value = node.constant;
      for (const DimNode::Term& term : node.terms) {
        int64_t product = term.coefficient;
        for (const DimNode* atom : term.atoms) product = SaturatingMul(product, values[atom->id]);
        value = SaturatingAdd(value, product);
      }
      break;
    case DimNode::Kind::kProduct:
      value = SaturatingMul(operand(0), operand(1));
      break;
    case DimNode::Kind::kFloorDiv:
      value = FloorDivInt(operand(0), operand(1));
      break;
    case DimNode::Kind::kMin:
      value = std::min(operand(0), operand(1));
      break;
    case DimNode::Kind::kMax:
      value = std::max(operand(0), operand(1));
      break;
    case DimNode::Kind::kEqual:
      value = operand(0) == operand(1) ? 1 : 0;
      break;
    case DimNode::Kind::kLess:
      value = operand(0) < operand(1) ? 1 : 0;
      break;
    case DimNode::Kind::kSelect:
      value = operand(0) != 0 ? operand(1) : operand(2);
      break;
  }
  values[id] = value;
}

}  // namespace onnxifi::tensor

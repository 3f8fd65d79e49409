// SPDX-License-Identifier: Apache-2.0
//
// Dim: a symbolic integer expression, the currency of shapes, offsets and strides. Constants are
// plain numbers; anything else is a node of the DimTable it was made in, hash-consed into
// polynomial normal form, so that equal expressions are the same node and comparing them is
// comparing pointers. Evaluated for all at once when a plan is bound to extents.

#ifndef ONNXIFI_BACKENDS_CORE_TENSOR_DIM_H_
#define ONNXIFI_BACKENDS_CORE_TENSOR_DIM_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/core/base/hash_index.h"
#include "backends/core/base/small_vector.h"

namespace onnxifi::tensor {

class DimTable;
struct DimNode;

// Arithmetic saturates at the ends of int64, so an overflowing product of extents is a huge number
// that every limit refuses, never undefined behaviour. A Dim lives no longer than the table of its
// node. Operands of one expression come from one table.
class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor)
  explicit Dim(const DimNode& node) : node_(&node) {}

  bool is_constant() const { return node_ == nullptr; }
  // Only for constants.
  int64_t constant() const { return value_; }
  const DimNode* node() const { return node_; }
  // Structural equality: true only if both are the same expression.
  bool operator==(const Dim& other) const { return node_ == other.node_ && value_ == other.value_; }

  // Smallest and largest value the expression is known to have.
  int64_t LowerBound() const;
  int64_t UpperBound() const;
  // For messages; long or deeply nested expressions are cut short with "...".
  std::string ToString() const;

 private:
  friend class DimTable;
  int64_t value_ = 0;
  const DimNode* node_ = nullptr;
};

// Extents, strides and other lists with an entry per axis: most tensors have four axes or fewer.
using Dims = base::SmallVector<Dim, 4>;
using Shape = Dims;

Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);
Dim FloorDiv(Dim a, Dim b);  // rounds towards minus infinity; by zero: 0
Dim Mod(Dim a, Dim b);       // a - b * FloorDiv(a, b)
Dim CeilDiv(Dim a, Dim b);
Dim Min(Dim a, Dim b);
Dim Max(Dim a, Dim b);
Dim Equal(Dim a, Dim b);                  // 0 or 1
Dim Less(Dim a, Dim b);                   // 0 or 1
Dim Select(Dim condition, Dim a, Dim b);  // condition != 0 ? a : b
Dim Product(std::span<const Dim> dims);
std::string ToString(std::span<const Dim> dims);

// Where a symbol's number comes from when a plan is bound.
struct SymbolInfo {
  std::string name;      // dim_param, or one made up, for messages
  bool is_data = false;  // known only while the program runs
};

struct DimNode {
  enum class Kind : uint8_t {
    kSymbol,
    kPolynomial,
    kProduct,
    kFloorDiv,
    kMin,
    kMax,
    kEqual,
    kLess,
    kSelect
  };
  struct Term {
    int64_t coefficient;
    std::vector<const DimNode*> atoms;  // sorted by id, with repetition; never polynomials
  };

  Kind kind;
  int32_t id;           // position in the table; operands have smaller ids
  int32_t symbol = -1;  // kSymbol
  int32_t last_symbol;  // largest symbol number below this node: known once that symbol is
  int64_t lower = 0;    // bounds, as Dim::LowerBound
  int64_t upper = 0;
  int64_t constant = 0;     // kPolynomial
  std::vector<Term> terms;  // kPolynomial
  Dims operands;            // the other kinds
  DimTable* table;
};

// Owns the nodes of one program's Dims. Not thread-safe while it grows; immutable use is.
class DimTable {
 public:
  DimTable() = default;
  DimTable(const DimTable&) = delete;
  DimTable& operator=(const DimTable&) = delete;

  // A new symbol, distinct from all others. Numbers count up from 0. Its value is never below
  // `lower`: 0 for extents and counts, the least int64 for numbers out of tensors.
  Dim NewSymbol(std::string name, bool is_data, int64_t lower = 0);
  int symbol_count() const { return static_cast<int>(symbols_.size()); }
  const SymbolInfo& symbol(int number) const { return symbols_[number]; }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  const DimNode& node(int id) const { return *nodes_[id]; }

  // Computes into values[id] every node whose last_symbol is in [from_symbol, to_symbol), given all
  // symbols below to_symbol in `symbols`. Call with growing ranges as symbols become known.
  // values.size() == node_count().
  void Evaluate(std::span<const int64_t> symbols, int from_symbol, int to_symbol,
                std::span<int64_t> values) const;
  // The same for one node whose operands are in `values` already.
  void EvaluateNode(int id, std::span<const int64_t> symbols, std::span<int64_t> values) const;

 private:
  friend Dim operator+(Dim, Dim);
  friend Dim operator-(Dim, Dim);
  friend Dim operator*(Dim, Dim);
  friend Dim FloorDiv(Dim, Dim);
  friend Dim Min(Dim, Dim);
  friend Dim Max(Dim, Dim);
  friend Dim Equal(Dim, Dim);
  friend Dim Less(Dim, Dim);
  friend Dim Select(Dim, Dim, Dim);
  struct Polynomial;
  static Polynomial ToPolynomial(Dim dim);
  static Dim FromPolynomial(DimTable* table, Polynomial polynomial);
  // a + factor * b, of which at least one is no constant.
  static Dim AddScaled(Dim a, Dim b, int64_t factor);
  Dim Intern(DimNode node);
  Dim Opaque(DimNode::Kind kind, Dims operands);

  base::HashIndex by_hash_;
  std::vector<std::unique_ptr<DimNode>> nodes_;
  std::vector<SymbolInfo> symbols_;
};

// The number of `dim` given the node values that Evaluate computed.
inline int64_t ValueOf(const Dim& dim, std::span<const int64_t> values) {
  return dim.is_constant() ? dim.constant() : values[dim.node()->id];
}

}  // namespace onnxifi::tensor

#endif  // ONNXIFI_BACKENDS_CORE_TENSOR_DIM_H_

// SPDX-License-Identifier: Apache-2.0
//
// StepMaker: what the makers of random steps share: chance, extents, buffers, views and
// expressions. One object per step; a family's maker fills in the step's domain and body.

#ifndef ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_STEP_MAKER_H_
#define ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_STEP_MAKER_H_

#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "backends/core/program/program.h"
#include "backends/core/tensor/tensor.h"

namespace onnxifi::reference {

inline constexpr tensor::ElementType kFloat32 = tensor::ElementType::kFloat32;
inline constexpr tensor::ElementType kFloat64 = tensor::ElementType::kFloat64;
inline constexpr tensor::ElementType kInt64 = tensor::ElementType::kInt64;
inline constexpr tensor::ElementType kBool = tensor::ElementType::kBool;

inline constexpr tensor::ElementType kNumeric[] = {tensor::ElementType::kFloat32,
                                                   tensor::ElementType::kFloat64,
                                                   tensor::ElementType::kFloat16,
                                                   tensor::ElementType::kBfloat16,
                                                   tensor::ElementType::kInt8,
                                                   tensor::ElementType::kInt16,
                                                   tensor::ElementType::kInt32,
                                                   tensor::ElementType::kInt64,
                                                   tensor::ElementType::kUint8,
                                                   tensor::ElementType::kUint16,
                                                   tensor::ElementType::kUint32,
                                                   tensor::ElementType::kUint64,
                                                   tensor::ElementType::kBool,
                                                   tensor::ElementType::kFloat8E4M3Fn,
                                                   tensor::ElementType::kFloat8E4M3Fnuz,
                                                   tensor::ElementType::kFloat8E5M2,
                                                   tensor::ElementType::kFloat8E5M2Fnuz,
                                                   tensor::ElementType::kFloat8E8M0,
                                                   tensor::ElementType::kFloat4E2M1,
                                                   tensor::ElementType::kUint4,
                                                   tensor::ElementType::kInt4,
                                                   tensor::ElementType::kFloat6E2M3,
                                                   tensor::ElementType::kFloat6E3M2,
                                                   tensor::ElementType::kUint2,
                                                   tensor::ElementType::kInt2};
inline constexpr tensor::ElementType kIntegers[] = {
    tensor::ElementType::kInt8,   tensor::ElementType::kInt16, tensor::ElementType::kInt32,
    tensor::ElementType::kInt64,  tensor::ElementType::kUint8, tensor::ElementType::kUint16,
    tensor::ElementType::kUint32, tensor::ElementType::kUint64};

// What the elements of a buffer are drawn from.
enum class Data : uint8_t {
  kAny,       // every bit pattern of integers, floats around 0 with some that are special
  kModerate,  // floats in [-2, 2], integers of any size
  kSmall,     // integers in [-4, 4] (or [0, 4]), as floats too: sums of thousands are exact
};

class StepMaker {
 public:
  explicit StepMaker(uint64_t seed) : random_(seed) {}
  // The step of `seed` with other extents and data: what makes the structure (types, ranks, forms
  // of views, expressions) is drawn as for every other `variation` above 0.
  StepMaker(uint64_t seed, uint64_t variation) : random_(seed) {
    if (variation == 0) return;
    numbers_.seed(seed ^ (variation * 0xbf58476d1ce4e5b9ULL));
    is_varied_ = true;
  }

  // While one of these lives, chance makes numbers, not structure.
  class Numbers {
   public:
    explicit Numbers(StepMaker& make) : make_(make), before_(make.source_) {
      if (make.is_varied_) make.source_ = &make.numbers_;
    }
    ~Numbers() { make_.source_ = before_; }
    Numbers(const Numbers&) = delete;
    Numbers& operator=(const Numbers&) = delete;

   private:
    StepMaker& make_;
    std::mt19937_64* const before_;
  };

  // What is made: a program of one step, still outside it, and the first contents of its buffers.
  program::Program program;
  program::Step step;
  std::vector<tensor::Tensor> buffers;
  std::vector<int64_t> symbols;
  double tolerance = 0;
  double roundings = 1;

  // What MakeExpr loads is drawn from this; with kAny, infinities and NaN only if asked for.
  Data data = Data::kAny;
  bool has_specials = false;

  // Chance. Bounds are included.
  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>((*source_)() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Roll(1, 100) <= percent; }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>((*source_)() >> 11) * 0x1p-53;
  }
  template <typename T>
  T Pick(std::span<const T> items) {
    return items[static_cast<size_t>(Roll(0, static_cast<int64_t>(items.size()) - 1))];
  }
  template <typename T>
  T Pick(std::initializer_list<T> items) {
    return Pick(std::span<const T>(items.begin(), items.size()));
  }

  // Extents. A number of at least 1 is at times the value of a new symbol.
  program::Dim MakeDim(int64_t number);
  program::Shape MakeShape(const tensor::Extents& extents);
  program::Dim MakeZeroOr(int64_t number);
  // About `target` elements, odd extents, sometimes empty.
  tensor::Extents MakeExtents(int min_rank, int max_rank, int64_t target);

  // Buffers and views. An operand is a view of `type` over `extents` on a new buffer; axes may be
  // permuted, stepped over and flipped, and of an input repeated and padded.
  tensor::Scalar MakeScalar(tensor::ElementType type, Data data);
  program::BufferId AddBuffer(tensor::ElementType type, const tensor::Extents& extents,
                              bool is_input, Data data);
  program::Operand MakeOperand(tensor::ElementType type, const tensor::Extents& extents,
                               bool is_input, Data data);
  // Position in the step's reads.
  int AddRead(tensor::ElementType type, const tensor::Extents& extents, Data data);
  void AddWrite(tensor::ElementType type, const tensor::Extents& extents);

  // Leaves that an expression may have where it stands.
  struct AllowedLeaves {
    tensor::Extents domain;  // of reads and kIndex
    bool may_load = true;
    const std::vector<program::Expr>* extra = nullptr;  // states, row results, ...
  };
  program::ExprPool& pool() { return program.exprs; }
  // An expression of an arithmetic type.
  program::Expr MakeExpr(const AllowedLeaves& place, tensor::ElementType type, int depth);
  // The type to write an expression in: its own or a narrower one.
  tensor::ElementType StoredType(tensor::ElementType computed);

 private:
  tensor::Tensor MakeData(tensor::ElementType type, const tensor::Extents& extents, Data data);
  // A loaded element, brought to its arithmetic type if it is only a storage type.
  program::Expr MakeLoad(const AllowedLeaves& place, tensor::ElementType type);
  // A load at computed coordinates: in range by a modulus, or guarded and at times outside.
  program::Expr MakeLoadAt(const AllowedLeaves& place, tensor::ElementType type);
  program::Expr MakeLeaf(const AllowedLeaves& place, tensor::ElementType type);
  program::Expr MakeBool(const AllowedLeaves& place, int depth);
  program::Expr MakeFloat(const AllowedLeaves& place, tensor::ElementType type, int depth);

  StepMaker(const StepMaker&) = delete;
  StepMaker& operator=(const StepMaker&) = delete;

  std::mt19937_64 random_;
  std::mt19937_64 numbers_;
  bool is_varied_ = false;
  std::mt19937_64* source_ = &random_;
  std::vector<tensor::Extents> reusable_;  // per read: the axes it was made over; empty for others
};

}  // namespace onnxifi::reference

#endif  // ONNXIFI_BACKENDS_CORE_REFERENCE_RANDOM_STEP_STEP_MAKER_H_

// SPDX-License-Identifier: Apache-2.0
//
// RandomStep: the generator. Views come from the view algebra itself (slice, flip, pad, permute,
// broadcast of a dense buffer), expressions from typed grammars, folds from a list of pairs of
// update and merge that agree.

#include "backends/core/reference/random_step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "backends/core/reference/device.h"

namespace onnxifi::reference {
namespace {

using program::Buffer;
using program::Contract;
using program::Dim;
using program::Expr;
using program::ExprOp;
using program::Index;
using program::Operand;
using program::Shape;
using program::Step;
using program::View;
using program::Window;
using tensor::ElementType;
using tensor::Extents;
using tensor::Scalar;

constexpr ElementType kFloat32 = ElementType::kFloat32;
constexpr ElementType kFloat64 = ElementType::kFloat64;
constexpr ElementType kInt64 = ElementType::kInt64;
constexpr ElementType kBool = ElementType::kBool;

constexpr ElementType kNumeric[] = {ElementType::kFloat32,
                                    ElementType::kFloat64,
                                    ElementType::kFloat16,
                                    ElementType::kBfloat16,
                                    ElementType::kInt8,
                                    ElementType::kInt16,
                                    ElementType::kInt32,
                                    ElementType::kInt64,
                                    ElementType::kUint8,
                                    ElementType::kUint16,
                                    ElementType::kUint32,
                                    ElementType::kUint64,
                                    ElementType::kBool,
                                    ElementType::kFloat8E4M3Fn,
                                    ElementType::kFloat8E4M3Fnuz,
                                    ElementType::kFloat8E5M2,
                                    ElementType::kFloat8E5M2Fnuz,
                                    ElementType::kFloat8E8M0,
                                    ElementType::kFloat4E2M1,
                                    ElementType::kUint4,
                                    ElementType::kInt4,
                                    ElementType::kUint2,
                                    ElementType::kInt2};
constexpr ElementType kIntegers[] = {
    ElementType::kInt8,  ElementType::kInt16,  ElementType::kInt32,  ElementType::kInt64,
    ElementType::kUint8, ElementType::kUint16, ElementType::kUint32, ElementType::kUint64};

// What the elements of a buffer are drawn from.
enum class Data : uint8_t {
  kAny,       // every bit pattern of integers, floats around 0 with some that are special
  kModerate,  // floats in [-2, 2], integers of any size
  kSmall,     // integers in [-4, 4] (or [0, 4]), as floats too: sums of thousands are exact
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomStep Make(Family family) {
    switch (family) {
      case Family::kMap:
        MakeMap();
        break;
      case Family::kReduce:
        MakeReduce();
        break;
      case Family::kRow:
        MakeRow();
        break;
      case Family::kScan:
        MakeScan();
        break;
      case Family::kContract:
        MakeContract();
        break;
      case Family::kWindow:
        MakeWindow();
        break;
      case Family::kIndex:
        MakeIndex();
        break;
    }
    result_.program.steps.push_back(std::move(step_));
    result_.dims.resize(static_cast<size_t>(result_.program.dims->node_count()));
    result_.program.dims->Evaluate(result_.symbols, 0, result_.program.dims->symbol_count(),
                                   result_.dims);
    return std::move(result_);
  }

 private:
  // Leaves that an expression may have where it stands.
  struct Place {
    Extents domain;  // of reads and kIndex
    bool may_load = true;
    const std::vector<Expr>* extra = nullptr;  // states, row results, ...
  };

  // ---- Chance ----

  int64_t Roll(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Roll(1, 100) <= percent; }
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  template <typename T>
  T Pick(std::span<const T> items) {
    return items[static_cast<size_t>(Roll(0, static_cast<int64_t>(items.size()) - 1))];
  }
  template <typename T>
  T Pick(std::initializer_list<T> items) {
    return Pick(std::span<const T>(items.begin(), items.size()));
  }

  // ---- Extents and buffers ----

  Dim MakeDim(int64_t number) {
    if (number < 1 || !Chance(20)) return number;
    result_.symbols.push_back(number);
    return result_.program.dims->NewSymbol("s" + std::to_string(result_.symbols.size()), false);
  }

  Shape MakeShape(const Extents& extents) {
    Shape shape;
    for (int64_t extent : extents) shape.push_back(MakeDim(extent));
    return shape;
  }

  // About `target` elements, odd extents, sometimes empty.
  Extents MakeExtents(int min_rank, int max_rank, int64_t target) {
    Extents extents(static_cast<size_t>(Roll(min_rank, max_rank)));
    int64_t left = Roll(1, target);
    for (int64_t& extent : extents) {
      extent = std::min(left, Roll(1, Chance(20) ? 150 : 7));
      left = std::max<int64_t>(1, left / extent);
    }
    std::shuffle(extents.begin(), extents.end(), random_);
    if (!extents.empty() && Chance(2)) extents[0] = 0;
    return extents;
  }

  Scalar MakeScalar(ElementType type, Data data) {
    if (tensor::IsFloat(type)) {
      double value = Uniform(-2, 2);
      if (data == Data::kSmall) value = static_cast<double>(Roll(-4, 4));
      if (data == Data::kAny) {
        if (Chance(30)) value = static_cast<double>(Roll(-8, 8)) / 2;
        if (Chance(10)) value *= std::exp2(static_cast<double>(Roll(-12, 12)));
        if (has_specials_ && Chance(5)) {
          value = Pick({std::numeric_limits<double>::infinity(),
                        -std::numeric_limits<double>::infinity(),
                        std::numeric_limits<double>::quiet_NaN(), -0.0, 1e30, 1e-30});
        }
      }
      return tensor::CastScalar(kFloat64, type, Scalar{.f = value});
    }
    const bool is_any = data != Data::kSmall && Chance(30);
    int64_t value = is_any ? static_cast<int64_t>(random_()) : Roll(-9, 9);
    if (data == Data::kSmall) value = Roll(tensor::IsSigned(type) ? -4 : 0, 4);
    return tensor::CastScalar(kInt64, type, Scalar{.i = value});
  }

  tensor::Tensor MakeData(ElementType type, const Extents& extents, Data data) {
    base::Result<tensor::Tensor> tensor = tensor::Tensor::Allocate(type, extents);
    const int64_t count = tensor::ElementCount(extents);
    if (tensor::IsComplex(type)) {
      for (int64_t k = 0; k < tensor->size_bytes(); ++k) {
        tensor->mutable_data()[k] = static_cast<std::byte>(random_());
      }
    } else {
      for (int64_t k = 0; k < count; ++k) {
        tensor::StoreScalar(type, tensor->mutable_data(), k, MakeScalar(type, data));
      }
    }
    return *std::move(tensor);
  }

  program::BufferId AddBuffer(ElementType type, const Extents& extents, bool is_input, Data data) {
    Buffer buffer;
    buffer.type = type;
    for (int64_t extent : extents) buffer.shape.push_back(extent);
    auto& ports = is_input ? result_.program.inputs : result_.program.outputs;
    const program::BufferId id = result_.program.AddBuffer(buffer);
    if (is_input) {
      result_.program.buffers.back().kind = Buffer::Kind::kInput;
      result_.program.buffers.back().index = static_cast<int>(ports.size());
    }
    ports.push_back({(is_input ? "in" : "out") + std::to_string(ports.size()), id, buffer.shape});
    result_.buffers.push_back(MakeData(type, extents, data));
    return id;
  }

  // ---- Views ----

  // A view of `type` over `extents` on a new buffer. Axes may be permuted, repeated, stepped over,
  // flipped and padded.
  Operand MakeOperand(ElementType type, const Extents& extents, bool is_input, Data data) {
    const size_t rank = extents.size();
    std::vector<int> order(rank);
    for (size_t axis = 0; axis < rank; ++axis) order[axis] = static_cast<int>(axis);
    const bool is_plain = Chance(40);
    if (!is_plain && Chance(50)) std::shuffle(order.begin(), order.end(), random_);
    struct Axis {
      int64_t extent, start = 0, step = 1, before = 0, after = 0, inside;
      bool is_repeated = false;
    };
    std::vector<Axis> axes;
    Extents base(rank);
    for (size_t k = 0; k < rank; ++k) {
      Axis axis{.extent = extents[static_cast<size_t>(order[k])], .inside = 0};
      axis.inside = axis.extent;
      if (!is_plain && axis.extent > 0) {
        if (is_input && Chance(15)) {
          axis.is_repeated = true;
        } else if (is_input && Chance(15)) {
          axis.before = Roll(0, std::min<int64_t>(2, axis.extent));
          axis.after = Roll(0, std::min<int64_t>(2, axis.extent - axis.before));
          axis.inside = axis.extent - axis.before - axis.after;
        }
        if (!axis.is_repeated && Chance(20)) {
          axis.step = Pick({-1, 1, 2, -2, 3});
          axis.start = Roll(0, 2);
        }
      }
      const int64_t reach = std::max<int64_t>(0, axis.inside - 1) * std::abs(axis.step);
      base[k] = axis.is_repeated ? 1
                : axis.inside == 0 && axis.step == 1
                    ? 0
                    : axis.start + reach + 1 + (axis.step == 1 ? 0 : Roll(0, 1));
      if (axis.step < 0) axis.start += reach;
      axes.push_back(axis);
    }
    const program::BufferId buffer = AddBuffer(type, base, is_input, data);
    Shape shape;
    for (int64_t extent : base) shape.push_back(extent);
    Operand operand{program::DenseView(buffer, type, shape), shape};
    std::vector<Dim> before(rank, 0), after(rank, 0);
    for (size_t k = 0; k < rank; ++k) {
      if (!axes[k].is_repeated) {
        operand = Slice(operand, static_cast<int>(k), axes[k].start, axes[k].step, axes[k].inside);
      }
      // A symbolic pad with a number as the extent: the guard's offset is then known only when
      // bound.
      before[k] = MakeZeroOr(axes[k].before);
      after[k] = axes[k].after;
    }
    const Scalar fill = tensor::IsComplex(type) ? Scalar{.f = 2} : MakeScalar(type, data);
    operand = *Pad(operand, before, after, fill);
    std::vector<int> back(rank);
    for (size_t k = 0; k < rank; ++k) back[static_cast<size_t>(order[k])] = static_cast<int>(k);
    operand = Permute(operand, back);
    Shape target;
    for (int64_t extent : extents) target.push_back(extent);
    return {BroadcastTo(operand, target), target};
  }

  // A number that is sometimes the value of a symbol.
  Dim MakeZeroOr(int64_t number) { return number == 0 ? Dim(0) : MakeDim(number); }

  int AddRead(ElementType type, const Extents& extents, Data data) {
    step_.reads.push_back(MakeOperand(type, extents, /*is_input=*/true, data).view);
    return static_cast<int>(step_.reads.size()) - 1;
  }

  void AddWrite(ElementType type, const Extents& extents) {
    step_.writes.push_back(MakeOperand(type, extents, /*is_input=*/false, Data::kAny).view);
  }

  // ---- Expressions ----

  program::ExprPool& pool() { return result_.program.exprs; }

  // A loaded element, brought to its arithmetic type if it is only a storage type.
  Expr MakeLoad(const Place& place, ElementType type) {
    // A storage type may stand in for the type it is computed in.
    ElementType stored = type;
    if (type == kFloat32 && Chance(40)) {
      stored =
          Pick({ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat8E4M3Fn,
                ElementType::kFloat8E4M3Fnuz, ElementType::kFloat8E5M2,
                ElementType::kFloat8E5M2Fnuz, ElementType::kFloat8E8M0, ElementType::kFloat4E2M1});
    }
    if (type == ElementType::kInt8 && Chance(40)) {
      stored = Pick({ElementType::kInt4, ElementType::kInt2});
    }
    if (type == ElementType::kUint8 && Chance(40)) {
      stored = Pick({ElementType::kUint4, ElementType::kUint2});
    }
    if (!place.domain.empty() && Chance(10)) return Cast(MakeLoadAt(place, stored), type);
    // An earlier read of the same type over the same axes is as good as a new one.
    for (size_t k = 0; k < step_.reads.size(); ++k) {
      const View& view = step_.reads[k];
      if (view.type == stored && view.rank() == static_cast<int>(place.domain.size()) &&
          reusable_.size() > k && reusable_[k] == place.domain && Chance(50)) {
        return Cast(Load(pool(), stored, static_cast<int>(k)), type);
      }
    }
    const int read = AddRead(stored, place.domain, data_);
    reusable_.resize(static_cast<size_t>(read) + 1);
    reusable_[static_cast<size_t>(read)] = place.domain;
    return Cast(Load(pool(), stored, read), type);
  }

  // A load at computed coordinates: in range by a modulus, or guarded and at times outside.
  Expr MakeLoadAt(const Place& place, ElementType type) {
    const Extents extents = {Roll(1, 5), Roll(1, 5)};
    Shape shape = {extents[0], extents[1]};
    const program::BufferId buffer = AddBuffer(type, extents, /*is_input=*/true, data_);
    Operand operand{program::DenseView(buffer, type, shape), shape};
    const bool is_guarded = Chance(50);
    if (is_guarded) {
      operand = *Pad(operand, {MakeZeroOr(1), 1}, {1, 1}, MakeScalar(type, data_));
    }
    step_.reads.push_back(operand.view);
    std::vector<Expr> coordinates;
    for (int axis = 0; axis < 2; ++axis) {
      const int from = static_cast<int>(Roll(0, static_cast<int64_t>(place.domain.size()) - 1));
      Expr coordinate = Coordinate(pool(), from) * IntConstant(pool(), kInt64, Roll(-2, 3)) +
                        IntConstant(pool(), kInt64, Roll(-3, 3));
      if (!is_guarded) {
        coordinate = Binary(ExprOp::kMod, coordinate,
                            IntConstant(pool(), kInt64, extents[static_cast<size_t>(axis)]));
      }
      coordinates.push_back(coordinate);
    }
    return LoadAt(pool(), type, static_cast<int>(step_.reads.size()) - 1, coordinates);
  }

  Expr MakeLeaf(const Place& place, ElementType type) {
    if (place.extra != nullptr && Chance(50)) {
      std::vector<Expr> fitting;
      for (const Expr& leaf : *place.extra) {
        if (leaf.type() == type) fitting.push_back(leaf);
      }
      if (!fitting.empty()) return Pick(std::span<const Expr>(fitting));
    }
    if (place.may_load && step_.reads.size() < 6 && Chance(75)) return MakeLoad(place, type);
    if (!place.domain.empty() && type != kBool && Chance(40)) {
      const int axis = static_cast<int>(Roll(0, static_cast<int64_t>(place.domain.size()) - 1));
      return Cast(Coordinate(pool(), axis), type);
    }
    if (!result_.symbols.empty() && type != kBool && Chance(30)) {
      const Dim dim = result_.program.dims->node_count() > 0
                          ? Dim(result_.program.dims->node(0)) * 2 + 1
                          : Dim(3);
      return Cast(DimExpr(pool(), dim), type);
    }
    return ScalarConstant(pool(), type, MakeScalar(type, Data::kModerate));
  }

  // An expression of an arithmetic type.
  Expr MakeExpr(const Place& place, ElementType type, int depth) {
    if (depth <= 0 || Chance(15)) return MakeLeaf(place, type);
    auto sub = [&](ElementType t) { return MakeExpr(place, t, depth - 1); };
    if (Chance(12)) return Select(sub(kBool), sub(type), sub(type));
    if (Chance(12))
      return Cast(
          sub(Pick({kFloat32, kFloat64, kInt64, ElementType::kInt32, ElementType::kUint8, kBool})),
          type);
    if (type == kBool) return MakeBool(place, depth);
    if (tensor::IsFloat(type)) return MakeFloat(place, type, depth);
    if (Chance(25)) {
      return Unary(Pick({ExprOp::kNeg, ExprOp::kAbs, ExprOp::kSign, ExprOp::kBitNot}), sub(type));
    }
    return Binary(Pick({ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kDiv, ExprOp::kMod,
                        ExprOp::kFmod, ExprOp::kPow, ExprOp::kMin, ExprOp::kMax, ExprOp::kAnd,
                        ExprOp::kOr, ExprOp::kXor, ExprOp::kShl, ExprOp::kShr}),
                  sub(type), sub(type));
  }

  Expr MakeBool(const Place& place, int depth) {
    auto sub = [&](ElementType t) { return MakeExpr(place, t, depth - 1); };
    if (Chance(60)) {
      const ElementType type = Pick({kFloat32, kFloat64, kInt64, ElementType::kUint8, kBool});
      return Binary(Pick({ExprOp::kEqual, ExprOp::kLess, ExprOp::kLessEqual}), sub(type),
                    sub(type));
    }
    if (Chance(20)) return Unary(ExprOp::kIsNan, sub(kFloat32));
    if (Chance(20)) return !sub(kBool);
    return Binary(Pick({ExprOp::kAnd, ExprOp::kOr, ExprOp::kXor}), sub(kBool), sub(kBool));
  }

  Expr MakeFloat(const Place& place, ElementType type, int depth) {
    auto sub = [&] { return MakeExpr(place, type, depth - 1); };
    if (Chance(50)) {
      return Binary(Pick({ExprOp::kAdd, ExprOp::kSub, ExprOp::kMul, ExprOp::kDiv, ExprOp::kMod,
                          ExprOp::kFmod, ExprOp::kPow, ExprOp::kMin, ExprOp::kMax}),
                    sub(), sub());
    }
    if (type == kFloat64 && Chance(5) && !place.domain.empty()) {
      return Random(Coordinate(pool(), 0), random_());
    }
    return Unary(
        Pick({ExprOp::kNeg,       ExprOp::kAbs,   ExprOp::kSign,  ExprOp::kFloor, ExprOp::kCeil,
              ExprOp::kRoundEven, ExprOp::kTrunc, ExprOp::kSqrt,  ExprOp::kExp,   ExprOp::kExpm1,
              ExprOp::kLog,       ExprOp::kLog1p, ExprOp::kSin,   ExprOp::kCos,   ExprOp::kTan,
              ExprOp::kAsin,      ExprOp::kAcos,  ExprOp::kAtan,  ExprOp::kSinh,  ExprOp::kCosh,
              ExprOp::kTanh,      ExprOp::kAsinh, ExprOp::kAcosh, ExprOp::kAtanh, ExprOp::kErf}),
        sub());
  }

  // To the type of a write; storage types by a cast.
  Expr Store(Expr value, ElementType type) { return Cast(value, type); }

  // ---- Families ----

  void MakeMap() {
    has_specials_ = Chance(15);
    const Extents domain = MakeExtents(0, 4, 700);
    step_.domain = MakeShape(domain);
    const Place place{domain, true, nullptr};
    program::Map map;
    const int writes = Chance(20) ? 2 : 1;
    for (int k = 0; k < writes; ++k) {
      if (Chance(4)) {
        const ElementType type = Pick({ElementType::kComplex64, ElementType::kComplex128});
        const Expr a = Load(pool(), type, AddRead(type, domain, data_));
        const Expr b = Load(pool(), type, AddRead(type, domain, data_));
        map.roots.push_back(Select(MakeExpr(place, kBool, 2), a, b).id());
        AddWrite(type, domain);
        continue;
      }
      const ElementType type = Pick(std::span<const ElementType>(kNumeric));
      const ElementType computed = tensor::ArithmeticType(type);
      if (Chance(10)) {
        // A pure move, of the storage type itself.
        map.roots.push_back(Load(pool(), type, AddRead(type, domain, data_)).id());
      } else {
        map.roots.push_back(
            Store(MakeExpr(place, computed, static_cast<int>(Roll(1, 4))), type).id());
      }
      AddWrite(type, domain);
    }
    step_.body = std::move(map);
  }

  struct MadeFold {
    program::Fold fold;
    std::vector<Expr> states;
    std::vector<Expr> finals;  // expressions of the states that make sense as a result
  };

  void AddState(MadeFold& made, ElementType type, Expr init, Expr update, Expr merge) {
    made.fold.states.push_back({type, init.id(), update.id(), merge.id()});
  }

  // Updates and merges that agree. `element` makes the folded element of a type.
  template <typename MakeElement>
  MadeFold MakeFold(MakeElement&& element, const Extents& reduced, int first_axis) {
    MadeFold made;
    const ElementType float_type = Chance(60) ? kFloat32 : kFloat64;
    const ElementType int_type = Pick(std::span<const ElementType>(kIntegers));
    auto state = [&](ElementType type, int k) { return State(pool(), type, k); };
    auto other = [&](ElementType type, int k) { return Other(pool(), type, k); };
    switch (Roll(0, 8)) {
      case 0: {
        const ElementType type = Chance(60) ? float_type : int_type;
        AddState(made, type, IntConstant(pool(), type, 0), state(type, 0) + element(type),
                 state(type, 0) + other(type, 0));
        made.finals = {state(type, 0)};
        break;
      }
      case 1: {
        const ElementType type = Chance(60) ? float_type : int_type;
        Expr factor = element(type);
        // Where a 0 follows an overflow, the order of the factors would decide between 0 and NaN.
        if (tensor::IsFloat(type)) {
          factor = Maximum(Minimum(factor, Like(factor, 1)), Like(factor, -1));
        }
        AddState(made, type, IntConstant(pool(), type, 1), state(type, 0) * factor,
                 state(type, 0) * other(type, 0));
        made.finals = {state(type, 0)};
        break;
      }
      case 2:
      case 3: {
        const ElementType type = Chance(60) ? float_type : int_type;
        const ExprOp op = Chance(50) ? ExprOp::kMax : ExprOp::kMin;
        const double extreme =
            op == ExprOp::kMax ? tensor::Lowest(type) : tensor::LargestFinite(type);
        const Expr init = tensor::IsFloat(type)
                              ? Constant(pool(), type, extreme)
                              : ScalarConstant(pool(), type, Extreme(type, op == ExprOp::kMin));
        AddState(made, type, init, Binary(op, state(type, 0), element(type)),
                 Binary(op, state(type, 0), other(type, 0)));
        made.finals = {state(type, 0)};
        break;
      }
      case 4: {
        // Position of the first maximum; the position starts beyond all.
        const ElementType type = Chance(50) ? kFloat32 : int_type;
        Expr value = element(type);
        // Which NaN comes first would depend on the order.
        if (tensor::IsFloat(type)) {
          value = Select(Unary(ExprOp::kIsNan, value), Constant(pool(), type, 0), value);
        }
        Expr position = IntConstant(pool(), kInt64, 0);
        for (size_t k = 0; k < reduced.size(); ++k) {
          position = position * IntConstant(pool(), kInt64, reduced[k]) +
                     Coordinate(pool(), first_axis + static_cast<int>(k));
        }
        const Expr none = IntConstant(pool(), kInt64, -1);
        auto wins = [&](Expr v, Expr p) {
          const Expr best = state(type, 0);
          const Expr at = state(kInt64, 1);
          return (p >= Like(p, 0)) && ((at == none) || (best < v) || ((best == v) && (p < at)));
        };
        AddState(made, type, IntConstant(pool(), type, 0),
                 Select(wins(value, position), value, state(type, 0)),
                 Select(wins(other(type, 0), other(kInt64, 1)), other(type, 0), state(type, 0)));
        AddState(
            made, kInt64, none, Select(wins(value, position), position, state(kInt64, 1)),
            Select(wins(other(type, 0), other(kInt64, 1)), other(kInt64, 1), state(kInt64, 1)));
        made.finals = {state(type, 0), state(kInt64, 1)};
        break;
      }
      case 5: {
        const bool is_or = Chance(50);
        auto join = [&](Expr a, Expr b) { return is_or ? a || b : a && b; };
        AddState(made, kBool, IntConstant(pool(), kBool, is_or ? 0 : 1),
                 join(state(kBool, 0), element(kBool)), join(state(kBool, 0), other(kBool, 0)));
        made.finals = {state(kBool, 0)};
        break;
      }
      case 6: {
        // Welford's mean and sum of squared deviations.
        const ElementType type = float_type;
        const Expr x = element(type);
        const Expr count = state(type, 0), mean = state(type, 1), m2 = state(type, 2);
        const Expr one = Constant(pool(), type, 1);
        const Expr zero = Constant(pool(), type, 0);
        const Expr delta = x - mean;
        const Expr new_mean = mean + delta / (count + one);
        const Expr apart = other(type, 1) - mean;
        const Expr total = count + other(type, 0);
        AddState(made, type, zero, count + one, total);
        AddState(made, type, zero, new_mean, mean + apart * other(type, 0) / total);
        AddState(made, type, zero, m2 + delta * (x - new_mean),
                 m2 + other(type, 2) + apart * apart * count * other(type, 0) / total);
        made.finals = {mean, m2 / (count + one)};
        break;
      }
      case 7: {
        const ElementType type = float_type;
        const Expr x = element(type);
        AddState(made, type, Constant(pool(), type, 0), state(type, 0) + x * x,
                 state(type, 0) + other(type, 0));
        AddState(made, type, Constant(pool(), type, 0), state(type, 1) + Unary(ExprOp::kAbs, x),
                 state(type, 1) + other(type, 1));
        made.finals = {Unary(ExprOp::kSqrt, state(type, 0)), state(type, 1)};
        break;
      }
      default: {
        // The running logarithm of a sum of exponentials.
        const ElementType type = float_type;
        const Expr x = element(type);
        const Expr highest = state(type, 0), sum = state(type, 1);
        auto exp = [&](Expr e) { return Unary(ExprOp::kExp, e); };
        const Expr up = Maximum(highest, x);
        const Expr joined = Maximum(highest, other(type, 0));
        AddState(made, type, Constant(pool(), type, -1e4), up, joined);
        AddState(made, type, Constant(pool(), type, 0), sum * exp(highest - up) + exp(x - up),
                 sum * exp(highest - joined) + other(type, 1) * exp(other(type, 0) - joined));
        made.finals = {highest, sum};
        break;
      }
    }
    for (size_t k = 0; k < made.fold.states.size(); ++k) {
      made.states.push_back(state(made.fold.states[k].type, static_cast<int>(k)));
    }
    return made;
  }

  static Scalar Extreme(ElementType type, bool is_largest) {
    const int bits = tensor::BitWidth(type);
    if (tensor::IsSigned(type)) {
      const int64_t largest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
      return Scalar{.i = is_largest ? largest : -largest - 1};
    }
    return Scalar{.u = is_largest ? ~uint64_t{0} >> (64 - bits) : 0};
  }

  // The type to write an expression in: its own or a narrower one.
  ElementType StoredType(ElementType computed) {
    if (computed == kFloat32 && Chance(25)) {
      return Pick({ElementType::kFloat16, ElementType::kBfloat16});
    }
    if (computed == ElementType::kInt8 && Chance(25)) return ElementType::kInt4;
    if (computed == ElementType::kUint8 && Chance(25)) return ElementType::kUint2;
    return computed;
  }

  void MakeReduce() {
    data_ = Data::kModerate;
    const Extents domain = MakeExtents(1, 4, Chance(20) ? 3000 : 400);
    const int axes = static_cast<int>(Roll(0, static_cast<int64_t>(domain.size())));
    const auto outer_rank = static_cast<int>(domain.size()) - axes;
    step_.domain = MakeShape(domain);
    const Place place{domain, true, nullptr};
    const Extents outer(domain.begin(), domain.begin() + outer_rank);
    const Extents reduced(domain.begin() + outer_rank, domain.end());
    MadeFold made = MakeFold(
        [&](ElementType type) { return MakeExpr(place, type, static_cast<int>(Roll(0, 2))); },
        reduced, outer_rank);
    program::Reduce reduce;
    reduce.axes = axes;
    for (const Expr& final : made.finals) {
      const Place result{outer, false, &made.states};
      const Expr root =
          Chance(60) || final.type() == kBool ? final : final + MakeExpr(result, final.type(), 1);
      const ElementType type = StoredType(root.type());
      reduce.roots.push_back(Store(root, type).id());
      AddWrite(type, outer);
    }
    reduce.fold = std::move(made.fold);
    step_.body = std::move(reduce);
  }

  void MakeScan() {
    data_ = Data::kModerate;
    const Extents domain = MakeExtents(1, 4, 400);
    step_.domain = MakeShape(domain);
    const Place place{domain, true, nullptr};
    const Extents scanned = {domain.back()};
    MadeFold made = MakeFold(
        [&](ElementType type) { return MakeExpr(place, type, static_cast<int>(Roll(0, 2))); },
        scanned, static_cast<int>(domain.size()) - 1);
    program::Scan scan;
    scan.exclusive = Chance(40);
    for (program::Fold::State& state : made.fold.states) state.merge = program::kNoExpr;
    for (const Expr& final : made.finals) {
      const Place result{domain, true, &made.states};
      const Expr root =
          Chance(70) || final.type() == kBool ? final : final + MakeExpr(result, final.type(), 1);
      const ElementType type = StoredType(root.type());
      scan.roots.push_back(Store(root, type).id());
      AddWrite(type, domain);
    }
    scan.fold = std::move(made.fold);
    step_.body = std::move(scan);
  }

  void MakeRow() {
    data_ = Data::kModerate;
    const Extents domain = MakeExtents(1, 4, Chance(20) ? 1500 : 300);
    const int axes = static_cast<int>(Roll(1, static_cast<int64_t>(domain.size())));
    const auto outer_rank = static_cast<int>(domain.size()) - axes;
    const Extents reduced(domain.begin() + outer_rank, domain.end());
    step_.domain = MakeShape(domain);
    std::vector<Expr> results;
    program::Row row;
    row.axes = axes;
    const int stages = static_cast<int>(Roll(1, 3));
    for (int stage = 0; stage < stages; ++stage) {
      const Place place{domain, true, &results};
      MadeFold made = MakeFold(
          [&](ElementType type) { return MakeExpr(place, type, static_cast<int>(Roll(0, 2))); },
          reduced, outer_rank);
      program::Row::Stage made_stage{std::move(made.fold), {}};
      for (size_t k = 0; k < made.finals.size(); ++k) {
        made_stage.results.push_back(made.finals[k].id());
        results.push_back(RowResult(pool(), made.finals[k].type(), stage, static_cast<int>(k)));
      }
      row.stages.push_back(std::move(made_stage));
    }
    const Place place{domain, true, &results};
    const ElementType computed = Pick({kFloat32, kFloat64, ElementType::kInt32});
    const ElementType type = StoredType(computed);
    row.roots.push_back(Store(MakeExpr(place, computed, 2), type).id());
    AddWrite(type, domain);
    if (Chance(40)) {
      // A result of the row itself, written once per row.
      const Expr result = Pick(std::span<const Expr>(results));
      row.roots.push_back(result.id());
      const Extents outer(domain.begin(), domain.begin() + outer_rank);
      Operand operand = MakeOperand(result.type(), outer, /*is_input=*/false, Data::kAny);
      for (int k = 0; k < axes; ++k) operand = InsertAxis(operand, operand.rank());
      step_.writes.push_back(operand.view);
    }
    step_.body = std::move(row);
  }

  // Elements of an operand of Contract as its accumulator's type: loaded, perhaps dequantised or
  // activated.
  Expr MakePrologue(ElementType accumulator, const Extents& extents, int read, ElementType type) {
    Expr element = Cast(Load(pool(), type, read), accumulator);
    if (Chance(25)) {
      // A zero point, or a bias: another read over the operand's own axes.
      const ElementType other = Pick({type, accumulator});
      element =
          element - Cast(Load(pool(), other, AddRead(other, extents, Data::kSmall)), accumulator);
    }
    if (Chance(15)) element = Maximum(element, Like(element, 0));
    return element;
  }

  // What follows the accumulator, down to the roots and writes. Small slopes only, so that the
  // tolerance holds.
  void MakeEpilogue(ElementType accumulator, const Extents& domain, bool may_write_two,
                    std::vector<program::ExprId>& roots) {
    const int writes = may_write_two && Chance(15) ? 2 : 1;
    for (int k = 0; k < writes; ++k) {
      Expr value = Accumulator(pool(), accumulator);
      const bool is_float = tensor::IsFloat(accumulator);
      if (Chance(40)) {
        const int read = AddRead(accumulator, domain, Data::kSmall);
        value = value + Load(pool(), accumulator, read);
      }
      if (is_float && Chance(20)) value = value * Like(value, 0.5);
      if (Chance(30)) value = Maximum(value, Like(value, 0));
      if (Chance(10)) value = Minimum(Maximum(value, Like(value, 0)), Like(value, 6));
      if (is_float && Chance(10)) value = Unary(ExprOp::kTanh, value);
      ElementType type = accumulator;
      if (is_float && Chance(20)) type = Pick({ElementType::kFloat16, ElementType::kBfloat16});
      if (!is_float && Chance(30)) {
        // Requantised; the fraction keeps clear of ties.
        Expr scaled = Cast(value, kFloat32) * Constant(pool(), kFloat32, 0.25) +
                      Constant(pool(), kFloat32, 0.1);
        scaled = Unary(ExprOp::kRoundEven, scaled);
        scaled = Minimum(Maximum(scaled, Like(scaled, -128)), Like(scaled, 127));
        value = scaled;
        type = ElementType::kInt8;
      }
      roots.push_back(Store(value, type).id());
      AddWrite(type, domain);
    }
  }

  void MakeContract() {
    Contract contract;
    const ElementType accumulator =
        Pick({kFloat32, kFloat32, kFloat32, kFloat32, kFloat64, ElementType::kInt32,
              ElementType::kInt32, kInt64, ElementType::kUint32, ElementType::kUint64});
    contract.accumulator = accumulator;
    contract.form = Pick({Contract::Form::kMatMul, Contract::Form::kConv, Contract::Form::kConv,
                          Contract::Form::kConvTranspose});
    Extents a_extents, b_extents, domain;
    int64_t depth = 1;
    if (contract.form == Contract::Form::kMatMul) {
      auto some = [&](int max_rank, int64_t largest) {
        Extents extents(static_cast<size_t>(Roll(0, max_rank)));
        for (int64_t& extent : extents) extent = Roll(Chance(2) ? 0 : 1, largest);
        return extents;
      };
      const Extents batch = some(2, 3), m = some(2, 9), n = some(2, Chance(20) ? 70 : 9);
      const Extents k = some(2, 17);
      contract.batch_axes = static_cast<int>(batch.size());
      contract.m_axes = static_cast<int>(m.size());
      contract.n_axes = static_cast<int>(n.size());
      contract.inner = MakeShape(k);
      auto join = [](std::initializer_list<const Extents*> parts) {
        Extents all;
        for (const Extents* part : parts) all.insert(all.end(), part->begin(), part->end());
        return all;
      };
      a_extents = join({&batch, &m, &k});
      b_extents = join({&batch, &k, &n});
      domain = join({&batch, &m, &n});
      depth = tensor::ElementCount(k);
    } else {
      MakeConvolution(contract, a_extents, b_extents, domain, depth);
    }
    step_.domain = MakeShape(domain);
    const bool is_float = tensor::IsFloat(accumulator);
    const Data data = is_float && Chance(50) ? Data::kModerate : Data::kSmall;
    auto type = [&] {
      if (is_float) {
        return Chance(70) ? accumulator
                          : Pick({ElementType::kFloat16, ElementType::kBfloat16, ElementType::kInt8,
                                  kFloat32});
      }
      return Pick({ElementType::kInt8, ElementType::kUint8, accumulator, ElementType::kInt4});
    };
    const ElementType a_type = type();
    const ElementType b_type = type();
    // Integers of any size would leave the tolerance below.
    AddRead(a_type, a_extents, tensor::IsFloat(a_type) ? data : Data::kSmall);
    AddRead(b_type, b_extents, tensor::IsFloat(b_type) ? data : Data::kSmall);
    contract.a_prologue = MakePrologue(accumulator, a_extents, 0, a_type).id();
    contract.b_prologue = MakePrologue(accumulator, b_extents, 1, b_type).id();
    MakeEpilogue(accumulator, domain, /*may_write_two=*/true, contract.roots);
    if (is_float) {
      // Each product is at most 2^3 * 2^3 in size; a sum of `depth` of them is off by that many
      // roundings at most.
      const double unit = accumulator == kFloat32 ? 0x1p-24 : 0x1p-53;
      result_.tolerance = 4 * unit * 64 * static_cast<double>(depth + 4);
    }
    step_.body = std::move(contract);
  }

  void MakeConvolution(Contract& contract, Extents& a_extents, Extents& b_extents, Extents& domain,
                       int64_t& depth) {
    const auto spatial = static_cast<size_t>(Roll(0, 20) == 0 ? 0 : Roll(1, 3));
    const bool is_transposed = contract.form == Contract::Form::kConvTranspose;
    contract.group = Chance(60) ? 1 : Roll(1, 4);
    const int64_t channels = Chance(20) ? 1 : Roll(1, 6);  // C / group
    const int64_t outputs = Chance(20) ? 1 : Roll(1, 9);   // M / group
    const int64_t images = Roll(1, 2);
    Extents in, kernel, out;
    std::vector<Dim> pads;
    const int64_t largest = spatial == 1 ? 20 : spatial == 2 ? 9 : 5;
    while (in.size() < spatial) {
      const int64_t extent = Roll(1, largest), size = Roll(1, 4);
      const int64_t stride = Chance(50) ? 1 : Roll(1, 3), dilation = Chance(60) ? 1 : Roll(1, 3);
      const int64_t before = Chance(40) ? 0 : Roll(0, 3), after = Chance(40) ? 0 : Roll(0, 3);
      const int64_t reach = dilation * (size - 1) + 1;
      int64_t result = 0;
      if (is_transposed) {
        result = stride * (extent - 1) + reach - before - after + Roll(0, stride - 1);
      } else if (extent + before + after >= reach) {
        result = (extent + before + after - reach) / stride + 1;
      }
      if (result < 1) continue;
      in.push_back(extent);
      kernel.push_back(size);
      out.push_back(result);
      pads.push_back(before == 0 ? Dim(0) : MakeDim(before));
      contract.strides.push_back(stride);
      contract.dilations.push_back(dilation);
    }
    contract.pads_begin = pads;
    contract.a_spatial = MakeShape(in);
    Extents inner = {channels};
    inner.insert(inner.end(), kernel.begin(), kernel.end());
    contract.inner = MakeShape(inner);
    depth = tensor::ElementCount(inner);
    a_extents = {images, contract.group * channels};
    a_extents.insert(a_extents.end(), in.begin(), in.end());
    b_extents = is_transposed ? Extents{contract.group * channels, outputs}
                              : Extents{contract.group * outputs, channels};
    b_extents.insert(b_extents.end(), kernel.begin(), kernel.end());
    domain = {images, contract.group * outputs};
    domain.insert(domain.end(), out.begin(), out.end());
  }

  void MakeWindow() {
    Window window;
    window.kind = Pick({Window::Kind::kMax, Window::Kind::kMax, Window::Kind::kAverage,
                        Window::Kind::kAverage, Window::Kind::kLp, Window::Kind::kLrn});
    const bool needs_float = window.kind != Window::Kind::kMax;
    window.accumulator = needs_float || Chance(60) ? Pick({kFloat32, kFloat32, kFloat32, kFloat64})
                                                   : Pick(std::span<const ElementType>(kIntegers));
    const bool is_float = tensor::IsFloat(window.accumulator);
    Extents in_spatial, domain = {Roll(1, 2), Roll(1, 6)};
    Extents in_extents = domain;
    const auto spatial = static_cast<size_t>(Roll(1, 3));
    const int64_t largest = spatial == 1 ? 24 : spatial == 2 ? 10 : 6;
    if (window.kind == Window::Kind::kLrn) {
      for (size_t axis = 0; axis < spatial; ++axis) in_spatial.push_back(Roll(1, largest));
      domain.insert(domain.end(), in_spatial.begin(), in_spatial.end());
      window.kernel = {Roll(1, 7)};
      window.alpha = Uniform(0.0001, 0.5);
      window.beta = Pick({0.75, 0.5, 1.0, Uniform(0.1, 1.5)});
      window.bias = Uniform(0.5, 2);
    }
    while (in_spatial.size() < spatial) {
      const bool is_global = Chance(10);
      const int64_t extent = Roll(1, largest);
      const int64_t size = is_global ? extent : Roll(1, 4);
      const int64_t stride = is_global || Chance(40) ? 1 : Roll(1, 3);
      const int64_t dilation = is_global || Chance(70) ? 1 : Roll(1, 2);
      const int64_t reach = dilation * (size - 1) + 1;
      const int64_t before = is_global || Chance(50) ? 0 : Roll(0, reach - 1);
      const int64_t after = is_global || Chance(50) ? 0 : Roll(0, reach - 1);
      const int64_t room = extent + before + after - reach;
      if (room < 0) continue;
      // Rounded up at times; a window then starts inside the input or the padding before it.
      int64_t result = room / stride + 1;
      if (Chance(30) && room % stride != 0 && result * stride < extent + before) ++result;
      in_spatial.push_back(extent);
      window.kernel.push_back(MakeDim(size));
      window.strides.push_back(stride);
      window.dilations.push_back(dilation);
      window.pads_begin.push_back(before == 0 ? Dim(0) : MakeDim(before));
      window.pads_end.push_back(after == 0 ? Dim(0) : MakeDim(after));
      domain.push_back(result);
    }
    in_extents.insert(in_extents.end(), in_spatial.begin(), in_spatial.end());
    window.in_spatial = MakeShape(in_spatial);
    window.count_include_pad = Chance(50);
    window.p = Roll(1, 3);
    window.column_major = Chance(50);
    step_.domain = MakeShape(domain);
    ElementType type = window.accumulator;
    if (type == kFloat32 && Chance(30)) {
      type = Pick({ElementType::kFloat16, ElementType::kBfloat16});
    }
    AddRead(type, in_extents, is_float && Chance(70) ? Data::kModerate : Data::kSmall);
    if (window.kind == Window::Kind::kMax && Chance(40)) {
      window.roots = {Store(Accumulator(pool(), window.accumulator), window.accumulator).id()};
      AddWrite(window.accumulator, domain);
      AddWrite(kInt64, domain);
    } else {
      // The second write of a maximum is its indices.
      MakeEpilogue(window.accumulator, domain, window.kind != Window::Kind::kMax, window.roots);
    }
    if (is_float && needs_float) {
      const double unit = window.accumulator == kFloat32 ? 0x1p-24 : 0x1p-53;
      result_.tolerance = 512 * unit * 16;
    }
    step_.body = std::move(window);
  }

  void MakeIndex() {
    Index index;
    index.kind = Pick({Index::Kind::kScatter, Index::Kind::kScatter, Index::Kind::kTopK,
                       Index::Kind::kTopK, Index::Kind::kCountNonZero, Index::Kind::kNonZero});
    const bool needs_axis = index.kind == Index::Kind::kTopK || index.kind == Index::Kind::kNonZero;
    const Extents domain = MakeExtents(needs_axis ? 1 : 0, 3, 300);
    step_.domain = MakeShape(domain);
    const ElementType type = Pick(std::span<const ElementType>(kNumeric));
    const Data data = Chance(50) ? Data::kSmall : Data::kAny;
    AddRead(type, domain, data);
    switch (index.kind) {
      case Index::Kind::kScatter: {
        Extents target(static_cast<size_t>(Roll(1, 3)));
        for (int64_t& extent : target) extent = Roll(1, 5);
        for (size_t axis = 0; axis < target.size(); ++axis) {
          // Small numbers: many duplicates, some out of range.
          AddRead(kInt64, domain, Data::kSmall);
        }
        index.target = MakeShape(target);
        index.combine = Pick({Index::Combine::kNone, Index::Combine::kAdd, Index::Combine::kMul,
                              Index::Combine::kMin, Index::Combine::kMax});
        if (tensor::IsBool(type)) index.combine = Index::Combine::kNone;
        AddWrite(type, target);
        break;
      }
      case Index::Kind::kTopK: {
        Extents out = domain;
        out.back() = Roll(out.back() == 0 ? 0 : 1, out.back());
        index.k = MakeZeroOr(out.back());
        index.largest = Chance(50);
        AddWrite(type, out);
        AddWrite(kInt64, out);
        break;
      }
      case Index::Kind::kCountNonZero:
        AddWrite(kInt64, {});
        break;
      case Index::Kind::kNonZero: {
        const Extents out = {static_cast<int64_t>(domain.size()), tensor::ElementCount(domain)};
        Shape shape = {out[0], out[1]};
        const program::BufferId buffer = AddBuffer(kInt64, out, /*is_input=*/false, Data::kAny);
        step_.writes.push_back(program::DenseView(buffer, kInt64, shape));
        break;
      }
      case Index::Kind::kSuppress:
        break;  // not drawn
    }
    step_.body = std::move(index);
  }

  std::mt19937_64 random_;
  RandomStep result_;
  Step step_;
  Data data_ = Data::kAny;
  bool has_specials_ = false;
  std::vector<Extents> reusable_;  // per read: the axes it was made over; empty for others
};

// One rounding of a value of the type, relative.
double RoundingOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat64:
      return 0x1p-50;
    case ElementType::kFloat32:
      return 0x1p-21;
    case ElementType::kFloat16:
      return 0x1p-10;
    case ElementType::kBfloat16:
      return 0x1p-7;
    default:
      return tensor::IsFloat(type) ? 0x1p-2 : 0;
  }
}

bool IsClose(double expected, double actual, ElementType type, double tolerance) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (expected == actual) return true;
  return std::fabs(expected - actual) <= tolerance + RoundingOf(type) * std::fabs(expected);
}

}  // namespace

std::string_view Name(Family family) {
  switch (family) {
    case Family::kMap:
      return "Map";
    case Family::kReduce:
      return "Reduce";
    case Family::kRow:
      return "Row";
    case Family::kScan:
      return "Scan";
    case Family::kContract:
      return "Contract";
    case Family::kWindow:
      return "Window";
    case Family::kIndex:
      return "Index";
  }
  return "";
}

RandomStep MakeRandomStep(Family family, uint64_t seed) {
  // The families draw from unrelated sequences.
  return Generator(seed * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(family) + 1).Make(family);
}

base::Result<std::vector<tensor::Tensor>> RunStep(device::Device& device, const RandomStep& step) {
  const program::Step& body = step.program.steps[0];
  ONNXIFI_ASSIGN_OR_RETURN(device::Selection selection, device.Select({step.program, body}));
  std::vector<std::unique_ptr<device::Allocation>> allocations;
  std::vector<std::byte*> addresses;
  for (const tensor::Tensor& buffer : step.buffers) {
    ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Allocation> allocation,
                             device.memory().Allocate(buffer.size_bytes()));
    if (buffer.size_bytes() > 0) {
      std::memcpy(allocation->data(), buffer.data(), static_cast<size_t>(buffer.size_bytes()));
    }
    addresses.push_back(allocation->data());
    allocations.push_back(std::move(allocation));
  }
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, device.Build(*selection.recipe));
  const std::vector<std::byte*> constants(addresses.size(), nullptr);
  ONNXIFI_ASSIGN_OR_RETURN(std::unique_ptr<device::BoundKernel> bound,
                           kernel->Bind(device::Bind(step.program, body, step.dims), constants));
  ONNXIFI_RETURN_IF_ERROR(bound->Run(addresses));
  std::vector<tensor::Tensor> results;
  for (size_t k = 0; k < addresses.size(); ++k) {
    const tensor::Tensor& buffer = step.buffers[k];
    results.push_back(tensor::Tensor::FromBytes(
        buffer.type(), buffer.extents(), {addresses[k], static_cast<size_t>(buffer.size_bytes())}));
  }
  return results;
}

std::optional<std::string> FindDifference(const RandomStep& step,
                                          std::span<const tensor::Tensor> expected,
                                          std::span<const tensor::Tensor> actual) {
  for (size_t b = 0; b < expected.size(); ++b) {
    const ElementType type = expected[b].type();
    if (tensor::IsComplex(type) || tensor::IsInteger(type) || tensor::IsBool(type)) {
      const std::span<const std::byte> x = expected[b].bytes();
      const std::span<const std::byte> y = actual[b].bytes();
      if (std::equal(x.begin(), x.end(), y.begin(), y.end())) continue;
    }
    for (int64_t k = 0; k < expected[b].element_count(); ++k) {
      if (tensor::IsComplex(type)) return "Buffer " + std::to_string(b) + " differs.";
      const bool is_close =
          tensor::IsFloat(type)
              ? IsClose(expected[b].AsDouble(k), actual[b].AsDouble(k), type, step.tolerance)
              : expected[b].AsInt(k) == actual[b].AsInt(k);
      if (is_close) continue;
      return "Buffer " + std::to_string(b) + " (" + std::string(tensor::Name(type)) +
             "), element " + std::to_string(k) + ": " + std::to_string(actual[b].AsDouble(k)) +
             " instead of " + std::to_string(expected[b].AsDouble(k)) + ", tolerance " +
             std::to_string(step.tolerance) + ".";
    }
  }
  return std::nullopt;
}

Comparison CompareWithReference(device::Device& device, Family family, uint64_t seed,
                                int64_t count) {
  Device reference;
  Comparison comparison;
  for (int64_t k = 0; k < count; ++k) {
    const RandomStep step = MakeRandomStep(family, seed + static_cast<uint64_t>(k));
    const base::Result<std::vector<tensor::Tensor>> expected = RunStep(reference, step);
    const base::Result<std::vector<tensor::Tensor>> actual = RunStep(device, step);
    std::optional<std::string> difference;
    if (!expected.ok()) {
      difference = "The reference fails: " + expected.status().Text();
    } else if (!actual.ok()) {
      const auto code = static_cast<int32_t>(actual.status().code());
      // 0x02xx: the device says that it does not support this.
      if (code >> 8 == 2) {
        ++comparison.refused;
        continue;
      }
      difference = "The device fails: " + actual.status().Text();
    } else {
      difference = FindDifference(step, *expected, *actual);
    }
    ++comparison.compared;
    if (!difference) continue;
    if (comparison.different++ == 0) {
      comparison.first_difference = std::string(Name(family)) + " step of seed " +
                                    std::to_string(seed + static_cast<uint64_t>(k)) + ": " +
                                    *difference + "\n" + ToString(step.program);
    }
  }
  return comparison;
}

}  // namespace onnxifi::reference

// SPDX-License-Identifier: Apache-2.0
//
// Cell: the sums of a block's gates, of a few rows, stay in registers over the whole depth; weights
// of a block are read from the L1 cache by all rows but the first. With few rows there are several
// sums of each, so that one addition need not wait for the one before it.

#include "backends/cpu/recurrent/cell.h"

#include <algorithm>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/recurrent/cell.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/gemm/partial-inl.h"
#include "backends/cpu/recurrent/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::recurrent {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using gemm::HWY_NAMESPACE::LoadFirst;
using gemm::HWY_NAMESPACE::StoreFirst;
using Kind = program::Recurrent::Kind;

constexpr int kMaxGates = 4;
constexpr int kMaxRows = 8;
constexpr int kMaxLanes = HWY_MAX_BYTES / sizeof(float);
// Registers for the sums. The others hold weights and a broadcast state.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int kRegisters = 24;
#else
constexpr int kRegisters = 12;
#endif
// Sums that are independent of each other, enough for two additions a cycle that take four.
constexpr int kIndependent = 8;

constexpr int RowsAtOnce(int gates) { return std::min(kMaxRows, kRegisters / gates); }
// How many sums of each gate and row are kept, of every so manieth element of the depth.
constexpr int SumsOfEach(int rows, int gates) {
  int sums = 1;
  while (rows * gates * sums < kIndependent && rows * gates * (sums + 1) <= kRegisters) ++sums;
  return sums;
}

// sums[row][gate]: a vector each.
template <int rows, int gates>
HWY_NOINLINE void Multiply(const float* const* states, int64_t depth, const float* weights,
                           float* sums) {
  const Tag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kSums = SumsOfEach(rows, gates);
  const float* state[rows];
  for (int r = 0; r < rows; ++r) state[r] = states[r];
  Vec sum[kSums][rows][gates];
#pragma GCC unroll 8
  for (int s = 0; s < kSums; ++s) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int g = 0; g < gates; ++g) sum[s][r][g] = hn::Zero(d);
    }
  }
  const auto add = [&](int64_t k, int s) HWY_ATTR {
    Vec weight[gates];
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) weight[g] = hn::LoadU(d, weights + (s * gates + g) * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec element = hn::Set(d, state[r][k + s]);
#pragma GCC unroll 4
      for (int g = 0; g < gates; ++g) {
        sum[s][r][g] = hn::MulAdd(element, weight[g], sum[s][r][g]);
      }
    }
  };
  int64_t k = 0;
  for (; k + kSums <= depth; k += kSums) {
#pragma GCC unroll 8
    for (int s = 0; s < kSums; ++s) add(k, s);
    weights += kSums * gates * lanes;
  }
  for (; k < depth; ++k) {
    add(k, 0);
    weights += gates * lanes;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < gates; ++g) {
      Vec total = sum[0][r][g];
#pragma GCC unroll 8
      for (int s = 1; s < kSums; ++s) total = hn::Add(total, sum[s][r][g]);
      hn::StoreU(total, d, sums + (r * gates + g) * lanes);
    }
  }
}

using MultiplyFunction = void (*)(const float* const*, int64_t, const float*, float*);

// The function for each number of gates and of rows.
struct MultiplyFunctions {
  MultiplyFunction of[kMaxGates + 1][kMaxRows + 1] = {};

  constexpr MultiplyFunctions() {
    Fill<1>(std::make_integer_sequence<int, RowsAtOnce(1)>());
    Fill<2>(std::make_integer_sequence<int, RowsAtOnce(2)>());
    Fill<3>(std::make_integer_sequence<int, RowsAtOnce(3)>());
    Fill<4>(std::make_integer_sequence<int, RowsAtOnce(4)>());
  }

 private:
  template <int gates, int... rows>
  constexpr void Fill(std::integer_sequence<int, rows...> /*unused*/) {
    ((of[gates][rows + 1] = Multiply<rows + 1, gates>), ...);
  }
};

// One block of one row, once its sums are there.
struct Element {
  const Direction& direction;
  const Part& part;
  int64_t row;    // of the batch
  int64_t first;  // hidden unit
  int64_t count;  // of hidden units
  const float* sums;

  Vec Sum(int gate) const { return hn::LoadU(Tag(), sums + gate * hn::Lanes(Tag())); }
  Vec Projected(int gate) const {
    const float* from =
        part.projected + row * part.projected_stride + gate * direction.hidden + first;
    return count == static_cast<int64_t>(hn::Lanes(Tag())) ? hn::LoadU(Tag(), from)
                                                           : LoadFirst(Tag(), from, count);
  }
  int64_t state() const { return row * direction.stride + first; }
  Vec State(const float* states) const { return hn::LoadU(Tag(), states + state()); }
  void Keep(Vec value, float* states) const { hn::StoreU(value, Tag(), states + state()); }
  // Of the peepholes or the bias.
  Vec OfUnits(const float* numbers, int which) const {
    return hn::LoadU(Tag(), numbers + which * direction.stride + first);
  }

  void Finish(Vec hidden) const {
    Keep(hidden, part.hidden_out);
    if (part.sequence == nullptr) return;
    float* to = part.sequence + row * part.sequence_stride + first;
    if (count == static_cast<int64_t>(hn::Lanes(Tag()))) {
      hn::StoreU(hidden, Tag(), to);
    } else {
      StoreFirst(Tag(), hidden, to, count);
    }
  }
};

template <bool has_defaults>
HWY_INLINE void FinishLstm(const Element& at) {
  const Direction& direction = at.direction;
  const Activations<has_defaults> activate(direction.functions, direction.recurrent->clip);
  const Vec before = at.State(direction.cell);
  Vec input = hn::Add(at.Sum(0), at.Projected(0));
  Vec output = hn::Add(at.Sum(1), at.Projected(1));
  Vec forget = hn::Add(at.Sum(2), at.Projected(2));
  const Vec candidate = activate.Function(1, hn::Add(at.Sum(3), at.Projected(3)));
  if (direction.peepholes != nullptr) {
    input = hn::MulAdd(at.OfUnits(direction.peepholes, 0), before, input);
    forget = hn::MulAdd(at.OfUnits(direction.peepholes, 2), before, forget);
  }
  input = activate.Gate(input);
  forget = direction.recurrent->couples_gates ? hn::Sub(hn::Set(Tag(), 1.0f), input)
                                              : activate.Gate(forget);
  const Vec next = hn::MulAdd(forget, before, hn::Mul(input, candidate));
  at.Keep(next, direction.cell);
  if (direction.peepholes != nullptr) {
    output = hn::MulAdd(at.OfUnits(direction.peepholes, 1), next, output);
  }
  at.Finish(hn::Mul(activate.Gate(output), activate.Function(2, next)));
}

// (1 - z) * n + z * h
HWY_INLINE void FinishGruWith(const Element& at, Vec update, Vec candidate) {
  const Vec before = at.State(at.part.hidden_in);
  at.Finish(hn::MulAdd(update, hn::Sub(before, candidate), candidate));
}

template <bool has_defaults>
HWY_INLINE void FinishLinearGru(const Element& at) {
  const Direction& direction = at.direction;
  const Activations<has_defaults> activate(direction.functions, direction.recurrent->clip);
  const Vec update = activate.Gate(hn::Add(at.Sum(0), at.Projected(0)));
  const Vec reset = activate.Gate(hn::Add(at.Sum(1), at.Projected(1)));
  Vec recurrent = at.Sum(2);
  if (direction.bias != nullptr) recurrent = hn::Add(recurrent, at.OfUnits(direction.bias, 0));
  FinishGruWith(at, update, activate.Function(1, hn::MulAdd(reset, recurrent, at.Projected(2))));
}

template <bool has_defaults>
HWY_INLINE void FinishReset(const Element& at) {
  const Direction& direction = at.direction;
  const Activations<has_defaults> activate(direction.functions, direction.recurrent->clip);
  at.Keep(activate.Gate(hn::Add(at.Sum(0), at.Projected(0))), direction.update);
  const Vec reset = activate.Gate(hn::Add(at.Sum(1), at.Projected(1)));
  at.Keep(hn::Mul(reset, at.State(at.part.hidden_in)), direction.scaled);
}

template <bool has_defaults>
HWY_INLINE void FinishCandidate(const Element& at) {
  const Activations<has_defaults> activate(at.direction.functions, at.direction.recurrent->clip);
  FinishGruWith(at, at.State(at.direction.update),
                activate.Function(1, hn::Add(at.Sum(0), at.Projected(2))));
}

template <bool has_defaults>
HWY_INLINE void FinishRnn(const Element& at) {
  const Activations<has_defaults> activate(at.direction.functions, at.direction.recurrent->clip);
  at.Finish(activate.Function(0, hn::Add(at.Sum(0), at.Projected(0))));
}

template <void (*finish)(const Element&)>
HWY_NOINLINE void RunBlocks(const Direction& direction, const Part& part, const float* weights,
                            const float* states, int gates) {
  static constexpr MultiplyFunctions kFunctions;
  HWY_ALIGN float sums[kMaxRows * kMaxGates * kMaxLanes];
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const int64_t block_floats = direction.hidden * gates * lanes;
  const auto row_count = static_cast<int64_t>(part.rows.size());
  for (int64_t block = part.first_block; block < part.end_block; ++block) {
    const int64_t first = block * lanes;
    const int64_t count = std::min(lanes, direction.hidden - first);
    for (int64_t done = 0; done < row_count;) {
      // Evenly, so that the last are not too few to fill the registers.
      const int64_t left = row_count - done;
      const int64_t groups = (left + RowsAtOnce(gates) - 1) / RowsAtOnce(gates);
      const auto rows = static_cast<int>((left + groups - 1) / groups);
      const float* row_states[kMaxRows];
      for (int r = 0; r < rows; ++r) {
        row_states[r] = states + part.rows[static_cast<size_t>(done + r)] * direction.stride;
      }
      kFunctions.of[gates][rows](row_states, direction.hidden, weights + block * block_floats,
                                 sums);
      for (int r = 0; r < rows; ++r) {
        finish({direction, part, part.rows[static_cast<size_t>(done + r)], first, count,
                sums + r * gates * lanes});
      }
      done += rows;
    }
  }
}

template <bool has_defaults>
void RunPartWith(const Direction& direction, const Part& part, int product) {
  switch (direction.recurrent->kind) {
    case Kind::kRnn:
      return RunBlocks<FinishRnn<has_defaults>>(direction, part, direction.weights, part.hidden_in,
                                                1);
    case Kind::kLstm:
      return RunBlocks<FinishLstm<has_defaults>>(direction, part, direction.weights, part.hidden_in,
                                                 4);
    case Kind::kGru:
      break;
  }
  if (direction.recurrent->resets_linear) {
    return RunBlocks<FinishLinearGru<has_defaults>>(direction, part, direction.weights,
                                                    part.hidden_in, 3);
  }
  if (product == 0) {
    return RunBlocks<FinishReset<has_defaults>>(direction, part, direction.weights, part.hidden_in,
                                                2);
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(Tag()));
  const int64_t blocks = (direction.hidden + lanes - 1) / lanes;
  return RunBlocks<FinishCandidate<has_defaults>>(
      direction, part, direction.weights + blocks * direction.hidden * 2 * lanes, direction.scaled,
      1);
}

void RunPartOfAny(const Direction& direction, const Part& part, int product) {
  direction.has_defaults ? RunPartWith<true>(direction, part, product)
                         : RunPartWith<false>(direction, part, product);
}

int64_t LanesOfTarget() { return static_cast<int64_t>(hn::Lanes(Tag())); }

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::recurrent
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::recurrent {

HWY_EXPORT(RunPartOfAny);
HWY_EXPORT(LanesOfTarget);

int64_t BlockUnits() { return HWY_DYNAMIC_DISPATCH(LanesOfTarget)(); }

std::span<const ProductGates> ProductsOf(const program::Recurrent& recurrent) {
  using Kind = program::Recurrent::Kind;
  static constexpr ProductGates kOfRnn[] = {{0, 1}};
  static constexpr ProductGates kOfGru[] = {{0, 2}, {2, 1}};
  static constexpr ProductGates kOfLinearGru[] = {{0, 3}};
  static constexpr ProductGates kOfLstm[] = {{0, 4}};
  switch (recurrent.kind) {
    case Kind::kRnn:
      return kOfRnn;
    case Kind::kGru:
      if (recurrent.resets_linear) return kOfLinearGru;
      return kOfGru;
    case Kind::kLstm:
      return kOfLstm;
  }
  return {};
}

void RunPart(const Direction& direction, const Part& part, int product) {
  HWY_DYNAMIC_DISPATCH(RunPartOfAny)(direction, part, product);
}

}  // namespace onnxifi::recurrent
#endif

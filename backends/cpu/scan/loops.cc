// SPDX-License-Identifier: Apache-2.0
//
// Loops: vectors of states where lanes lie side by side, else a few states at a time, so that one
// does not wait for the other.

#include "backends/cpu/scan/loops.h"

#include <algorithm>
#include <type_traits>

#include "backends/core/program/integer_arithmetic.h"
#include "backends/core/tensor/native_type.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/scan/loops.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "backends/cpu/engine/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::scan {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace arithmetic = engine::HWY_NAMESPACE;

using program::ExprOp;
using tensor::ElementType;

// Each operation on two numbers, and as `Vectors` on two vectors.
template <typename T>
struct Sum {
  using Vectors = arithmetic::Sum;
  static T Run(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return program::WrapAdd(a, b);
    } else {
      return a + b;
    }
  }
};
template <typename T>
struct Product {
  // Not every width of integers has products of vectors.
  using Vectors = std::conditional_t<std::is_integral_v<T>, void, arithmetic::Product>;
  static T Run(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return program::WrapMul(a, b);
    } else {
      return a * b;
    }
  }
};
template <typename T>
struct Minimum {
  using Vectors =
      std::conditional_t<std::is_integral_v<T>, arithmetic::Minimum, arithmetic::FloatMinimum>;
  static T Run(T a, T b) { return a < b || a != a ? a : b; }
};
template <typename T>
struct Maximum {
  using Vectors =
      std::conditional_t<std::is_integral_v<T>, arithmetic::Maximum, arithmetic::FloatMaximum>;
  static T Run(T a, T b) { return b < a || a != a ? a : b; }
};

// kLanes lanes from `first_lane` on, at any steps.
template <typename T, class Operation, bool kIsExclusive, int kLanes>
HWY_INLINE void RunLanes(const Strip& strip, int64_t first_lane) {
  const T* source[kLanes];
  T* target[kLanes];
  T state[kLanes];
  T* states = reinterpret_cast<T*>(strip.states) + first_lane;
#pragma GCC unroll 4
  for (int k = 0; k < kLanes; ++k) {
    source[k] =
        reinterpret_cast<const T*>(strip.source) + (first_lane + k) * strip.source_lane_step;
    target[k] = reinterpret_cast<T*>(strip.target) + (first_lane + k) * strip.target_lane_step;
    state[k] = states[k];
  }
  int64_t from = 0;
  int64_t to = 0;
  for (int64_t element = 0; element < strip.elements; ++element) {
#pragma GCC unroll 4
    for (int k = 0; k < kLanes; ++k) {
      const T next = Operation::Run(state[k], source[k][from]);
      target[k][to] = kIsExclusive ? state[k] : next;
      state[k] = next;
    }
    from += strip.source_element_step;
    to += strip.target_element_step;
  }
#pragma GCC unroll 4
  for (int k = 0; k < kLanes; ++k) states[k] = state[k];
}

// kVectors vectors of lanes from `first_lane` on, which lie side by side.
template <typename T, class Operation, bool kIsExclusive, int kVectors>
HWY_INLINE void RunVectors(const Strip& strip, int64_t first_lane) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const T* source = reinterpret_cast<const T*>(strip.source) + first_lane;
  T* target = reinterpret_cast<T*>(strip.target) + first_lane;
  T* states = reinterpret_cast<T*>(strip.states) + first_lane;
  hn::Vec<decltype(d)> state[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) state[v] = hn::LoadU(d, states + v * lanes);
  for (int64_t element = 0; element < strip.elements; ++element) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto next =
          typename Operation::Vectors()(d, state[v], hn::LoadU(d, source + v * lanes));
      hn::StoreU(kIsExclusive ? state[v] : next, d, target + v * lanes);
      state[v] = next;
    }
    source += strip.source_element_step;
    target += strip.target_element_step;
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(state[v], d, states + v * lanes);
}

template <typename T, class Operation, bool kIsExclusive>
void Run(const Strip& strip) {
  int64_t lane = 0;
  if constexpr (!std::is_void_v<typename Operation::Vectors>) {
    constexpr int kVectors = 4;
    const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
    if (strip.source_lane_step == 1 && strip.target_lane_step == 1) {
      for (; lane + kVectors * lanes <= strip.lanes; lane += kVectors * lanes) {
        RunVectors<T, Operation, kIsExclusive, kVectors>(strip, lane);
      }
      for (; lane + lanes <= strip.lanes; lane += lanes) {
        RunVectors<T, Operation, kIsExclusive, 1>(strip, lane);
      }
    }
  }
  constexpr int kLanes = 4;
  for (; lane + kLanes <= strip.lanes; lane += kLanes) {
    RunLanes<T, Operation, kIsExclusive, kLanes>(strip, lane);
  }
  for (; lane < strip.lanes; ++lane) RunLanes<T, Operation, kIsExclusive, 1>(strip, lane);
}

template <typename T, class Operation>
Loop Find(bool is_exclusive) {
  return is_exclusive ? Loop(Run<T, Operation, true>) : Loop(Run<T, Operation, false>);
}

Loop FindLoopHere(ExprOp op, ElementType type, bool is_exclusive) {
  if (tensor::IsBool(type)) {
    // Of 0 and 1.
    if (op == ExprOp::kAnd) return Find<uint8_t, Minimum<uint8_t>>(is_exclusive);
    if (op == ExprOp::kOr) return Find<uint8_t, Maximum<uint8_t>>(is_exclusive);
    return nullptr;
  }
  return tensor::VisitNative(type, [&]<typename T>(T) -> Loop {
    switch (op) {
      case ExprOp::kAdd:
        return Find<T, Sum<T>>(is_exclusive);
      case ExprOp::kMul:
        return Find<T, Product<T>>(is_exclusive);
      case ExprOp::kMin:
        return Find<T, Minimum<T>>(is_exclusive);
      case ExprOp::kMax:
        return Find<T, Maximum<T>>(is_exclusive);
      default:
        return nullptr;
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::scan
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxifi::scan {

HWY_EXPORT(FindLoopHere);

Loop FindLoop(program::ExprOp op, tensor::ElementType type, bool is_exclusive) {
  return HWY_DYNAMIC_DISPATCH(FindLoopHere)(op, type, is_exclusive);
}

}  // namespace onnxifi::scan
#endif

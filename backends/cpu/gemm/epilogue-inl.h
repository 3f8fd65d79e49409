// SPDX-License-Identifier: Apache-2.0
//
// Epilogue on vectors, and on rows of sums. Included once per target of Highway.

#if defined(ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_
#undef ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "backends/cpu/gemm/epilogue.h"
#include "backends/cpu/gemm/partial-inl.h"
#include "backends/cpu/vector_math/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace math = vector_math::HWY_NAMESPACE;

// Calls body(activated) with a function from vector to vector: the activation alone, chosen once
// for all vectors. Not at all for none, nor for functions. A NaN stays one through kNone and
// kLeaky; kClip may make it a bound.
template <class D, class Body, class V = hn::Vec<D>>
HWY_INLINE void Activate(D d, const Epilogue& epilogue, Body body) {
  const V low = hn::Set(d, epilogue.low);
  const V high = hn::Set(d, epilogue.high);
  switch (epilogue.activation) {
    case Activation::kClip:
      return body([&](V x) HWY_ATTR { return hn::Min(hn::Max(x, low), high); });
    case Activation::kLeaky:
      return body(
          [&](V x) HWY_ATTR { return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, low), x); });
    default:
      return;
  }
}

// The same for functions. A NaN stays one.
template <class D, class Body, class V = hn::Vec<D>>
HWY_INLINE void ActivateByFunction(D d, const Epilogue& epilogue, Body body) {
  const V low = hn::Set(d, epilogue.low);
  const V high = hn::Set(d, epilogue.high);
  switch (epilogue.activation) {
    case Activation::kHardSwish:
      return body([&](V x) HWY_ATTR {
        const V gate = hn::Min(hn::Add(hn::Mul(x, low), high), hn::Set(d, 1.0F));
        return hn::Mul(x, hn::Max(gate, hn::Zero(d)));
      });
    case Activation::kLogistic:
      return body([&](V x) HWY_ATTR { return math::Logistic(d, x); });
    case Activation::kSwish:
      return body([&](V x) HWY_ATTR { return hn::Mul(x, math::Logistic(d, hn::Mul(x, low))); });
    case Activation::kGelu:
      return body([&](V x) HWY_ATTR { return math::Gelu(d, x); });
    case Activation::kTanh:
      return body([&](V x) HWY_ATTR { return math::Tanh(d, x); });
    default:
      return;
  }
}

// Not inline: where it is called, it is one of many things.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V FunctionOf(D d, V x, const Epilogue& epilogue) {
  ActivateByFunction(d, epilogue, [&](auto activated) HWY_ATTR { x = activated(x); });
  return x;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activated(D d, V x, const Epilogue& epilogue) {
  if (epilogue.IsFunction()) return FunctionOf(d, x, epilogue);
  Activate(d, epilogue, [&](auto activated) HWY_ATTR { x = activated(x); });
  return x;
}

// The function of each of `columns` neighbours in `rows` rows, in place.
template <class D>
HWY_NOINLINE void ApplyFunction(D d, const Epilogue& epilogue, float* data, int64_t stride,
                                int64_t rows, int64_t columns) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  ActivateByFunction(d, epilogue, [&](auto activated) HWY_ATTR {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = data + r * stride;
      int64_t n = 0;
      for (; n + lanes <= columns; n += lanes) {
        hn::StoreU(activated(hn::LoadU(d, row + n)), d, row + n);
      }
      if (n < columns) {
        StoreFirst(d, activated(LoadFirst(d, row + n, columns - n)), row + n, columns - n);
      }
    }
  });
}

// Columns [first, end) of one row: `target` is the epilogue of what `parts` rows of sums, each
// `part_stride` behind the last, add up to. `addend`, of the row, is that of the epilogue or null.
template <class D>
HWY_INLINE void FinishRow(D d, const float* sums, int64_t part_stride, int64_t parts,
                          const Epilogue& epilogue, const float* addend, int64_t first, int64_t end,
                          float* target) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t n = first; n < end; n += lanes) {
    const int64_t count = std::min(lanes, end - n);
    auto x = LoadFirst(d, sums + n, count);
    for (int64_t part = 1; part < parts; ++part) {
      x = hn::Add(x, LoadFirst(d, sums + part * part_stride + n, count));
    }
    if (epilogue.bias != nullptr) x = hn::Add(x, LoadFirst(d, epilogue.bias + n, count));
    if (addend != nullptr) x = hn::Add(x, LoadFirst(d, addend + n, count));
    StoreFirst(d, Activated(d, x, epilogue), target + n, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_

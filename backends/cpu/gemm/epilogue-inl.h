// SPDX-License-Identifier: Apache-2.0
//
// Epilogue on vectors. Included once per target of Highway.

#if defined(ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_
#undef ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_
#endif

#include <hwy/highway.h>

#include "backends/cpu/gemm/epilogue.h"

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The activation alone. A NaN stays one through kNone and kLeaky; kClip may make it a bound.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activated(D d, V x, const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::kNone:
      return x;
    case Activation::kClip:
      return hn::Min(hn::Max(x, hn::Set(d, epilogue.low)), hn::Set(d, epilogue.high));
    case Activation::kLeaky:
      return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, epilogue.low)), x);
  }
  return x;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_EPILOGUE_INL_H_

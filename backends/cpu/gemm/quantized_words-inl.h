// SPDX-License-Identifier: Apache-2.0
//
// Reading the words of a QuantizedMatrix. Included once per target.

#if defined(ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_WORDS_INL_H_
#undef ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_WORDS_INL_H_
#else
#define ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_WORDS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace onnxifi::gemm {
namespace HWY_NAMESPACE {

// Fetches what kernels read some blocks later, when they are at `address`: their memory in order,
// words, scales and zeros alike. So far ahead that two threads at the full speed of memory wait for
// nothing, and so near that a long row stays in the L1 cache beside it.
HWY_INLINE void FetchAhead(const void* address) {
  constexpr uintptr_t kBytesAhead = 16384;
  // Behind the last block there is nothing, and such an address is no pointer's.
  hwy::Prefetch(
      reinterpret_cast<const uint8_t*>(reinterpret_cast<uintptr_t>(address) + kBytesAhead));
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxifi::gemm
HWY_AFTER_NAMESPACE();

#endif  // ONNXIFI_BACKENDS_CPU_GEMM_QUANTIZED_WORDS_INL_H_
